"""A real browser, asked by the protocol of its own tools."""

import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.ports import own_port

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
needed = pytest.mark.skipif(BROWSER is None, reason="there is no chromium on this machine")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    "--window-size=1280,2000",
)
SECONDS = 30


_LEFT = "navigated or closed"


class PageLeft(Exception):
    """What was asked of a page has no answer: another one is under way."""


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
                if _LEFT in str(answer.get("error")):
                    raise PageLeft(answer)
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.told.append(answer)

    def value(self, expression: str) -> Any:
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, url: str) -> "Tab":
        """Go to a page, and wait until it is there."""
        self.ask("Page.navigate", url=url)
        return self.settled()

    def settled(self) -> "Tab":
        """Wait until the page that is under way is there."""
        until(lambda: self.value("document.readyState") == "complete")
        return self

    @property
    def text(self) -> str:
        return str(self.value("document.body.innerText"))

    def follow(self, click: str) -> "Tab":
        """Click what leads to another page, and wait for that."""
        self.value("window.before = true")
        self.value(f"{click}.click()")
        until(lambda: self.value("window.before") is not True)
        return self.settled()

    def choose(self, selector: str, *paths: str) -> None:
        """Choose files of this machine in a field of the page."""
        whole = self.ask("DOM.getDocument")["root"]["nodeId"]
        field = self.ask("DOM.querySelector", nodeId=whole, selector=selector)["nodeId"]
        self.ask("DOM.setFileInputFiles", files=[*paths], nodeId=field)

    def size(self, width: int, height: int = 900) -> None:
        """Have the page this wide."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def picture(self, path: Path, width: int = 1280, height: int = 900) -> None:
        """Keep what is seen, whole."""
        self.size(width, height)
        seen = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(b64decode(seen["data"]))


@pytest.fixture(scope="module")
def browser() -> Iterator[str]:
    """Where a browser that runs is asked for its tabs."""
    port = own_port()
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
                return bool(asked(url))
            except OSError:
                return False

        try:
            until(there)
            yield url
        finally:
            process.terminate()
            process.wait(SECONDS)


@contextmanager
def opened(browser: str) -> Iterator[Tab]:
    """A tab of a running browser."""
    there = asked(f"{browser}/new?about:blank", method="PUT")
    with connect(there["webSocketDebuggerUrl"], proxy=None, max_size=None) as connection:
        tab = Tab(connection)
        for domain in ("Page", "Log", "Runtime", "Network"):
            tab.ask(f"{domain}.enable")
        yield tab
        tab.ask("Page.close")


def asked(url: str, method: str = "GET") -> Any:
    request = urllib.request.Request(url, method=method)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)


def until(there: Callable[[], bool]) -> None:
    def is_there() -> bool:
        try:
            return there()
        except PageLeft:
            return False

    end = time.monotonic() + SECONDS
    while not is_there():
        assert time.monotonic() < end, "the browser has not answered in time"
        time.sleep(0.05)
