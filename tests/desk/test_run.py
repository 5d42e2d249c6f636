"""A run's page: every figure leads to the breaks that make it, and these come to that figure."""

import csv
import io
import re
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from html import unescape

import polars as pl
import pytest

from connectors.postgres.runs.breaks import Decision
from flows.report.spelling import MINUS, NARROW
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.workspace import Workspace
from schemas.life import Choice
from tests.desk.browser import Browser
from tests.desk.many import many_breaks
from tests.governance.runs import DAY, found, reconcile

New = Callable[[], Browser]
FIGURE = re.compile(r'<a class="figure" href="([^"]+)">([^<]+)</a>')


def figures(page: Browser) -> list[tuple[str, str]]:
    """The links of the figures of a page, and what each says."""
    assert page.answer is not None
    return [(unescape(to), unescape(told)) for to, told in FIGURE.findall(page.answer.text)]


def number(text: str) -> Decimal:
    plain = text.replace(NARROW, "").replace(MINUS, "-").replace(" ", "")
    return sum((Decimal(part) for part in plain.split("+")), Decimal(0))


def downloaded(page: Browser, path: str) -> list[dict[str, str]]:
    text = page.open(path.replace("/breaks?", "/breaks.csv?")).answer.text
    return list(csv.DictReader(io.StringIO(text)))


def in_totals(page: Browser, path: str) -> Decimal:
    """What a list has as added to totals, on all of its pages."""
    summed, more = Decimal(0), path
    while more:
        text = page.open(more).answer.text
        cells = re.findall(r'data-of="In totals">([^<]+)<', text)
        summed += sum((number(unescape(cell)) for cell in cells), Decimal(0))
        following = re.search(r'rel="next" href="([^"]+)"', text)
        more = unescape(following[1]) if following else ""
    return summed


@pytest.mark.long
@pytest.mark.parametrize("step", [13, 1])
def test_every_figure_leads_to_breaks_that_come_to_it(
    workspace: Workspace, browser: New, step: int
) -> None:
    run = reconcile(workspace, many_breaks(300), scope="everything")
    accept = Decision(Choice.ACCEPT, "bank charges", until=date(2026, 12, 31))
    decide_breaks(workspace, run.id, Chosen(code="RATE_MISSING"), accept)
    page = browser().open(f"/runs/{run.id}")
    assert page.status == 200
    there = figures(page)
    assert len(there) > 60
    for path, told in there[::step]:
        lines = downloaded(page, path)
        if "basis=" in path and "basis=not" not in path:
            summed = sum((Decimal(one["counted"] or 0) for one in lines), Decimal(0))
            assert summed == number(told), path
            assert in_totals(page, path) == number(told), f"{path}: as its pages have them"
        else:
            assert len(lines) == number(told), path
        page.open(path)
        assert (page.status, f"{len(lines)} break" in page.text) == (200, True), path
        if "currency=" in path:
            assert told in [of for _, of in figures(page)], f"{path}: above its breaks too"


@pytest.mark.long
def test_what_is_not_readable_is_counted_beside_money_and_comes_first(
    workspace: Workspace, browser: New
) -> None:
    note = 'PaidAmount is not readable: "12,50"'
    unread = found("5", amount=None, code="REJECTED", field="", note=note)
    breaks = pl.concat([found("1", amount="900"), found("2", code="INV_NONE"), unread])
    run = reconcile(workspace, breaks, scope="everything")
    path = f"/runs/{run.id}/breaks?state=open&currency=1&basis=not+readable"
    page = browser().open("/")
    assert dict(figures(page))[path] == "1"
    text = page.open(f"/runs/{run.id}").text.split("Top causes")[1]
    heads = "Open breaks Differences Gross money Not readable"
    rejected, differ, without = (
        "Rejected by the check", "Amounts differ", "Paid without an invoice file",
    )  # fmt: skip
    order = [text.index(told) for told in (heads, rejected, differ, without)]
    assert order == sorted(order)
    (link,) = [told for to, told in figures(page) if "basis=not" in to and "code=REJECTED" in to]
    assert link == "1"


@pytest.mark.long
def test_money_of_one_kind_has_a_zero_for_the_other(workspace: Workspace, browser: New) -> None:
    """As reports have it; what has no money has none of either."""
    rate = {"code": "RATE_MISSING", "field": "CurrencyRatesId"}
    breaks = [
        found("1", amount="9"),
        found("2", amount="5", currency=2, **rate),
        found("3", amount=None, currency=3, code="RATE_GAP", record="currency_rate", field=""),
    ]
    run = reconcile(workspace, pl.concat(breaks), scope="tenants 7")
    page = browser().open(f"/runs/{run.id}").answer.text
    assert ", tenant 7</small>" in page
    cells = re.findall(r'data-of="(?:Differences|Gross money)">(.*?)</td>', page)
    told = [re.sub(r"<[^>]+>", "", cell).strip() for cell in cells[:6]]
    assert told == ["9.00", "0.00", "0.00", "5.00", "", ""]


@pytest.mark.long
def test_money_that_another_break_has_is_nothing_in_totals(
    workspace: Workspace, browser: New
) -> None:
    late = found("1", code="LATE_ARRIVAL", field="", amount="50")
    rate = found("1", code="RATE_MISSING", field="CurrencyRatesId", amount="50")
    run = reconcile(workspace, pl.concat([late, rate]), scope="everything")
    page = browser().open(f"/runs/{run.id}")
    path, told = next(one for one in figures(page) if one[0].endswith("basis=gross"))
    assert page.open(path).text.count("gross 50.00") == 2
    assert in_totals(page, path) == number(told) == 50


@pytest.mark.long
def test_whether_it_can_be_signed_is_said_first(workspace: Workspace, browser: New) -> None:
    run = reconcile(workspace, found("1", "2"))
    page = browser().open(f"/runs/{run.id}")
    assert "It cannot be approved yet." in page.text
    run = reconcile(workspace, found())
    assert "It can be signed: nothing is open." in page.open(f"/runs/{run.id}").text
    prepare(workspace, run.id, by="anna", comment="")
    assert "Somebody else than anna can approve it." in page.open(f"/runs/{run.id}").text
    approve(workspace, run.id, by="bo", comment="")
    assert "Approved self declared. Prepared by anna, approved by bo" in (
        page.open(f"/runs/{run.id}").text
    )
    assert "followed this one. Decide there." in page.open(f"/runs/{run.previous_id}").text


OLDEST = re.compile(r'<a href="([^"]+sort=age)">(\d+) days?</a>')
AGE = re.compile(r'data-of="Days">(\d+)<')


@pytest.mark.long
def test_the_oldest_open_break_is_the_first_of_its_list(workspace: Workspace, browser: New) -> None:
    """A break ages from its business date, and from its first sighting where it has none."""
    dates = {"1": 3, "2": 17, "3": 90, "4": None}
    breaks = [found(key, date=ago and DAY - timedelta(days=ago)) for key, ago in dates.items()]
    run = reconcile(workspace, pl.concat(breaks), scope="everything")
    accept = Decision(Choice.ACCEPT, "bank charges", until=date(2026, 12, 31))
    decide_breaks(workspace, run.id, Chosen(ids=(breaks[2]["id"].item(),)), accept)
    page = browser()
    for path in (f"/runs/{run.id}", "/"):
        ((to, age),) = OLDEST.findall(page.open(path).answer.text)
        assert AGE.findall(page.open(unescape(to)).answer.text)[0] == age == "17", path


@pytest.mark.long
def test_a_decision_is_in_the_figures_with_the_next_click(
    workspace: Workspace, browser: New
) -> None:
    run = reconcile(workspace, found("1", "2"))
    page = browser().open(f"/runs/{run.id}")
    opened = f"/runs/{run.id}/breaks?state=open"
    assert (opened, "2") in figures(page)
    accept = Decision(Choice.ACCEPT, "bank charges", until=date(2026, 12, 31))
    for left, chosen in ((1, found("1")), (0, found("2"))):
        decide_breaks(workspace, run.id, Chosen(ids=tuple(chosen["id"])), accept)
        assert (opened, str(left)) in figures(page.open(f"/runs/{run.id}"))
    assert "if its breaks were accepted since" in page.text.lower()


@pytest.mark.long
def test_pages_stay_small_whatever_was_delivered(workspace: Workspace, browser: New) -> None:
    long = "<é\u202e" * 3_000
    told = [
        found(f"{place}{long}", currency=place, found=long, note=long, file=long)
        for place in range(400)
    ]
    run = reconcile(workspace, pl.concat(told))
    page = browser()
    for path in ("/", f"/runs/{run.id}", f"/runs/{run.id}/breaks?state=open"):
        assert page.open(path).status == 200
        assert len(page.answer.content) < 300_000, path


def test_a_run_whose_files_are_gone_is_shown_all_the_same(
    workspace: Workspace, browser: New
) -> None:
    run = reconcile(workspace, found("1"))
    shutil.rmtree(workspace.settings.reports / run.folder)
    page = browser().open(f"/runs/{run.id}")
    assert (page.status, "It cannot be approved yet." in page.text) == (200, True)
    assert "report.html" not in page.text
    assert browser().open("/").status == 200
