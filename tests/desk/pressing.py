"""Everything that can be pressed on a page, and somebody who presses all of it."""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from tests.accounts.people import PASSWORD
from tests.desk.browser import Browser
from tests.desk.reading import Element, page_of
from tests.stages.payments import HEADER, line

Rows = Callable[..., list[tuple[Any, ...]]]
Sent = tuple[tuple[str, str], ...]
START = ("/", "/batches", "/jobs", "/trail", "/people", "/account", "/acceptance")
NOT_PRESSED = ("/logout", "/login")
TYPED = {
    "reason": "looked at it", "until": "2027-12-31", "assignee": "otto",
    "currency": "1", "each": "1", "total": "2", "comment": "fine", "full_name": "New One",
    "address": "a@example.com", "old": PASSWORD, "new": PASSWORD, "again": PASSWORD,
}  # fmt: skip
"""What is typed into a field of this name that a page leaves empty."""


ONE_OF = ("row", "break")
"""Boxes of which the first is ticked; another box or button takes all of them."""


@dataclass(frozen=True)
class Press:
    """A button of a form, with what is sent if it is pressed."""

    path: str
    action: str
    method: str
    button: str
    """Its name and value, and the one of several choices that is taken."""
    label: str
    sent: Sent
    has_files: bool

    def kind(self, first: Collection[str]) -> str:
        """What presses have in common that differ only by what is looked for on a page.

        Numbers make a difference on the `first` pages: what is pressed makes ever more of them.
        """
        path = shape(self.path) if self.method == "get" else self.path.partition("?")[0]
        one = f"{path} {self.action} {self.button}"
        return one if self.path in first else re.sub("[0-9]+", "N", one)


def shape(path: str) -> str:
    """What addresses have in common that differ only by what is looked for."""
    return re.sub(r"((?:state|what)=[^&]*)|=[^&]*", r"\1", path)


def presses(path: str, page: Element, name: str) -> Iterator[Press]:
    """All buttons of a page; a new account, or whoever tells who they are, has this name."""
    for form in page.every("form"):
        fields = [*form.every("input", "select", "textarea")]
        radios = [one for one in fields if one.given.get("type") == "radio"]
        boxes = [one for one in fields if one.given.get("name") in ONE_OF]
        left_out = [one for one in boxes if one.given.get("type") == "checkbox"][1:]
        filled = [one for one in fields if one not in (*radios, *left_out)]
        sent = [of for one in filled for of in _filled(one, name)]
        taken = [((one.given["name"], one.given["value"]),) for one in radios] or [()]
        for one in form.every("button"):
            own = one.given.get("name", "")
            pressed = ((own, one.given.get("value", "")),) if own else ()
            for choice in taken:
                yield Press(
                    path,
                    form.given.get("action") or path,
                    form.given.get("method", "get"),
                    f"{pressed} {choice}",
                    one.text,
                    (*(of for of in sent if of[0] != own), *pressed, *choice),
                    any(of.given.get("type") == "file" for of in fields),
                )


def _filled(one: Element, name: str) -> Iterator[tuple[str, str]]:
    """What a field sends, filled in where the page leaves it empty."""
    of, given, kind = one.given.get("name"), one.given, one.given.get("type", "text")
    if not of or kind == "file":
        return
    if one.tag == "select":
        options = [*one.every("option")]
        values = {at: option.given.get("value", option.text) for at, option in enumerate(options)}
        chosen = [values[at] for at, option in enumerate(options) if "selected" in option.given]
        filled = [value for value in values.values() if value]
        yield of, (chosen or (filled if "required" in given else [*values.values()]) or [""])[0]
    elif kind == "checkbox":
        if {"checked", "required"} & given.keys() or of in ONE_OF:
            yield of, given.get("value", "on")
    elif kind == "hidden":
        yield of, given.get("value", "")
    else:
        typed = name if of in ("name", "by") else TYPED.get(of, "")
        yield of, given.get("value") or typed


def crawl(browser: Browser, wrong: dict[str, str]) -> dict[str, Element]:
    """Every page that is led to, one of those that differ only by what is looked for."""
    pages: dict[str, Element] = {}
    waiting = [*START]
    known = {*map(shape, waiting)}
    while waiting:
        path = waiting.pop(0)
        answer = browser.open(path).answer
        assert answer is not None
        if answer.status_code >= 400:
            wrong[path] = f"{answer.status_code} {told(browser)}"
        if "/files/" in path or not answer.headers["content-type"].startswith("text/html"):
            continue
        pages[path] = page_of(answer.text)
        for one in pages[path].every("a"):
            led = one.given["href"].partition("#")[0]
            if led.startswith("/") and shape(led) not in known:
                known.add(shape(led))
                waiting.append(led)
    return pages


def press_all(browser: Browser, rows: Rows) -> tuple[set[str], dict[str, str]]:
    """Press every button that is shown, each on its page as it is by then.

    Gives the labels of what was pressed, and what was refused, with what is said.
    """
    wrong: dict[str, str] = {}
    done: set[str] = set()
    labels: set[str] = set()
    first: Collection[str] = ()
    while True:
        pages = crawl(browser, wrong)
        first = first or pages.keys()
        found = [one for path, page in pages.items() for one in presses(path, page, "new")]
        new = [
            one for one in found if one.kind(first) not in done and one.action not in NOT_PRESSED
        ]
        if not new:
            return labels, wrong
        for one in new:
            kind = one.kind(first)
            if kind in done:
                continue
            done.add(kind)
            answer = browser.open(one.path).answer
            assert answer is not None
            there = presses(one.path, page_of(answer.text), f"new{len(done)}")
            now = next((of for of in there if of.kind(first) == kind), None)
            if now is None:  # What was pressed before has changed the page.
                continue
            labels.add(now.label)
            _press(browser, now, len(done))
            if why := _refused(browser, rows):
                wrong[f"{now.path} -> {now.action} {now.button} ({now.label})"] = why


def _press(browser: Browser, one: Press, number: int) -> None:
    if one.method == "get":
        browser.open(one.action, **dict(one.sent))
    elif one.has_files:
        content = f"{HEADER}\n{line(1_000 + number)}\n".encode()
        parts: list[tuple[str, Any]] = [(name, (None, value)) for name, value in one.sent]
        files = [*parts, ("files", ("a.csv", content))]
        browser.answer = browser.client.post(one.action, files=files)
    else:
        data: dict[str, list[str]] = {}
        for name, value in one.sent:
            data.setdefault(name, []).append(value)
        browser.answer = browser.client.post(one.action, data=data)


def told(browser: Browser) -> str:
    """Why a page refuses."""
    assert browser.answer is not None
    every = page_of(browser.answer.text).every("p", "div")
    return " ".join(one.text for one in every if one.given.get("role") == "alert")


def _refused(browser: Browser, rows: Rows) -> str:
    """What is said if the page refused, or if the work that it ordered could not be done."""
    assert browser.answer is not None
    if browser.status >= 400:
        return f"{browser.status} {told(browser)}"
    if job := re.fullmatch("/jobs/([0-9]+)", browser.answer.url.path):
        ((code, said),) = rows("SELECT exit_code, said FROM job WHERE id = %s", [job[1]])
        if (code or 0) >= 2:
            return f"exit code {code}: {said}"
    return ""
