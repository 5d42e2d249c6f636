import re
from decimal import Decimal

import pytest

from flows.report.html import render_html
from flows.report.text import figures
from flows.steps.batch_report import BatchReport, Chain
from flows.steps.totals import Totals
from tests.report.page import Page
from tests.report.sample_reports import HOSTILE, PAYMENTS, REPORTS, hostile, with_errors

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
ATTRIBUTES = {
    "aria-hidden",
    "aria-labelledby",
    "charset",
    "class",
    "colspan",
    "content",
    "data-label",
    "fill",
    "height",
    "http-equiv",
    "id",
    "lang",
    "name",
    "preserveaspectratio",
    "role",
    "scope",
    "viewbox",
    "width",
    "x",
}


def test_the_page_says_who_it_is_and_lets_nothing_in() -> None:
    page = Page(render_html(with_errors()))
    policies = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert policies == [POLICY]
    assert page.tags[0] == ("html", {"lang": "en"})


@pytest.mark.parametrize("name", REPORTS)
def test_nothing_on_the_page_refers_outside_it(name: str) -> None:
    page = Page(render_html(REPORTS[name]()))
    assert {key for _, attributes in page.tags for key in attributes} <= ATTRIBUTES
    assert not re.search(r"url\(|@import|expression|behavior", page.style)
    if name != "hostile":
        assert not re.search(r"//|www\.|javascript:", render_html(REPORTS[name]()))


def test_hostile_text_adds_no_tag_and_no_attribute() -> None:
    known = {tag for tag, _ in Page(render_html(with_errors())).tags}
    page = Page(render_html(hostile()))
    assert {tag for tag, _ in page.tags} <= known
    assert not {"script", "img", "a", "iframe", "link", "object", "form"} & known
    assert sum(tag == "h1" for tag, _ in page.tags) == 1


def test_hostile_text_is_shown_and_not_swallowed() -> None:
    shown = "".join(Page(render_html(hostile())).texts)
    for name in ("formula", "markup", "link", "long", "table", "entity", "closing"):
        assert shown.count(HOSTILE[name]) >= 3, name
    assert r"1.0\r\n2026-01-01 INFO batch complete" in shown
    assert r"\u202eexe.fdp\u202c" in shown
    assert r"1\u202f204\u00a0\u22125\u3000" in shown


def test_no_character_on_the_page_hides_or_reorders() -> None:
    assert not re.search(
        "[\0-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]",
        render_html(hostile()),
    )


def test_no_cell_is_a_formula_where_it_is_pasted() -> None:
    cells = [cell for table in Page(render_html(hostile())).tables for row in table for cell in row]
    numbers = re.compile(r"\+[\d\u202f.]+")
    assert len(cells) > 100
    for cell in cells:
        for line in cell.split("\n"):
            assert numbers.fullmatch(line) or not line.lstrip().startswith(tuple("=+-@\t\0"))


@pytest.mark.parametrize(
    ("name", "badge"),
    [
        ("complete", "COMPLETE"),
        ("complete_with_errors", "COMPLETE WITH ERRORS"),
        ("held", "HELD"),
        ("does_not_tie", "DOES NOT TIE"),
    ],
)
def test_the_verdict_is_a_badge_of_words(name: str, badge: str) -> None:
    texts = Page(render_html(REPORTS[name]())).texts
    assert texts.count(badge) == 1


@pytest.mark.parametrize("name", REPORTS)
def test_every_figure_of_every_stage_is_the_reports_own(name: str) -> None:
    report = REPORTS[name]()
    chains = [table for table in _tables(report) if table[0][0] == "Figure"]
    assert len(chains) == len(report.chains)
    for chain, table in zip(report.chains, chains, strict=True):
        body = table[1:-2]
        assert len(body) == len(figures(chain))
        for figure, (_, *cells) in zip(figures(chain), body, strict=True):
            for line, cell in zip(chain.lines, cells, strict=True):
                value, *change = cell.split("\n")
                assert _number(value) == figure.of(line.totals)
                assert [_number(text) for text in change] == (
                    [] if line is chain.lines[0] else [figure.of(line.change)]
                )


UNEQUAL = {("does_not_tie", "payment", 6), ("pushed", "invoice_file", 2)}
"""Report, record kind and links of the chains whose states do not add up."""


@pytest.mark.long(but=("complete", "complete_with_errors", "held", "does_not_tie", "pushed"))
@pytest.mark.parametrize("name", REPORTS)
def test_the_end_states_on_the_page_add_up_to_what_was_read(name: str) -> None:
    report = REPORTS[name]()
    tables = [table for table in _tables(report) if table[0][1] == "Meaning"]
    chains = [*report.chains, *(one.chain for one in report.pushed)]
    for chain, table in zip(chains, tables, strict=True):
        *states, total, read = table[1:]
        for column, part in ((2, "rows"), (4, "keys")):
            shown = [_number(row[column]) for row in states]
            assert shown == [getattr(totals, part) for totals in chain.states.values()]
            assert sum(shown) == _number(total[column])
            assert _number(read[column]) == getattr(chain.lines[0].totals, part)
        equal = _number(total[2]) == _number(read[2]) and _number(total[4]) == _number(read[4])
        assert read[1] == ("equal" if equal else "not equal")
        assert equal == ((name, chain.record, len(chain.lines)) not in UNEQUAL)


@pytest.mark.parametrize("name", REPORTS)
def test_money_by_end_state_adds_up_within_each_currency(name: str) -> None:
    report = REPORTS[name]()
    tables = [table for table in _tables(report) if table[0][0] == "End state"]
    money = [table for table in tables if table[0][1] != "Meaning"]
    chains = [chain for chain in report.chains if chain.amounts]
    for chain, (head, *rows) in zip(chains, money, strict=True):
        assert tuple(head[1:]) == chain.amounts
        shown: list[list[tuple[str, list[Decimal]]]] = []
        for label, *cells in rows:
            if cells:
                shown[-1].append((label, [Decimal(_number(cell)) for cell in cells]))
            else:
                shown.append([])
        currencies = dict.fromkeys(figure.currency for figure in figures(chain)[2:])
        for currency, group in zip(currencies, shown, strict=True):
            *states, (_, total), (label, read) = group
            assert currency is not None
            expected = {state: _sums(chain, currency, all_) for state, all_ in chain.states.items()}
            assert states == [(state, sums) for state, sums in expected.items() if any(sums)]
            assert total == [sum(column) for column in zip(*expected.values(), strict=True)]
            assert read == _sums(chain, currency, chain.lines[0].totals)
            verdict = "equal" if read == total else "not equal"
            assert label == f"Read from the files: {verdict}"


def test_the_cover_shows_what_is_in_the_database_by_currency() -> None:
    report = with_errors()
    cover = next(table for table in _tables(report) if table[0][0] == "Currency")
    assert [row[0] for row in cover[1:]] == [
        "1 EUR",
        "2 USD",
        "3 GBP",
        "4 CHF",
        "currency 7",
        "no currency",
    ]
    euros = [Decimal(PAYMENTS[state][2]["1"][0]) for state in ("inserted", "updated")]
    assert cover[1][2] == "14\u202f723\u202f269.63"
    assert _number(cover[1][2]) == sum(euros)
    held = report.chains[2].lines[-1].totals
    for row, currency in zip(cover[1:], ("1", "2", "3", "4", "7", ""), strict=True):
        assert [_number(cell) for cell in row[2::2]] == _sums(report.chains[2], currency, held)


def test_a_residual_is_named_with_its_figure_and_a_tied_chain_shows_zero() -> None:
    table, tied = (table for table in _tables(REPORTS["does_not_tie"]()) if table[0][0] == "Figure")
    assert table[-1][0] == tied[-1][0] == "Residual"
    assert tied[-1][1:] == ["0"] * 6
    assert table[-1][2].split("\n") == [
        "Rows: \u22121",
        "Hash total of keys: \u221250\u202f001",
        "PaidAmount, 1 EUR: \u221210.01",
    ]
    assert table[-1][6] == "PaidAmount, 1 EUR: +0.01"


def test_rows_of_every_file_and_reason_are_on_the_page() -> None:
    report = with_errors()
    tables = _tables(report)
    files = next(table for table in tables if table[0][0] == "File")
    rejects = next(table for table in tables if table[0][-1] == "What to do next")
    assert [_number(row[2]) for row in files[1:-1]] == [line.rows for line in report.files]
    assert _number(files[-1][2]) == report.rows
    assert _number(files[-1][3]) == report.errors
    assert [_number(row[3]) for row in rejects[1:]] == [line.rows for line in report.reasons]
    assert rejects[1][4] == "currency_rates_2026-03.csv, line 543, record 542"


def test_a_report_of_nothing_is_a_page_too() -> None:
    nothing = BatchReport("feed", "", "received", None, (), (), (), (), {})
    texts = "".join(Page(render_html(nothing)).texts)
    assert "RECEIVED" in texts
    assert "No row was rejected." in texts


def test_a_chain_without_rows_has_a_bar_that_says_so() -> None:
    empty = Chain("payment", "Payment", ("PaidAmount",), (), {"inserted": Totals()})
    page = Page(render_html(BatchReport("feed", "", "held", None, (), (empty,), (), (), {})))
    assert "no rows" in page.texts


def _sums(chain: Chain, currency: str, totals: Totals) -> list[Decimal]:
    sums = totals.amounts.get(currency, {})
    return [sums.get(name, Decimal(0)) for name in chain.amounts]


def _tables(report: BatchReport) -> list[list[list[str]]]:
    return Page(render_html(report)).tables


def _number(text: str) -> int | Decimal:
    plain = text.replace("\u202f", "").replace("\u2212", "-")
    return Decimal(plain) if "." in plain else int(plain)
