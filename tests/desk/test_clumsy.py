"""Forms with anything in them: a page that says what is wrong, and keeps what was typed."""

from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from connectors.postgres.accounts import Account
from flows.desk.app import ADDRESSES
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from tests import examples
from tests.accounts.people import ANNA, BO, add
from tests.desk.browser import Browser, forms
from tests.desk.test_batches import bring
from tests.governance.runs import found, ids, reconcile
from tests.stages.payments import line

New = Callable[[], Browser]
MAX = Account("max", "Max Both", (*AccountRole,))
NONSENSE = {
    "nothing": "", "blank": " ", "letter": "x", "zero": "0", "negative": "-1", "float": "1e9",
    "digits": "9" * 30, "fraction": "1.5", "not a number": "NaN", "no such day": "2026-02-30",
    "first day": "0001-01-01", "last day": "9999-12-31", "amount": "1.234,56", "null": "\x00",
    "beyond ascii": "\ud7ff\U0001f4a5", "quote": "'; --", "percent": "%", "path": "../..",
    "digit of another script": "\u0663", "long": "a" * 3000,
}  # fmt: skip
PAGES = [one.path for one in ADDRESSES if "GET" in one.methods and not one.open_to_all]
LONGEST = 1000
"""What a browser lets anybody type."""
FURTHER = ["/runs/1/decide?break={id}&what=" + what for what in ("accept", "assign", "comment")]


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path) -> Workspace:
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    reconcile(workspace, found("4711", "4712"))
    add(workspace, ANNA, BO, MAX)
    return workspace


def path_of(path: str) -> str:
    (there, *_) = ids(found("4711"))
    for name, value in {"{number:int}": "1", "{id}": there, "{name:path}": "report.html"}.items():
        path = path.replace(name, value)
    return path


def bent(form: dict[str, Any], value: str) -> Iterator[dict[str, str]]:
    """The form as it stands with one field bent or left out, for each of its fields and buttons."""
    for chosen in form["choices"].get("what") or [""]:
        base = form["fields"] | ({"what": chosen} if chosen else {})
        for name in form["choices"]:
            if name != "csrf":
                yield base | {name: value}
                yield {one: told for one, told in base.items() if one != name}


def wrong(page: Browser, form: dict[str, Any], sent: dict[str, str], value: str) -> str | None:
    """What is wrong with the answer to a form, if anything is."""
    if form["method"] == "get":
        answer = page.client.get(form["action"], params=sent)
    else:
        answer = page.client.post(form["action"], data=sent)
    if answer.status_code >= 500:
        return f"{answer.status_code}"
    if answer.status_code < 400:
        return None
    if 'role="alert"' not in answer.text:
        return "it does not say what is wrong"
    if value in unescape(answer.text) or not value.isprintable() or len(value) > LONGEST:
        return None
    again = [one["typed"] for one in forms(answer.text) if one["action"] == form["action"]]
    lost = {name for name in form["typed"] & set().union(*again) if sent.get(name) == value}
    return f"it lost what was typed as {lost}" if lost else None


@pytest.mark.long
def test_every_page_is_there_without_what_a_link_would_ask(place: Workspace, browser: New) -> None:
    page = browser().log_in("max")
    for path in map(path_of, PAGES):
        assert page.client.get(path).status_code < 500, path


@pytest.mark.long
@pytest.mark.parametrize("value", [*NONSENSE.values()], ids=[*NONSENSE])
def test_no_form_breaks_a_page_or_loses_what_was_typed(
    place: Workspace, browser: New, value: str
) -> None:
    page = browser().log_in("max")
    found_wrong: dict[str, set[str]] = {}
    seen: set[tuple[object, ...]] = set()
    for path in map(path_of, [*PAGES, *FURTHER]):
        told = page.client.get(path)
        assert told.status_code < 500, path
        is_page = told.headers.get("content-type", "").startswith("text/html")
        for form in forms(told.text) if is_page and "/files/" not in path else []:
            key = (form["action"], form["method"], *form["choices"])
            if key in seen or form["action"] == "/logout":
                continue
            seen.add(key)
            there = form | {"action": form["action"] or path}
            for sent in [*bent(there, value)][:: 1 if examples.ALL else 4]:
                if told_wrong := wrong(page, there, sent, value):
                    found_wrong.setdefault(there["action"], set()).add(f"{told_wrong}: {sent}")
    assert found_wrong == {}
    assert len(seen) > 15, "the forms of the desk were found"
