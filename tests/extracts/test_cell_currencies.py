"""Cells of workbooks whose formats name a currency, against the currency of their record."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from connectors.errors import SettingsError
from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches.ledger import State
from connectors.settings import Settings
from flows.stages.examining.examine import examine
from flows.stages.examining.try_profile import try_profile
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.extracts.test_open_documents import made as ods_of
from tests.extracts.test_open_documents import number, row, table, text

SHAPE: dict[str, Any] = {
    "feed": "x",
    "record": "payment",
    "unknown_columns": "ignore",
    "offset": "Z",
    "columns": {"Number": "Id", "Paid": "PaidAmount"},
    "constants": {
        "TenantsId": 7,
        "ActionsId": 1,
        "DebtsId": 5,
        "CurrencyRatesId": 9,
        "DiscountAmount": "0.00",
        "PaymentDate": "2026-11-01T00:00:00Z",
    },
}
BY_COLUMN = SHAPE["columns"] | {"In": "CurrenciesId"}
MAP = {"EUR": 978, "Euro": 978, "£": 826, "GBP": 826}
LINES = [
    # amount, currency that the format of its cell names, currency of the record
    ("1.50", "EUR", "EUR"),
    ("2.50", "GBP", "EUR"),
    ("3.50", "EUR", "Euro"),
    ("4.50", "CHF", "Euro"),
    ("5.50", "GBP", "£"),
    ("6.50", "", "EUR"),
]
EURO, NAMES = "EUR (CurrenciesId 978)", "CurrenciesId,Code\n978,EUR\n826,GBP\n"
FRANC = "CHF (CurrenciesId 978)"
STATED: list[tuple[dict[str, Any], str, dict[int, tuple[str, str]]]] = [
    # what the profile states, what RECON_CURRENCIES says, by line: what the cell and the record say
    ({"fields": {"CurrenciesId": {"from": ["In"], "map": MAP}}}, "",
     {3: ("GBP", EURO), 5: ("CHF", EURO)}),
    ({"columns": BY_COLUMN}, NAMES, {3: ("GBP", EURO), 5: ("CHF", EURO)}),
    ({"fields": {"CurrenciesId": {"from": ["In"], "map": MAP | {"EUR": "0978"}}}},
     "CurrenciesId,Code\n00978,EUR\n", {3: ("GBP", EURO), 5: ("CHF", EURO)}),
    ({"columns": BY_COLUMN}, "CurrenciesId,Code\n978,Euro\n", {}),
    ({"columns": BY_COLUMN}, "CurrenciesId,Code\n978,CHF\n",
     {2: ("EUR", FRANC), 3: ("GBP", FRANC), 4: ("EUR", FRANC)}),
    ({"columns": BY_COLUMN}, "", {}),
    ({"constants": SHAPE["constants"] | {"CurrenciesId": 978}}, NAMES,
     {3: ("GBP", EURO), 5: ("CHF", EURO), 6: ("GBP", EURO)}),
    ({"constants": SHAPE["constants"] | {"CurrenciesId": 978}}, "", {}),
]  # fmt: skip


def sheet(path: Path, names: list[str], lines: list[list[tuple[str, str]]]) -> str:
    """A workbook of cells, each a text and "" or a number and the code of a currency or "0"."""
    if path.suffix == ".ods":
        cells = [
            [
                text(value)
                if code == ""
                else number(value, f'office:currency="{code}"').replace('"float"', '"currency"')
                if code != "0"
                else number(value)
                for value, code in line
            ]
            for line in lines
        ]
        return ods_of(path, table(row(*map(text, names)), *(row(*line) for line in cells)))
    book = xlsxwriter.Workbook(str(path))
    data = book.add_worksheet()
    data.write_row(0, 0, names)
    for at, line in enumerate(lines, 1):
        for column, (value, code) in enumerate(line):
            form = "0.00" if code == "0" else f"[${code}] #,##0.00"
            if code == "":
                data.write_string(at, column, value)
            else:
                data.write_number(at, column, float(value), book.add_format({"num_format": form}))
    book.close()
    return str(path)


def restyled(path: str, **parts: tuple[str, str]) -> str:
    """A workbook in whose first sheet, or styles, a text is written in place of another."""
    names = {"sheet": "xl/worksheets/sheet1.xml", "styles": "xl/styles.xml"}
    wanted = {names[of]: change for of, change in parts.items()}
    with zipfile.ZipFile(path) as before:
        held = {name: before.read(name).decode() for name in before.namelist()}
    with zipfile.ZipFile(path, "w") as after:
        for name, content in held.items():
            old, new = wanted.get(name, ("", ""))
            assert old in content
            after.writestr(name, content.replace(old, new))
    return path


@pytest.mark.long
@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ({"sheet": ('s="2"', 's="99"')}, []),
        ({"sheet": ('s="2"', 's=""')}, []),
        ({"sheet": ('s="2"', 's="-2"')}, []),
        ({"styles": ('<xf numFmtId="166"', '<xf numFmtId="200"')}, [2]),
    ],
)
def test_a_style_that_points_nowhere_names_no_currency(
    workspace: Workspace, rows: Any, tmp_path: Path, part: Any, wrong: list[int]
) -> None:
    lines = [[("1", "0"), ("1.5", "EUR")], [("2", "0"), ("2.5", "GBP")]]
    path = restyled(sheet(tmp_path / "a.xlsx", ["Number", "Paid"], lines), **part)
    settings = with_names(workspace.settings, tmp_path, NAMES)
    constants = SHAPE["constants"] | {"CurrenciesId": 826}
    assert list(reasons(settings, path, SHAPE | {"constants": constants})) == wrong
    where = replace(workspace, settings=settings)
    batch = import_delivery(where, [path], read_profile(SHAPE | {"constants": constants})).batch
    assert batch.state in {State.COMPLETE, State.COMPLETE_WITH_ERRORS}


@pytest.mark.parametrize("kind", ["ods", "xlsx"])
@pytest.mark.parametrize("blank", ["\r", "x\ry", "\r\n", "x\r"])
def test_a_row_with_a_carriage_return_is_one_record_with_its_currencies(
    still: Workspace, tmp_path: Path, kind: str, blank: str
) -> None:
    lines = [
        [(blank, ""), ("1", "0"), ("1.5", "GBP")],
        [("x", ""), ("2", "0"), ("2.5", "EUR")],
        [("x", ""), ("3", "0"), ("3.5", "GBP")],
    ]
    if kind == "ods":
        lines = [[(said.replace("\r", "&#13;"), code) for said, code in line] for line in lines]
    path = sheet(tmp_path / f"a.{kind}", ["Note", "Number", "Paid"], lines)
    settings = with_names(still.settings, tmp_path, NAMES)
    constants = SHAPE["constants"] | {"CurrenciesId": 978}
    (verdict,) = examine(settings, [path], read_profile(SHAPE | {"constants": constants}))
    assert verdict.message is None
    told = [[error["ErrorCode"] for error in one.errors] for one in verdict.rejects]
    assert told == [["OtherCurrency"], ["OtherCurrency"]]


def with_names(settings: Settings, folder: Path, names: str) -> Settings:
    if not names:
        return settings
    path = folder / "currencies.csv"
    path.write_text(names)
    return replace(settings, currencies=path)


def reasons(settings: Settings, path: str, shape: dict[str, Any]) -> dict[int, list[str]]:
    (verdict,) = examine(settings, [path], read_profile(shape))
    assert verdict.message is None
    return {one.line: [error["Message"] for error in one.errors] for one in verdict.rejects}


@pytest.mark.long(but=("stated0--wrong0-ods",))
@pytest.mark.parametrize("kind", ["ods", "xlsx"])
@pytest.mark.parametrize(("stated", "names", "wrong"), STATED)
def test_the_currency_of_a_cell_is_held_against_that_of_its_record(
    still: Workspace,
    tmp_path: Path,
    kind: str,
    stated: dict[str, Any],
    names: str,
    wrong: dict[int, tuple[str, str]],
) -> None:
    mapped = "fields" in stated
    lines = [
        [(str(at), "0"), (paid, code or "0"), (said, "") if mapped else (str(MAP[said]), "0")]
        for at, (paid, code, said) in enumerate(LINES, 1)
    ]
    path = sheet(tmp_path / f"a.{kind}", ["Number", "Paid", "In"], lines)
    settings = with_names(still.settings, tmp_path, names)
    amounts = {
        line: paid if kind == "ods" else f"{float(paid):g}"
        for line, (paid, _, _) in enumerate(LINES, 2)
    }
    assert reasons(settings, path, SHAPE | stated) == {
        line: [
            f"'PaidAmount' is in {found} by the format of its cell, and the record is in "
            f"{of_record}: {amounts[line]}."
        ]
        for line, (found, of_record) in wrong.items()
    }


@pytest.mark.long
@pytest.mark.parametrize("strict_bytes", [0, 1 << 30])
def test_wrong_rows_are_rejected_on_both_ways_and_the_others_are_taken(
    workspace: Workspace, rows: Any, tmp_path: Path, strict_bytes: int
) -> None:
    lines = [
        [(str(at), "0"), (f"{at}.25", "GBP" if at % 100 == 0 else "EUR")] for at in range(1, 1001)
    ]
    path = sheet(tmp_path / "a.xlsx", ["Number", "Paid"], lines)
    settings = with_names(workspace.settings, tmp_path, NAMES)
    limits = replace(settings.limits, strict_bytes=strict_bytes, block_bytes=4096)
    where = replace(workspace, settings=replace(settings, limits=limits))
    stated = {"constants": SHAPE["constants"] | {"CurrenciesId": 978}}
    batch = import_delivery(where, [path], read_profile(SHAPE | stated)).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    assert rows('SELECT count(*), sum("PaidAmount")::text FROM payment') == [(990, "495247.50")]
    told = rows("SELECT error_data FROM staged_payment WHERE error_data IS NOT NULL")
    errors = [error for (found,) in told for error in json.loads(str(found))]
    assert {(one["ErrorCode"], one["FieldName"]) for one in errors} == {
        ("OtherCurrency", "PaidAmount")
    }
    assert sorted(int(one["Meta"]["line"]) for one in errors) == [*range(101, 1002, 100)]
    report = (where.settings.reports / "batch-1" / "report.txt").read_text()
    assert "OtherCurrency" in report
    assert "no readable" not in report, "these amounts were read, and are in the sums"


WIDE = SHAPE | {
    "columns": {"Number": "Id"},
    "unpivot": {"columns": ["EUR", "GBP"], "name": "In", "value": "Paid"},
    "fields": {
        "CurrenciesId": {"from": ["In"], "map": MAP},
        "PaidAmount": {"from": ["Paid"]},
    },
}


@pytest.mark.long(but=("ods",))
@pytest.mark.parametrize("kind", ["ods", "xlsx"])
def test_the_cells_of_a_table_are_held_against_the_currency_of_their_column(
    still: Workspace, tmp_path: Path, kind: str
) -> None:
    lines = [
        [("1", "0"), ("1.5", "EUR"), ("2.5", "GBP")],
        [("2", "0"), ("1.5", "GBP"), ("2.5", "GBP")],
        [("3", "0"), ("1.5", "EUR"), ("2.5", "EUR")],
        [("4", "0"), ("", ""), ("2.5", "EUR")],
        [("5", "0"), ("1.5", "0"), ("2.5", "0")],
    ]
    path = sheet(tmp_path / f"a.{kind}", ["Number", "EUR", "GBP"], lines)
    said = "'PaidAmount' is in {} by the format of its cell, and the record is in {}: {}."
    euro, pound = "EUR (CurrenciesId 978)", "GBP (CurrenciesId 826)"
    found = reasons(still.settings, path, WIDE)
    # Both records of a line have its number, and no key of theirs is of the column.
    of_amounts = {
        line: [one for one in told if "PaidAmount" in one] for line, told in found.items()
    }
    assert {line: told for line, told in of_amounts.items() if told} == {
        3: [said.format("GBP", euro, "1.5")],
        4: [said.format("EUR", pound, "2.5")],
        5: [said.format("EUR", pound, "2.5")],
    }


SUMMED = SHAPE | {
    "columns": {"Number": "Id"},
    "fields": {"PaidAmount": {"sum": ["Net", "Tax"]}},
    "constants": SHAPE["constants"] | {"CurrenciesId": 978},
}


@pytest.mark.long
def test_cells_that_are_added_up_are_held_each(still: Workspace, tmp_path: Path) -> None:
    lines = [
        [("1", "0"), ("1.5", "EUR"), ("2.5", "EUR")],
        [("2", "0"), ("1.5", "EUR"), ("2.5", "GBP")],
    ]
    path = sheet(tmp_path / "a.xlsx", ["Number", "Net", "Tax"], lines)
    settings = with_names(still.settings, tmp_path, NAMES)
    assert list(reasons(settings, path, SUMMED)) == [3]
    tried = try_profile(settings, path, read_profile(SUMMED), record=None, rows=5)
    assert [[error["ErrorCode"] for error in one.errors] for one in tried.rows] == [
        [],
        ["OtherCurrency"],
    ]


def test_a_table_that_cannot_be_used_stops_before_a_batch_is_opened(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = sheet(tmp_path / "a.xlsx", ["Number", "Paid"], [[("1", "0"), ("1.5", "EUR")]])
    settings = with_names(workspace.settings, tmp_path, f"CurrenciesId,Code\n{'9' * 5000},EUR\n")
    shape = SHAPE | {"constants": SHAPE["constants"] | {"CurrenciesId": 978}}
    where = replace(workspace, settings=settings)
    with pytest.raises(SettingsError, match="line 2"):
        import_delivery(where, [path], read_profile(shape))
    assert rows("SELECT count(*) FROM batch") == [(0,)]


def test_a_row_in_two_other_currencies_is_told_once(still: Workspace, tmp_path: Path) -> None:
    lines = [
        [("1", "0"), ("1.5", "USD"), ("2.5", "GBP")],
        [("2", "0"), ("1.5", "EUR"), ("2.5", "GBP")],
        [("3", "0"), ("1.5", "USD"), ("2.5", "USD")],
    ]
    path = sheet(tmp_path / "a.xlsx", ["Number", "Net", "Tax"], lines)
    settings = with_names(still.settings, tmp_path, NAMES)
    (verdict,) = examine(settings, [path], read_profile(SUMMED))
    told = {one.line: [error["Message"] for error in one.errors] for one in verdict.rejects}
    assert {line: len(messages) for line, messages in told.items()} == {2: 1, 3: 1, 4: 1}
    assert "is in USD by" in told[2][0]
    assert "is in GBP by" in told[3][0]


@pytest.mark.long(
    but=(
        "9999999999999999-written0-codes0-ods",
        "1.5-written1-codes1-ods",
        "1.5-written3-codes3-ods",
    )
)
@pytest.mark.parametrize("kind", ["ods", "xlsx"])
@pytest.mark.parametrize(
    ("cell", "written", "codes"),
    [
        ("9999999999999999", {}, ["UnreadCell"]),
        ("1.5", {"null": ["1.5"]}, ["NotNull"]),
        ("1.5", {"null": ["1.5"], "default": "2.00"}, []),
        ("1.5", {"null": ["2.5"], "default": "2.00"}, ["OtherCurrency"]),
    ],
)
def test_only_a_cell_that_is_read_as_an_amount_is_held(
    still: Workspace,
    tmp_path: Path,
    kind: str,
    cell: str,
    written: dict[str, Any],
    codes: list[str],
) -> None:
    lines = [[("1", "0"), (cell, "GBP")], [("2", "0"), ("3.5", "EUR")]]
    path = sheet(tmp_path / f"a.{kind}", ["Number", "Paid"], lines)
    shape = SHAPE | {
        "columns": {"Number": "Id"},
        "fields": {"PaidAmount": {"from": ["Paid"]} | written},
        "constants": SHAPE["constants"] | {"CurrenciesId": 978},
    }
    settings = with_names(still.settings, tmp_path, NAMES)
    (verdict,) = examine(settings, [path], read_profile(shape))
    assert [error["ErrorCode"] for one in verdict.rejects for error in one.errors] == codes


def test_the_repeated_cells_of_a_document_name_one_each(still: Workspace, tmp_path: Path) -> None:
    in_pounds = number("1", 'office:currency="GBP" table:number-columns-repeated="2"').replace(
        '"float"', '"currency"'
    )
    path = ods_of(
        tmp_path / "a.ods",
        table(
            row(text("Number"), text("Paid"), text("DiscountAmount")),
            row(number("1"), in_pounds, more='table:number-rows-repeated="2"'),
        ),
    )
    settings = with_names(still.settings, tmp_path, NAMES)
    constants = SHAPE["constants"] | {"CurrenciesId": 978}
    constants.pop("DiscountAmount")
    found = reasons(settings, path, SHAPE | {"constants": constants})
    assert {line: len(messages) for line, messages in found.items()} == {2: 2, 3: 2}
