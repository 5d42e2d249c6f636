"""The desk with an account of the database that loads nothing shows what it shows with any other.

What differs is said here: secrets, which no page shows either way.
"""

import html
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.accounts import AccountRole
from schemas.guards.roles import DESK
from tests import examples
from tests.accounts.people import Account, add
from tests.desk.browser import Browser, desk_of
from tests.desk.test_batches import TIGHT, bring
from tests.desk.test_jobs_page import csv, upload
from tests.push.conftest import deliver, towards
from tests.push.deliveries import by_row, tones
from tests.service.faulty_server import DROPPED, FaultyServer, status
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line

EVERY = tuple(role for role in AccountRole if role is not AccountRole.ADMINISTRATOR)
ALL = Account("otto", "Otto Berg", EVERY)
TESS = Account("tess", "Tess Ito", EVERY, tenants=(7,))
CANARY = "sk-4711-canary"
GATEWAYS = f"""TenantsId,PaymentActionsId,Name,ServiceKey,NotifyUrl,RedirectUrl
7,1,Card,{CANARY},https://example.com/n,https://example.com/r
x,2,Card,{CANARY},https://example.com/n,https://example.com/r
"""


@pytest.fixture
def world(workspace: Workspace, tmp_path: Path) -> Workspace:
    """Batches in several states, one undone, rows with errors and in doubt, and a secret."""
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"), line(3))
    bring(workspace, tmp_path / "b.csv", line(4), line(5, amount="x"), terms=TIGHT)
    (tmp_path / "payment_gateways.csv").write_text(GATEWAYS)
    import_delivery(workspace, [str(tmp_path / "payment_gateways.csv")], DEFAULT)
    with FaultyServer(by_row({1: DROPPED, 2: status(400)})) as server:
        deliver(towards(workspace, server.url), tones(tmp_path / "tones.csv", 4))
    bring(workspace, tmp_path / "c.csv", line(6))
    undo_batch(workspace, 5, by=None, reason="wrong month")
    add(workspace, ALL)
    return workspace


def shape(path: str) -> str:
    """What pages that differ by a break, a row or a time have in common."""
    return re.sub(r"=[^&]*", "=", re.sub(r"/[0-9a-f]{16}", "/", path))


def by_page(found: dict[str, int]) -> dict[str, int]:
    """The same whichever break was opened: pages name those that somebody has not opened yet."""
    return {re.sub(r"\b[0-9a-f]{16}\b", "BREAK", path): code for path, code in found.items()}


def pages(place: Workspace, name: str = "otto", *canaries: str) -> dict[str, int]:
    """Every page that is led to, one of those about a break or a row each, with its status."""
    found: dict[str, int] = {}
    with desk_of(place) as url:
        browser = Browser(url).log_in(name)
        waiting = ["/", "/batches", "/jobs", "/trail", "/people", "/account"]
        while waiting:
            path = waiting.pop()
            browser.open(path)
            found[path] = browser.status
            assert browser.answer is not None
            for canary in (CANARY, *canaries):
                assert canary not in browser.answer.text, (path, canary)
            if browser.answer.headers["content-type"].startswith("text/html"):
                led = re.findall(r'href="(/[^"#]*)', browser.answer.text)
                known = {*map(shape, found), *map(shape, waiting)}
                new = {shape(one): one for one in sorted(html.unescape(path) for path in led)}
                waiting += [one for of, one in new.items() if of not in known]
        browser.client.close()
    return found


@pytest.mark.long
def test_no_page_takes_a_right_that_the_desk_does_not_need(world: Workspace, acting: As) -> None:
    with desk_of(world) as url:
        otto = Browser(url).log_in("otto").open("/")
        otto.send("/jobs")
        assert "/runs/1" in otto.answer.text
        otto.client.close()
    lowest = pages(acting(DESK))
    assert {*lowest.values()} == {200}
    if examples.ALL:
        assert by_page(lowest) == by_page(pages(world))
    assert {"/batches/1/rejects", "/batches/3/rejects.zip", "/runs/1"} <= lowest.keys()
    assert any(path.startswith("/batches/4/sends") for path in lowest)
    assert "/batches/5" in lowest


TOLD = "strangers-4711"
"""In what is delivered for another tenant, by mistake."""


@pytest.fixture
def hers(workspace: Workspace, tmp_path: Path) -> Workspace:
    """Deliveries for Tessa's tenant with text of others: rejected, refused, sent and reconciled."""
    add(workspace, TESS, ALL)
    bound = replace(DEFAULT, tenant=7)
    strangers = line(2).replace(",7,", f",8{TOLD},").replace("+01:00", f"+01:00{TOLD}")
    bring(workspace, tmp_path / "a.csv", line(1), strangers, terms=bound)
    bring(workspace, tmp_path / "others.csv", line(1, amount="11"))
    with FaultyServer(by_row({1: status(400, error_code="NotNull")})) as server:
        tone = tmp_path / "tones.csv"
        tone.write_text("TenantsId,AvatarsId,Name\n7,3,tone 1\n7,3,tone 2\n")
        there = towards(workspace, server.url)
        import_delivery(there, [str(tone)], replace(bound, push=True))
    with desk_of(workspace) as url:
        tess = Browser(url).log_in("tess")
        upload(tess, ("b.csv", f"Id,{TOLD}\n1,2\n".encode()), ("c.csv", csv(line(3))))
        assert "b.csv: refused" in tess.text
        tess.client.close()
    scope = Scope(tenants=(7,))
    made = reconcile(workspace, Asked(scope, date(2026, 1, 31), Rules())).run
    assert made.id == 1
    return workspace


@pytest.mark.long
@pytest.mark.parametrize("lowest", [True, False], ids=["lowest", "owner"])
def test_no_page_shows_delivered_text_to_an_account_of_some_tenants(
    hers: Workspace, acting: As, lowest: bool
) -> None:
    place = acting(DESK) if lowest else hers
    found = pages(place, "tess", TOLD)
    assert {"/batches/1", "/batches/3/sends", "/jobs/1", "/runs/1"} <= {
        path.partition("?")[0] for path in found
    }
    with hers.database.connect() as connection:
        breaks = [one for (one,) in connection.execute("SELECT DISTINCT break_id FROM break_state")]
    with desk_of(place) as url:
        tess, otto = Browser(url).log_in("tess"), Browser(url).log_in("otto")
        shown, told = (
            [one.open(f"/runs/1/breaks/{number}").answer.text for number in breaks]
            for one in (otto, tess)
        )
        tess.client.close()
        otto.client.close()
    # A file of hers is named, one in a batch that she does not see is not.
    assert any("a.csv, line 3" in page for page in told)
    for withheld in (TOLD, "<dt>Sent</dt>", "others.csv"):
        assert lowest or any(withheld in page for page in shown), withheld
        assert not [page for page in told if withheld in page], withheld
