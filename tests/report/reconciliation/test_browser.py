"""The page in a real browser: its script runs under its policy, narrows, sorts and prints."""

import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from flows.report.html import render_html as render_batch
from flows.report.reconciled.html import render_html
from flows.steps.breaks.ageing import BUCKETS
from tests.report.reconciliation.sample import everything
from tests.report.sample_reports import hostile

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no chromium on this machine")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    "--window-size=1280,2000",
)
SECONDS = 30


class Tab:
    """One page, asked by the protocol of the browser's own tools."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.number = 0
        self.told: list[dict[str, Any]] = []

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            answer: dict[str, Any] = json.loads(self.socket.recv(timeout=SECONDS))
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.told.append(answer)

    def value(self, expression: str) -> Any:
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(everything()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[str]:
    """Where a browser that runs is asked for its tabs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [
                *(str(BROWSER), *FLAGS, f"--user-data-dir={folder}"),
                *(f"--remote-debugging-port={port}", "--remote-allow-origins=*", "about:blank"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        url = f"http://127.0.0.1:{port}/json"

        def there() -> bool:
            assert process.poll() is None, "the browser has ended"
            try:
                return bool(_asked(url))
            except OSError:
                return False

        try:
            _until(there)
            yield url
        finally:
            process.terminate()
            process.wait(SECONDS)


@pytest.fixture
def tab(browser: str, page: Path) -> Iterator[Tab]:
    opened = _asked(f"{browser}/new?about:blank", method="PUT")
    with connect(opened["webSocketDebuggerUrl"], proxy=None, max_size=None) as connection:
        tab = Tab(connection)
        for domain in ("Page", "Log", "Runtime", "Network"):
            tab.ask(f"{domain}.enable")
        tab.ask("Page.navigate", url=page.as_uri())
        _until(lambda: tab.value("document.readyState") == "complete")
        yield tab
        tab.ask("Page.close")


def _asked(url: str, method: str = "GET") -> Any:
    request = urllib.request.Request(url, method=method)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)


def _until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not there():
        assert time.monotonic() < end, "the browser has not answered in time"
        time.sleep(0.05)


SHOWN = "[...document.querySelectorAll('#break-list tbody tr')].filter(row => !row.hidden)"
IDS = f"{SHOWN}.map(row => row.querySelector('.mono').textContent)"


def choose(tab: Tab, selector: str, value: str, event: str = "change") -> list[str]:
    tab.value(
        f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
        f"one.value = {json.dumps(value)}; one.dispatchEvent(new Event('{event}')); }})()"
    )
    return list(tab.value(IDS))


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


def test_no_delivered_text_runs(tab: Tab) -> None:
    assert tab.value("document.querySelectorAll('script').length") == 1
    assert tab.value("document.querySelectorAll('img, iframe, object, link').length") == 0
    blocked = tab.value(
        "(() => { const one = document.createElement('script'); one.textContent = 'window.ran = 1';"
        "document.body.append(one); return window.ran === undefined; })()"
    )
    assert blocked is True


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


@pytest.mark.long
def test_the_list_can_be_sorted_exactly(tab: Tab) -> None:
    largest = choose(tab, "#break-order", "1")
    # What a rate differs by is no money, however large.
    assert largest[:3] == ["a" * 16, "b" * 16, "e" * 16]
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


@pytest.mark.long(but=("420",))
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
        _until(lambda there=there: bool(tab.value(there)))  # type: ignore[misc]
        assert tab.value("document.documentElement.scrollWidth") <= width, one.name
