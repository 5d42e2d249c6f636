import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ExtractRefused
from connectors.files.archived.blocks import blocks
from connectors.files.layout.first_record import clean
from connectors.files.layout.header import Header, read_header
from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_keys import FOUND
from connectors.files.text.content import open_content
from connectors.settings import Limits
from schemas.tables import EXTRACTS

TORTURE = Path(__file__).parents[1] / "torture"
LIMITS = Limits(columns=60, record_bytes=200_000)
PAYMENT = ",".join(EXTRACTS["payment"].columns)
RATE = ",".join(EXTRACTS["currency_rate"].columns)
TONE = "TenantsId,AvatarsId,Name"


def read(
    folder: Path,
    text: str | bytes,
    *,
    record: str | None = None,
    profile: Profile | None = None,
    limits: Limits = LIMITS,
) -> Header:
    path = folder / "a.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    content = open_content(path, profile.encoding if profile else None)
    table = EXTRACTS[record] if record else None
    return read_header(content, table, profile, limits)


def refusal(folder: Path, text: str | bytes, **options: object) -> ExtractRefused:
    with pytest.raises(ExtractRefused) as caught:
        read(folder, text, **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.long(but=(",-campaign_actions_form_responses", ",-form_reply", ",-payment_gateway"))
@pytest.mark.parametrize("name", EXTRACTS)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_record_is_recognised_by_its_own_header(
    tmp_path: Path, name: str, delimiter: str
) -> None:
    table = EXTRACTS[name]
    text = delimiter.join(reversed(table.columns)) + "\n"
    header = read(tmp_path, text)
    assert header.table is table
    assert header.fields == header.names == table.columns[::-1]
    assert header.width == len(table.columns)
    assert header.dialect.delimiter == delimiter.encode()
    assert (header.body_start, header.body_line) == (len(text), 2)


@pytest.mark.parametrize("name", EXTRACTS)
def test_names_of_a_record_differ_in_more_than_case(name: str) -> None:
    columns = EXTRACTS[name].columns
    assert len({column.casefold() for column in columns}) == len(columns)


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("TenantsId,Name,Gender\n", "avatar"),
        (f"{TONE}\n", "message_tone"),
        ("TenantsId,PaymentActionsId,Name\n", "payment_gateway"),
        ("Id,UserName,Email\n", "user_account"),
        ("EMail,FirstName,LastName,Password,Company\n", "client_registration"),
        ("BatchId,Jsondata\n", "insert_batch_data"),
        ("PaymentPlansId,PlannedAmount\n", "payment_plan_detail"),
        ("Id,CampaignActionsId,ActionTimestamp\n", "campaign_actions_form_responses"),
        ("CommsGuid,Comments\n", "form_reply"),
    ],
)
def test_optional_fields_may_be_absent(tmp_path: Path, text: str, record: str) -> None:
    assert read(tmp_path, text).table.name == record


@pytest.mark.parametrize(
    ("text", "start", "line"),
    [
        (f"{TONE}\n7,3,x\n", 25, 2),
        (f"{TONE}\r\n7,3,x\r\n", 26, 2),
        (f"{TONE}\r7,3,x\r", 25, 2),
        (f"{TONE}", 24, 2),
        (f"\ufeff{TONE}\n", 28, 2),
        (f"\ufeff\r\n \n\t\n{TONE}\n", 34, 5),
        (f"\n\r\n\r{TONE}\n7", 29, 5),
        ('"TenantsId","AvatarsId","Name"\n7', 31, 2),
        (' tenantsid , "AVATARSID" ,NAME\t\n7', 32, 2),
        ('TenantsId,AvatarsId,"Name\r\n"\r\n7', 30, 3),
    ],
)
def test_where_the_body_begins(tmp_path: Path, text: str, start: int, line: int) -> None:
    header = read(tmp_path, text)
    assert header.fields == ("TenantsId", "AvatarsId", "Name")
    assert (header.body_start, header.body_line) == (start, line)


def test_positions_of_utf16_are_those_of_its_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(f"\ufeff\r\n{TONE}\r\n7,3,Grüße\r\n".encode("utf-16-le"))
    content = open_content(path)
    header = read_header(content, None, None, LIMITS)
    body = b"".join(blocks(content, header.body_start, 5))
    assert (body, header.body_line) == ("7,3,Grüße\r\n".encode(), 3)


def _unknown(columns: int) -> str:
    return ",".join(f"X{n}" for n in range(columns))


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (
            f"{PAYMENT},Id\n",
            "duplicate_column",
            "more than once: Id. Name every .* once, or say names and first_line",
        ),
        (f"{PAYMENT}, paidamount \n", "duplicate_column", "more than once: PaidAmount"),
        (f"{TONE},ReconRow,reconrow\n", "duplicate_column", "ReconRow"),
        (PAYMENT.replace(",DebtsId", ""), "missing_column", "missing: DebtsId.*Found: Id, Tena"),
        (RATE.replace("Id,TenantsId,", ""), "missing_column", "nearest record is currency_rate"),
        ("TenantsId,Name\n", "missing_column", "message_tone. If it is another"),
        ("EMail,FirstName\n", "missing_column", "LastName, Password, Company"),
        ("PaymentDat,PaidAmont\n", "missing_column", "'PaidAmont' is like PaidAmount of payment"),
        ("City,Street,Zip,Phone\n", "missing_column", "most of user_account"),
        ("Colour,Shape\n", "missing_column", "None of the 2 columns"),
        (f"{TONE},Colour\n", "inconsistent_columns", "not have: Colour.*fields are TenantsId, Av"),
        (f"{TONE},Colour\n", "inconsistent_columns", 'or say unknown_columns = "ignore" in'),
        (f"{TONE},{_unknown(30)}\n", "inconsistent_columns", "X28, X29(?! and)"),
        (f"{TONE},{_unknown(31)}\n", "inconsistent_columns", "X28, X29 and 1 more"),
        (f"{TONE},\n", "inconsistent_columns", "column 4 without a name"),
        (f"{PAYMENT},{RATE.replace('Id,TenantsId,', '')}\n", "inconsistent_columns", "FromCurr"),
        (",,,\n1,2,3\n", "missing_header", "the first record is data"),
        ("985216,7,1035,1075\n", "missing_header", "the first record is data"),
        ("7,3,Friendly\n", "missing_header", "the first record is data"),
        ("max@mail.example,Max,Muster,pw\n", "missing_header", "the first record is data"),
        ("Max,2026-01-15\n", "missing_header", "the first record is data"),
        ("Name,2024,2025\n", "missing_header", "Name is the name of.*columns 2, 3 begin as values"),
        ('TenantsId,"AvatarsId"x,Name\n', "malformed_header", "expected after"),
        ('TenantsId,"AvatarsId,Name\n7,3,x\n', "malformed_header", "a quote is never closed"),
        # Names between quotes can be divided in one way only, whether or not they are known.
        ('"Day","Rate"\n"1","2"\n', "missing_column", "None of the 2 columns"),
        (b"TenantsId,Avat\xffarsId,Name\n", "bad_encoding", "utf-8"),
        (
            ",".join(f"X{n}" for n in range(61)),
            "too_large",
            "61 columns; RECON_LIMIT_COLUMNS is 60",
        ),
        ("\n" * 300_000 + TONE, "too_large", r"200000 bytes \(RECON_LIMIT_RECORD_BYTES\)"),
        ("x" * 300_000, "too_large", r"200000 bytes \(RECON_LIMIT_RECORD_BYTES\)"),
        ("\n \n", "empty_file", "nothing but blank space"),
    ],
)
def test_refusals(tmp_path: Path, text: str | bytes, code: str, said: str) -> None:
    error = refusal(tmp_path, text)
    assert error.code == code
    assert str(error).startswith("a.csv")
    assert error.line is not None or code == "empty_file"
    with pytest.raises(ExtractRefused, match=said):
        raise error


def test_a_header_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    assert refusal(tmp_path, b"\n\nTenantsId,Avat\xffarsId,Name\n").line == 3


def test_a_header_is_refused_by_the_encoding_of_the_feed(tmp_path: Path) -> None:
    error = refusal(tmp_path, "日付,番号\n".encode(), profile=Profile(encoding="cp932"))
    assert "not valid in the encoding cp932" in str(error)


def test_a_header_that_never_ends_is_refused_with_the_line_it_was_looked_for_on(
    tmp_path: Path,
) -> None:
    profile = Profile(record="payment", header_line=2)
    assert refusal(tmp_path, "x\n" + "y" * 300_000, profile=profile).line == 2


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (
            "Export of 2026-03-01\n",
            "line 1: this is no header, and line 2 looks like one .payment.",
        ),
        ("Payments\n\nBy,me\n", "line 1: .*line 4 looks like one .* It reads 'Payments'"),
        ("Payments,,,,\n", "line 1: .*line 2 looks like one .*It reads 'Payments,,,,'"),
        ("2026-03-01\n", "line 1: .*line 2 looks like one"),
        ("\nsep=;\n", "line 2: .*line 3 looks like one .*'sep=;'.*Remove"),
        ('"Payments of\n', "line 1: .*line 2 looks like one"),
        ("".join(f"Line {n}\n" for n in range(30)), "line 1: .*line 31 looks like one"),
        ("Password hunter2\n", "line 1: .*line 2 looks like one .* Remove"),
        ("https://a:hunter2@b/c\n", "line 1: .*line 2 looks like one .* Remove"),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("profile", [None, Profile(record="payment")])
def test_text_before_the_header_is_told_with_the_line_of_the_header(
    tmp_path: Path, before: str, said: str, delimiter: str, profile: Profile | None
) -> None:
    header = PAYMENT.replace(",", delimiter)
    error = refusal(tmp_path, f"{before}{header}\n", profile=profile)
    assert error.code == "text_before_header"
    assert "hunter2" not in str(error)
    with pytest.raises(ExtractRefused, match=said):
        raise error


def test_text_before_a_header_with_secrets_is_not_quoted(tmp_path: Path) -> None:
    header = ",".join(EXTRACTS["client_registration"].columns)
    error = refusal(tmp_path, f"swordfish\n{header}\n")
    assert error.code == "text_before_header"
    assert "swordfish" not in str(error)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("ann,swordfish", ""),
        ("ann;swordfish", ""),
        ("ann,sword,fish", "It reads 'ann,sword,fish'."),
        ("ann swordfish", "It reads 'ann swordfish'."),
    ],
)
def test_a_first_record_as_wide_as_the_header_is_not_quoted(
    tmp_path: Path, first: str, told: str
) -> None:
    """Written with any delimiter, it may be a record, and that may hold a secret."""
    error = refusal(tmp_path, f"{first}\nTenantsId,Name\n", record="avatar")
    assert error.code == "text_before_header"
    assert told in str(error)
    assert ("fish" in str(error)) is bool(told)


@pytest.mark.parametrize(("text", "said"), [("Hi\n", "Its only column is no field of any record")])
def test_one_unknown_column_is_told_in_the_singular(tmp_path: Path, text: str, said: str) -> None:
    assert said in str(refusal(tmp_path, text))


def test_refusal_names_the_line_of_the_header(tmp_path: Path) -> None:
    assert refusal(tmp_path, "\n\nColour,Shape\n").line == 3


@pytest.mark.parametrize(
    "secrets",
    ["hunter2,swordfish,letmein\n", "max@mail.example,hunter2,7\n", '"hunter2","swordfish"\n'],
)
def test_a_first_record_that_may_hold_secrets_is_not_shown(tmp_path: Path, secrets: str) -> None:
    message = str(refusal(tmp_path, secrets, record="client_registration"))
    assert not any(secret in message for secret in ("hunter2", "swordfish", "letmein"))


def test_named_record_wins(tmp_path: Path) -> None:
    both = f"{PAYMENT},{RATE.replace('Id,TenantsId,', '')}"
    ignoring = Profile(unknown_columns="ignore")
    assert read(tmp_path, both, profile=ignoring).table.name == "payment"
    header = read(tmp_path, both, profile=ignoring, record="currency_rate")
    assert header.table.name == "currency_rate"
    assert [name for name in header.fields if name] == list(EXTRACTS["currency_rate"].columns)
    assert header.fields[2] is None
    by_profile = Profile(unknown_columns="ignore", record="currency_rate")
    assert read(tmp_path, both, profile=by_profile).table.name == "currency_rate"
    assert read(tmp_path, "TenantsId,Name\n", record="avatar").table.name == "avatar"
    assert refusal(tmp_path, TONE, record="payment").code == "missing_column"


@pytest.mark.parametrize("name", EXTRACTS)
@pytest.mark.parametrize("line", [{}, {"header_line": 2}, {"header_line": FOUND}])
def test_ignored_columns_that_begin_with_digits_make_no_header_a_record(
    tmp_path: Path, name: str, line: dict[str, Any]
) -> None:
    """A sender adds one each year: their number changes nothing."""
    table = EXTRACTS[name]
    needed = [of.name for of in table.delivered if of.needs_value]
    names = needed if len(needed) > 1 else table.columns[:2]
    above = "report\n" if line else ""
    kinds = [table.name, None] if needed else [table.name]
    for count, kind in product((0, 1, 5, 20), kinds):
        years = "".join(f",{2000 + year}" for year in range(count))
        profile = Profile(unknown_columns="ignore", record=kind, **(line if kind else {}))
        header = read(
            tmp_path, f"{above if kind else ''}{','.join(names)}{years}\n", profile=profile
        )
        assert [of for of in header.fields if of] == [*names]
        assert kind is None or (header.table, header.body_line) == (table, 3 if above else 2)


def test_a_line_without_all_that_its_record_needs_may_be_a_record(tmp_path: Path) -> None:
    columns = {"Doc": "Id", "Due": "PaymentDate", "Total": "PaidAmount"}
    rest = dict.fromkeys({*PAYMENT.split(",")} - {*columns.values()}, "1")
    profile = Profile(unknown_columns="ignore", columns=columns, constants=rest, record="payment")
    assert read(tmp_path, "Doc,Due,Total,0,30,60,90\n", profile=profile).width == 7
    error = refusal(tmp_path, "Doc,Total,hunter2,0,30,60\n", profile=profile)
    assert error.code == "missing_header"
    assert "columns 4, 5, 6 begin as values do, and PaymentDate is missing" in str(error)
    assert "hunter2" not in str(error)


def test_unknown_columns_may_be_ignored(tmp_path: Path) -> None:
    header = read(tmp_path, f"Note,{TONE},Note,\n", profile=Profile(unknown_columns="ignore"))
    assert header.fields == (None, "TenantsId", "AvatarsId", "Name", None, None)
    assert header.names == ("Note", "TenantsId", "AvatarsId", "Name", "Note", "")


def test_the_row_a_correction_stands_for_is_our_own_column(tmp_path: Path) -> None:
    header = read(tmp_path, "TenantsId,reconrow,AvatarsId,Name\n")
    assert header.table.name == "message_tone"
    assert header.parent_column == 1
    assert header.fields == ("TenantsId", None, "AvatarsId", "Name")
    assert read(tmp_path, TONE).parent_column is None


def test_profile_maps_columns_and_fills_constants(tmp_path: Path) -> None:
    bank = Profile(
        columns={"Betrag": "PaidAmount", "Id": "ActionsId", "Nr.": "Id"},
        constants={"TenantsId": "7", "DiscountAmount": "0"},
    )
    text = "nr.,Id, BETRAG ,DebtsId,PaymentDate,CurrenciesId,CurrencyRatesId\n"
    header = read(tmp_path, text, profile=bank)
    assert header.table.name == "payment"
    assert header.fields[:4] == ("Id", "ActionsId", "PaidAmount", "DebtsId")
    assert header.names[0] == "nr."
    error = refusal(tmp_path, text.replace("Id,", "Id,TenantsId,", 1), profile=bank)
    assert error.code == "duplicate_column"
    assert "constants of the feed profile" in str(error)
    twice = text.replace("DebtsId", "DebtsId,PaidAmount")
    error = refusal(tmp_path, twice, profile=bank)
    assert error.code == "duplicate_column"
    header = read(tmp_path, twice, profile=replace(bank, unknown_columns="ignore"))
    assert header.fields[2:5] == ("PaidAmount", "DebtsId", None), "the one that is mapped"


def test_dialect(tmp_path: Path) -> None:
    stated = Profile(delimiter=":", quote="'", encoding="cp1252", columns={"Größe": "Name"})
    text = "'TenantsId':'AvatarsId':'Größe'\n".encode("cp1252")
    dialect = read(tmp_path, text, profile=stated).dialect
    assert (dialect.delimiter, dialect.quote, dialect.encoding) == (b":", b"'", "cp1252")
    assert dialect.max_record_bytes == LIMITS.record_bytes
    # A stated delimiter is not doubted.
    assert refusal(tmp_path, TONE, profile=Profile(delimiter=";")).code == "missing_column"
    assert read(tmp_path, '"AvatarsId";"TenantsId";"Name"').dialect.delimiter == b";"


@pytest.mark.parametrize("size", [60_000, 65_535, 65_536, 65_537, 120_000])
def test_a_header_longer_than_one_reading(tmp_path: Path, size: int) -> None:
    ignoring = Profile(unknown_columns="ignore")
    text = f"{TONE},{'x' * (size - 26)}\r\n"
    header = read(tmp_path, f"{text}7,3,a,b\r\n", profile=ignoring)
    assert (header.body_start, header.body_line) == (len(text), 2)


FILES = sorted(path for path in TORTURE.glob("*/*.csv") if path.read_bytes()[:2] != b"\x1f\x8b")
EXPECTED = json.loads((TORTURE / "expected.json").read_text())
REFUSED = {
    "empty_0_bytes.csv": "empty_file",
    "empty_only_newlines.csv": "empty_file",
    "missing_column.csv": "missing_column",
    "extra_10000_columns.csv": "too_large",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_torture(path: Path) -> None:
    content = open_content(path)
    if code := REFUSED.get(path.name):
        with pytest.raises(ExtractRefused) as caught:
            read_header(content, None, None, Limits())
        assert caught.value.code == code
        return
    header = read_header(content, None, None, Limits())
    assert header.table is EXTRACTS["payment"]
    assert sorted(filter(None, header.fields)) == sorted(EXTRACTS["payment"].columns)
    assert header.body_line == 2


def test_torture_answers_agree() -> None:
    for name, code in REFUSED.items():
        if name in EXPECTED["cases"]:
            assert EXPECTED["cases"][name]["expect"]["file_rejected"] == [code]
        else:
            accepted = [
                answer.get("file_rejected", ())
                for answer in EXPECTED["ambiguous"][name]["acceptable"]
            ]
            assert any(code in codes for codes in accepted)


@pytest.mark.parametrize(
    ("cell", "name"),
    [("Id", "Id"), (' "Id" ', "Id"), ('" Id "', "Id"), ('""', ""), ('"', '"'), ('"Id', '"Id')],
)
def test_a_name_stands_without_blanks_and_quotes(cell: str, name: str) -> None:
    assert clean(cell, '"') == name


ALIKE = [
    # in the profile, in the file, the file's as it is said
    ("Op\u00e9ration", "Ope\u0301ration", r"Ope\u0301ration"),
    ("Value Day", "Value\u00a0Day", r"Value\u00a0Day"),
    ("Value Day", '"Value\r\nDay"', r"Value\r\nDay"),
    ("Value", "\u200bVAL\u00adUE", r"\u200bVAL\u00adUE"),
]


@pytest.mark.parametrize(("theirs", "there", "said"), ALIKE)
@pytest.mark.parametrize("by", ["columns", "fields", "leave_out"])
def test_a_column_that_only_looks_like_the_one_that_is_read_is_shown(
    tmp_path: Path, theirs: str, there: str, said: str, by: str
) -> None:
    """The message would name one text as missing and as there."""
    stated: dict[str, Any] = {
        "columns": {theirs: "DiscountAmount"},
        "fields": {"DiscountAmount": {"from": (theirs,)}},
        "leave_out": {theirs: ("x",)},
    }
    profile = Profile(record="payment", unknown_columns="ignore", **{by: stated[by]})
    text = f"{PAYMENT.replace('DiscountAmount', 'Discount')},{there}\n"
    if by == "leave_out":
        text = f"{PAYMENT},{there}\n"
    error = refusal(tmp_path, text, profile=profile)
    assert error.code == "missing_column"
    assert f'have other characters. The file writes them so: "{said}".' in str(error)


def test_a_field_that_only_looks_like_a_column_is_shown(tmp_path: Path) -> None:
    text = PAYMENT.replace("DebtsId", "Debts\u200bId") + "\n"
    error = refusal(tmp_path, text, record="payment")
    assert error.code == "missing_column"
    assert r'The file writes them so: "Debts\u200bId".' in str(error)
