import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from markupsafe import escape

from flows.report.reconciled import break_sheet, workbook
from flows.report.reconciled.break_rows import letter
from flows.report.reconciled.break_sheet import BREAK_COLUMNS
from flows.report.reconciled.checks import checked_columns, checks, survives
from flows.report.reconciled.first_page import NOTES, money, parts, top_causes, totals, words
from flows.report.reconciled.html import render_html
from flows.report.reconciled.table import ReportTable, TableRow
from flows.report.reconciled.tables import tables
from flows.report.reconciled.text import render_text
from flows.report.reconciled.words import GLOSSARY
from flows.report.reconciled.workbook import SHEETS, render_workbook
from flows.steps.breaks.ageing import BUCKETS
from flows.steps.reconcile.reported_breaks import Breaks
from schemas.breaks import Status
from schemas.life import GONE, BreakState
from tests.report.reconciliation.sample import REPORTS, WIDE, everything, many
from tests.report.sample_reports import HOSTILE

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"

Cell = tuple[str, str | None]
"""Kind (`n`, `text`, `formula`) and value."""


class Book:
    """A workbook read back from its parts."""

    def __init__(self, content: bytes) -> None:
        self.zip = zipfile.ZipFile(io.BytesIO(content))
        book = ElementTree.fromstring(self.zip.read("xl/workbook.xml"))
        names = [str(sheet.get("name")) for sheet in book.iter(f"{MAIN}sheet")]
        self.parts = {
            name: f"xl/worksheets/sheet{place}.xml" for place, name in enumerate(names, 1)
        }
        shared = ElementTree.fromstring(
            self.zip.read("xl/sharedStrings.xml")
            if "xl/sharedStrings.xml" in self.zip.namelist()
            else b"<sst/>"
        )
        self.shared = ["".join(one.itertext()) for one in shared]

    def cells(self, name: str) -> dict[str, Cell]:
        root = ElementTree.fromstring(self.zip.read(self.parts[name]))
        found: dict[str, Cell] = {}
        for cell in root.iter(f"{MAIN}c"):
            value = cell.find(f"{MAIN}v")
            told = value.text if value is not None else None
            if cell.find(f"{MAIN}f") is not None:
                found[str(cell.get("r"))] = ("formula", told)
            elif cell.get("t") == "inlineStr":
                found[str(cell.get("r"))] = ("text", "".join(cell.itertext()))
            elif cell.get("t") == "s":
                found[str(cell.get("r"))] = ("text", self.shared[int(str(told))])
            elif told is not None:
                found[str(cell.get("r"))] = ("n", told)
        return found

    def looks(self, name: str) -> dict[str, Mapping[str, str]]:
        """How what is in a cell stands in it."""
        styles = ElementTree.fromstring(self.zip.read("xl/styles.xml"))
        formats = styles.find(f"{MAIN}cellXfs")
        assert formats is not None
        alignments = [one.find(f"{MAIN}alignment") for one in formats]
        root = ElementTree.fromstring(self.zip.read(self.parts[name]))
        found: dict[str, Mapping[str, str]] = {}
        for cell in root.iter(f"{MAIN}c"):
            alignment = alignments[int(cell.get("s", "0"))]
            found[str(cell.get("r"))] = {} if alignment is None else alignment.attrib
        return found

    def heights(self, name: str) -> dict[int, float]:
        """Of the rows that state theirs, in points."""
        root = ElementTree.fromstring(self.zip.read(self.parts[name]))
        rows = ((int(str(row.get("r"))), row.get("ht")) for row in root.iter(f"{MAIN}row"))
        return {row: float(height) for row, height in rows if height}

    def column(self, name: str, head: str) -> list[Cell | None]:
        cells = self.cells(name)
        place = next(
            at for at, (_, text) in cells.items() if re.fullmatch("[A-Z]+1", at) and text == head
        )
        last = max(int(re.sub("[A-Z]", "", at)) for at in cells)
        return [cells.get(f"{place[:-1]}{row}") for row in range(2, last + 1)]


def book_of(name: str) -> Book:
    return Book(render_workbook(REPORTS[name]()))


@pytest.mark.long(
    but=(
        "everything",
        "nothing",
    )
)
@pytest.mark.parametrize("name", REPORTS)
def test_every_section_has_its_sheet_and_every_part_is_sound(name: str) -> None:
    book = book_of(name)
    assert set(book.parts) == {*SHEETS.values(), "Cover", "Breaks", "Charts", "Sign-off"}
    for part in book.zip.namelist():
        ElementTree.fromstring(book.zip.read(part))
    assert {one.date_time for one in book.zip.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert b"2000-01-01T00:00:00Z" in book.zip.read("docProps/core.xml")


@pytest.mark.long
def test_delivered_text_is_text_and_no_link() -> None:
    book = book_of("everything")
    for name in book.parts:
        assert b"<hyperlink" not in book.zip.read(book.parts[name])
    formulas = re.findall(
        rb"<f>([^<]*)</f>", b"".join(book.zip.read(part) for part in book.parts.values())
    )
    same = rb"ABS\([-A-Z0-9]+\)&lt;[0-9.E-]+"
    ours = rb"[-+A-Z0-9]+|IF\((%b|AND\(%b(,%b)+\)),\"OK\",\"CHECK\"\)|" % (same, same, same)
    ours += rb"(\+?COUNTIF\('[A-Za-z -]+'![A-Z]+:[A-Z]+,\"OK\"\))+"
    assert len(formulas) > 20
    for formula in formulas:
        assert re.fullmatch(ours, formula), formula
    assert book.column("Breaks", "Key")[1] == ("text", HOSTILE["formula"])
    assert book.column("Breaks", "Expected")[2] == ("text", "121.25")
    assert book.column("Causes", "What they have in common")[0] == ("text", HOSTILE["formula"])


@pytest.mark.long
def test_breaks_are_the_reports_own_with_real_numbers_and_days() -> None:
    book, report = book_of("everything"), everything()
    assert [one and one[1] for one in book.column("Breaks", "Break")] == [
        one.id for one in report.breaks
    ]
    assert book.column("Breaks", "Amount")[:3] == [("n", "130.25"), ("n", "125.25"), ("n", "0.01")]
    assert book.column("Breaks", "Delta") == [
        None,
        None,
        ("n", "-0.01"),
        None,
        None,
        None,
        ("text", "12345678901234567.890000000000000001"),
    ]
    days = (date(2025, 11, 1) - date(1899, 12, 30)).days
    assert book.column("Breaks", "First seen")[0] == ("n", str(days))
    assert book.column("Breaks", "Currency")[0] == ("text", "978 EUR")
    assert book.column("Breaks", "Tenant")[-1] is None
    assert book.column("Breaks", "Side")[0] == ("text", "database")


@pytest.mark.long
def test_what_a_spreadsheet_cannot_hold_is_spelled_out() -> None:
    values = [cell and cell[1] for cell in book_of("everything").column("Breaks", "Expected")]
    assert r"\e[2J\e]0;owned\u0007\0" in values
    base = everything().breaks[0]
    texts = ["_x0041_", "a\rb", "<&>", "x" * 40_000, "\ufffe", " blank "]
    texts += ["\u202efdp.exe", "a\u200bb\xa0c", "\x01" * 31_000, "x" + "\U0001f600" * 20_000]
    texts += ["\U0001f600" * 16_000]
    odd = replace(everything(), breaks=Breaks.of(replace(base, note=text) for text in texts))
    cells = Book(render_workbook(odd)).column("Breaks", "Note")
    assert [cell and cell[1] for cell in cells] == [
        "_x005F_x0041_",
        r"a\rb",
        "<&>",
        "x" * 32_000 + "... (40000 characters)",
        r"\ufffe",
        " blank ",
        r"\u202efdp.exe",
        r"a\u200bb\u00a0c",
        (r"\u0001" * 31_000)[:32_000] + "... (31000 characters)",
        # A spreadsheet counts each as two.
        "x" + "\U0001f600" * 15_999 + "... (20001 characters)",
        "\U0001f600" * 16_000,
    ]
    signed = replace(everything().sign_off, comment="\U0001f600" * 20_000)
    book = Book(render_workbook(replace(everything(), sign_off=signed)))
    told = "".join(
        str(cell and cell[1])
        for cell in book.column("Sign-off", f"The last report of this scope: {signed.report}")
        if cell
    )
    assert "\U0001f600" * 16_000 + "... (20000 characters)" in told


@pytest.mark.long
def test_a_number_with_more_digits_than_a_cell_holds_is_text() -> None:
    book = book_of("everything")
    assert ("text", str(WIDE)) in book.column("Control totals", "Extract")
    assert ("text", "99999999999999999999.999999999999999999") in book.column(
        "Control totals", "Extract"
    )
    for figure in ("Difference", "Residual"):
        checked = book.column("Control totals", f"{figure} recomputed")
        assert checked.count(("text", "more than a cell holds")) >= 1, figure


WHOLE = [
    # what a cell holds as a number, and what it holds as a text alone
    ("12345678901234.5", "n"),
    ("12345678901234567890.123456789012345678", "text"),
    ("-12345678901234567890.12", "text"),
]


@pytest.mark.parametrize(("number", "kind"), WHOLE)
def test_a_figure_that_is_wider_than_its_column_is_smaller_and_never_cut(
    number: str, kind: str
) -> None:
    """Cut, the digits that are left would be another amount."""
    value = Decimal(number)
    report = everything()
    proof = report.proofs[0]
    line = replace(proof.lines[0], amount=value)
    wide = replace(
        report,
        proofs=(replace(proof, lines=(line, replace(line, total=True), *proof.lines[1:])),),
        breaks=Breaks.of([replace(report.breaks[0], amount=value, delta=value, counted=value)]),
    )
    book = Book(render_workbook(wide))
    for name, least in (("Cover", 1), ("Difference proof", 2), ("Breaks", 3)):
        cells, looks = book.cells(name), book.looks(name)
        there = [at for at, cell in cells.items() if cell in ((kind, number), ("n", number))]
        assert len(there) >= least, name
        for at in there:
            assert cells[at][0] == kind, (name, at)
            assert looks[at].get("shrinkToFit") == "1", (name, at)
            if kind == "text":
                assert looks[at].get("horizontal") == "right", (name, at)


LONG = [
    # what was expected and found behind so many signs that are alike, and what is shown of both
    (40_000, "a", "b", ("... from character 40001: a (40001 characters)",
                        "... from character 40001: b (40001 characters)")),
    (250, "a", "b" * 90, ("... from character 251: a (251 characters)",
                          f"... from character 251: {'b' * 80}... (340 characters)")),
    (10, "a", "b", ("x" * 10 + "a", "x" * 10 + "b")),
]  # fmt: skip


@pytest.mark.long(but=("40000-a-b-told0",))
@pytest.mark.parametrize(("alike", "expected", "found", "told"), LONG)
def test_values_that_differ_only_where_they_are_cut_are_told_apart(
    alike: int, expected: str, found: str, told: tuple[str, str]
) -> None:
    values = tuple("x" * alike + one for one in (expected, found))
    one = replace(everything().breaks[0], expected=values[0], found=values[1])
    report = replace(everything(), breaks=Breaks.of([one]))
    page, text = render_html(report), "".join(render_text(report).split())
    book = Book(render_workbook(report))
    assert "".join(f'expected "{told[0]}", found "{told[1]}"'.split()) in text
    for name, value, shown in zip(("Expected", "Found"), values, told, strict=True):
        assert f'<bdi class="text">{shown.replace("b" * 80 + "...", "b" * 90)}</bdi>' in page
        assert book.column("Breaks", name) == [("text", shown if alike > 32_000 else value)]


HELD = [
    ("0", True), ("123456789012345", True), ("123456789012345.6", False), ("1e20", True),
    ("2e307", True), ("-9.9e307", True), ("1e308", False), ("1e-307", True), ("-1e-308", False),
    ("NaN", False),
]  # fmt: skip


@pytest.mark.long(
    but=(
        "-1e-308-False",
        "NaN-False",
    )
)
@pytest.mark.parametrize(("number", "held"), HELD)
def test_what_no_spreadsheet_takes_is_text_in_every_sheet(number: str, held: bool) -> None:
    value = Decimal(number)
    assert survives(value) is held
    if value.is_nan():
        return
    report = everything()
    sides = [replace(report.proofs[0].lines[at], amount=value.copy_abs()) for at in (0, -1)]
    closing = replace(report.roll_forward[0].lines[-1], amount=value.copy_abs(), total=True)
    odd = replace(
        report,
        proofs=(replace(report.proofs[0], lines=(*sides,)),),
        roll_forward=(replace(report.roll_forward[0], lines=(closing,)),),
        breaks=Breaks.of([replace(report.breaks[0], amount=value, delta=None, counted=None)]),
    )
    book = Book(render_workbook(odd))
    (amount,) = book.column("Breaks", "Amount")
    kind = "n" if held else "text"
    assert amount is not None
    assert (amount[0], Decimal(str(amount[1]))) == (kind, value)
    first = book.column("Difference proof", "Amount")[0]
    assert first is not None
    assert first[0] == kind
    told = [cell for cell in book.cells("Charts").values() if str(cell[1]).startswith("Not drawn")]
    assert len(told) == (0 if held else 2)


@pytest.mark.long
@pytest.mark.parametrize("name", REPORTS)
def test_every_figure_that_is_recomputed_has_its_value_and_its_check(name: str) -> None:
    report, book = REPORTS[name](), book_of(name)
    told = found = 0
    for table in tables(report):
        every = checks(table)
        again = {
            column: book.column(SHEETS[table.name], f"{table.columns[column].name} recomputed")
            for column in checked_columns(every)
        }
        verdicts = book.column(SHEETS[table.name], "Check") if again else []
        for place, line in enumerate(every):
            fitting = [check for check in line if check.fits]
            for check in fitting:
                cell = again[check.column][place]
                assert cell is not None
                assert cell[0] == "formula"
                assert Decimal(str(cell[1])) == check.value
            if fitting:
                holds = all(check.holds for check in fitting)
                assert verdicts[place] == ("formula", "OK" if holds else "CHECK")
                told, found = told + 1, found + holds
    cover = {
        str(text): cells
        for at, (_, text) in book.cells("Cover").items()
        if (cells := book.cells("Cover").get(at.replace("A", "B")))
    }
    assert Decimal(str(cover["Lines recomputed"][1])) == told
    assert Decimal(str(cover["of these OK"][1])) == found


def test_the_cover_counts_the_lines_that_are_in_the_sheets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "ANNEX", 5)
    book = book_of("everything")
    told = [one for name in SHEETS.values() for one in book.cells(name).values()]
    verdicts = [one for kind, one in told if kind == "formula" and one in ("OK", "CHECK")]
    cells = book.cells("Cover")
    cover = {str(text): cells.get(at.replace("A", "B")) for at, (_, text) in cells.items()}
    assert cover["Lines recomputed"] == ("n", str(len(verdicts)))
    assert cover["of these OK"] == ("formula", str(verdicts.count("OK")))


SUMMED = [
    # amounts by age, their total, whether a spreadsheet can tell, and from where on
    (["1.25", "2"], "3.25", True, "0.005"),
    (["1", "2"], "3", True, "0.005"),
    (["1.001", "2"], "3.002", True, "0.0005"),
    (["0.000000000000000001"], "0", True, "5E-19"),
    # Each has fifteen digits, which a cell holds; added one by one, they are a cent off.
    (
        ["9601271840986.28", "9837966937502.2", "9295986489633.87", "9519331734210.27",
         "-9787428530297.38", "-9804273539035.48", "-9795610809010.46"],
        "8867244123989.30", False, "0.005",
    ),
    (["900000000000000", "-1", "-899999999999999"], "0", True, "0.005"),
    (["9e307"] * 3 + ["-9e307"] * 3, "0", False, "0.005"),
]  # fmt: skip


@pytest.mark.parametrize(("amounts", "total", "fits", "limit"), SUMMED)
def test_a_sum_is_compared_in_every_decimal_or_not_at_all(
    amounts: list[str], total: str, fits: bool, limit: str
) -> None:
    ages = [*map(Decimal, amounts), *[Decimal(0)] * (len(BUCKETS) - len(amounts))]
    row = TableRow(("AMOUNT", None, "difference", *ages, Decimal(total)))
    ((check,),) = checks(ReportTable("ageing", "Ageing", (), [row]))
    assert (check.fits, check.limit) == (fits, Decimal(limit))
    apart = abs(sum(map(float, ages)) - float(total))
    assert not fits or (apart < float(check.limit)) is check.holds


@pytest.mark.long
def test_a_figure_that_is_not_what_it_was_made_from_says_check() -> None:
    report = everything()
    proof = report.proofs[0]
    lines = tuple(
        replace(line, amount=line.amount + 1) if line.text.startswith("=") else line
        for line in proof.lines
    )
    wrong = replace(report, proofs=(replace(proof, lines=lines), *report.proofs[1:]))
    told = Book(render_workbook(wrong)).column("Difference proof", "Check")
    assert told[4] == ("formula", "CHECK")
    assert Book(render_workbook(report)).column("Difference proof", "Check")[4] == ("formula", "OK")


def test_all_figures_of_the_sample_hold_and_all_sums_are_checked() -> None:
    for table in tables(everything()):
        every = checks(table)
        assert all(one.holds for line in every for one in line), table.name
        if any(every):
            unchecked = [row for row, one in zip(table.rows, every, strict=True) if not one]
            assert not any(row.total and "opening" not in row.cells[1] for row in unchecked)


@pytest.mark.long
def test_a_number_on_the_cover_is_no_escape() -> None:
    report = everything()
    one = report.roll_forward[0]
    wide = replace(one.lines[-1], rows=1, amount=Decimal("-3064.53"))
    grown = replace(report, roll_forward=(replace(one, lines=(*one.lines[:-1], wide)),))
    cells = Book(render_workbook(grown)).cells("Cover")
    assert ("n", "-3064.53") in cells.values()
    assert not any("u202f" in str(text) or "u2212" in str(text) for _, text in cells.values())


@pytest.mark.long
def test_every_sum_of_a_roll_forward_is_recomputed() -> None:
    """Count, difference and gross money of each closing and each residual."""
    report = everything()
    (one,) = [table for table in tables(report) if table.name == "roll_forward"]
    closings = [
        (row.cells, found) for row, found in zip(one.rows, checks(one), strict=True)
        if str(row.cells[1]).startswith(("closing", "residual"))
    ]  # fmt: skip
    # Breaks without money have no sum to recompute.
    assert [[check.column for check in found] for _, found in closings] == [
        [2] if cells[3] is None else [2, 3, 4] for cells, _ in closings
    ]
    assert {cells[3] is None for cells, _ in closings} == {True, False}
    wrong = replace(report.roll_forward[0].lines[-1], gross=Decimal(1_000))
    lines = (*report.roll_forward[0].lines[:-1], wrong)
    grown = replace(report, roll_forward=(replace(report.roll_forward[0], lines=lines),))
    book = Book(render_workbook(grown))
    assert ("formula", "CHECK") in book.column("Roll-forward", "Check")
    assert ("formula", "CHECK") not in book_of("everything").column("Roll-forward", "Check")


@pytest.mark.long
def test_the_money_of_the_cover_is_numbers_in_cells_of_their_own() -> None:
    """Both sides, difference and unexplained, and open and accepted money per currency."""
    report, cells = everything(), book_of("everything").cells("Cover")
    for table in (totals(report), money(report), top_causes(report)):
        start = next(at for at, cell in cells.items() if cell == ("text", table.title))
        line = int(start[1:]) + (2 if table.name in NOTES else 1)
        heads = [cells.get(f"{letter(place)}{line}") for place in range(len(table.columns))]
        assert heads == [("text", column.name) for column in table.columns]
        for row in table.rows:
            line += 1
            for place, cell in enumerate(row.cells):
                told = cells.get(f"{letter(place)}{line}")
                if isinstance(cell, (int, Decimal)) and survives(cell):
                    assert told is not None
                    assert (told[0], Decimal(str(told[1]))) == ("n", cell)


@pytest.mark.long
@pytest.mark.parametrize("name", REPORTS)
def test_words_are_explained_once_and_alike_in_every_form(name: str) -> None:
    """What finance cannot know by itself has one plain sentence, from one place."""
    report = REPORTS[name]()
    told = dict(row.cells for row in words(report).rows)
    assert {"self-test", "recomputed", "unexplained", "residual", "hash total"} <= told.keys()
    assert {one.status for one in report.statuses} <= told.keys()
    assert {one.state for one in report.breaks} <= told.keys()
    cover = Book(render_workbook(report)).cells("Cover").values()
    text = " ".join(render_text(report).split())
    page = render_html(report)
    for word, means in told.items():
        assert ("text", means) in cover
        assert f"{word}: {means}" in text
        assert str(escape(means)) in page


def test_every_state_and_status_has_its_sentence() -> None:
    assert {*Status} <= GLOSSARY.keys()
    assert {GONE.get(state, state) for state in BreakState} <= GLOSSARY.keys()


@pytest.mark.long
def test_headers_stay_and_lists_can_be_narrowed() -> None:
    book = book_of("everything")
    for name in ("Control totals", "Breaks", "Rates"):
        sheet = book.zip.read(book.parts[name]).decode()
        assert '<pane ySplit="1"' in sheet, name
        assert "<autoFilter " in sheet, name
    last = letter(len(BREAK_COLUMNS) - 1)
    sheet = book.zip.read(book.parts["Breaks"]).decode()
    assert f'<dimension ref="A1:{last}8"/>' in sheet
    assert f'<autoFilter ref="A1:{last}8"' in sheet
    assert sum(name.startswith("xl/charts/chart") for name in book.zip.namelist()) == 4


@pytest.mark.long
@pytest.mark.parametrize(
    ("expected", "found", "ends"),
    [("100", "50", {"min"}), ("100", "-100", set()), ("-100", "-50", {"max"})],
)
def test_the_bars_of_both_sides_have_zero_on_their_axis(
    expected: str, found: str, ends: set[str]
) -> None:
    report = everything()
    (proof,) = report.proofs[:1]
    first, last = proof.lines[0], proof.lines[-1]
    lines = (replace(first, amount=Decimal(expected)), replace(last, amount=Decimal(found)))
    told = replace(report, proofs=(replace(proof, lines=lines),))
    chart = Book(render_workbook(told)).zip.read("xl/charts/chart2.xml").decode()
    assert "PaidAmount" in chart
    assert {*re.findall(r'<c:(min|max) val="0"/>', chart)} == ends


@pytest.mark.long
def test_rows_are_as_high_as_their_texts() -> None:
    """Not every spreadsheet makes them so: lines would cover each other in a printed report."""
    book = book_of("everything")
    heights = book.heights("Cover")
    notes = {table.none for table in parts(REPORTS["everything"]())}  # In no column: they go on.
    long = {
        int(at[1:]): len(text)
        for at, (_, text) in book.cells("Cover").items()
        if re.fullmatch("B[0-9]+", at) and text and len(text) > 72 and text not in notes
    }
    assert max(long.values()) > 144
    assert all(heights[row] >= 15 * -(-length // 72) for row, length in long.items())
    # "Business days" in a column for two digits.
    assert book.heights("Breaks") == {1: 30}


@pytest.mark.long
def test_a_text_that_is_longer_than_the_highest_row_goes_on_below() -> None:
    """A spreadsheet makes a row 409 points high, and would show no more of it."""
    sentence = "The March file of the bank came late. "
    report = everything()
    told = replace(report.cover, because=(sentence * 200,), rules_text="x" * 9_000)
    book = Book(render_workbook(replace(report, cover=told)))
    heights, cells = book.heights("Cover"), book.cells("Cover")
    assert max(heights.values()) <= 409
    parts = [
        (int(at[1:]), str(text))
        for at, (_, text) in cells.items()
        if re.fullmatch("B[0-9]+", at) and "March file" in str(text)
    ]
    assert "".join(text for _, text in parts) == sentence * 200
    assert all(heights[row] >= 15 * -(-len(text) // 72) for row, text in parts)
    assert sum(str(text).count("x" * 100) * 100 for _, text in cells.values()) >= 8_000


def test_beyond_its_limit_the_sheet_says_where_the_rest_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (break_sheet, workbook):
        monkeypatch.setattr(module, "MOST", 50)
    report = many(3)
    sample = report.breaks[0]
    crowded = replace(report, breaks=Breaks.of([sample] * (50 + 5)))
    ids = Book(render_workbook(crowded)).column("Breaks", "Break")
    assert len(ids) == 50 + 1
    assert ids[-1] == ("text", "5 more breaks are in breaks.csv and breaks.parquet.")


@pytest.mark.long
def test_what_is_told_of_all_payments_of_a_rate_stands_there_once() -> None:
    """A rate has a line per currency paid under it, and its columns can be added up."""
    book = book_of("everything")
    told = {
        name: [cell and cell[1] for cell in book.column("Rates", name)]
        for name in ("Rate", "Paid in", "Payments", "Oldest use (days)", "Effect of nearest")
    }
    assert told == {
        "Rate": ["70041", "70041", "70051"],
        "Paid in": ["978 EUR", "currency 12", None],
        "Payments": ["2", None, "0"],
        "Oldest use (days)": ["3", None, "0"],
        "Effect of nearest": ["-0.122756", None, None],
    }
    assert book.column("Rates", "Effect in") == [("text", "currency 12"), None, None]


@pytest.mark.long
def test_a_sheet_of_a_report_that_has_not_all_lines_says_so() -> None:
    ids = book_of("everything").column("Debts", "Debt")
    left = "422 more lines are not listed: those with flags, then the largest come first."
    assert ids[-1] is not None
    assert str(ids[-1][1]).startswith(left)
    assert ids[-2] == ("text", "5001")


@pytest.mark.parametrize(
    ("place", "name"), [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (52, "BA"), (701, "ZZ")]
)
def test_columns_are_named_by_letters(place: int, name: str) -> None:
    assert letter(place) == name
