"""One content from several rows: whatever happens between them, it is posted once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.push.plan import plan_sends, settle_duplicates
from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.receiving.batch_service import ask_for_service
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from schemas.operations import PUSHES
from schemas.tables import MESSAGE_TONE
from tests.push.conftest import deliver, towards
from tests.push.deliveries import applied, claimed, tones
from tests.service.faulty_server import DROPPED, FaultyServer, at


def test_what_was_on_its_way_when_its_run_died_is_not_posted_after_an_undo(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        path = tones(tmp_path / "a.csv", 3)
        import_delivery(place, [path], DEFAULT)
        with claimed(place, MESSAGE_TONE, 1):
            pass
        undo_batch(place, 1, by=None, reason="wrong month")
        deliver(place, path)
        assert sent(1)[1] == "in_doubt"
        assert sent(2) == {1: "in_doubt", 2: "acknowledged", 3: "acknowledged"}
        assert sorted(applied(server)) == [2, 3]


@pytest.mark.long
def test_two_deliveries_at_once_post_a_record_once(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """The second one is applied while what the first has to send is not committed yet."""
    with FaultyServer() as server, ThreadPoolExecutor(1) as threads:
        place = towards(workspace, server.url)
        import_delivery(place, [tones(tmp_path / "a.csv", 2)], DEFAULT)
        with workspace.database.connect() as connection, hold_batch(connection, 1) as lease:
            ask_for_service(place, lease)
            with lease.transaction():
                plan_sends(lease, MESSAGE_TONE)
                second = threads.submit(deliver, place, tones(tmp_path / "b.csv", 3))
                while not (second.done() or _waits(rows)):
                    pass
            second.result()
        push_batch(place, 1)
        push_batch(place, 2)
        assert {row: len(bodies) for row, bodies in applied(server).items()} == {1: 1, 2: 1, 3: 1}
        assert rows("SELECT DISTINCT state FROM send") == [("acknowledged",)]


@pytest.mark.long
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_a_record_is_posted_once_whatever_isolation_a_database_is_set_to(
    workspace: Workspace, rows: Any, tmp_path: Path, isolation: str
) -> None:
    """Its writer is planned while it is not committed yet that the twin sends it."""
    with workspace.database.connect() as owner:
        owner.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}").format(
                sql.Identifier(owner.info.dbname), sql.Literal(isolation)
            )
        )
    with FaultyServer() as server, ThreadPoolExecutor(1) as threads:
        place = towards(workspace, server.url)
        for name, count in (("a.csv", 2), ("b.csv", 3)):
            import_delivery(place, [tones(tmp_path / name, count)], DEFAULT)
        with workspace.database.connect() as connection, hold_batch(connection, 2) as lease:
            ask_for_service(place, lease)
            with lease.transaction():
                plan_sends(lease, MESSAGE_TONE)
            with lease.transaction():
                settle_duplicates(connection, PUSHES["message_tone"], 2)
                first = threads.submit(push_batch, place, 1)
                while not (first.done() or _waits(rows)):
                    pass
        first.result()
        push_batch(place, 2)
        assert {row: len(bodies) for row, bodies in applied(server).items()} == {1: 1, 2: 1, 3: 1}


def _waits(rows: Any) -> bool:
    return bool(rows("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'relation'"))


@pytest.mark.long
@pytest.mark.parametrize(
    "order",
    [
        ("resend 1", "resend 2", "push 1", "push 2"),
        ("resend 2", "resend 1", "push 1", "push 2", "push 1"),
        ("resend 1", "push 1", "resend 2", "push 2"),
        ("resend 2", "push 2", "resend 1", "push 1"),
    ],
    ids=" ".join,
)
def test_what_is_resent_from_two_rows_is_posted_once(
    workspace: Workspace, rows: Any, tmp_path: Path, order: tuple[str, ...]
) -> None:
    with FaultyServer(at({1: DROPPED})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 1))
        deliver(place, tones(tmp_path / "b.csv", 2))
        assert rows("SELECT state FROM send WHERE record_number = 1") == [("in_doubt",)] * 2
        for step in order:
            what, batch = step.split()
            if what == "push":
                push_batch(place, int(batch))
            else:
                chosen = ChosenSends(states=("in_doubt",))
                resolve(place, int(batch), chosen, SendDecision.RESEND, by=None, reason="not there")
        assert {row: len(bodies) for row, bodies in applied(server).items()} == {1: 1, 2: 1}
        assert rows("SELECT DISTINCT state FROM send") == [("acknowledged",)]
