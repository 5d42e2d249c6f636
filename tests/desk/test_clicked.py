"""The desk in a real browser: a month, clicked; and a report that cannot act on the desk."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from tests.accounts.people import ANNA, BO, PASSWORD, add
from tests.chromium import Tab, needed, opened, until
from tests.chromium import browser as browser  # noqa: PLC0414 -- the fixture.
from tests.governance.runs import found, reconcile

pytestmark = needed


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


def button(text: str) -> str:
    return (
        "[...document.querySelectorAll('main button, main a')]"
        f".find(one => one.textContent.trim().startsWith({text!r}))"
    )


@pytest.mark.long
def test_a_break_is_accepted_and_the_report_signed_by_two(
    workspace: Workspace, desk: str, tab: Tab
) -> None:
    add(workspace, replace(ANNA, roles=(AccountRole.PREPARER, AccountRole.APPROVER)), BO)
    breaks = found("4711")
    reconcile(workspace, breaks)
    log_in(tab, desk, "anna")
    tab.follow(one("main table a"))
    assert "It cannot be approved yet." in tab.text
    tab.follow(button("Open breaks"))
    assert "4711" in tab.text
    tab.follow(one("table a[href*='/breaks/']"))
    tab.follow(button("Accept"))
    for name, text in (("reason", "bank charges"), ("until", "2026-12-31")):
        typed(tab, f"main [name={name}]", text)
    tab.follow(one("form.fields button"))
    assert "Accepted" in tab.text

    run = reconcile(workspace, breaks, verdict="RECONCILED_WITH_ACCEPTED")
    tab.open(f"{desk}/runs/{run.id}/sign")
    typed(tab, "#comment", "month end")
    assert tab.value(DOUBLE_CLICK.replace("BUTTON", button("Sign as"))) == [False, True]
    tab.open(f"{desk}/runs/{run.id}/sign")
    typed(tab, "#comment", "month end")
    tab.follow(button("Sign as"))
    assert "Somebody else approves it" in tab.text
    tab.follow(one(".who button"))
    log_in(tab, desk, "bo")
    tab.open(f"{desk}/runs/{run.id}/sign")
    tab.follow(button("Approve"))
    assert "Approved." in tab.text
    assert not [one for one in tab.told if one["method"] == "Log.entryAdded"], tab.told


def shown(tab: Tab, text: str) -> bool:
    """Whether the page says so, also while another one is under way."""
    return tab.value(f"document.body?.innerText.includes({text!r})") is True


def changed(tab: Tab, name: str, text: str) -> None:
    """Type into a field of the filter, and leave it."""
    typed(tab, f"form [name={name}]", text)
    tab.value(f"{one(f'form [name={name}]')}.dispatchEvent(new Event('change', {{bubbles: true}}))")


def test_a_filter_says_what_is_wrong_with_it_and_leads_back(
    workspace: Workspace, desk: str, tab: Tab
) -> None:
    """It changes a part of the page, which is not to stay as it was without a word."""
    add(workspace, ANNA)
    run = reconcile(workspace, found("4711", "4712"))
    log_in(tab, desk, "anna")
    tab.open(f"{desk}/runs/{run.id}/breaks")
    changed(tab, "amount", "ten")
    until(lambda: shown(tab, "is no amount to look for"))
    assert tab.value(one("form [name=amount]") + ".value") == "ten"
    changed(tab, "amount", "")
    changed(tab, "text", "4711")
    until(lambda: shown(tab, "1 break of 2"))
    with workspace.database.connect() as owner:
        owner.execute("UPDATE login SET expires_at = clock_timestamp()")
    tab.value("history.back()")
    until(lambda: shown(tab, "Password"))


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


DOUBLE_CLICK = """(() => {
  const kept = [];
  addEventListener("submit", event => {
    kept.push(event.defaultPrevented);
    event.preventDefault();
  });
  for (const _ of [1, 2]) BUTTON.click();
  return kept;
})()"""
"""Whether each of two clicks is kept from sending the form; none is sent here."""
HOSTILE = """<!doctype html><title>a report</title><p id="cookie"></p><script>
document.title = "ran";
try { document.querySelector("#cookie").textContent = document.cookie + "read"; }
catch (error) { document.querySelector("#cookie").textContent = error.name; }
</script>"""
