"""What a desk keeps in memory is what who asked was let see, and is whole, or is not kept."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from connectors.errors import LoginRefused, ReconError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.accounts import log_out
from connectors.postgres.batches.ledger import find_batch
from connectors.postgres.batches.overview import list_overview
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.desk.kept import Kept
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.batch_report import BatchReport
from schemas.guards.roles import DESK
from tests.accounts.people import ANNA, TESSA, add, logged_in
from tests.governance.runs import found, reconcile
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line, write

Read = Callable[[Kept, Workspace, psycopg.Connection, Reconciliation], object]
READ: dict[str, Read] = {
    "breaks": lambda kept, *asked: kept.breaks(*asked).height,
    "review": lambda kept, *asked: kept.review(*asked).count("open"),
}


def report_of(
    kept: Kept, place: Workspace, connection: psycopg.Connection, seen: psycopg.Connection
) -> BatchReport | None:
    """The report of batch 1, whose line was read by a connection that sees it."""
    (line,) = list_overview(seen, 1, only=1)
    return kept.batch_report(place, connection, find_batch(seen, 1), line)


@pytest.fixture
def run(workspace: Workspace) -> Reconciliation:
    done = reconcile(workspace, found("1", "2"), scope="tenants 7")
    add(workspace, ANNA, TESSA)
    return done


@pytest.mark.long
@pytest.mark.parametrize("what", READ)
def test_a_login_that_ends_while_a_page_is_read_leaves_nothing_for_others(
    workspace: Workspace, run: Reconciliation, acting: As, what: str
) -> None:
    kept, user = Kept(), acting(DESK)
    gone, there = logged_in(user, ANNA), logged_in(user, TESSA)
    with gone.database.connect() as connection:
        with gone.database.connect() as other_tab:
            log_out(other_tab)
        with pytest.raises(LoginRefused, match="login has ended"):
            READ[what](kept, gone, connection, run)
    with there.database.connect() as connection:
        assert READ[what](kept, there, connection, run) == 2


def test_nor_does_it_leave_a_batch_without_rows(
    workspace: Workspace, run: Reconciliation, acting: As, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2))
    import_delivery(workspace, [path], replace(DEFAULT, tenant=7))
    kept, gone = Kept(), logged_in(acting(DESK), ANNA)
    with gone.database.connect() as connection, workspace.database.connect() as owner:
        with gone.database.connect() as other_tab:
            log_out(other_tab)
        with pytest.raises(ReconError):
            report_of(kept, gone, connection, owner)
        assert report_of(kept, workspace, owner, owner) is not None


@pytest.mark.long
def test_what_is_accepted_is_kept_for_those_who_see_as_much(
    workspace: Workspace, run: Reconciliation, acting: As
) -> None:
    kept, user = Kept(), acting(DESK)
    both = replace(TESSA, name="both", tenants=(7, 8))
    add(workspace, both)
    told = []
    for account in (TESSA, ANNA, both, TESSA, ANNA, both):
        place = logged_in(user, account)
        with place.database.connect() as connection:
            told.append(kept.changes(place, connection, run))
    assert len({*map(id, told)}) == 3
    assert all(first is again for first, again in zip(told[:3], told[3:], strict=True))
