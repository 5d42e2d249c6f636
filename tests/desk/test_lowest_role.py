"""The desk with an account of the database that loads nothing shows what it shows with any other.

What differs is said here: secrets, which no page shows either way.
"""

import html
import re
from pathlib import Path

import pytest

from connectors.files.profile import DEFAULT
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from schemas.guards.roles import DESK
from tests.accounts.people import Account, add
from tests.desk.browser import Browser, desk_of
from tests.desk.test_batches import TIGHT, bring
from tests.push.conftest import deliver, towards
from tests.push.deliveries import by_row, tones
from tests.service.faulty_server import DROPPED, FaultyServer, status
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line

EVERY = tuple(role for role in AccountRole if role is not AccountRole.ADMINISTRATOR)
ALL = Account("otto", "Otto Berg", EVERY)
CANARY = "sk-4711-canary"
GATEWAYS = f"""TenantsId,PaymentActionsId,Name,ServiceKey,NotifyUrl,RedirectUrl
7,1,Card,{CANARY},https://example.com/n,https://example.com/r
x,2,Card,{CANARY},https://example.com/n,https://example.com/r
"""


@pytest.fixture
def world(workspace: Workspace, tmp_path: Path) -> Workspace:
    """Batches in several states, rows with errors and in doubt, a secret, and a reconciliation."""
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"), line(3))
    bring(workspace, tmp_path / "b.csv", line(4), line(5, amount="x"), terms=TIGHT)
    (tmp_path / "payment_gateways.csv").write_text(GATEWAYS)
    import_delivery(workspace, [str(tmp_path / "payment_gateways.csv")], DEFAULT)
    with FaultyServer(by_row({1: DROPPED, 2: status(400)})) as server:
        deliver(towards(workspace, server.url), tones(tmp_path / "tones.csv", 4))
    add(workspace, ALL)
    return workspace


def shape(path: str) -> str:
    """What pages that differ by a break, a row or a time have in common."""
    return re.sub(r"=[^&]*", "=", re.sub(r"/[0-9a-f]{16}", "/", path))


def pages(place: Workspace) -> dict[str, int]:
    """Every page that is led to, one of those about a break or a row each, with its status."""
    found: dict[str, int] = {}
    with desk_of(place) as url:
        browser = Browser(url).log_in("otto")
        waiting = ["/", "/batches", "/jobs", "/trail", "/people", "/account"]
        while waiting:
            path = waiting.pop()
            browser.open(path)
            found[path] = browser.status
            assert browser.answer is not None
            assert CANARY not in browser.answer.text, path
            if browser.answer.headers["content-type"].startswith("text/html"):
                led = re.findall(r'href="(/[^"#]*)', browser.answer.text)
                known = {*map(shape, found), *map(shape, waiting)}
                new = {shape(one): one for one in sorted(html.unescape(path) for path in led)}
                waiting += [one for of, one in new.items() if of not in known]
        browser.client.close()
    return found


def test_no_page_takes_a_right_that_the_desk_does_not_need(world: Workspace, acting: As) -> None:
    with desk_of(world) as url:
        otto = Browser(url).log_in("otto").open("/")
        otto.send("/jobs")
        assert "/runs/1" in otto.answer.text
        otto.client.close()
    lowest, owner = pages(acting(DESK)), pages(world)
    assert lowest == owner
    assert {"/batches/1/rejects", "/batches/3/rejects.zip", "/runs/1"} <= lowest.keys()
    assert any(path.startswith("/batches/4/sends") for path in lowest)
