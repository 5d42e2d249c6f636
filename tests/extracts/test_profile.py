import re
import tomllib
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ProfileError
from connectors.files.profiles.profile import DEFAULT, Profile, written_of
from connectors.files.profiles.profile_file import LOOKUP, load_profile, read_profile, with_terms
from connectors.files.profiles.profile_keys import KEYS, OF_FIELD, OF_UNITS, SECTIONS
from connectors.files.profiles.profile_writing import WRITTEN
from schemas.cells.dates import date_form
from schemas.tables import EXTRACTS
from tests.odd_toml import ODD_TOML
from tests.stages.reading.test_writing import MONTHS

PAGE = Path(__file__).parents[2] / "docs" / "profiles.md"

FULL = r"""
feed = "bank-x"
record = "payment"
delimiter = ";"
quote = "'"
encoding = "CP1252"
decimal = ","
thousands = "."
date_format = "%d.%m.%Y %H:%M"
zone = "Europe/Berlin"
null = ["", "NULL", "\\N", ""]
unknown_columns = "ignore"
tenant = 7

[columns]
"Betrag" = "PaidAmount"
"Größe" = "DiscountAmount"

[constants]
TenantsId = 7
CurrenciesId = "03"

[policy]
duplicate = "last_wins"
reference = "reject"

[budget]
errors = 100
rate = 0.05
"""

NAMED = 'date_format = "%d.%m.%Y %Z"'


def test_every_key(tmp_path: Path) -> None:
    path = tmp_path / "bank-x.toml"
    path.write_text(FULL, encoding="utf-8")
    assert load_profile(path) == Profile(
        feed="bank-x",
        record="payment",
        delimiter=";",
        quote="'",
        encoding="cp1252",
        decimal=",",
        thousands=".",
        date_format="%d.%m.%Y %H:%M",
        zone="Europe/Berlin",
        null=("", "NULL", "\\N"),
        unknown_columns="ignore",
        tenant=7,
        columns={"Betrag": "PaidAmount", "Größe": "DiscountAmount"},
        constants={"TenantsId": "7", "CurrenciesId": "03"},
        duplicate="last_wins",
        reference="reject",
        budget_errors=100,
        budget_rate=0.05,
    )


def test_keys_and_profile_are_the_same_facts() -> None:
    filled = [*KEYS]
    filled += [name for section in SECTIONS.values() for name, _ in section.values()]
    kept = {"change_records", "kept_settings"}  # What no feed says, but whoever opens a batch.
    assert sorted(filled) == sorted({field.name for field in fields(Profile)} - kept)
    for values, readers in ((tomllib.loads(FULL), KEYS),):
        assert set(values) <= {*readers, *SECTIONS}


def test_a_byte_order_mark_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b'\xef\xbb\xbffeed = "x"\r\ntenant = 7\r\n')
    assert load_profile(path) == Profile(feed="x", tenant=7)


def test_defaults() -> None:
    assert read_profile({"feed": "default"}) == DEFAULT


MADE = {"fields": {"Id": {"key": ["DebtsId", "PaymentDate"]}}}
REFERENCE = {"fields": {"DebtsId": {"key": ["TenantsId", "PaymentDate"]}}}


@pytest.mark.parametrize(
    ("asked", "merges"),
    [
        ({}, True),
        (REFERENCE, True),
        (MADE, False),
        (MADE | {"policy": {"repeats": "superseded"}}, True),
        (MADE | {"policy": {"duplicate": "last_wins"}}, True),
        ({"policy": {"repeats": "conflict"}}, False),
    ],
)
def test_equal_rows_are_one_record_where_their_key_is_delivered_or_the_feed_says_so(
    asked: dict[str, Any], merges: bool
) -> None:
    assert (
        read_profile({"feed": "bank", "record": "payment"} | asked).merges(EXTRACTS["payment"])
        is merges
    )


@pytest.mark.parametrize(
    ("field", "asked", "merges"),
    [
        ("Name", {"from": ["Day", "Text"], "join": " "}, False),
        ("Name", {"from": ["Text"], "part": "(.*)"}, True),
        ("AvatarsId", {"from": ["Text", "No"], "join": " ", "part": "([0-9]+)"}, True),
    ],
)
def test_a_text_of_several_columns_is_no_key_that_was_delivered(
    field: str, asked: dict[str, Any], merges: bool
) -> None:
    """Two lines that say the same may be two things: the same withdrawal twice on one day."""
    tones = read_profile({"feed": "bank", "record": "message_tone", "fields": {field: asked}})
    assert tones.merges(EXTRACTS["message_tone"]) is merges


def test_a_record_of_another_kind_has_no_made_key() -> None:
    """One inside insert-batch data that corrects rates: its number is delivered."""
    made = {"Id": {"key": ["EffectiveDate", "ToCurrenciesId"]}}
    rates = read_profile({"feed": "rates", "record": "currency_rate", "fields": made})
    assert [*rates.made_keys(EXTRACTS["currency_rate"])] == ["Id"]
    assert rates.made_keys(EXTRACTS["payment"]) == {}
    assert rates.merges(EXTRACTS["payment"])


def test_hash_is_of_the_rules_only() -> None:
    one = read_profile(tomllib.loads(FULL))
    lines = FULL.replace('"CP1252"', '"windows-1252"').replace('["", "NULL"', '["NULL", ""')
    top, *sections = lines.split("\n\n")
    shuffled = "\n".join(sorted(top.splitlines())) + "\n# a comment\n\n"
    shuffled += "\n\n".join(reversed(sections))
    assert read_profile(tomllib.loads(shuffled)).hash == one.hash
    seen = {one.hash, DEFAULT.hash}
    for before, after in (
        ("tenant = 7\n", "\n"),
        ('"03"', '"3"'),
        ('"Betrag"', '"Summe"'),
        ("bank-x", "bank-y"),
        ("tenant = 7", "tenant = 7\npush = true"),
        ("tenant = 7", "tenant = 7\ncompare_only = true"),
    ):
        assert before in FULL
        seen.add(read_profile(tomllib.loads(FULL.replace(before, after, 1))).hash)
    assert len(seen) == 8
    # A known value: a hash that changes by itself would make every old batch look different.
    assert one.hash == "e802d7035124d9eb0b1ef31f474d90a444a83a515d02794cddfdc5f619a911cb"
    assert DEFAULT.hash == "ff990acd015f2b802a8b2d5375e8dbe0c282be4af0fb590078fc02531011583e"


PAYMENT = 'record = "payment"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "feed is missing"),
        ('feed = ""', "feed = '' is not a name"),
        ('feed = "../x"', "is not a name"),
        ("feed = 7", "feed = 7 is not a text in quotes"),
        ('delimeter = ";"', "delimeter is not a key. Did you mean delimiter? Allowed: feed, "),
        ("[polices]", "Did you mean policy?"),
        ("[policy]\nduplicates = 1", "policy.duplicates is not a key. Did you mean duplicate?"),
        ("policy = 1", "policy = 1 is not a section; write [policy]"),
        (
            'record = "Payments"',
            "record names 'Payments', not a record kind. Did you mean payment?",
        ),
        ('record = "field_error"', "not a record kind"),
        ('delimiter = ";x"', "delimiter = ';x' has 'x' in it"),
        ('delimiter = ""', "is not one ASCII sign"),
        ('delimiter = "§"', "is not one ASCII sign"),
        ('delimiter = "\\n"', "is not one ASCII sign"),
        ('delimiter = "x"', "is not one ASCII sign"),
        ('quote = ""', "quote = '' is not one ASCII sign"),
        ("delimiter = '\"'", "delimiter and quote are both"),
        ('encoding = "klingon"', "encoding = 'klingon' cannot be read. Allowed: utf-8, utf-16"),
        ('encoding = "hz"', "cannot be read"),
        ('encoding = "rot13"', "cannot be read"),
        ('encoding = "unicode_escape"', "cannot be read"),
        ('encoding = "idna"', "cannot be read"),
        ('decimal = ";"', "decimal names ';', not an allowed value"),
        ('thousands = "."', "thousands and decimal are both '.'"),
        (
            'groups = "lakh"',
            "groups is about numbers with a sign between their digits. State it as",
        ),
        ('thousands = ","\ngroups = "wan"', "groups names 'wan', not an allowed value"),
        ('date_format = "%d.%m"', "does not give day, month and year"),
        ('date_format = "DD.MM.YYYY"', "Write each of them as a directive: %d.%m.%Y"),
        ('date_format = "unix_ms"', "name what they count. Did you mean unix-ms? Counts: excel, "),
        ('date_format = "%b %Y"', "add it by prefix or suffix of the field"),
        ('date_format = "%d.%m.%Q"', "is no date format"),
        ('date_format = "%d.%m.%Y %Y"', "stands in it twice"),
        (
            'date_format = "%d.%m.%Y %Z"',
            "line 2: date_format has the name of a zone, %Z. State zones",
        ),
        ('date_format = "%d.%m.%Y"\n[zones]\nCET = "Z"', "zones says what the names mean"),
        (
            'date_format = "%Z%d%m%Y"\ndate_zeros = "dropped"\n[zones]\n"GMT+1" = "+01:00"',
            "ends with a digit, and date_zeros drops",
        ),
        ('date_format = "%d.%m.%Y %z %Z"', "both say what its time means"),
        (
            f"{NAMED}\n[zones]\nCET = 'Z'\n[fields.PaymentDate]\ndate_format = '%d.%m.%Y'",
            "line 3: zones says what the names mean.*and fields.PaymentDate.date_format has none.",
        ),
        (
            f"offset = 'Z'\n[fields.PaymentDate]\n{NAMED}",
            "line 4: fields.PaymentDate.date_format has the name of a zone",
        ),
        (
            f"{NAMED}\n[zones]\nCET = 'Z'\n[fields.PaymentDate]\noffset = 'Z'",
            "line 2: date_format has the name of a zone",
        ),
        (
            "[fields.PaymentDate]\noffset = 'Z'\nzones = { CET = 'Z' }",
            "line 4: fields.PaymentDate.zones says what the names mean.*there is no date_format",
        ),
        (f"{NAMED}\n[zones]\nCET = 1", "zones.CET = 1 is not a text in quotes"),
        (f"{NAMED}\n[zones]\nCET = 'Berlin'", "zones.CET = 'Berlin' is no IANA time zone"),
        (f"{NAMED}\n[zones]\nCET = '1'", "zones.CET = '1' is no offset"),
        (f"{NAMED}\n[zones]\n1 = 'Z'", "names '1', which is no name of a zone"),
        (f"{NAMED}\n[zones]\n' CET' = 'Z'", "names ' CET', which is no name of a zone"),
        (f"{NAMED}\n[zones]", "zones is empty"),
        (f"{NAMED}\noffset = 'Z'\n[zones]\nCET = 'Z'", "offset and zones both say"),
        (f"{NAMED}\nzone = 'UTC'\n[zones]\nCET = 'Z'", "zone and zones both say"),
        ('date_format = "%d.%m.%Y %"', "ends within a directive"),
        ('date_zeros = "dropped"', "date_zeros is about a date_format"),
        ('date_format = "excel"\ndate_zeros = "dropped"', "date_zeros is about a date_format"),
        ('date_format = "excel"\nyear_zero = 2018', "year_zero is about a date_format with %y"),
        ('date_format = "%d%m%y"\nyear_zero = 18', "year_zero = 18 is the year 0 of no era"),
        ('date_format = "%d%m%y"\nyear_zero = -543', "-543 is for years in full"),
        (
            'date_format = "%d%m%Y"\ndate_zeros = "dropped"\nyear_zero = 1911',
            "without its zeros ends",
        ),
        (
            'date_format = ["%d/%m/%Y", "%m/%d/%Y"]\nyear_zero = -543',
            "'03/02/2544' is 2001-02-03T00:00:00 as %d/%m/%Y, and 2001-03-02",
        ),
        ('negative = ["-"]', "'-' does not show how one is written: there is no 1 in it"),
        ('negative = ["1 H 0"]', "'1 H 0' does not show how one is written: it has a second digit"),
        (
            'negative = ["27 1"]',
            "where a code of digits says the sign, name it in per.map of a sum",
        ),
        ('negative = ["1"]', "'1' is below zero and above it"),
        # A sign that is of a currency too, or that says a share, would turn what it is beside.
        ('negative = ["1 D"]\ncurrency = ["1 D"]', "'1 D' is below zero and above it"),
        ('negative = ["D1"]\ncurrency = ["D1"]', "'D1' is below zero and above it"),
        ('negative = ["1%"]\npercent = "points"', "'1%' is below zero and above it"),
        ('negative = ["1,-"]\ndecimal = ","', "stands in an example"),
        ('implied_decimals = 2\npositive = ["1{", "1A"]', "'1A' may be an overpunched"),
        ('implied_decimals = 2\nnegative = ["1}"]', "'1}' may be an overpunched"),
        ('negative = ["1}"]', "'1}' may be an overpunched sign"),
        ('[fields.PaidAmount]\ndecimals = 0\nnegative = ["1R"]', "'1R' may be an overpunched"),
        ('sign = "overpunched"\nnegative = ["1-"]', "negative says what stands beside digits"),
        (
            'currency = ["€1"]\n[fields.PaidAmount]\nsign = "overpunched"',
            "currency says what stands beside digits, and fields.PaidAmount.sign that nothing does",
        ),
        ('implied_decimals = 2\nnegative = ["J1"]', "'J1' may be an overpunched"),
        ('implied_decimals = 2\ncurrency = ["1C"]', "'1C' may be an overpunched"),
        (
            '[fields.PaidAmount]\nimplied_decimals = 2\nnegative = ["1J"]',
            "line 4: fields.PaidAmount.negative: '1J' may be an overpunched",
        ),
        ('zero = [""]', "zero names '', which is no text for zero"),
        ('zero = ["0"]', "zero names '0', which is no text for zero"),
        ('zero = [" -"]', "zero names ' -', which is no text for zero"),
        ("zero = []", "zero is an empty list"),
        ('null = ["", "-"]\nzero = ["-"]', "zero and null both name '-'"),
        (
            'null = ["-"]\n[fields.PaidAmount]\nzero = ["-"]',
            "line 4: fields.PaidAmount.zero and null both name '-'",
        ),
        ("decimals = -1", "decimals = -1 is out of range. Use 0 to 18"),
        ("decimals = 2\nimplied_decimals = 2", "decimals would change nothing: implied_decimals"),
        (
            "implied_decimals = 2\n[fields.PaidAmount]\ndecimals = 2",
            "line 4: fields.PaidAmount.decimals would change nothing: implied_decimals",
        ),
        ('negative = "1-"', "is not a list of texts such as"),
        ("positive = []", "positive is an empty list"),
        ('currency = ["1"]', "'1' has no sign of a currency"),
        ('currency = ["-1"]', "'-1' is no currency"),
        ('currency = ["(1"]', "'(1' is no currency"),
        ('currency = ["1%"]', "'1%' is no currency"),
        ('percent = "yes"', "Allowed: share, points"),
        ('months = ["Jan"]', "are not the twelve names"),
        (f"months = {MONTHS}", "months are for a date_format with %B or %b"),
        (
            f"date_format = '%d.%m.%Y %B'\nmonths = {MONTHS}",
            "with months: a directive stands in it twice",
        ),
        (
            f"date_format = '%d. %B%Z %Y'\nmonths = {MONTHS}\n[zones]\nCET = 'Z'",
            "with months: two names stand side by side in it",
        ),
        ('true = ["ja"]', "true and false are stated together"),
        ('true = ["ja"]\nfalse = ["JA"]', "both have the word 'ja'"),
        ('true = [""]\nfalse = ["no"]', "true has an empty word"),
        ("[fields]\nPaidAmount = 1", "write [fields.PaidAmount]"),
        ('[fields.PaidAmout]\ndecimal = ","', "Did you mean PaidAmount?"),
        ("[fields.PaidAmount]\ndelimiter = 1", "fields.PaidAmount.delimiter is not a key"),
        (
            '[fields.PaidAmount]\nthousands = "."',
            "fields.PaidAmount.thousands and fields.PaidAmount.decimal are both",
        ),
        ('date_format = "%d.%m.%Y %I:%M"', "morning from evening"),
        ("date_format = 2026-01-15", "is not a text in quotes"),
        ('offset = "+1"', "offset = '+1' is no offset. Write +01:00"),
        ('offset = "+25:00"', "is no offset"),
        ('zone = "Europe/Berlim"', "Did you mean Europe/Berlin?"),
        ('zone = "../../etc/passwd"', "is no IANA time zone"),
        ('offset = "Z"\nzone = "UTC"', "offset and zone both say"),
        ('null = "NULL"', "is not a list of texts"),
        ("null = [1]", "null = 1 is not a text in quotes"),
        ('unknown_columns = "drop"', "Allowed: refuse, ignore"),
        ("tenant = true", "tenant = true is not a whole number"),
        ("tenant = 3000000000", "tenant = 3000000000 is out of range"),
        ('tenant = "7"', "tenant = '7' is not a whole number"),
        ('inner_record = "paymen"', "Did you mean payment?"),
        ('record = "avatar"\ninner_record = "payment"', "inner_record is for record insert_batch"),
        (
            '[columns]\nBetrag = "PaidAmout"',
            "columns.Betrag names 'PaidAmout'.*Did you mean PaidAmount?",
        ),
        ('record = "avatar"\n[columns]\nX = "PaidAmount"', "not a field of avatar"),
        ('[columns]\n"" = "PaidAmount"', "maps a column without a name"),
        ('[columns]\nA = "Id"\n"a " = "DebtsId"', "names a column twice"),
        ("[columns]\nA = 1", "columns.A = 1 is not a text in quotes"),
        ("[constants]\nTenantId = 7", "Did you mean TenantsId?"),
        ("[constants]\nPaidAmount = 1.50", "constants.PaidAmount = 1.5 is not a text in quotes"),
        ('[columns]\nA = "Id"\n[constants]\nId = 1', "constants.Id is also the target of a column"),
        ('[policy]\nduplicate = "first"', "Allowed: conflict, last_wins"),
        ('[policy]\nreference = "ignore"', "Allowed: flag, reject"),
        ("[budget]\nerrors = -1", "budget.errors = -1 is out of range"),
        ("[budget]\nerrors = 2147483648", "budget.errors = 2147483648 is out of range"),
        ("[budget]\nerrors = 1.5", "is not a whole number"),
        ("[budget]\nrate = 5", "budget.rate = 5 is not a share. Use 0 to 1"),
        ("[budget]\nrate = nan", "is not a share"),
        ("tenant = 8\n[constants]\nTenantsId = 7", "every row would be rejected"),
        (f'{PAYMENT}[constants]\nTenantsId = ""', "a payment needs a value there"),
        (f'{PAYMENT}[constants]\nPaymentDate = "1.2.2026"', "is not a time such as"),
        ('[leave_out]\nA = ["x"]\n[keep_only]\n"a " = ["y", "x"]', "leave_out both have 'x'"),
        ('totals = "kept"', "is for feeds with leave_out or keep_only"),
        ('[fields.ActionsId]\ndefault = ""', "is what an empty cell is anyway"),
        ('[fields.ActionsId]\nmap = { "" = 1 }', "map names '', which is no value here"),
        ('null = ["-"]\n[fields.ActionsId]\nmap = { - = 1 }', "map names '-', which is no value"),
        ('[fields.ActionsId]\nmap = { a = "" }', "map.a stands for nothing"),
        ('[fields.ActionsId]\nmap = { a = "x" }', "map.a = 'x' is not a whole number"),
        (f'{PAYMENT}sheet = 1\n[positions]\nId = "1-3"', "positions is not for a sheet"),
        ("sheet = 0", "sheet = 0 is no sheet: sheets are counted from 1 on"),
        ('sheet = "May"\ndelimiter = ";"', "delimiter is not for a sheet of a workbook"),
        # What would change nothing is meant for another field, or is forgotten.
        *(
            (f"[fields.{name}]\n{key}", f"line 3: fields.{name}.{key.split(' ')[0]} would change")
            for name, key in (
                ("PaidAmount", 'date_format = "%d.%m.%Y"'),
                ("PaidAmount", "true = ['ja']\nfalse = ['nein']"),
                ("PaymentDate", 'decimal = ","'),
                ("Id", "implied_decimals = 2"),
                ("Id", "decimals = 0"),
                ("PaymentDate", "zero = ['-']"),
                ("LastName", "negative = ['1-']"),
                ("CurrenciesId", "decimal = ','\nmap = {EUR = 1}"),
                ("PaymentDate", "zone = 'UTC'\nmap = {a = '2026-01-01T00:00:00Z'}"),
                ("HasError", "true = ['1']\nfalse = ['0']\nmap = {j = true}"),
                ("DebtsId", "thousands = ' '\nkey = ['TenantsId', 'PaymentDate']"),
                ("DebtsId", "null = ['-']\nkey = ['TenantsId', 'PaymentDate']"),
                ("PaidAmount", "negative = ['1-']\n[constants]\nPaidAmount = 1"),
            )
        ),
        ("push = true\ncompare_only = true", "line 2: push and compare_only: what is only kept"),
        ('date_format = "unix"\nzone = "UTC"', "line 3: zone would change nothing"),
        (
            "offset = 'Z'\n[fields.PaymentDate]\ndate_format = ['unix']\noffset = 'Z'",
            "line 5: fields.PaymentDate.offset would change nothing",
        ),
        ("feed = bank", "is not TOML"),
        ("tenant = " + "9" * 5000, "is not TOML: a number in it is too large to be read"),
        ("tenant = 0x" + "f" * 5000, "is not TOML: a number in it is too large to be read"),
        ("null = " + "[" * 2000 + "]" * 2000, "is not TOML: its lists or tables are nested"),
        ("tenant = 1\ntenant = 2", "is not TOML"),
        ("# " + "x" * 2**20, "is not TOML: it has more than 1048576 bytes"),
    ],
)
def test_refusals_name_file_key_and_what_is_allowed(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.toml"
    whole = text if text.startswith("feed") or not text else f'feed = "x"\n{text}'
    path.write_text(whole, encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    message = str(caught.value)
    assert message.startswith((f"{path}: ", f"{path}, line "))
    pattern = ".*".join(map(re.escape, said.split(".*")))
    assert re.search(pattern, message), message


def test_a_feed_that_is_named_below_a_section_is_told_so() -> None:
    """It is there to be seen, so that to hear only that it is missing helps nobody."""
    said = 'feed = "bank-x", above all sections: what stands below [columns] belongs to columns.'
    with pytest.raises(ProfileError, match=re.escape(said)):
        read_profile({"record": "payment", "columns": {"No.": "Id", "feed": "bank"}})


@pytest.mark.parametrize(
    "text",
    [
        'date_format = "excel"\n[fields.PaymentDate]\ndecimal = ","',
        '[fields.PaymentDate]\ndate_format = "excel"\ndecimal = ","',
        'date_format = "unix"\nzone = "UTC"\n[fields.PaymentDate]\ndate_format = "%d.%m.%Y"',
        'date_format = ["unix", "%d.%m.%Y"]\nzone = "UTC"',
        'date_format = "excel"\nzone = "UTC"',
        '[fields.Id]\nnull = ["-"]\nblanks = "dropped"\ncurrency = ["1 x"]',
    ],
)
def test_what_a_field_reads_can_be_stated_of_it(text: str) -> None:
    read_profile(tomllib.loads(f'feed = "x"\n{text}'))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('# why\nfeed = "x"\ndelimeter = ";"', 3),
        ('feed = "x"\n\n[policy]\nduplicate = 1', 4),
        ('feed = "x"\nbudget = { errors = -1 }', 2),
        ('feed = "x"\n[columns]\nB = "Id"\nA = "PaidAmout"', 4),
        # The names of columns have blanks, and one may begin as another does.
        ('feed = "x"\n[positions]\n"Pay" = "1-2"\nOther = "3-4"\n"Pay type" = "x"', 5),
        ('feed = "x"\n[columns]\n"Pay day\\t" = 1\nPay = "Id"', 3),
        ('feed = "x"\n[fields.ActionsId.map]\nUS = 840\n"US dollar" = "x"', 4),
        ('feed = "x"\n[fields."PaidAmount"]\ndecimal = ";"', 3),
        ('feed = "x"\nnull = [\n  1,\n]', 2),
        ('feed = "x"\noffset = "Z"\nzone = "UTC"', 2),
        ('feed = "x"\n\nnegative = ["x"]', 3),
        ('feed = "x"\n\ncurrency = ["1"]', 3),
        ('feed = "x"\n\n[fields.Amnt]\nfrom = ["A"]', 3),
        ('feed = "x"\n[fields.ActionsId]\nfrom = ["A"]\nmap = { a = "x" }', 4),
    ],
)
def test_a_refusal_names_the_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match=f"^{re.escape(str(path))}, line {line}: "):
        load_profile(path)


@pytest.mark.parametrize(
    "begin",
    [
        *(f"{key} = " for key in (*KEYS, *SECTIONS, "nope")),
        *(f"[{name}]\n{key} = " for name, keys in SECTIONS.items() for key in (*keys, "nope")),
        *(f"[columns]\n{key} = " for key in ("A", '""', '"a.b"')),
        *(f"[constants]\n{key} = " for key in ("TenantsId", "PaidAmount", '"a.b"')),
    ],
)
def test_whatever_stands_behind_a_key_is_meant_or_refused(tmp_path: Path, begin: str) -> None:
    path = tmp_path / "x.toml"
    for odd in ODD_TOML:
        feed = "" if begin.startswith("feed") else 'feed = "x"\n'
        path.write_text(f"{feed}{begin}{odd}", encoding="utf-8")
        with suppress(ProfileError):
            assert re.fullmatch("[0-9a-f]{64}", load_profile(path).hash)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        ProfileError,
        match=r"gone\.toml: cannot be read: No such file or directory\. Check that it exists",
    ):
        load_profile(tmp_path / "gone.toml")
    (tmp_path / "x.toml").write_bytes(b'feed = "\xff"')
    with pytest.raises(ProfileError, match=r"x\.toml: is not TOML"):
        load_profile(tmp_path / "x.toml")


def test_the_page_documents_every_key_and_its_example_loads() -> None:
    page = PAGE.read_text(encoding="utf-8")
    keys = [*KEYS, *(f"{name}.{key}" for name, section in SECTIONS.items() for key in section)]
    keys += [*(key for key in OF_FIELD if key not in WRITTEN), LOOKUP]
    keys += [f"per.{key}" for key in OF_UNITS]
    documented = re.findall(r"^\| `([a-z_.]+)` \|", page, re.MULTILINE)
    assert documented == keys
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert examples
    for example in examples:
        read_profile(tomllib.loads(example))


def test_a_field_that_states_one_thing_takes_none_of_it_from_the_feed() -> None:
    feed = {"feed": "x", "decimal": ",", "thousands": ".", "offset": "Z", "negative": ["1-"]}
    fields = {"PaidAmount": {"decimal": "."}, "PaymentDate": {"zone": "UTC"}}
    profile = read_profile(feed | {"fields": fields})
    paid, day = (written_of(profile, name) for name in fields)
    assert (paid["decimal"], paid["thousands"], paid["negative"]) == (".", None, ("1-",))
    assert (day["offset"], day["zone"], day["thousands"]) == (None, "UTC", ".")
    assert written_of(profile, "DiscountAmount") == written_of(profile)


@pytest.mark.parametrize(
    "stated",
    [
        "[constants]\nPassword = {}",
        "[constants]\npassword = {}",
        "[constants]\nPassword = [{}]",
        "[fields.Password]\ndefault = {}",
        "[fields.Password.map]\nA = {}",
    ],
)
def test_a_secret_of_the_wrong_type_is_not_shown(stated: str) -> None:
    head = 'feed = "x"\nrecord = "client_registration"\n'
    with pytest.raises(ProfileError) as caught:
        read_profile(tomllib.loads(head + stated.format("12e5")))
    assert "(not shown) is not a text" in str(caught.value)
    assert "12" not in str(caught.value)


@pytest.mark.parametrize("constant", ["0,50", "1.234,5", "abc", "1 000.50", "1,234.50"])
def test_a_constant_is_written_plainly_whatever_the_files_do(tmp_path: Path, constant: str) -> None:
    path = tmp_path / "feed.toml"
    form = 'feed = "x"\nrecord = "payment"\ndecimal = ","\nthousands = "."\n\n[constants]\n'
    path.write_text(f'{form}DiscountAmount = "{constant}"\n')
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    said = str(caught.value)
    assert f"feed.toml, line 7: constants.DiscountAmount = '{constant}' is not a number" in said
    assert "decimal point" in said
    assert "(theirs is ',')" in said
    path.write_text(f'{form}DiscountAmount = "1234.50"\nActionsId = 7\n')
    assert load_profile(path).constants == {"DiscountAmount": "1234.50", "ActionsId": "7"}


def test_what_is_stated_for_a_delivery_is_held_against_the_profile() -> None:
    profile = read_profile({"feed": "x", "constants": {"TenantsId": 7}})
    assert with_terms(profile, {"tenant": 7}).tenant == 7
    with pytest.raises(ProfileError, match="every row would be rejected"):
        with_terms(profile, {"tenant": 8})
    empty = read_profile({"feed": "x", "constants": {"TenantsId": ""}})
    assert with_terms(empty, {"tenant": 8}).tenant == 8


@pytest.mark.parametrize(
    ("text", "form", "is_time"),
    [
        ("1Jan2026", "%d%b%Y", True),
        ("01Jan2026", "%d%b%Y", True),
        ("1 January 26", "%d %B %y", True),
        ("1Jan02026", "%d%b%Y", False),
        ("Jan 1,2026", "%b %d,%Y", True),
        ("1Jan2026", "%d.%b.%Y", False),
    ],
)
def test_a_month_by_its_name_lends_no_digit_to_a_number(
    text: str, form: str, is_time: bool
) -> None:
    months = ("January", "Jan", *(f"M{number}." for number in range(10)))
    read = date_form(form, months=months).wall(text)
    if is_time:
        assert read in (datetime(2026, 1, 1), datetime(2026, 2, 1))  # noqa: DTZ001
    else:
        assert isinstance(read, str)
