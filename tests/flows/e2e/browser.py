"""A real browser on the pages of the machine: it clicks, types and takes pictures as people do."""

import base64
import json
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.flows.e2e.machine import ENDS, SECONDS, Machine
from tests.ports import own_port

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
    *("--hide-scrollbars", "--lang=en-GB"),
)
WIDTH, HEIGHT = 1240, 860
# Where an element is, that shows this text and nothing beside it; the innermost of them.
FIND = """(selector, text) => {
    const shown = one => one.getClientRects().length && one.textContent.trim() === text
    const found = [...document.querySelectorAll(selector)].filter(shown)
    return found.filter(one => !found.some(other => other !== one && one.contains(other)))[0]
}"""
# The field under a label of a form.
FIELD = """(selector, label) => {
    const titles = [...document.querySelectorAll('.schema-form-property__label')]
    const named = one => one.textContent.trim().replace(/ \\(Optional\\)$/, '') === label
    const form = titles.find(named)?.closest('.schema-form-property')
    return form?.querySelector(`.p-label__body ${selector}`)
}"""


class Browser:
    """One page; every wait ends as soon as what it waits for is there."""

    def __init__(self, machine: Machine, socket: ClientConnection, pictures: Path | None) -> None:
        self.machine = machine
        self.socket = socket
        self.pictures = pictures
        self.number = 0
        self.asked: set[str] = set()
        """Addresses beyond this machine that the pages asked for."""

    def ask(self, method: str, **parameters: object) -> Any:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            told = json.loads(self.socket.recv(timeout=SECONDS))
            if told.get("id") == self.number:
                assert "error" not in told, told
                return told["result"]
            if told.get("method") == "Network.requestWillBeSent":
                url = told["params"]["request"]["url"]
                if not url.startswith((self.machine.url, "data:", "blob:")):
                    self.asked.add(url)

    def value(self, expression: str) -> Any:
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, expression: str) -> Any:
        """The value of an expression as soon as there is one."""
        try:
            return self.machine.until(lambda: self.value(expression) or None, 60)
        except AssertionError:
            seen = self.value("document.body.innerText")
            raise AssertionError(f"never: {expression}; the page shows {seen}") from None

    def open(self, path: str) -> None:
        self.ask("Page.navigate", url=self.machine.url + path)
        self.until("document.readyState === 'complete'")

    def see(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    def show(self, text: str) -> None:
        """Wait until the page has a text, and bring it to the middle."""
        self.see(text)
        has = f"one => one.textContent.includes({json.dumps(text)})"
        find = f"[...document.querySelectorAll('*')].filter({has}).at(-1)"
        self.value(f"{find}.scrollIntoView({{block: 'center', behavior: 'instant'}})")

    def click(self, text: str, selector: str = "button, a, [role=menuitem], [role=option]") -> None:
        self._click(f"({FIND})({json.dumps(selector)}, {json.dumps(text)})")

    def type(self, label: str, text: str) -> None:
        """Into the field under a label; what was in it goes."""
        self._type(f"({FIELD})(':is(textarea, input)', {json.dumps(label)})", text)

    def type_first(self, text: str) -> None:
        """Into the first field of several lines: the one that Add item has made."""
        self._type("document.querySelector('textarea')", text)

    def _type(self, find: str, text: str) -> None:
        self._click(find)
        self.value(f"{find}.select()")
        self.ask("Input.insertText", text=text)
        self.until(f"{find}.value === {json.dumps(text)}")

    def choose(self, label: str, option: str) -> None:
        """From a list; one of the browser's own opens outside the page, so it is told by event."""
        find = f"({FIELD})('select:not([class*=placeholder])', {json.dumps(label)})"
        self.until(f"Boolean({find})")
        self.value(
            f"(list => {{ list.value = {json.dumps(option)};"
            f"list.dispatchEvent(new Event('change', {{bubbles: true}})) }})({find})"
        )

    def choose_kind(self, label: str, kind: str) -> None:
        """The switch above a field that may stay empty."""
        form = f"({FIELD})('fieldset', {json.dumps(label)}).closest('.schema-form-property')"
        named = f"one => one.textContent.trim() === {json.dumps(kind)}"
        self._click(f"[...{form}.querySelectorAll('button')].find({named})")

    def switch(self, label: str) -> None:
        self._click(f"({FIELD})('[role=switch]', {json.dumps(label)})")

    def _click(self, find: str) -> None:
        self.until(f"Boolean({find}) && !{find}.disabled")
        scroll = f"{find}.scrollIntoView({{block: 'center', behavior: 'instant'}})"
        middle = "box => [box.x + box.width / 2, box.y + box.height / 2]"
        places: list[Any] = []

        def still() -> Any:
            """Where it is, once it has stayed there: forms move while they are being drawn."""
            places.append(self.value(f"{scroll}, ({middle})({find}.getBoundingClientRect())"))
            return places[-1] if places[-2:-1] == places[-1:] else None

        def hit() -> Any:
            """Whether the click was on it: what moves at that very moment is asked for again."""
            told = f"event => {{ window.hit = Boolean({find}?.contains(event.target)) }}"
            once = "{capture: true, once: true}"
            x, y = self.machine.until(still)
            self.value(f"window.hit = false, document.addEventListener('click', {told}, {once})")
            for kind in ("mousePressed", "mouseReleased"):
                place = {"x": x, "y": y, "button": "left", "clickCount": 1}
                self.ask("Input.dispatchMouseEvent", type=kind, **place)
            # A page that was left has nothing to tell.
            return self.value("window.hit !== false") or None

        self.machine.until(hit)

    def custom_run(self, deployment: str) -> None:
        """Deployments > name > Run > Custom run."""
        self.open(f"/deployments/deployment/{self.machine.deployment(deployment)['id']}")
        self.click("Run")
        self.click("Custom run")
        self.see("Run Name")

    def submit(self, name: str) -> str:
        """Submit the form of a run; gives the id of the run of this name that begins."""
        before = {one["id"] for one in self._runs()}
        self.value("document.activeElement.blur()")
        self.click("Submit")

        def begun() -> str | None:
            new = [one for one in self._runs() if one["id"] not in before]
            return next((str(one["id"]) for one in new if one["name"].startswith(name)), None)

        return str(self.machine.until(begun))

    def _runs(self) -> Any:
        begun = {"state": {"type": {"any_": ["RUNNING", "PAUSED", *ENDS]}}}
        wanted = {"flow_runs": begun, "sort": "START_TIME_DESC", "limit": 20}
        return self.machine.post("/flow_runs/filter", wanted)

    def run_page(self, run: str) -> None:
        self.open(f"/runs/flow-run/{run}")
        self.see("Artifacts")

    def artifact(self, key: str) -> None:
        """The latest artifact of a key."""
        wanted = {"artifacts": {"key": {"any_": [key]}}, "sort": "CREATED_DESC", "limit": 1}
        (latest,) = self.machine.post("/artifacts/filter", wanted)
        self.open(f"/artifacts/artifact/{latest['id']}")

    def picture(
        self, name: str, *, height: int = HEIGHT, left: int = 0, width: int = WIDTH
    ) -> None:
        """Keep what is seen, where pictures are wanted."""
        if self.pictures is None:
            return
        self.ask("Emulation.setScrollbarsHidden", hidden=True)
        # Menus and notices take a moment to fade away.
        threading.Event().wait(1.5)
        clip = {"x": left, "y": 0, "width": width, "height": height, "scale": 1}
        data = self.ask("Page.captureScreenshot", format="png", clip=clip)["data"]
        (self.pictures / f"runbook-{name}.png").write_bytes(base64.b64decode(data))


@contextmanager
def browsing(machine: Machine, profile: Path, pictures: Path | None) -> Iterator[Browser]:
    port = own_port()
    process = subprocess.Popen(
        [
            *(str(BROWSER), *FLAGS, f"--window-size={WIDTH},{HEIGHT}"),
            *(f"--user-data-dir={profile}", f"--remote-debugging-port={port}"),
            *("--remote-allow-origins=*", "about:blank"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def page() -> str | None:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            pages = [one for one in json.load(answer) if one["type"] == "page"]
            return str(pages[0]["webSocketDebuggerUrl"]) if pages else None
        return None

    try:
        # What the page tells between two questions is read with the next one.
        tied = {"max_size": None, "max_queue": None, "ping_interval": None}
        with connect(machine.until(page), proxy=None, **tied) as socket:
            one = Browser(machine, socket, pictures)
            for domain in ("Page", "Runtime", "Network"):
                one.ask(f"{domain}.enable")
            one.ask(
                "Emulation.setDeviceMetricsOverride",
                width=WIDTH,
                height=HEIGHT,
                deviceScaleFactor=1,
                mobile=False,
            )
            one.ask("Emulation.setTimezoneOverride", timezoneId="UTC")
            # As beside a desk: the pages draw other lists where there is no mouse.
            mouse = [{"name": "hover", "value": "hover"}, {"name": "pointer", "value": "fine"}]
            one.ask("Emulation.setEmulatedMedia", features=mouse)
            one.ask(
                "Page.addScriptToEvaluateOnNewDocument",
                source="localStorage.setItem('color-scheme', '\"light\"')",
            )
            yield one
    finally:
        process.terminate()
        process.wait(SECONDS)
