"""Which fields a column is offered for, by its name and its cells."""

import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from connectors.files.profiles.profile_file import read_profile
from flows.stages.draft.columns import CENTS
from schemas.cells.reading import Unread, read
from schemas.derived.nested import read_nested
from schemas.field import Rule
from schemas.tables import EXTRACTS
from schemas.toml_text import read_toml
from tests.feeds.test_draft import DAY, PAID, drafted
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.

DIGITS = [
    # a record kind, what a column is called, its cells, a field, and whether it is offered for it
    ("user_account", "Postal code", ("10115", "20095"), "PostalCode", True),
    ("user_account", "Postal code", ("101.15",), "PostalCode", False),
    ("user_account", "Date of birth", ("19850403",), "BirthDate", True),
    ("user_account", "Birth date", ("850403", "1"), "BirthDate", False),
    ("insert_batch_data", "Is merged", ("1", "0"), "Merged", True),
    ("insert_batch_data", "Is merged", ("1", "2"), "Merged", False),
]


@pytest.mark.parametrize(("record", "column", "cells", "field", "is_offered"), DIGITS)
def test_digits_are_offered_for_texts_flags_and_times(
    tmp_path: Path, record: str, column: str, cells: Sequence[str], field: str, is_offered: bool
) -> None:
    path = tmp_path / "a.csv"
    rows = (f"Id;BatchId;{column}", *(f"1;2;{cell}" for cell in cells))
    path.write_text("".join(f"{row}\n" for row in rows))
    text, _ = drafted(str(path), record)
    (line,) = (one for one in text.splitlines() if one.startswith(f'# ? "{column}"'))
    assert (f'= "{field}"' in line) == is_offered
    asked = f'# ? date_format = "%Y%m%d"  # of "{column}", such as (not shown)'
    assert (asked in text) == (is_offered and field == "BirthDate")


TABLES = [
    # header and line, what is guessed
    ("Date,USD,JPY,CYP,", "2014-08-25,1.32,137.13,N/A,", ("Date", "Currency", "USD, JPY, CYP")),
    ("Account;2026-01;2026-02;2026-03", "A;1;2;3", ("Account", "Month", "2026-01, 2026-02")),
    ("Debt;Name;Jan 26;Feb 26;Mar 26", "1;x;1;;3", ("Debt", "Month", "Jan 26, Feb 26, Mar 26")),
    ("Month;01.01.2026;02.01.2026;03.01.2026", "a;1;2;3", ("Month", "Day", "01.01.2026")),
    ("Code;4711;4712;4713;4714", "a;1;2;3;4", ("Code", "Code of the column", "and 1 more")),
    ("Date,USD,JPY", "2014-08-25,1.32,137.13", None),
    ("Date,USD,JPY,CYP", "2014-08-25,a,b,c", None),
    ("Date,USD,JPY,CYP", "2014-08-25,-,-,-", None),
    ("Id,PaidAmount,TAX,FEE,NET,Name,Currency", "1,2,3,4,5,x,EUR", None),
    ("USD,JPY,CYP", "1.32,137.13,2", None),
]


@pytest.mark.parametrize(("header", "line", "guess"), TABLES)
def test_a_table_with_a_column_for_each_currency_or_month_is_guessed_and_marked(
    tmp_path: Path, header: str, line: str, guess: tuple[str, str, str] | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n{line}\n")
    text, draft = drafted(str(path))
    assert not draft.unpivots
    assert ("# ? [unpivot]" in text) == bool(guess)
    if guess is not None:
        keep, name, columns = guess
        assert f"{columns}" in text.split("# ? [unpivot]")[0]
        stated = re.sub(
            r"^# [?] (\[unpivot\]|(?:keep|name|value) =)", r"\1", text, flags=re.MULTILINE
        )
        profile = read_profile(read_toml(stated))
        assert (profile.unpivot_keep[0], profile.unpivot_name) == (keep, name)
        assert f'# ? "{name}" = ' in text.split("[columns]")[1]
        assert '# ? "USD"' not in text


OF_CURRENCIES = [
    # header and line of rates, the parts that are offered of the names of columns
    (
        "Date|1 AUD|100 HUF|1000 IDR|1 XDR",
        ("'^\\d+ ([A-Z]{3})$'", "'^(\\d+) [A-Z]{3}$'"),
    ),
    ("data|1THB|1USD|100HUF", ("'^\\d+([A-Z]{3})$'", "'^(\\d+)[A-Z]{3}$'")),
    ("Title|A$1=USD|A$1=CNY|A$1=IDR|Index", ("'^A\\$1=([A-Z]{3})$'",)),
    ("date|FXAUDCAD|FXUSDCAD|FXCADCAD", ("'^FX([A-Z]{3})CAD$'",)),
    ("Date|Total|Amount|Rest", ()),
]


@pytest.mark.parametrize(("header", "parts"), OF_CURRENCIES)
def test_a_currency_may_be_a_part_of_the_names(
    tmp_path: Path, header: str, parts: Sequence[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n2026-11-02" + "|1.5" * header.count("|") + "\n")
    text = drafted(str(path), "currency_rate")[0]
    assert re.findall(r"part = ('.*?')", text) == [*parts]
    assert ("# ? [unpivot]" in text) == bool(parts)
    assert not parts or suggested(text).get("Value") == "ExchangeRate"
    # Names of units are no values.
    assert "begin as values do" not in text


@pytest.mark.parametrize(
    ("delimiter", "cell", "key"), [("||", "x", "delimiter"), (";", r"\N", "escape")]
)
def test_what_no_table_can_be_read_with_is_told_beside_it(
    tmp_path: Path, delimiter: str, cell: str, key: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"Debt;Name;Jan 26;Feb 26;Mar 26\n1;{cell};1;2;3\n".replace(";", delimiter))
    text = drafted(str(path))[0]
    assert "# ? [unpivot]" in text
    assert re.search(rf"^#   not with (a|an) {key}", text, re.MULTILINE)


def test_the_cells_of_a_table_are_the_amount_and_not_their_sum(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Name;Jan 2026;Feb 2026;Mar 2026;Total\nx;1.50;;3.50;5.00\n")
    text, _ = drafted(str(path), "currency_rate")
    assert '# ? "Value" = "ExchangeRate"  # by unpivot: 1.50' in text
    assert '# ? "Total" = ""  # such as 5.00' in text
    # What is no day is one once prefix or suffix says the rest.
    path.write_text("No;Payment\n1;03.11.\n")
    assert "by part, prefix, suffix or map PaymentDate" in drafted(str(path))[0]


@pytest.mark.parametrize(
    ("column", "cells", "field", "is_offered"),
    [
        # What the column is called, its cells, a field with such a name, and whether it is offered.
        ("Payment", ("1/3", "2/3"), DAY, False),
        ("Payment", ("Café Account", "Rent"), DAY, False),
        ("Payment", ("4711", "x", "y"), DAY, False),
        ("Payment", ("03.11.", "x"), DAY, True),
        ("Payment", ("11/2026",), DAY, True),
        ("Payment", ("3 janv. 2026",), DAY, True),
        ("Payment", ("1 46327 x", "y"), DAY, True),
        ("Payment", ("-", "n/a"), DAY, True),
        ("Payment", (), DAY, True),
        ("Paid", ("Café Account", "Rent"), PAID, False),
        ("Paid", ("-", "n/a"), PAID, True),
        ("Paid", ("Rent 2 of 3",), PAID, True),
        ("Paid", ("\u0664\u0665",), PAID, True),
        # Digits may be a name of something, a flag, or a time, and decimals are none of these.
        ("Payment date", ("20261101", "20261130"), DAY, True),
        ("Payment day", ("99", "4711"), DAY, False),
        ("Payment", ("4711.5", "4712"), DAY, False),
        ("Payment date", ("46327.5", "46328"), DAY, True),
        ("Amount in cents", ("150", "99"), f'"{PAID}"  # such as 150, with implied_decimals', True),
        ("Amount in cents", ("1.50", "99"), "implied_decimals", False),
        ("Amount in cents", ("-150", "99"), "implied_decimals", True),
        # What is always empty is no number that every record has.
        ("Payment No", (), '"Id"', False),
        ("Tenant", (), '= "T', False),
        # A map makes a number of any text.
        ("Currency", ("EUR", "USD"), "CurrenciesId", True),
    ],
)
def test_a_column_is_offered_for_what_its_cells_can_be(
    tmp_path: Path, column: str, cells: Sequence[str], field: str, is_offered: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{cell}\n" for cell in (f"No|{column}", *(f"1|{c}" for c in cells))))
    offered = drafted(str(path))[0].split("[columns]")[1].split("[constants]")[0]
    (line,) = (one for one in offered.splitlines() if one.startswith(f'# ? "{column}"'))
    assert (field in line) == is_offered


BANK = "No;Debit;Credit;Balance\n1;20.00;{0};80.00\n2;{0};30.50;110.50\n"
ADDED = ["# ? sum = []  # the one that is added", "# ? minus = []  # the other one"]
BOTH_ADDED = ['# ? sum = ["Debit", "Credit"]']


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BANK.format(""), ADDED),
        (BANK.format("0.00"), ADDED),
        (BANK.format("--"), ADDED),
        # Debits that have a sign of their own lower a sum by it.
        (BANK.format("").replace("20.00", "-20.00"), BOTH_ADDED),
        # A row with two numbers, or with none, is no side of an amount; nor is a field's column.
        (BANK.format("") + "3;1.00;1.00;110.50\n", []),
        (BANK.format("") + "3;;;110.50\n", []),
        (BANK.format("").replace("Debit", "PaidAmount"), []),
    ],
)
def test_debits_and_credits_are_asked_for_as_one_amount(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    draft = drafted(str(path))[0]
    told = [line for line in draft.splitlines() if line.startswith(("# ? sum", "# ? minus"))]
    assert told == said
    if said:
        assert "# ? [fields.PaidAmount]" in draft
        # Nor is the balance beside them the amount.
        assert {*suggested(draft).values()} == {"Id"}


CELLS = [
    ("a1", "b2"),
    ("10.00", "3.50"),
    ("1", "2"),
    ("12345678901", "2"),
    ("2026-11-01T10:00:00Z", "2026-11-02T10:00:00Z"),
    ("true", "false"),
    ("ann", "b@c.example"),
    ("1/3", "2/3"),
]


def suggested(draft: str) -> dict[str, str]:
    """The columns that are mapped in the lines of a draft, with the fields."""
    lines = draft.split("[columns]")[1].split("[constants]", maxsplit=1)[0]
    return dict(re.findall(r'^# \? "(.*)" = "(.+?)"', lines, re.MULTILINE))


@pytest.mark.long
@pytest.mark.parametrize("name", ["payment", "currency_rate", "user_account", "invoice_file"])
def test_no_field_is_suggested_that_rejects_a_cell_or_a_second_time(
    tmp_path: Path, name: str
) -> None:
    path, table = tmp_path / "a.csv", EXTRACTS[name]
    for cells in CELLS:
        names = [f"{of.name} x" for of in table.delivered]
        lines = (names, *([one] * len(names) for one in cells))
        path.write_text("".join(f"{';'.join(line)}\n" for line in lines))
        fields = suggested(drafted(str(path), name)[0])
        assert len({*fields.values()}) == len(fields)
        for field, cell in product(fields.values(), cells):
            of = table.by_name[field]
            assert not isinstance(read(of, cell, read_nested), Unread), (field, cell)
            assert Rule.EMAIL not in of.rules or "@" in cell


def test_the_key_is_suggested_for_the_column_that_numbers_its_records(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "Mandate No;Payment No;Debt;Paid;Discount ID;Currency;Rate No\n"
        "7;4711;5;2.50;x;EUR;9\n8;4712;5;3.50;y;EUR;9\n"
    )
    draft = drafted(str(path))[0]
    assert suggested(draft) == {"Payment No": "Id", "Debt": "DebtsId", "Paid": "PaidAmount"}
    assert '"Currency" = ""  # such as EUR; by part or map CurrenciesId' in draft
    # All rows of a settlement would be one record.
    path.write_text("Booking No;Paid\n" + "7;2.50\n" * 2 + "8;3.50\n9;1.50\n")
    assert suggested(drafted(str(path))[0]) == {"Booking No": "Id", "Paid": "PaidAmount"}
    path.write_text("Booking No;Paid\n" + "7;2.50\n" * 4 + "8;3.50\n")
    assert "Id" not in suggested(drafted(str(path))[0]).values()


@pytest.mark.parametrize(
    ("header", "row", "amount"),
    [
        ("No;Konto #;Betrag", "1;-71003;436,54", "Betrag"),
        ("No;Menge;Umsatz (ohne S/H);Kurs;Konto", "1;8400;4907,24;1,08;10000", "Umsatz (ohne S/H)"),
        ("No;Basis-Umsatz;Umsatz (ohne S/H)", "1;;4907,24\n3;1,5;2,5", "Umsatz (ohne S/H)"),
        ("No;Account;Montant", "1;-71003;436,10", "Montant"),
        ("No;Rechnungsbetrag;Discount amount", "1;5,50;0,50", "Rechnungsbetrag"),
        ("No;Count;Paid", "1;20;4,50", "Paid"),
    ],
)
def test_the_amount_is_what_is_called_so_or_has_decimals(
    tmp_path: Path, header: str, row: str, amount: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n{row}\n{row.replace('1', '2', 1)}\n")
    fields = suggested(drafted(str(path))[0])
    assert [name for name, field in fields.items() if field == PAID] == [amount]


@pytest.mark.parametrize(
    ("line", "is_said"),
    [
        ("Rates (DKK per 100 units)", True),
        ("In 1000 EUR", True),
        ("Account 1001", False),
        ("As of 100.5 or 2026-100", False),
    ],
)
def test_a_line_above_the_header_may_say_for_how_many_units_amounts_are(
    tmp_path: Path, line: str, is_said: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{line}\nDay;EUR;USD;SEK\n2026-11-02;1.5;2.5;3.5\n2026-11-03;1.5;2.5;3.5\n")
    assert (f"# ? Above the header: {line}" in drafted(str(path))[0]) == is_said


def test_a_rate_beside_those_of_a_table_is_not_offered_for_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    names = ("USD: exchange rate", *(f"{code} per USD" for code in ("BRL", "CAD", "INR")))
    path.write_text(f"Day,{','.join(names)}\n2026-11-02,1.5,2.5,3.5,4.5\n")
    fields = suggested(drafted(str(path), record="currency_rate")[0])
    assert [name for name, field in fields.items() if field == "ExchangeRate"] == ["Value"]


@pytest.mark.parametrize(
    ("amounts", "beside", "said"),
    [
        (("1.50", "2.50"), ("S", "H"), "sign of an amount"),
        # With reversals, as in bank messages; in the words of ISO 20022, and of Dutch banks.
        (("1.50", "2.50", "3.50"), ("C", "D", "RC"), "sign of an amount"),
        (("1.50", "2.50"), ("C", "RD"), "sign of an amount"),
        (("1.50", "2.50"), ("CRDT", "DBIT"), "sign of an amount"),
        (("1.50", "2.50"), ("Af", "Bij"), "sign of an amount"),
        # Of a word one is enough, and of a letter not.
        (("1.50", "2.50"), ("DBIT", "DBIT"), "sign of an amount"),
        (("1.50", "2.50"), ("D", "D"), ""),
        (("1.50", "2.50"), ("D", "H"), ""),
        (("-1.50", "2.50"), ("DEBIT", "CREDIT"), ""),
        (("1.50", "2.50"), ("S", "X"), ""),
        (("1.50", "-2.50"), ("1", "100"), "for so many units"),
        (("1.50", "2.50"), ("1", "1"), ""),
        (("1.50", "2.50"), ("1", "20"), ""),
    ],
)
def test_a_column_that_may_change_the_amounts_says_so(
    tmp_path: Path, amounts: Sequence[str], beside: Sequence[str], said: str
) -> None:
    """A debit is no credit, and a rate for 100 units is not one for one."""
    path = tmp_path / "a.csv"
    path.write_text(
        "No;Betrag;Kz\n" + "".join(f"7;{a};{b}\n" for a, b in zip(amounts, beside, strict=True))
    )
    (line,) = (one for one in drafted(str(path))[0].splitlines() if one.startswith('# ? "Kz" ='))
    told = ("sign of an amount", "for so many units")
    assert [one for one in told if one in line] == ([said] if said else [])


@pytest.mark.parametrize(
    ("cells", "is_asked"), [(("131281", "-99"), True), (("1312.81", "99"), False), (("0",), False)]
)
def test_whole_amounts_under_the_name_of_a_field_may_count_cents(
    tmp_path: Path, cells: Sequence[str], is_asked: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{line}\n" for line in ("Id;paidamount", *(f"1;{c}" for c in cells))))
    asked = f'# ? "paidamount": {CENTS}, such as'
    assert (asked in drafted(str(path))[0]) == is_asked
