"""Sheets of OpenDocument workbooks: the document's own numbers, and nothing hidden in silence."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.files.profiles.profile_file import read_profile
from flows.stages.draft.profile import draft_profile
from flows.stages.examining.examine import examine
from flows.stages.workspace import Workspace
from tests.examples import examples
from tests.extracts.test_workbooks import SHAPE, imported_and_corrected, read

PROFILE = read_profile(SHAPE)
NAMESPACES = (
    "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text", "style")
    )
    + ' xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
)
STYLES = """<style:style style:name="ta2" style:family="table">
<style:table-properties table:display="false"/></style:style>"""


def number(value: str, more: str = "") -> str:
    return (
        f'<table:table-cell office:value-type="float" office:value="{value}" {more}>'
        f"<text:p>shown</text:p></table:table-cell>"
    )


def text(value: str, more: str = "") -> str:
    return (
        f'<table:table-cell office:value-type="string" {more}><text:p>{value}</text:p>'
        "</table:table-cell>"
    )


def day(value: str) -> str:
    return f'<table:table-cell office:value-type="date" office:date-value="{value}"/>'


def row(*cells: str, more: str = "") -> str:
    return f"<table:table-row {more}>{''.join(cells)}</table:table-row>"


def table(*rows: str, name: str = "Data", more: str = "", columns: str = "") -> str:
    return f'<table:table table:name="{name}" {more}>{columns}{"".join(rows)}</table:table>'


NOTHING = '<table:table-cell table:number-columns-repeated="16380"/>'
REST = row(NOTHING, more='table:number-rows-repeated="1048560"')


def made(path: Path, *tables: str, parts: dict[str, str] | None = None) -> str:
    """A workbook of these tables, as an office program writes them; `parts` are other ones."""
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content{NAMESPACES}>'
        f"<office:automatic-styles>{STYLES}</office:automatic-styles><office:body>"
        f"<office:spreadsheet>{''.join(tables)}</office:spreadsheet></office:body>"
        "</office:document-content>"
    )
    kept = {
        "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
        "content.xml": content,
        "META-INF/manifest.xml": "<manifest/>",
    } | (parts or {})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in kept.items():
            archive.writestr(name, part)
    return str(path)


BY_HAND = (
    table(
        row(text("Payments of November"), NOTHING),
        row(
            text("by hand", 'table:number-columns-spanned="3" table:number-rows-spanned="1"'),
            '<table:covered-table-cell table:number-columns-repeated="2"/>',
        ),
        row(NOTHING),
        "<table:table-header-rows>",
        row(text("Number"), text("Paid"), text("On"), text("Remark")),
        "</table:table-header-rows>",
        row(number("1"), number("1234.56"), day("2026-11-04"), NOTHING),
        row(number("2"), number("0.30000000000000004"), day("2026-11-05T00:00:00"), NOTHING),
        row(number("9007199254740991"), number("-20"), day("2026-11-06")),
        row(number("3"), text("n/a"), text("tomorrow"), more='table:visibility="collapse"'),
        REST,
        columns='<table:table-column table:number-columns-repeated="3"/>'
        '<table:table-column table:visibility="collapse"/>',
    ),
    table(row(text("old")), name="Old", more='table:style-name="ta2"'),
)


def test_a_sheet_by_hand_is_imported_and_its_wrong_row_corrected(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = made(tmp_path / "hand.ods", *BY_HAND)
    said = "hidden sheets: Old; merged: A2; hidden rows: 8; hidden columns: 4 to 4."
    imported_and_corrected(workspace, rows, path, said, wrong_line=8)
    assert '"Paid"' in draft_profile(workspace.settings, path, "x", "payment")


CELLS = [
    # a cell, what is read
    (number("1E-7"), "1E-7"),
    (number("2.50"), "2.50"),
    (number("-0"), "0"),
    (number("5.0"), "5"),
    (number("9007199254740993"), "9007199254740993 (a workbook does not hold whole numbers of "
     "this size exactly)"),
    (number("1,5"), "1,5 (this sort of cell is not read)"),
    (number("1e9999999"), "1e9999999 (this sort of cell is not read)"),
    (number("INF"), "INF (this sort of cell is not read)"),
    (number("1" * 5_000), "1" * 5_000 + " (this sort of cell is not read)"),
    (day("1.5.2026"), "1.5.2026 (this sort of cell is not read)"),
    ('<table:table-cell office:value-type="time" office:time-value="P1DT2H"/>',
     "P1DT2H (this sort of cell is not read)"),
    (number("123456789012.34567"), "123456789012.346"),
    (number("12345678901234.56"), "12345678901234.56"),
    (number("0.05").replace("float", "percentage"), "0.05"),
    (number("7.10").replace("float", "currency"), "7.10"),
    (day("2026-01-05T10:30:15.500000000"), "2026-01-05T10:30:15.5"),
    (day("2026-11-01T10:29:59.999999686"), "2026-11-01T10:30:00"),
    (day("2026-11-01T10:30:00.122999486"), "2026-11-01T10:30:00.123"),
    (day("2026-11-01T10:30:00.123456789"), "2026-11-01T10:30:00.123457"),
    (day("1850-01-01T00:00:00.000000499"), "1850-01-01"),
    (day("2026-11-01T23:59:59.999999999"), "2026-11-01T23:59:59.999999999 (no day of a calendar, "
     "or at midnight and nobody knows of which day)"),
    (day("2026-02-30T10:30:00.123456789"), "2026-02-30T10:30:00.123456789"),
    (day("2026-11-01T10:75:00.123456789"), "2026-11-01T10:75:00.123456789"),
    (day("1899-12-30"), "1899-12-30"),
    ('<table:table-cell office:value-type="time" office:time-value="PT10H30M00S"/>', "10:30:00"),
    ('<table:table-cell office:value-type="time" office:time-value="PT26H00M05.25S"/>',
     "26:00:05.25"),
    ('<table:table-cell office:value-type="time" office:time-value="-PT04H59M59.999999840S"/>',
     "-05:00:00"),
    ('<table:table-cell office:value-type="time" office:time-value="PT23H59M59.999999999S"/>',
     "PT23H59M59.999999999S (no day of a calendar, or at midnight and nobody knows of which day)"),
    ('<table:table-cell office:value-type="boolean" office:boolean-value="true"/>', "True"),
    ('<table:table-cell office:value-type="void"/>', "void (this sort of cell is not read)"),
    (text("007"), "007"),
    (text('a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d<text:span>e<text:a>f</text:a>'
          "</text:span>g"), "a   b\tc\ndefg"),
    (text("a</text:p><text:p>b"), "a\nb"),
    (text("shown", 'office:string-value="kept"'), "kept"),
    (text("seen").replace("<text:p>", "<office:annotation><text:p>no</text:p></office:annotation>"
                          "<text:p>"), "seen"),
    (text("#DIV/0!", 'table:formula="of:=1/0" office:string-value="" '
          'calcext:value-type="error"'), "#DIV/0!"),
    (number("3", 'table:formula="of:=1+2"'), "3"),
    (number("0", 'table:formula="of:=1/0" calcext:value-type="error"').replace("shown", "#DIV/0!"),
     "#DIV/0!"),
    (number("0", 'table:formula="of:=1/0"').replace("shown", "Err:502"), "Err:502"),
    (text("from <text:sheet-name>Data</text:sheet-name>!"), "from Data!"),
    (text("").replace("<text:p>", "<text:list><text:list-item><text:p>a</text:p></text:list-item>"
                      "</text:list><text:p>"), "a\n"),
]  # fmt: skip


@pytest.mark.parametrize(("cell", "said"), CELLS)
def test_a_cell_is_what_the_document_writes(tmp_path: Path, cell: str, said: str) -> None:
    assert read(made(tmp_path / "a.ods", table(row(cell, text("|"))))) == [[said, "|"]]


def test_a_cell_that_is_not_read_is_no_text(still: Workspace, tmp_path: Path) -> None:
    names = ("Id", "CampaignActionsRequestsId", "CommsGuid", "Comments")
    void = '<table:table-cell office:value-type="void"/>'
    rows = [
        row(number("1"), number("7"), text("g1"), text("seen")),
        row(number("2"), number("7"), text("g2"), void),
        row(number("3"), number("7"), number("9007199254740993"), text("seen")),
    ]
    path = made(tmp_path / "a.ods", table(row(*map(text, names)), *rows))
    profile = read_profile({"feed": "x", "record": "form_reply", "unknown_columns": "ignore"})
    (verdict,) = examine(still.settings, [path], profile)
    assert [(one.line, one.errors[0]["FieldName"]) for one in verdict.rejects] == [
        (3, "Comments"),
        (4, "CommsGuid"),
    ]


@pytest.mark.long
@settings(max_examples=examples(300, 20), deadline=None)
@given(st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=20))
def test_amounts_are_read_to_the_digit(
    tmp_path_factory: pytest.TempPathFactory, amounts: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("ods") / "a.ods"
    wanted = [f"{one:.0f}" if one == int(one) else f"{one:f}" for one in amounts]
    wanted = ["0" if one == "-0" else one for one in wanted]
    assert read(made(path, table(*(row(number(f"{one:f}")) for one in amounts)))) == [
        [one] for one in wanted
    ]


def test_what_is_repeated_is_there_as_often(tmp_path: Path) -> None:
    gap = '<table:table-cell table:number-columns-repeated="2"/>'
    path = made(
        tmp_path / "a.ods",
        table(
            row(number("1", 'table:number-columns-repeated="2"'), gap, text("x"), NOTHING),
            row(NOTHING, more='table:number-rows-repeated="3"'),
            row(text("y"), NOTHING, more='table:number-rows-repeated="2"'),
            REST,
        ),
    )
    y = ["y", "", "", "", ""]
    assert read(path) == [["1", "1", "", "", "x"], [], [], [], y, y]


BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aa">]><x/>'
MILLION = 'table:number-rows-repeated="1000000"'
HOSTILE: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "entities": ((), {"content.xml": BOMB}, "a document type"),
    "encrypted": ((), {"META-INF/manifest.xml": "<manifest:encryption-data/>"}, "an encrypted"),
    "broken": ((), {"content.xml": "<office"}, "the archive is broken"),
    "no sheets": ((), {}, "a workbook with 0 visible sheets"),
    "two sheets": ((table(), table(name="More")), {}, "2 visible sheets (Data, More)"),
    "a text": ((), {"content.xml": "", "mimetype": ""}, "the archive is broken"),
    "rows that go on": (
        (table(row(text("x" * 300), more=MILLION)),), {}, "repeated cells come to more than"
    ),
    "too many rows": ((table(*[row(text("x"), more=MILLION)] * 2),), {}, "more than 1048576 rows"),
    "too many columns": (
        (table(row(text("x", 'table:number-columns-repeated="99999"'))),), {}, "larger than one"
    ),
    "a huge row": (
        (table(row(text("x" * 99_999, 'table:number-columns-repeated="9999"'))),),
        {},
        "larger than one of a sheet",
    ),
    "no repeat": ((table(row(text("x", 'table:number-columns-repeated="0"'))),), {}, "is 0"),
    "no value": ((table(row(number("1").replace("office:value=", "a="))),), {}, "broken"),
    "a table in a table": ((table(row(table())),), {}, "a table within a table"),
    "a formula without its value": (
        (table(row('<table:table-cell table:formula="of:=1"/>')),),
        {},
        "never computed, A1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_workbook_is_refused_by_name(still: Workspace, tmp_path: Path, case: str) -> None:
    tables, parts, said = HOSTILE[case]
    path = made(tmp_path / "a.ods", *tables, parts=parts)
    (verdict,) = examine(still.settings, [path], PROFILE)
    assert verdict.refused in ("corrupt_archive", "unsupported_format", "too_large"), verdict
    assert said in (verdict.message or "")


def test_a_sheet_is_read_by_its_name_or_number(tmp_path: Path) -> None:
    path = made(tmp_path / "a.ods", table(row(text("a"))), table(row(text("b")), name="More"))
    assert (read(path, "more"), read(path, 1)) == ([["b"]], [["a"]])
