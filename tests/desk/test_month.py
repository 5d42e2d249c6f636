"""A month at the desk, clicked in a real browser: from an upload to an approved report, and on.

`make pictures` takes the pictures of its pages again, 1280 and 420 pixels wide.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from connectors.postgres.accounts import keep_limit
from flows.stages.reconcile.as_of import today
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules, Tolerance
from schemas.accounts import AccountRole
from tests.accounts.people import ADA, ANNA, BO, OTTO, add
from tests.chromium import Tab, needed, opened, until
from tests.chromium import browser as browser  # noqa: PLC0414 -- the fixture.
from tests.desk.browser import desk_of
from tests.desk.test_clicked import button, log_in, one, typed
from tests.push.conftest import towards
from tests.push.deliveries import by_row, tones
from tests.service.faulty_server import LOST, FaultyServer
from tests.stages.payments import line, write

pytestmark = needed
BOTH = (AccountRole.PREPARER, AccountRole.APPROVER)
ANNA_TOO = replace(ANNA, roles=BOTH)
"""She could approve, and prepares."""
DAN = replace(BO, name="dan", full_name="Dan Roe")


@pytest.fixture
def place(workspace: Workspace) -> Iterator[Workspace]:
    """People, a limit of 100.00, and a service that loses its answer to the second tone."""
    add(workspace, ADA, OTTO, ANNA_TOO, BO, DAN)
    with workspace.database.connect() as connection:
        keep_limit(connection, "*", Decimal("100.00"))
    with FaultyServer(by_row({2: LOST})) as server:
        yield towards(workspace, server.url)


@pytest.fixture
def tab(browser: str) -> Iterator[Tab]:
    with opened(browser) as tab:
        yield tab


def deliver(tab: Tab, *paths: str) -> None:
    """Choose files in the form of this page, and send it."""
    tab.choose("#files", *paths)
    tab.follow(button("Upload and import"))


def picture(tab: Tab, name: str) -> None:
    """Keep what is seen, where pictures are wanted."""
    if folder := os.environ.get("RECON_PICTURES"):
        tab.picture(Path(folder) / "desk" / f"{name}.png")
        tab.picture(Path(folder) / "desk" / f"{name}-420.png", 420)


def ended(tab: Tab) -> None:
    """Wait until the job of this page has ended."""
    until(lambda: "Ended" in tab.text)


def to(tab: Tab, desk: str, name: str) -> None:
    """Somebody else sits down at the desk."""
    if tab.value(f"!!{one('.who button')}"):
        tab.follow(one(".who button"))
    log_in(tab, desk, name)


def decide(tab: Tab, what: str, **fields: str) -> None:
    """Decide about the break of this page."""
    tab.follow(button(what))
    for name, text in fields.items():
        typed(tab, f"main [name={name}]", text)
    tab.follow(one("form.fields button, .fields button"))


def to_break(tab: Tab, desk: str, run: int, key: str) -> None:
    tab.open(f"{desk}/runs/{run}/breaks?state=open&text={key}")
    tab.follow(one("table a[href*='/breaks/']"))


@pytest.mark.long
def test_a_month(place: Workspace, tab: Tab, tmp_path: Path, rows: Any) -> None:
    with desk_of(place) as desk:
        _delivery(desk, tab, tmp_path, rows)
        with place.database.connect() as owner:  # Somebody works past everybody.
            owner.execute('UPDATE payment SET "PaidAmount" = 28.13 WHERE "Id" = 3')
            owner.execute('UPDATE payment SET "PaidAmount" = 320.25 WHERE "Id" = 12')
        _review(desk, tab)
        _sign(desk, tab, rows)
        with place.database.connect() as owner:
            owner.execute('UPDATE payment SET "PaidAmount" = 55.00 WHERE "Id" = 5')
        _next_day(desk, tab, place, rows)
        wrong = [one for one in tab.told if one["method"] == "Log.entryAdded"]
        assert not [one for one in wrong if "status of 4" not in str(one)], wrong


def _delivery(desk: str, tab: Tab, tmp_path: Path, rows: Any) -> None:
    """Uploaded, its rejects corrected, and what is in doubt at the service settled."""
    good = [line(number, amount=f"{number * 10}.25") for number in range(1, 13)]
    good[6] = good[6].replace("70.25", "seventy")
    rates = tmp_path / "currency_rates.csv"
    rates.write_text(
        "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate\n"
        "9,7,1,2,1.10,2025-12-31 00:00:00\n"
    )
    invoices = tmp_path / "invoice_files.csv"
    invoices.write_text("Id,TenantsId,DebtsId,InvoiceUrl\n1,7,2,https://files.example/2\n")
    log_in(tab, desk, "otto")
    tab.open(f"{desk}/batches")
    tab.follow(button("Upload files"))
    tab.value(f"{one('[name=push]')}.checked = true")
    picture(tab, "upload")
    deliver(
        tab,
        write(tmp_path / "payments.csv", *good),
        tones(tmp_path / "message_tones.csv", 3),
        str(rates),
        str(invoices),
    )
    ended(tab)
    assert "something is left to do" in tab.text
    picture(tab, "job")
    tab.follow(one("main a[href='/batches/1']"))
    picture(tab, "batch")

    # Rejects are downloaded, corrected and uploaded.
    tab.follow(one("a[href='/batches/1/rejects']"))
    assert "seventy" in tab.text
    picture(tab, "rejects")
    downloads = tmp_path / "downloads"
    tab.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
    tab.value(button("Files to correct") + ".click()")
    packed = downloads / "rejects-of-batch-1.zip"
    until(packed.is_file)
    with ZipFile(packed) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".csv"))
        corrected = Path(files.extract(name, tmp_path))
    corrected.write_text(corrected.read_text().replace("seventy", "70.25"))
    tab.follow(button("Upload corrected rows"))
    deliver(tab, str(corrected))
    ended(tab)
    assert rows('SELECT "PaidAmount" FROM payment WHERE "Id" = 7') == [(Decimal("70.25"),)]

    # The service lost an answer: somebody has looked there.
    tab.open(f"{desk}/batches/1")
    tab.follow(one("a[href='/batches/1/sends?state=in_doubt']"))
    assert '"Name":"tone 2"' in tab.text
    tab.value(f"{one('[name=row]')}.click()")
    tab.value(f"{one('[name=what][value=confirm]')}.click()")
    typed(tab, "#reason", "it is in the list of the service")
    picture(tab, "sends")
    tab.follow(button("Settle"))
    ended(tab)
    assert "1 row of batch 1: confirm." in tab.text
    assert rows("SELECT count(*) FROM send WHERE state <> 'acknowledged'") == [(0,)]


def _review(desk: str, tab: Tab) -> None:
    """Reconciled, its causes looked at, a break traced, and every one of them decided about."""
    tab.open(desk)
    tab.follow(button("Reconcile everything"))
    ended(tab)
    tab.follow(one("main a[href='/runs/1']"))
    to(tab, desk, "anna")
    tab.open(f"{desk}/")
    picture(tab, "home")
    tab.follow(one("main table a"))
    assert "It cannot be approved yet." in tab.text
    picture(tab, "run")
    tab.follow(one("main a[href*='cause=']"))
    picture(tab, "breaks")

    to_break(tab, desk, 1, "3/7")
    for part in (
        "payments.csv",
        "line 4",
        line(3, amount="30.25"),
        "28.13",
        "\N{MINUS SIGN}2.12",
        "EditPayment",
    ):
        assert part in tab.text, part
    picture(tab, "break")
    decide(tab, "Accept", reason="Bank charges", until=UNTIL)
    assert "Accepted" in tab.text
    to_break(tab, desk, 1, "tone 2")
    decide(tab, "Accept", reason="It was looked for by hand", until=UNTIL)
    to_break(tab, desk, 1, "12/7")
    decide(tab, "Accept", reason="Agreed with the counterparty", until=UNTIL)
    assert "takes two people" in tab.text
    picture(tab, "refused")
    to_break(tab, desk, 1, "12/7")
    decide(tab, "Assign", reason="please ask the bank", assignee="bo", due=UNTIL)
    to_break(tab, desk, 1, "12/7")
    decide(tab, "Comment", reason="the bank answers tomorrow")
    to_break(tab, desk, 1, "12/7")
    decide(tab, "Propose", reason="Agreed with the counterparty", until=UNTIL)
    to(tab, desk, "bo")
    assert "assigned to you" in tab.text
    tab.follow(button("Run 1"))
    tab.follow(one("table a[href*='/breaks/']"))
    assert "the bank answers tomorrow" in tab.text
    decide(tab, "Accept", reason="Agreed with the counterparty", until=UNTIL)
    assert "Accepted" in tab.text


def _sign(desk: str, tab: Tab, rows: Any) -> None:
    """Prepared by one; refused to whoever prepared or accepted; approved by another."""
    to(tab, desk, "otto")
    tab.follow(button("Reconcile now"))
    ended(tab)
    ((run, verdict),) = rows("SELECT id, verdict FROM reconciliation ORDER BY id DESC LIMIT 1")
    assert verdict == "RECONCILED_WITH_ACCEPTED"
    to(tab, desk, "anna")
    tab.open(f"{desk}/runs/{run}/sign")
    typed(tab, "#comment", "month end")
    tab.follow(button("Sign as"))
    for name in ("anna", "bo"):
        to(tab, desk, name)
        tab.open(f"{desk}/runs/{run}/sign")
        assert "Somebody else approves it." in tab.text
        assert not tab.value(f"!!{button('Approve')}")
    assert rows("SELECT count(*) FROM signature WHERE role = 'approved'") == [(0,)]
    to(tab, desk, "dan")
    tab.open(f"{desk}/runs/{run}/sign")
    picture(tab, "sign")
    tab.follow(button("Approve"))
    assert "Approved." in tab.text
    picture(tab, "approved")


def _next_day(desk: str, tab: Tab, place: Workspace, rows: Any) -> None:
    """A signed record has changed, and the rules too: both are seen, and approved as changes."""
    wider = Tolerance("payment", "PaidAmount", above=Decimal("0.01"), below=Decimal("0.01"))
    day = today(place.settings.time_zone)
    run = reconcile(place, Asked(Scope(), day, Rules(tolerances=(wider,)), by="dora")).run.id
    to(tab, desk, "anna")
    tab.open(f"{desk}/runs/{run}")
    assert "1 changed after they were signed" in tab.text
    assert "rule tolerance payment PaidAmount" in tab.text
    picture(tab, "changed")
    tab.open(f"{desk}/runs/{run}/breaks?state=open")
    tab.follow(button("Decide about all"))
    tab.follow(button("Accept"))
    for name, text in (("reason", "agreed with treasury"), ("until", UNTIL)):
        typed(tab, f"main [name={name}]", text)
    tab.follow(one("form.fields button"))
    if "once more" in tab.text:
        tab.follow(one("form button"))
    assert "2 breaks" in tab.text
    to(tab, desk, "otto")
    tab.follow(button("Reconcile now"))
    ended(tab)
    ((run,),) = rows("SELECT max(id) FROM reconciliation")
    to(tab, desk, "anna")
    tab.open(f"{desk}/runs/{run}/sign")
    tab.follow(button("Sign as"))
    to(tab, desk, "dan")
    tab.open(f"{desk}/runs/{run}/sign")
    assert "rules" in tab.text
    tab.value(f"{one('#accept_changes')}.click()")
    picture(tab, "changes")
    tab.follow(button("Approve"))
    assert "Approved." in tab.text
    tab.open(f"{desk}/trail")
    tab.follow(button("Verify the trail"))
    assert "The audit trail holds" in tab.text
    picture(tab, "trail")


UNTIL = date(2030, 12, 31).isoformat()
