"""Cells of Office Open XML workbooks: what they write, and not what a reader makes of it."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ExtractRefused
from connectors.files.sheets.workbook import check_workbook
from connectors.files.text.content import open_content
from connectors.settings import Limits, Settings
from flows.stages.draft.profile import draft_profile
from schemas.cells.counted_times import counted_time
from tests.extracts.test_open_documents import day, number, row, table
from tests.extracts.test_open_documents import made as ods_of
from tests.extracts.test_workbooks import read

MAIN, OFFICE = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
)
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml"
STRICT = {
    MAIN: "http://purl.oclc.org/ooxml/spreadsheetml/main",
    OFFICE: "http://purl.oclc.org/ooxml/officeDocument/relationships",
}
FORMATS = ("yyyy-mm-dd hh:mm:ss", "[h]:mm", "#,##0.00 USD", '0.00" d"', "00000", "*d0.00")
TIME, HOURS, DOLLARS, QUOTED, ZEROS, FILLED = range(1, 7)
BUILT_IN = (14, 22, 27, 46)
"""Formats that a workbook does not write down; their styles stand behind those of `FORMATS`."""


def made(
    path: Path,
    *rows: Sequence[str],
    sheet: str = "",
    texts: Sequence[str] = (),
    book: str = "",
    strict: bool = False,
) -> str:
    """A workbook of these cells, or of a sheet's rows as it writes them.

    `texts` are the shared ones, `book` stands behind its sheets.
    """
    kinds = ("worksheet", "styles", "sharedStrings")
    types = "".join(
        f'<Override PartName="/xl/{part}.xml" ContentType="{CONTENT}.{kind}+xml"/>'
        for part, kind in (("workbook", "sheet.main"), *zip(kinds, kinds, strict=True))
    )
    related = "".join(
        f'<Relationship Id="r{at}" Type="{OFFICE}/{kind}" Target="{kind}.xml"/>'
        for at, kind in enumerate(kinds)
    )
    own = "".join(
        f'<numFmt numFmtId="{164 + at}" formatCode="{one.replace(chr(34), "&quot;")}"/>'
        for at, one in enumerate(FORMATS)
    )
    numbers = [0, *range(164, 164 + len(FORMATS)), *BUILT_IN]
    styles = "".join(
        f'<xf numFmtId="{one}" fontId="0" fillId="0" borderId="0"/>' for one in numbers
    )
    sheet = sheet or "".join(f"<row>{''.join(cells)}</row>" for cells in rows)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">{types}</Types>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f"{related}</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        f'<sheet name="Data" sheetId="1" r:id="r0"/></sheets>{book}</workbook>',
        "xl/worksheet.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{sheet}</sheetData></worksheet>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><numFmts>{own}</numFmts>'
        f"<cellXfs>{styles}</cellXfs></styleSheet>",
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{"".join(texts)}</sst>',
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            for one, other in STRICT.items() if strict else ():
                part = part.replace(one, other)  # noqa: PLW2901
            archive.writestr(name, part)
    return str(path)


def of(value: str, style: int = 0) -> str:
    return f'<c s="{style}"><v>{value}</v></c>'


def said(text: str, kind: str = "inlineStr") -> str:
    return f'<c t="{kind}"><is><t>{text}</t></is><v>{text}</v></c>'


NO_WHOLE = "(a workbook does not hold whole numbers of this size exactly)"
NOT_READ = "(this sort of cell is not read)"
CELLS = [
    # a cell, what is read
    (of("0.30000000000000004"), "0.3"),
    (of("434.99999999999994"), "435"),
    (of("1234567.8900000023"), "1234567.89"),
    (of("0.14285714285714285"), "0.142857142857143"),
    (of("123456789012.34567"), "123456789012.346"),
    (of("12345678901234.56"), "12345678901234.56"),
    (of("12345678901234.561"), "12345678901234.56"),
    (of("20000000000000.01"), "20000000000000.01"),
    (of("1234567890123.4502"), "1234567890123.45"),
    (of("1234567890123.456"), "1234567890123.456"),
    (of("-4503599627370497.5"), "-4503599627370497.5"),
    (of("9007199254740991"), "9007199254740991"),
    (of("9007199254740993"), f"9007199254740993 {NO_WHOLE}"),
    (of("2.50"), "2.50"),
    (of("5.0"), "5"),
    (of(" -0 "), "0"),
    (of(".5"), "0.5"),
    (of("1_000"), f"1_000 {NOT_READ}"),
    (of("INF"), f"INF {NOT_READ}"),
    (of("46327.4375", TIME), "2026-11-01T10:30:00"),
    (of("46327", TIME), "2026-11-01"),
    (of("46356.99999999999", TIME), "2026-11-30T23:59:59.999999"),
    (of("46356.9999999999", TIME), "2026-11-30T23:59:59.99999"),
    (of("46356.999999994214", TIME), "2026-11-30T23:59:59.9995"),
    (of("46027.437673611108", TIME), "2026-01-05T10:30:15"),
    (of("46027.4376736111", TIME), "2026-01-05T10:30:15"),
    (of("46327.4375", 7), "2026-11-01T10:30:00"),
    (of("46327.4375", 9), "2026-11-01T10:30:00"),
    (of("0.4375", TIME), "10:30:00"),
    (of("0.43750578703703702", TIME), "10:30:00.5"),
    (of("1.0833333333333333", HOURS), "26:00:00"),
    (of("1.0833333333333333", 10), "26:00:00"),
    (of("-0.25", HOURS), "-06:00:00"),
    (of("60", TIME), "60 (spreadsheets disagree about days before 1900-03-01)"),
    (of("9999999", TIME), "9999999 (no day of a calendar, or at midnight and nobody knows of "
     "which day)"),
    (of("1e300", TIME), "1e300 (no day of a calendar, or at midnight and nobody knows of "
     "which day)"),
    (of("1234.5", DOLLARS), "1234.5"),
    (of("1234.5", QUOTED), "1234.5"),
    (of("1234.5", FILLED), "1234.5"),
    (of("1234.5", 99), "1234.5"),
    (said("2026-11-01T10:30:00.123456Z", "d"), "2026-11-01T10:30:00.123456Z"),
    (said("2026-11-01T10:30:00.5000000+01:00", "d"), "2026-11-01T10:30:00.5+01:00"),
    (said("2026-11-01T10:29:59.9999997+01:00", "d"), "2026-11-01T10:30:00+01:00"),
    (said("10:29:59.9999997", "d"), "10:30:00"),
    (said("2026-11-01T00:00:00.000", "d"), "2026-11-01"),
    (said("2026-11-01", "d"), "2026-11-01"),
    (said("10:30:00", "d"), "10:30:00"),
    (said("1.11.2026", "d"), f"1.11.2026 {NOT_READ}"),
    (said("x", "later"), f"later {NOT_READ}"),
    (said("1", "b"), "True"),
    (said("#N/A", "e"), "#N/A"),
    (said("a_x0041_b_x000a_"), "aAb\n"),
    (said("_x005F_x0041_"), "_x0041_"),
    (said("foox005F_bar"), "foox005F_bar"),
    (said("_xD83D__x004_"), "_xD83D__x004_"),
    (said("a_x0041_", "str"), "aA"),
    ('<c t="s"><v>0</v></c>', "foox005F_bar_x0041_"),
    ('<c t="s"><v>1</v></c>', "ab c_x0041_"),
    ('<c t="s"><v/></c>', ""),
    ("<c/>", ""),
    ('<c><f>1+2</f><v>3</v></c>', "3"),
    ('<c t="str"><f>""</f><v></v></c>', ""),
]  # fmt: skip
TEXTS = (
    "<si><t>foox005F_bar_x005F_x0041_</t></si>",
    "<si><r><t>ab</t></r><r><t> c_x005F_x0041_</t></r><rPh sb='0' eb='2'><t>how</t></rPh></si>",
)


@pytest.mark.parametrize("strict", [False, True], ids=["usual", "strict"])
@pytest.mark.parametrize(("cell", "text"), CELLS)
def test_a_cell_is_what_the_workbook_writes(
    tmp_path: Path, cell: str, text: str, strict: bool
) -> None:
    path = made(tmp_path / "a.xlsx", (cell, said("|")), texts=TEXTS, strict=strict)
    assert read(path) == [[text, "|"]]


def test_days_count_from_what_the_workbook_says(tmp_path: Path) -> None:
    from_1904 = '<workbookPr date1904="1"/>'
    path = made(tmp_path / "a.xlsx", (of("0.5", TIME), of("44865.5", TIME)), book=from_1904)
    assert read(path) == [["12:00:00", "2026-11-01T12:00:00"]]


def test_a_time_is_of_the_same_day_wherever_it_stands(tmp_path: Path) -> None:
    last, count = "2026-11-30T23:59:59.999999", "46356.99999999999"
    in_xml = read(made(tmp_path / "a.xlsx", (of(count, TIME),)))
    in_document = read(ods_of(tmp_path / "a.ods", table(row(day(last)))))
    in_text = counted_time(count, "excel")
    assert in_xml == in_document == [[last]]
    assert not isinstance(in_text, str)
    assert in_text.isoformat() == last


ANEW = '<calcPr calcId="124519" fullCalcOnLoad="1"/>'
COMPUTED, UNFINISHED = '<calcPr calcId="191029"/>', '<calcPr calcMode="manual" calcCompleted="0"/>'
SUM, TEXT = "<c><f>A2*2</f><v>0</v></c>", '<c t="str"><f>A2&amp;"x"</f><v>3x</v></c>'
NEVER = "never computed, B1: open the workbook with"
FORMULAS: list[tuple[str, str, str | None, str | None]] = [
    # a cell, what the workbook says of its formulas, what is said of it as computed, and as saved
    (SUM, COMPUTED, None, None),
    (SUM, "", None, None),
    (SUM, ANEW, r"B1: the workbook leaves them to whoever .* state formulas = \"saved\"", None),
    (SUM, UNFINISHED, "B1: the workbook was saved before all of them were computed", None),
    (TEXT, COMPUTED, None, None),
    (TEXT, ANEW, "may not be what they come to, B1: ", None),
    (of("1"), ANEW, None, None),
    (of("1"), UNFINISHED, None, None),
    ('<c t="str"><f>A2&amp;"x"</f></c>', COMPUTED, NEVER, NEVER),
    ('<c t="str"><f>""</f><v></v></c>', COMPUTED, None, None),
    ("<c><f>A2*2</f></c>", COMPUTED, NEVER, NEVER),
    ("<c><f>A2*2</f><v/></c>", COMPUTED, NEVER, NEVER),
    ("<c><f>A2*2</f><v/></c>", ANEW, NEVER, NEVER),
]


@pytest.mark.parametrize("formulas", ["computed", "saved"])
@pytest.mark.parametrize(("cell", "book", "computed", "saved"), FORMULAS)
def test_a_formula_has_a_value_that_the_workbook_does_not_speak_against(
    tmp_path: Path, cell: str, book: str, computed: str | None, saved: str | None, formulas: str
) -> None:
    path = Path(made(tmp_path / "a.xlsx", (of("1"), cell), book=book))
    content = open_content(path, formulas=formulas)
    said = saved if formulas == "saved" else computed
    if said is None:
        remarks = check_workbook(content, Limits()).remarks
        noted = "formulas read with the values they were saved with, though the workbook"
        assert (noted in "".join(remarks)) is (computed is not None)
    else:
        with pytest.raises(ExtractRefused, match=said):
            check_workbook(content, Limits())


def test_a_sheet_may_leave_its_formulas_to_whoever_opens_it_too(tmp_path: Path) -> None:
    behind = '</sheetData><sheetCalcPr fullCalcOnLoad="1"/><sheetData>'
    path = Path(made(tmp_path / "a.xlsx", sheet=f"<row>{SUM * 12}</row>{behind}"))
    with pytest.raises(ExtractRefused, match="I1, J1, and 2 more: the sheet leaves them to"):
        check_workbook(open_content(path), Limits())
    assert read(str(path)) == [["0"] * 12]
    draft = draft_profile(Settings(tmp_path), str(path), "by-hand", "payment")
    assert '# ? formulas = "saved"  # if its values are true, though the sheet leaves' in draft


ZERO_CELLS: list[tuple[Any, ...]] = [
    # cells in both kinds of workbook, the columns of which it is said
    ((of("7", ZEROS), number("7").replace("shown", "00007")), "A"),
    ((of("-7", ZEROS), number("-7").replace("shown", "-00007")), "A"),
    ((of("12345", ZEROS), number("12345").replace("shown", "12345")), ""),
    ((of("0.5", DOLLARS), number("0.5").replace("shown", "0.50 USD")), ""),
    ((of("7"), number("7").replace("shown", "7")), ""),
]


@pytest.mark.parametrize(("cells", "columns"), ZERO_CELLS)
def test_zeros_that_only_a_format_shows_are_said(
    tmp_path: Path, cells: tuple[str, str], columns: str
) -> None:
    in_xml, in_document = cells
    paths = (
        made(tmp_path / "a.xlsx", (in_xml,)),
        ods_of(tmp_path / "a.ods", table(row(in_document))),
    )
    shown = "numbers that are shown with zeros before them, and read without, in the columns: "
    for path in paths:
        facts = check_workbook(open_content(Path(path)), Limits())
        assert facts.remarks == ((f"{shown}{columns}",) if columns else ())


def test_rows_and_cells_that_a_sheet_leaves_out_are_empty(tmp_path: Path) -> None:
    sheet = '<row r="2"><c r="B2"><v>1</v></c></row><row r="5"><c r="A5"><v>2</v></c><c r="D5"/>'
    sheet += '</row><row r="900000"><c r="A900000" s="1"/></row>'
    path = made(tmp_path / "a.xlsx", sheet=sheet)
    assert read(path) == [[], ["", "1"], [], [], ["2", ""]]
