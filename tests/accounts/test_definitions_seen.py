"""How record kinds were defined is read by whoever is logged in: it is no tenant's."""

import pytest

from connectors.postgres.auditing.trail_search import TrailSearch, search_trail
from connectors.postgres.trail import add_event
from flows.stages.workspace import Workspace
from schemas.guards.roles import CONTROLLER, DESK, LOADER, READER
from schemas.own_definition import CHANGED, MADE, REMOVED
from tests.accounts.people import ANNA, TESSA, add, logged_in
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.

EVENTS = [MADE, CHANGED, REMOVED]


def told(place: Workspace) -> tuple[list[str], list[str]]:
    """What a program reads of it, and what a search of the trail shows."""
    with place.database.connect() as connection:
        rows = connection.execute(
            "SELECT what FROM event WHERE what LIKE 'record kind%' ORDER BY id"
        )
        read = [what for (what,) in rows.fetchall()]
        found = search_trail(connection, TrailSearch(what="record kind"), most=9)
        return read, [entry.what for entry in found][::-1]


@pytest.mark.long(but=("recon_desk",))
@pytest.mark.parametrize("role", [READER, CONTROLLER, DESK, LOADER])
def test_how_a_kind_was_defined_is_read_by_an_account_of_some_tenants(
    workspace: Workspace, acting: As, role: str
) -> None:
    add(workspace, ANNA, TESSA)
    with workspace.database.connect() as connection:
        for what in EVENTS:
            add_event(connection, what, detail={"record": "refund"})
    user = acting(role)
    for account in (ANNA, TESSA):
        assert told(logged_in(user, account)) == (EVENTS, EVENTS)
    # Nobody's session sees what it saw, which is nothing but where it loads.
    assert told(user)[0] == (EVENTS if role == LOADER else [])
