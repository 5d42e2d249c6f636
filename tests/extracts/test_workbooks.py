"""Sheets of workbooks, as they are made by hand: exact, and nothing of them hidden in silence."""

import csv
import io
import random
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.errors import ExtractRefused
from connectors.files.archived.blocks import blocks
from connectors.files.profiles.profile_file import read_profile
from connectors.files.sheets.workbook import check_workbook
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import State
from connectors.settings import Limits
from flows.stages.draft.profile import draft_profile
from flows.stages.examining.examine import examine
from flows.stages.rows.locate import locate
from flows.stages.rows.rejects import write_rejects
from flows.stages.rows.spots import Spot
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

SHAPE: dict[str, Any] = {
    "feed": "by-hand",
    "record": "payment",
    "header_line": "found",
    "unknown_columns": "ignore",
    "offset": "+01:00",
    "columns": {"Number": "Id", "Paid": "PaidAmount", "On": "PaymentDate"},
    "constants": {
        **dict.fromkeys(("TenantsId", "ActionsId", "DebtsId", "CurrencyRatesId"), 7),
        "CurrenciesId": 978,
        "DiscountAmount": "0.00",
    },
}
PROFILE = read_profile(SHAPE)
Fill = Callable[[Any, Any], None]


def made(path: Path, fill: Fill, **options: Any) -> str:
    """A workbook whose first sheet is filled with (workbook, sheet)."""
    book = xlsxwriter.Workbook(str(path), options)
    fill(book, book.add_worksheet("Data"))
    book.close()
    return str(path)


def read(path: str, sheet: str | int | None = None) -> list[list[str]]:
    content = open_content(Path(path), sheet=sheet)
    return [*csv.reader(io.StringIO(b"".join(blocks(content, 0, 50)).decode()))]


def by_hand(book: Any, sheet: Any) -> None:
    day = book.add_format({"num_format": "dd.mm.yyyy"})
    sheet.write(0, 0, "Payments of November")
    sheet.merge_range(1, 0, 1, 2, "by hand")
    sheet.write_row(3, 0, ["Number", "Paid", "On", "Remark"])
    for row, (number, amount) in enumerate(
        [(1, 1234.56), (2, 0.1 + 0.2), (9_007_199_254_740_991, -20)], 4
    ):
        sheet.write_row(row, 0, [number, amount])
        sheet.write_datetime(row, 2, datetime(2026, 11, row), day)  # noqa: DTZ001
    sheet.write_row(8, 0, [3, "n/a", "tomorrow"])
    sheet.set_row(8, None, None, {"hidden": True})
    sheet.set_column(3, 3, None, None, {"hidden": True})
    book.add_worksheet("Old").hide()


@pytest.mark.long
def test_a_sheet_by_hand_is_imported_and_its_wrong_row_corrected(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = made(tmp_path / "hand.xlsx", by_hand)
    said = "hidden sheets: Old; merged: A2:C2; hidden rows: 9; hidden columns: 4 to 4."
    imported_and_corrected(workspace, rows, path, said, wrong_line=9)


def imported_and_corrected(
    workspace: Workspace, rows: Any, path: str, said: str, *, wrong_line: int
) -> None:
    """A sheet by hand is imported, what is odd about it is said, and its wrong row corrected."""
    name, folder = Path(path).name, Path(path).parent
    done = import_delivery(workspace, [path], PROFILE)
    assert done.messages == (f"{name}: {said} All cells are read as they are.",)
    assert done.batch.state is State.COMPLETE_WITH_ERRORS
    found = rows('SELECT "Id", "PaidAmount"::text, "PaymentDate"::text FROM payment ORDER BY 1')
    assert found == [
        (1, "1234.56", "2026-11-03 23:00:00+00"),
        (2, "0.3", "2026-11-04 23:00:00+00"),
        (9_007_199_254_740_991, "-20", "2026-11-05 23:00:00+00"),
    ]
    with workspace.database.connect() as connection:
        (row,) = locate(workspace, connection, done.batch.id, name, Spot(line=wrong_line))
    assert (row.data, row.state) == ("3,n/a,tomorrow,", "rejected")
    (rejects,) = write_rejects(workspace, done.batch.id, folder / "out", with_secrets=False)
    right = rejects.read_text().replace("n/a", "7.5").replace("tomorrow", "2026-11-09")
    rejects.write_text(right)
    corrected = import_delivery(workspace, [str(rejects)], PROFILE, corrects=done.batch.id).batch
    assert corrected.state is State.COMPLETE
    assert rows('SELECT "PaidAmount"::text FROM payment WHERE "Id" = 3') == [("7.5",)]


@pytest.mark.long
def test_what_is_kept_is_the_workbook_and_is_noticed_when_it_changes(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = made(tmp_path / "hand.xlsx", by_hand)
    batch = import_delivery(workspace, [path], PROFILE).batch
    (kept,) = workspace.settings.archive.glob("*/*.csv")
    assert kept.read_bytes() == Path(path).read_bytes()
    assert import_delivery(workspace, [path], PROFILE).batch.id == batch.id
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 1
    kept.chmod(0o600)
    kept.write_bytes(content)
    with workspace.database.connect() as connection, pytest.raises(Exception, match="kept copy"):
        locate(workspace, connection, batch.id, "hand.xlsx", Spot(line=5))


def cells(book: Any, sheet: Any) -> None:
    day, moment, clock, hours = (
        book.add_format({"num_format": form})
        for form in ("dd.mm.yyyy", "yyyy-mm-dd hh:mm:ss", "hh:mm", "[h]:mm")
    )
    sheet.write_row(0, 0, ["a", 'b,"c"\nd', "é", "007"])
    sheet.write_row(1, 0, [True, False, 0, -0.0])
    sheet.write_row(2, 0, [1 << 53, 1e300, 5e-324, 1e-7])
    sheet.write_row(3, 0, [0.1 + 0.2, 1 / 3, 123456789012.345678, -2.5])
    sheet.write_datetime(4, 0, date(2026, 1, 5), day)
    sheet.write_datetime(4, 1, datetime(2026, 1, 5, 10, 30, 15), moment)  # noqa: DTZ001
    sheet.write_datetime(4, 2, time(10, 30), clock)
    sheet.write_datetime(4, 3, timedelta(hours=26), hours)
    sheet.write_number(6, 3, 60, day)


def test_a_cell_is_what_a_spreadsheet_shows(tmp_path: Path) -> None:
    path = made(tmp_path / "cells.xlsx", cells)
    no_whole = "(a workbook does not hold whole numbers of this size exactly)"
    assert read(path) == [
        ["a", 'b,"c"\nd', "é", "007"],
        ["True", "False", "0", "0"],
        [f"9007199254740992 {no_whole}", f"1E+300 {no_whole}", "4.94065645841247e-324", "1E-7"],
        ["0.3", "0.333333333333333", "123456789012.346", "-2.5"],
        ["2026-01-05", "2026-01-05T10:30:15", "10:30:00", "26:00:00"],
        [],
        ["", "", "", "60 (spreadsheets disagree about days before 1900-03-01)"],
    ]


def test_days_from_1904_are_the_same_days(tmp_path: Path) -> None:
    path = made(tmp_path / "cells.xlsx", cells, date_1904=True)
    assert read(path)[4][:2] == ["2026-01-05", "2026-01-05T10:30:15"]


AMOUNTS = st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=20)


@pytest.mark.long
@settings(deadline=None)
@given(AMOUNTS)
def test_amounts_are_read_back_to_the_cent(
    tmp_path_factory: pytest.TempPathFactory, amounts: list[Decimal]
) -> None:
    path = made(
        tmp_path_factory.mktemp("amounts") / "a.xlsx",
        lambda _, sheet: sheet.write_column(0, 0, [float(amount) for amount in amounts]),
    )
    assert [Decimal(cell) for (cell,) in read(path)] == amounts


def of_two_currencies(_: Any, sheet: Any) -> None:
    sheet.merge_range(0, 0, 1, 0, "On")
    sheet.merge_range(0, 1, 0, 2, "USD")
    sheet.merge_range(0, 3, 0, 4, "JPY")
    sheet.write_row(1, 1, ["Buy", "Sell", "Buy", "Sell"])
    for row in (2, 3, 4):
        sheet.write_row(row, 0, [46296 + row, 1.08, 1.09, 161.2, 161.9])


def simple(_: Any, sheet: Any) -> None:
    sheet.write_row(0, 0, ["Number", "Paid", "On"])
    sheet.write_row(1, 0, [1, 2.5, "2026-11-01"])


def altered(path: Path, change: Callable[[str, bytes], bytes | None], flags: int = 0) -> str:
    """A workbook with other parts: by name and content what they are; None leaves one out."""
    made(path, simple)
    with zipfile.ZipFile(path) as parts:
        content = {name: parts.read(name) for name in parts.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as parts:
        for name, part in content.items():
            if (told := change(name, part)) is not None:
                parts.writestr(name, told)
    if flags:
        whole = bytearray(path.read_bytes())
        for at in range(len(whole) - 8):
            if whole[at : at + 4] == b"PK\x01\x02":
                whole[at + 8] |= flags
        path.write_bytes(whole)
    return str(path)


def in_sheet(change: Callable[[bytes], bytes]) -> Callable[[str, bytes], bytes]:
    return lambda name, part: change(part) if name.endswith("sheet1.xml") else part


BROKEN = "the archive is broken"
BOMB = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
HOSTILE = {
    "cut": (lambda path: path.write_bytes(Path(made(path, simple)).read_bytes()[:-200]), BROKEN),
    "text": (lambda path: path.write_text("Number,Paid\n1,2\n"), "no workbook inside"),
    "other zip": (
        lambda path: zipfile.ZipFile(path, "w").writestr("a.csv", "Number\n"),
        "a zip archive and no workbook",
    ),
    "broken xml": (
        lambda path: altered(path, in_sheet(lambda part: part[: len(part) // 2])),
        BROKEN,
    ),
    "no sheet part": (
        lambda path: altered(path, lambda name, part: None if "sheet1" in name else part),
        "a workbook with 0 visible sheets",
    ),
    "entities": (
        lambda path: altered(path, in_sheet(lambda part: BOMB + part.split(b"?>", 1)[1])),
        "a document type",
    ),
    "encrypted": (lambda path: altered(path, lambda _, part: part, flags=1), "encrypted"),
    "rows in no order": (
        lambda path: altered(path, in_sheet(lambda part: part.replace(b'r="2"', b'r="1"', 1))),
        "row 1 of its sheet, or a cell of it, stands twice or in no order",
    ),
    "cells in no order": (
        lambda path: altered(path, in_sheet(lambda part: part.replace(b'r="A2"', b'r="C2"'))),
        "row 2 of its sheet, or a cell of it, stands twice or in no order",
    ),
    "a cell twice": (
        lambda path: altered(path, in_sheet(lambda part: part.replace(b'r="A2"', b'r="B2"'))),
        "row 2 of its sheet, or a cell of it, stands twice or in no order",
    ),
    "formula without its value": (
        lambda path: altered(
            path, in_sheet(lambda part: part.replace(b"<v>2.5<", b"<f>1</f><v><"))
        ),
        "never computed, B2",
    ),
    "unknown encoding": (
        lambda path: altered(path, in_sheet(lambda part: part.replace(b"UTF-8", b"UTF-99", 1))),
        BROKEN,
    ),
    "a text before the first": (
        lambda path: altered(path, in_sheet(lambda part: part.replace(b"<v>0</v>", b"<v>-1</v>"))),
        BROKEN,
    ),
    "no reference": (
        lambda path: altered(path, in_sheet(lambda part: part.replace(b'r="A2"', b'r="!"'))),
        BROKEN,
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_workbook_is_refused_by_name(still: Workspace, tmp_path: Path, case: str) -> None:
    make, said = HOSTILE[case]
    path = tmp_path / "a.xlsx"
    make(path)
    (verdict,) = examine(still.settings, [str(path)], PROFILE)
    assert verdict.refused in ("corrupt_archive", "unsupported_format", "too_large"), verdict
    assert said in (verdict.message or "")


@pytest.mark.long(but=("8", "12"))
@pytest.mark.parametrize(
    "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=str
)
def test_a_byte_that_was_damaged_costs_its_workbook_and_no_other_file(
    tmp_path: Path, method: int
) -> None:
    """Whatever byte it is: a workbook is read, or refused in words."""
    path, chance = Path(made(tmp_path / "a.xlsx", simple)), random.Random(7)
    with zipfile.ZipFile(path) as parts:
        content = {name: parts.read(name) for name in parts.namelist()}
    with zipfile.ZipFile(path, "w", method) as parts:
        for name, part in content.items():
            parts.writestr(name, part)
    whole, said = path.read_bytes(), Counter[str]()
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            check_workbook(open_content(path), Limits())
        except ExtractRefused as refusal:
            said[refusal.code] += 1
    assert said["corrupt_archive"] > 20


@pytest.mark.parametrize("stated", ["A1", "A1:B2", "A1:Z99"])
def test_what_a_sheet_says_of_its_size_cuts_nothing_off(tmp_path: Path, stated: str) -> None:
    path = tmp_path / "a.xlsx"
    whole = read(made(path, simple))
    size = re.compile(rb'<dimension ref="[^"]*"')
    altered(path, in_sheet(lambda part: size.sub(f'<dimension ref="{stated}"'.encode(), part)))
    assert read(str(path)) == whole


def two(book: Any, sheet: Any) -> None:
    simple(book, sheet)
    simple(book, book.add_worksheet("More"))


SHEETS = [
    # key, what is said; None: it is read
    ({}, "a workbook with 2 visible sheets (Data, More); name one as sheet"),
    ({"sheet": "more"}, None),
    ({"sheet": 1}, None),
    ({"sheet": 3}, "a workbook without a sheet 3 (Data, More)"),
    ({"sheet": "Rest"}, "a workbook without a sheet 'Rest' (Data, More)"),
    ({"sheet": 1, "decimal": ","}, "numbers of a workbook have a decimal point"),
    ({"sheet": 1, "fields": {"PaidAmount": {"thousands": ".", "decimal": ","}}}, "for PaidAmount"),
]


@pytest.mark.long(
    but=(
        "keys0-a workbook with 2 visible sheets (Data, More); name one as sheet",
        "keys4-a workbook without a sheet 'Rest' (Data, More)",
        "keys5-numbers of a workbook have a decimal point",
    )
)
@pytest.mark.parametrize(("keys", "said"), SHEETS)
def test_the_sheet_is_stated_where_there_are_several(
    still: Workspace, tmp_path: Path, keys: dict[str, Any], said: str | None
) -> None:
    path = made(tmp_path / "a.xlsm", two)
    (verdict,) = examine(still.settings, [path], read_profile({**SHAPE, **keys}))
    assert (verdict.rows_in, len(verdict.rejects)) == ((1, 0) if said is None else (0, 0))
    assert (said or "") in (verdict.message or "")


def test_a_folder_is_not_searched_for_workbooks(still: Workspace, tmp_path: Path) -> None:
    made(tmp_path / "a.xlsx", simple)
    (tmp_path / "b.csv").write_text("Number,Paid,On\n1,2.5,2026-11-01\n")
    (verdict,) = examine(still.settings, [str(tmp_path)], PROFILE)
    assert verdict.name == "b.csv"
    named = examine(still.settings, [str(tmp_path / "*.xlsx")], PROFILE)
    assert [one.name for one in named] == ["a.xlsx"]


def test_a_draft_is_made_of_a_sheet_too(still: Workspace, tmp_path: Path) -> None:
    path = made(tmp_path / "hand.xlsx", by_hand)
    draft = draft_profile(still.settings, path, "x", "payment")
    assert '"Paid"' in draft
    assert "delimiter" not in draft  # A sheet has none.
    assert "sheet =" not in draft
    merged = made(tmp_path / "b.xlsx", of_two_currencies)
    draft = draft_profile(still.settings, merged, "x", "payment")
    assert '# ? names = ["On", "USD", "Column 3", "JPY", "Column 5"]' in draft
    assert '\n# ? sheet = ""  # beside names: which sheet' in draft


def test_what_is_read_of_a_large_sheet_is_bounded(tmp_path: Path) -> None:
    path = made(tmp_path / "a.xlsx", simple)
    with pytest.raises(ExtractRefused, match="a workbook that unpacks to"):
        check_workbook(open_content(Path(path)), Limits(file_bytes=1000))
    bomb = altered(tmp_path / "b.xlsx", in_sheet(lambda part: part + b" " * 6_000_000))
    with pytest.raises(
        ExtractRefused, match=r"it unpacks to more than 100 times its size \(RECON_LIMIT_COMP"
    ):
        check_workbook(open_content(Path(bomb)), Limits(compression_ratio=100))
    with pytest.raises(ExtractRefused, match="a workbook of 10 parts"):
        check_workbook(open_content(Path(path)), Limits(archive_members=3))
