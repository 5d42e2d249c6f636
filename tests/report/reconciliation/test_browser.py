"""The page in a real browser: its script runs under its policy, narrows, sorts and prints."""

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from flows.report.html import render_html as render_batch
from flows.report.reconciled.html import render_html
from flows.report.reconciled.letter import letter
from flows.steps.breaks.ageing import BUCKETS
from tests.chromium import Tab, needed, opened, until
from tests.chromium import browser as browser  # noqa: PLC0414 -- the fixture.
from tests.pdf import text_of_page
from tests.report.reconciliation.sample import REPORTS, everything
from tests.report.sample_reports import hostile

pytestmark = needed


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(everything()), encoding="utf-8")
    return path


@pytest.fixture
def tab(browser: str, page: Path) -> Iterator[Tab]:
    with opened(browser) as tab:
        yield tab.open(page.as_uri())


SHOWN = "[...document.querySelectorAll('#break-list tbody tr')].filter(row => !row.hidden)"
IDS = f"{SHOWN}.map(row => row.querySelector('.mono').textContent)"


def choose(tab: Tab, selector: str, value: str, event: str = "change") -> list[str]:
    tab.value(
        f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
        f"one.value = {json.dumps(value)}; one.dispatchEvent(new Event('{event}')); }})()"
    )
    return list(tab.value(IDS))


@pytest.mark.long
def test_the_page_needs_nothing_and_breaks_no_policy(tab: Tab, page: Path) -> None:
    asked = [
        one["params"]["request"]["url"]
        for one in tab.told
        if one.get("method") == "Network.requestWillBeSent"
    ]
    assert asked == [page.as_uri()]
    entries = [one["params"] for one in tab.told if one.get("method") == "Log.entryAdded"]
    assert entries == []
    assert tab.value("getComputedStyle(document.querySelector('.verdict')).borderLeftWidth") == (
        "8px"
    )


@pytest.mark.long
def test_no_delivered_text_runs(tab: Tab) -> None:
    assert tab.value("document.querySelectorAll('script').length") == 1
    assert tab.value("document.querySelectorAll('img, iframe, object, link').length") == 0
    blocked = tab.value(
        "(() => { const one = document.createElement('script'); one.textContent = 'window.ran = 1';"
        "document.body.append(one); return window.ran === undefined; })()"
    )
    assert blocked is True


@pytest.mark.long
def test_the_list_can_be_narrowed_and_shown_again(tab: Tab) -> None:
    every = [one.id for one in everything().breaks]
    assert tab.value("document.getElementById('break-tools').hidden") is False
    assert tab.value(IDS) == every
    assert choose(tab, "[data-filter=code]", "AMOUNT") == ["c" * 16]
    assert tab.value("document.getElementById('break-told').textContent") == (
        "1 of the 7 listed breaks are shown."
    )
    assert choose(tab, "[data-filter=severity]", "low") == []
    tab.value("document.getElementById('break-all').click()")
    assert tab.value(IDS) == every
    assert choose(tab, "#break-search", "HYPERLINK delivered", "input") == ["b" * 16]


def test_what_a_browser_keeps_of_the_tools_holds_when_the_page_is_back(tab: Tab) -> None:
    """It keeps what was chosen, and the list would be the whole one under it."""
    there = tab.value("location.href")
    chosen = choose(tab, "[data-filter=code]", "AMOUNT")
    tab.value("window.before = true")
    tab.open("about:blank").value("setTimeout(() => history.back())")
    loaded = f"location.href == {json.dumps(there)} && document.readyState == 'complete'"
    until(lambda: bool(tab.value(loaded)))
    assert tab.value("window.before") is None, "loaded anew"
    assert tab.value("document.querySelector('[data-filter=code]').value") == "AMOUNT"
    assert tab.value(IDS) == chosen


@pytest.mark.long
def test_the_list_can_be_sorted_exactly(tab: Tab) -> None:
    largest = choose(tab, "#break-order", "1")
    # What a rate differs by is no money, however large.
    assert largest[:3] == ["a" * 16, "b" * 16, "c" * 16]
    assert largest[-2:] == ["d" * 16, "0" * 16]
    oldest = choose(tab, "#break-order", "2")
    assert oldest[:2] == ["a" * 16, "0" * 16]
    assert choose(tab, "#break-order", "0") == [one.id for one in everything().breaks]


@pytest.mark.long
@pytest.mark.parametrize("width", [420, 768, 1280])
def test_nothing_is_wider_than_the_window(tab: Tab, width: int) -> None:
    tab.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    assert tab.value("document.documentElement.scrollWidth") <= width


@pytest.mark.long
def test_it_prints_on_a4_with_everything_but_its_tools(tab: Tab) -> None:
    tab.ask("Emulation.setEmulatedMedia", media="print")
    tools = "getComputedStyle(document.getElementById('break-tools')).display"
    assert tab.value(tools) == "none"
    told = tab.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
    assert len(told["data"]) > 10_000


PAGE_ONE = {
    # the report; what its printed page one says of money, and the first row there
    "everything": ("Totalspercurrency", "PaymentPaidAmount978EUR"),
    "accepted": ("Moneypercurrency", "currency12"),
    "nothing": ("Totalspercurrency", "Noamountwascompared."),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PAGE_ONE)
def test_the_first_printed_page_has_money(tab: Tab, tmp_path: Path, name: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_html(REPORTS[name]()), encoding="utf-8")
    tab.open("about:blank").open(path.as_uri())
    told = tab.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
    text = text_of_page(b64decode(told["data"]), 1)
    heading, row = PAGE_ONE[name]
    assert row in text.partition(heading)[2]


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_is_never_wider_than_its_window(tab: Tab, tmp_path: Path, width: int) -> None:
    """An amount may have three hundred digits; its table is moved aside, the page is not."""
    wide = replace(everything().ageing[0], amounts=(Decimal(10) ** 308,) * len(BUCKETS))
    wide_page = tmp_path / "wide.html"
    wide_page.write_text(render_html(replace(everything(), ageing=(wide,))), encoding="utf-8")
    batch_page = tmp_path / "batch.html"
    batch_page.write_text(render_batch(hostile()), encoding="utf-8")
    tab.ask("Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False)  # fmt: skip
    for one in (wide_page, batch_page):
        tab.ask("Page.navigate", url=one.as_uri())
        there = f"location.href == {json.dumps(one.as_uri())} && document.readyState == 'complete'"
        until(lambda there=there: bool(tab.value(there)))  # type: ignore[misc]
        assert tab.value("document.documentElement.scrollWidth") <= width, one.name


def test_a_message_fits_a_telephone(tab: Tab, tmp_path: Path) -> None:
    """No mail program scrolls what a line of a hash pushes out of its window."""
    message = letter(
        number=7, scope="tenant 7", day="2026-01-31", verdict="RECONCILED", report_hash="a" * 64,
        report_text=f"Rules hash  {'a' * 64}\n{'=' * 96}\n", account="anna",
        sender="recon@example.com", address="anna@example.com", link=None, workbook=None,
    )  # fmt: skip
    body = message.get_body(("html",))
    assert body is not None
    path = tmp_path / "message.html"
    path.write_text(body.get_content(), encoding="utf-8")
    tab.size(390)
    tab.open(path.as_uri())
    assert tab.value("document.documentElement.scrollWidth") <= 390
