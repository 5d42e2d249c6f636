"""The desk in a real browser: a month, clicked; and a report that cannot act on the desk."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from tests.accounts.people import ANNA, BO, PASSWORD, add
from tests.chromium import Tab, needed, opened
from tests.chromium import browser as browser  # noqa: PLC0414 -- the fixture.
from tests.governance.runs import found, reconcile

pytestmark = needed
PICTURES = os.environ.get("RECON_PICTURES")
"""Where pictures for the docs go; none are made without."""


@pytest.fixture
def tab(browser: str) -> Iterator[Tab]:
    with opened(browser) as tab:
        yield tab


def one(selector: str) -> str:
    return f"document.querySelector({selector!r})"


def typed(tab: Tab, selector: str, text: str) -> None:
    tab.value(f"{one(selector)}.value = {text!r}")


def log_in(tab: Tab, desk: str, name: str) -> None:
    tab.open(f"{desk}/login")
    typed(tab, "#name", name)
    typed(tab, "#password", PASSWORD)
    tab.follow(one("main button"))


def picture(tab: Tab, name: str) -> None:
    if PICTURES:
        tab.picture(Path(PICTURES) / f"desk-{name}.png")
        tab.picture(Path(PICTURES) / f"desk-{name}-420.png", 420)


def button(text: str) -> str:
    return (
        "[...document.querySelectorAll('main button, main a')]"
        f".find(one => one.textContent.trim().startsWith({text!r}))"
    )


def test_a_break_is_accepted_and_the_report_signed_by_two(
    workspace: Workspace, desk: str, tab: Tab
) -> None:
    add(workspace, replace(ANNA, roles=(AccountRole.PREPARER, AccountRole.APPROVER)), BO)
    breaks = found("4711")
    reconcile(workspace, breaks)
    log_in(tab, desk, "anna")
    picture(tab, "home")
    tab.follow(one("main table a"))
    assert "It cannot be approved yet." in tab.text
    picture(tab, "run")
    tab.follow(button("Open breaks"))
    assert "4711" in tab.text
    picture(tab, "breaks")
    tab.follow(one("table a[href*='/breaks/']"))
    picture(tab, "break")
    tab.follow(button("Accept"))
    for name, text in (("reason", "bank charges"), ("until", "2026-12-31")):
        typed(tab, f"main [name={name}]", text)
    picture(tab, "decide")
    tab.follow(one("form.fields button"))
    assert "Accepted" in tab.text

    run = reconcile(workspace, breaks, verdict="RECONCILED_WITH_ACCEPTED")
    tab.open(f"{desk}/runs/{run.id}/sign")
    typed(tab, "#comment", "month end")
    tab.follow(button("Sign as"))
    assert "Somebody else approves it" in tab.text
    tab.follow(one(".who button"))
    log_in(tab, desk, "bo")
    tab.open(f"{desk}/runs/{run.id}/sign")
    picture(tab, "sign")
    tab.follow(button("Approve"))
    assert "Approved." in tab.text
    picture(tab, "approved")
    assert not [one for one in tab.told if one["method"] == "Log.entryAdded"], tab.told


@pytest.mark.long
def test_a_report_shows_itself_and_reaches_nothing(
    workspace: Workspace, desk: str, tab: Tab
) -> None:
    """A page that was written by whoever delivers files has an origin of its own."""
    run = reconcile(workspace, found(), page=HOSTILE)
    tab.open(f"{desk}/")
    tab.open(f"{desk}/runs/{run.id}/files/report.html")
    assert tab.value("document.title") == "ran", "its own script runs"
    assert tab.value("window.origin") == "null"
    assert tab.value(one("#cookie") + ".textContent") == "SecurityError"
    assert tab.value("fetch('/trail').then(() => 'told', error => error.name)") != "told"


HOSTILE = """<!doctype html><title>a report</title><p id="cookie"></p><script>
document.title = "ran";
try { document.querySelector("#cookie").textContent = document.cookie + "read"; }
catch (error) { document.querySelector("#cookie").textContent = error.name; }
</script>"""
