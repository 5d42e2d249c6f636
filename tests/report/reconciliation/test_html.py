import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from decimal import Decimal

import pytest

from flows.report.reconciled import table as tables_of
from flows.report.reconciled.first_page import totals
from flows.report.reconciled.html import MOST, render_html
from flows.report.reconciled.text import render_text
from flows.report.spelling import MINUS, NARROW
from flows.steps.reconcile.reported_breaks import Breaks
from flows.steps.reconcile.totals import Proof, ProofLine
from tests.report.page import VOID, Page
from tests.report.reconciliation.sample import REPORTS, everything, many
from tests.report.sample_reports import HOSTILE

SECTIONS = [
    "Cover: terms and inputs",
    "Completeness chain",
    "Control totals",
    "Difference proof",
    "Breaks",
    "Ageing",
    "Roll-forward",
    "Exchange rates",
    "Payment plans",
    "Debts and documents",
    "Insert-batch data",
    "Tolerance budget",
    "Cause groups",
    "Sign-off",
    "Exclusions and self-test",
]
TAGS = (
    "html head meta title style body main header section nav script pre bdi h1 h2 h3 p ol ul li a "
    "dl dt dd div span strong small br code table thead tbody tr th td svg rect label input "
    "select option button"
)
ATTRIBUTES = (
    "lang charset http-equiv content name class id href scope colspan hidden role aria-hidden "
    "aria-label aria-labelledby viewbox preserveaspectratio width height x fill type autocomplete "
    "value data-label data-filter data-ranks data-class data-code data-severity data-state "
    "data-record data-currency"
)

ELSEWHERE = "counted with another break of its record"


class ReportPage(Page):
    """A page whose script and fields are told apart from its text."""

    script = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        if tag == "input":
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.script += data
        else:
            super().handle_data(data)

    def attributes(self, tag: str, name: str) -> list[str]:
        return [str(told[name]) for one, told in self.tags if one == tag and name in told]


assert "input" not in VOID


def page_of(name: str) -> ReportPage:
    return ReportPage(render_html(REPORTS[name]()))


@pytest.mark.parametrize("name", REPORTS)
def test_the_policy_names_the_style_and_the_script_and_nothing_else(name: str) -> None:
    page = page_of(name)
    policies = [told["content"] for _, told in page.tags if "http-equiv" in told]
    style, script = (
        b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (page.style, page.script)
    )
    assert policies == [
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
        "base-uri 'none'; form-action 'none'"
    ]
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert [tag for tag, _ in page.tags].count("style") == 1


@pytest.mark.long(
    but=(
        "reconciled",
        "accepted",
    )
)
@pytest.mark.parametrize("name", REPORTS)
def test_nothing_on_the_page_refers_outside_it(name: str) -> None:
    page = page_of(name)
    assert {tag for tag, _ in page.tags} <= set(TAGS.split())
    assert {key for _, told in page.tags for key in told} <= set(ATTRIBUTES.split())
    assert all(href.startswith("#") for href in page.attributes("a", "href"))
    assert not re.search(r"url\(|@import|expression|behavior", page.style)
    assert not re.search(r"fetch|XMLHttp|import\(|eval|innerHTML|https?:", page.script)


@pytest.mark.parametrize("name", REPORTS)
def test_every_link_leads_to_one_place_of_the_page(name: str) -> None:
    page = page_of(name)
    ids = [str(told["id"]) for _, told in page.tags if "id" in told]
    assert len(ids) == len(set(ids))
    assert {href.removeprefix("#") for href in page.attributes("a", "href")} <= set(ids)
    assert set(page.attributes("section", "aria-labelledby")) <= set(ids)


@pytest.mark.long(
    but=(
        "reconciled",
        "nothing",
    )
)
@pytest.mark.parametrize("name", REPORTS)
def test_all_sections_are_there_in_their_order(name: str) -> None:
    page = page_of(name)
    heads = re.findall(r'<h2 [^>]*><span class="no">(\d+)</span>([^<]+)</h2>', _source(name))
    assert heads == [(str(number), title) for number, title in enumerate(SECTIONS, 1)]
    assert sum(tag == "h1" for tag, _ in page.tags) == 1


@pytest.mark.parametrize(
    ("name", "word", "tone"),
    [
        ("everything", "Not reconciled", "bad"),
        ("reconciled", "Reconciled", "good"),
        ("accepted", "Reconciled with accepted breaks", "warn"),
        ("nothing", "Incomplete", "bad"),
    ],
)
def test_the_verdict_is_told_once_at_the_top_and_says_why(name: str, word: str, tone: str) -> None:
    source = _source(name)
    assert source.count(f'<div class="verdict {tone}">\n<p class="word">{word}</p>') == 1
    top = "".join(page_of(name).texts).split("Totals per currency")[0]
    for because in REPORTS[name]().cover.because:
        assert because in top


def test_hostile_text_adds_no_tag_and_is_shown() -> None:
    page = page_of("everything")
    shown = "".join(page.texts)
    for name in ("formula", "markup", "link", "table", "entity", "closing"):
        assert HOSTILE[name] in shown, name
    assert r"1.0\r\n2026-01-01 INFO batch complete" in shown
    assert r"\u202eexe.fdp\u202c" in shown
    assert r"\e[2J\e]0;owned\u0007\0" in shown
    assert "# </pre><script>" in shown


@pytest.mark.parametrize("name", REPORTS)
def test_no_character_on_the_page_hides_or_reorders(name: str) -> None:
    assert not re.search(
        "[\0-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", _source(name)
    )


def test_no_cell_is_a_formula_where_it_is_pasted() -> None:
    # Signs of our own begin lines of a statement and signed figures.
    ours = re.compile(rf"[+-]?[\d{NARROW}.]+|[-+=/ ]+[a-z][a-z :]*")
    for table in page_of("everything").tables:
        for cell in (cell for row in table for cell in row):
            for line in cell.split("\n"):
                text = line.strip()
                assert not text.startswith(tuple("=+-@\t\0")) or ours.match(text), text


def test_both_totals_their_difference_and_what_is_left_are_on_the_first_page() -> None:
    table = page_of("everything").tables[0]
    assert table[0] == [
        *("Amount", "Currency", "Both sides", "Extract", "Left out", "Target"),
        *("Difference", "Unexplained"),
    ]
    assert [[_number(cell) for cell in row[3:]] for row in table[1:]] == [
        [*map(Decimal, ("6597.52", "-100.00", "6242.03", "-255.49", "0.00"))],
        [*map(Decimal, ("100.00", "0.00", "99.98", "-0.02", "-0.02"))],
    ]
    assert [row[:2] for row in table[1:]] == [
        ["Payment PaidAmount", "978 EUR"],
        ["Payment PaidAmount", "currency 12"],
    ]


def test_every_control_total_is_the_reports_own_to_the_last_digit() -> None:
    report = everything()
    table = next(table for table in page_of("everything").tables if "Explained" in table[0])
    rows = [row for row in table[1:] if len(row) > 1]
    found = [_number(row[1]) for row in rows if row[0] not in ("Records", "Hash total of keys")]
    assert found == [amount for one in report.controls for amount in one.expected.values()]
    keys = [_number(row[1]) for row in rows if row[0] == "Hash total of keys"]
    assert keys == [one.expected_keys for one in report.controls]
    assert [row[0] for row in table[1:] if len(row) == 1] == [
        "Payment · tenant 7 · 978 EUR",
        "Payment · tenant 8 · currency 12",
        "Payment plan detail · no currency",
    ]


@pytest.mark.long
def test_what_does_not_tie_is_marked_and_what_ties_is_too() -> None:
    source = _source("everything")
    assert re.search(rf'class="n bad" data-label="currency 12"><bdi>{MINUS}0.02</bdi>', source)
    assert 'class="n good" data-label="978 EUR"><bdi>0.00</bdi>' in source
    assert "not explained +0.01" in source
    residual = f"{MINUS}0.000000000000000001"
    assert f'class="n bad" data-label="Residual"><bdi>{residual}</bdi>' in source


def test_the_list_names_every_break_with_its_money_and_its_age() -> None:
    page = page_of("everything")
    table = next(table for table in page.tables if table[0][0] == "Break")
    assert [row[0].split()[-1] for row in table[1:]] == [one.id for one in everything().breaks]
    assert table[3][5].split("\n") == [f"{MINUS}0.01", "978 EUR"]
    assert table[1][6].split("\n") == ["128 d", "88 business", "2025-11-01"]


@pytest.mark.long
def test_the_orders_of_the_list_are_permutations() -> None:
    ranks = [told.split() for told in page_of("everything").attributes("tr", "data-ranks")]
    count = len(everything().breaks)
    orders = list(zip(*ranks, strict=True))
    assert len(orders) == len(page_of("everything").attributes("select", "id")) * 6
    for order in orders:
        assert sorted(map(int, order)) == list(range(count))
    assert [int(rank) for rank in orders[0]] == list(range(count))
    largest = sorted(range(count), key=lambda place: int(orders[1][place]))
    assert [everything().breaks[place].id[0] for place in largest] == list("abcefd0")


@pytest.mark.long
def test_of_many_breaks_the_page_lists_the_first_and_says_where_the_rest_is() -> None:
    source = render_html(many(MOST + 1))
    assert source.count("data-ranks=") == MOST
    assert f"The first 1{NARROW}000 of 1{NARROW}001" in source
    assert "breaks.csv and breaks.parquet" in source


@pytest.mark.long
def test_a_list_that_is_cut_keeps_every_line_with_a_residual() -> None:
    report = everything()
    fine, wrong = report.controls[2], report.controls[1]
    lines = tuple(replace(fine, tenant=number) for number in range(200))
    source = render_html(replace(report, controls=(*lines, wrong)))
    table = next(table for table in ReportPage(source).tables if "Explained" in table[0])
    assert sum(len(row) > 1 for row in table[1:]) == 300 + 1
    assert table[-1][-1] == f"{MINUS}0.000000000000000001"
    assert "103 more lines are in report.xlsx and totals.json." in source


def test_what_the_workbook_has_no_room_for_is_said_to_be_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables_of, "ANNEX", 400)
    report = everything()
    lines = tuple(replace(report.controls[2], tenant=number) for number in range(300))
    source = render_html(replace(report, controls=lines))
    assert "300 more lines are in totals.json; the first 400 of all are in report.xlsx." in source


@pytest.mark.long
def test_a_break_leads_to_its_cause_where_the_page_has_it() -> None:
    report = everything()
    others = tuple(replace(report.causes[0], id=f"other-{number}") for number in range(300))
    page = ReportPage(render_html(replace(report, causes=(*others, *report.causes))))
    ids = {str(told["id"]) for _, told in page.tags if "id" in told}
    assert {href.removeprefix("#") for href in page.attributes("a", "href")} <= ids


def test_a_difference_of_many_digits_is_told_once() -> None:
    report = everything()
    wide = Decimal("-12345678901234567890.123456789012345678")
    money = {"amount": wide.copy_abs(), "counted": wide.copy_abs(), "basis": "difference"}
    first = replace(report.breaks[0], delta=wide, **money)
    page = ReportPage(render_html(replace(report, breaks=Breaks.of([first]))))
    told = next(table for table in page.tables if table[0][0] == "Break")[1][5]
    assert told.split("\n")[0].count("890.123") == 1
    assert len(told.split("\n")) == 2


def test_the_list_adds_up_to_what_page_one_has() -> None:
    """A break says what it adds, also where another one has some of its money."""
    gross = {"delta": None, "amount": Decimal(60), "basis": "gross"}
    parts = [Decimal(60), Decimal(10), Decimal(0)]
    lines = [replace(everything().breaks[0], **gross, counted=one) for one in parts]
    page = ReportPage(render_html(replace(everything(), breaks=Breaks.of(lines))))
    rows = next(table for table in page.tables if table[0][0] == "Break")[1:]
    assert [row[5].strip().split("\n")[:-1] for row in rows] == [
        ["gross 60.00"],
        ["gross 60.00", f"10.00 of it in totals, the rest {ELSEWHERE}"],
        ["gross 60.00", ELSEWHERE],
    ]


def test_headings_of_tables_have_a_scope() -> None:
    source = _source("everything")
    assert not re.search(r"<th(?=[ >])(?! scope=)", source)


def test_no_delivered_text_enters_the_style() -> None:
    page = page_of("everything")
    assert 'content: "Reconciliation as of 2026-03-09: NOT RECONCILED"' in page.style
    assert "FOOT" not in page.style


@pytest.mark.long
def test_a_verdict_nobody_knows_is_never_good() -> None:
    report = everything()
    odd = replace(report, cover=replace(report.cover, verdict='"} body { display: none'))
    page = ReportPage(render_html(odd))
    assert odd.cover.verdict not in page.style
    assert 'content: "Reconciliation as of 2026-03-09: NO VERDICT"' in page.style
    assert '<div class="verdict bad">' in render_html(odd)


def _source(name: str) -> str:
    return render_html(REPORTS[name]())


def _number(text: str) -> int | Decimal:
    plain = text.split("\n", maxsplit=1)[0].replace(NARROW, "").replace(MINUS, "-").lstrip("+")
    return Decimal(plain) if "." in plain else int(plain)


@pytest.mark.long
def test_records_that_are_missing_with_no_money_between_are_told() -> None:
    """Two payments of +5 and -5 that are not in the target; nothing compared is another thing."""
    zero, report = Decimal(0), everything()
    lines = (
        ProofLine("total per extract", 2, zero),
        ProofLine("- missing in target", -2, zero),
        ProofLine("= total per target", 0, zero, total=True),
        ProofLine("counted in the target", 0, zero),
    )
    told, nothing = "with nothing between", "No amount was compared."
    missing = Proof("payment", "PaidAmount", "978", lines, zero)
    tied = replace(missing, lines=(lines[0], *lines[2:]))
    pages = {
        name: (render_html(one), render_text(one), [row.cells for row in totals(one).rows])
        for name, proofs in (("missing", (missing,)), ("tied", (tied,)), ("none", ()))
        for one in [replace(report, proofs=proofs)]
    }
    page, text, rows = pages["missing"]
    assert told not in page
    assert nothing not in page
    assert "- missing in target" in page
    assert "- missing in target" in text
    assert len(rows) == 1
    page, _, rows = pages["tied"]
    assert page.count(f"Zero on both sides, {told}") == 2
    assert nothing not in page
    assert not rows
    page, _, _ = pages["none"]
    assert told not in page
    assert page.count(nothing) == 2
