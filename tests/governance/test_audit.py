"""The audit trail: chained by the database, proven by our own arithmetic, never changed."""

import threading
from typing import Any

import psycopg
import pytest

from connectors.errors import ReconError
from connectors.postgres.accounts import Account, keep_account
from connectors.postgres.auditing.audit import list_events, verify
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.batches.ledger import State, add_batch
from connectors.postgres.database import Database
from connectors.postgres.trail import add_event
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from schemas.guards.trail_rules import APPEND_ONLY, GENESIS, TRIGGERS
from schemas.ledger import LEDGER
from tests.governance.runs import found, reconcile, tamper

ODD = 'quote " backslash \\ newline \n tab \t bell \x07 delete \x7f \u2028 \U0001f4b6 ü'


def write(database: Database, *names: str) -> None:
    with database.connect() as connection:
        for name in names:
            add_event(connection, name, by="ann")


def test_an_empty_trail_holds(database: Database) -> None:
    with database.connect() as connection:
        proof = verify(connection)
        assert (proof.events, proof.head, proof.broken) == (0, GENESIS, None)
        add_event(connection, "first")
        assert verify(connection, proof.head).broken is None


def test_every_event_is_a_link_whatever_it_says(workspace: Workspace, rows: Any) -> None:
    """The database writes the hash and we compute it: odd characters must not tell them apart."""
    with workspace.database.connect() as connection:
        add_event(connection, "plain")
        add_event(
            connection, "odd", batch_id=2**31 - 1, by=ODD, reason=ODD, detail={ODD: [ODD, 1.5]}
        )
        add_event(connection, "empty", by="ann", reason="")
        proof = verify(connection)
        newest, *_ = list_events(connection, 10)
    assert (proof.events, proof.broken) == (3, None)
    assert rows("SELECT position FROM event_chain ORDER BY 1") == [(1,), (2,), (3,)]
    assert (newest.position, newest.hash, newest.by) == (3, proof.head, "ann")


def test_links_are_made_on_commit_and_not_before(database: Database) -> None:
    with database.connect() as connection:
        with connection.transaction():
            first = add_event(connection, "first")
            with connection.transaction() as inner:
                add_event(connection, "taken back")
                raise psycopg.Rollback(inner)
            assert connection.execute("SELECT count(*) FROM event_chain").fetchone() == (0,)
        links = connection.execute("SELECT position, event_id FROM event_chain").fetchall()
    assert links == [(1, first)]


def test_nobody_waits_for_anothers_work_to_write_an_event(database: Database) -> None:
    """A run that has told its event and works on holds nothing that another run needs."""
    with database.connect() as slow, database.connect() as quick:
        quick.execute("SET lock_timeout = '1s'")
        with slow.transaction():
            add_event(slow, "slow began")
            add_event(quick, "quick")
            assert [one.what for one in list_events(quick, 9)] == ["quick"]
        assert [one.what for one in list_events(quick, 9)] == ["quick", "slow began"]
        assert verify(quick).broken is None


@pytest.mark.long
def test_many_runs_write_one_chain_and_none_blocks_another(database: Database) -> None:
    writers, each = 12, 15
    failures: list[Exception] = []
    ready = threading.Barrier(writers)

    def run(number: int) -> None:
        try:
            with database.connect() as connection:
                batch = add_batch(
                    connection, content_id=str(number), feed="f", profile="{}", corrects=None
                )
                ready.wait(timeout=30)
                with hold_batch(connection, batch) as lease:
                    for turn in range(each):
                        with lease.transaction():
                            add_event(connection, f"{number} {turn} begins", batch_id=batch)
                            lease.set_state(State.STAGED)
        except (ReconError, psycopg.Error, threading.BrokenBarrierError) as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=[number]) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with database.connect() as connection:
        proof = verify(connection)
        positions = connection.execute(
            "SELECT count(*), min(position), max(position) FROM event_chain"
        ).fetchone()
    assert (proof.events, proof.broken) == (writers * each * 2, None)
    assert positions == (writers * each * 2, 1, writers * each * 2)


@pytest.mark.parametrize(
    "change", ["UPDATE {0} SET {1} = {1}", "DELETE FROM {0}", "TRUNCATE {0} CASCADE"]
)
def test_what_is_written_stays(database: Database, change: str) -> None:
    with database.connect() as connection:
        add_event(connection, "there")
        for table in APPEND_ONLY:
            column = next(iter(LEDGER[table])).name
            told = f"{table} is only ever added"
            with pytest.raises(psycopg.errors.RestrictViolation, match=told):
                connection.execute(change.format(table, column))
        assert verify(connection).events == 1


TAMPERED = [
    # what is done to the events first, second, third; events that still hold; what is told
    (
        "event",
        "UPDATE event SET by = 'bo' WHERE what = 'second'",
        1,
        "link 2: event 2 (second) was",
    ),
    ("event", "UPDATE event SET at = at + interval '1 us' WHERE id = 1", 0, "link 1: event 1"),
    ("event", "DELETE FROM event WHERE what = 'second'", 1, "link 2: its event 2 was removed"),
    ("event_chain", "DELETE FROM event_chain WHERE position = 2", 1, "link 2 is missing"),
    ("event_chain", "DELETE FROM event_chain WHERE position = 1", 0, "link 1 is missing"),
    (
        "event_chain",
        "UPDATE event_chain SET previous_hash = 'x' WHERE position = 3",
        2,
        "link 3 (event 3) does not follow",
    ),
    ("event_chain", "UPDATE event_chain SET hash = 'x' WHERE position = 3", 2, "link 3: event 3"),
    (
        "event",
        "INSERT INTO event (at, what, by) VALUES (now(), 'slipped in', 'mallory')",
        3,
        "event 4 (slipped in) is not in the chain",
    ),
]


@pytest.mark.parametrize(("table", "statement", "holding", "told"), TAMPERED)
def test_the_first_broken_link_is_named(
    workspace: Workspace, table: str, statement: str, holding: int, told: str
) -> None:
    write(workspace.database, "first", "second", "third")
    tamper(workspace, table, statement)
    with workspace.database.connect() as connection:
        proof = verify(connection)
    assert proof.events == holding
    assert proof.broken is not None
    assert told in proof.broken


def test_a_trail_that_was_cut_off_is_found_by_a_hash_noted_before(workspace: Workspace) -> None:
    write(workspace.database, "first", "second")
    with workspace.database.connect() as connection:
        noted = verify(connection).head
    write(workspace.database, "third")
    with workspace.database.connect() as connection:
        assert verify(connection, noted).broken is None
    tamper(workspace, "event_chain", "DELETE FROM event_chain WHERE position > 1")
    tamper(workspace, "event", "DELETE FROM event WHERE id > 1")
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
        assert "no link has the hash" in (verify(connection, noted).broken or "")


def test_events_of_a_time_before_accounts_are_the_beginning_of_the_chain(
    workspace: Workspace,
) -> None:
    """Databases of earlier versions have such; nothing else is taken in afterwards."""
    tamper(
        workspace,
        "event",
        "INSERT INTO event (at, what, by) "
        "SELECT now(), g::text, 'ann' FROM generate_series(1, 20) g",
    )
    with workspace.database.connect() as connection:
        connection.execute("SELECT chain_event(id) FROM (SELECT id FROM event ORDER BY id) e")
        proof = verify(connection)
    assert (proof.events, proof.broken) == (20, None)
    write(workspace.database, "of this version")
    with workspace.database.connect() as connection:
        proof = verify(connection)
        assert (proof.events, proof.broken) == (21, None)
        assert [one.account for one in list_events(connection, 2)] == ["postgres", None]
    tamper(workspace, "event", "INSERT INTO event (at, what, by) VALUES (now(), 'in', 'mallory')")
    with workspace.database.connect() as connection:
        for statement in TRIGGERS:
            connection.execute(statement)
        assert "is not in the chain" in (verify(connection).broken or "")


def test_a_snapshot_that_is_too_old_forks_no_chain(database: Database) -> None:
    """Two links on one position cannot be: the later one fails as a whole."""
    with database.connect() as old, database.connect() as connection:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.autocommit = False
        with pytest.raises(psycopg.Error, match="this one is REPEATABLE READ"):
            add_event(old, "old")
        old.rollback()
        # As its owner alone can.
        old.execute("INSERT INTO event (at, what, by) VALUES (now(), 'old', 'ann')")
        add_event(connection, "new")
        with pytest.raises(psycopg.errors.UniqueViolation):
            old.commit()
        assert verify(connection).events == 1
        assert [one.what for one in list_events(connection, 10)] == ["new"]


def test_an_event_that_names_no_account_was_not_written_by_the_trail(database: Database) -> None:
    """The owner can do it, as the owner can do anything; it shows."""
    write(database, "first")
    with database.connect() as connection:
        connection.execute("INSERT INTO event (at, what, by) VALUES (now(), 'second', 'ann')")
        assert "event 2 (second) names no account" in (verify(connection).broken or "")


def test_who_wrote_an_event_is_covered_by_its_link(workspace: Workspace) -> None:
    write(workspace.database, "first", "second")
    tamper(workspace, "event", "UPDATE event SET account = 'ann' WHERE id = 1")
    with workspace.database.connect() as connection:
        assert "link 1: event 1 (first) was changed" in (verify(connection).broken or "")


@pytest.mark.long
def test_a_session_that_keeps_the_chain_keeps_nobody_from_working(database: Database) -> None:
    with database.connect() as jam, database.connect() as other:
        with jam.transaction():
            add_event(jam, "jam")
            jam.execute("SET CONSTRAINTS ALL IMMEDIATE")
            add_event(other, "work goes on")
            broken = verify(other).broken or ""
            assert "(work goes on) waits for its link" in broken
        assert verify(other).events == 2
        assert [one.what for one in list_events(other, 9)] == ["work goes on", "jam"]
        add_event(other, "next")
        assert (verify(other).events, verify(other).broken) == (3, None)


def test_the_list_is_the_latest_first_and_can_be_searched(database: Database) -> None:
    write(database, "batch noted", "batch looked at", "undo")
    with database.connect() as connection:
        assert [one.what for one in list_events(connection, 2)] == ["undo", "batch looked at"]
        assert [one.what for one in list_events(connection, 9, what="batch")] == [
            "batch looked at",
            "batch noted",
        ]


def test_all_that_does_not_hold_is_told(workspace: Workspace) -> None:
    """Whatever one check finds, the others look."""
    write(workspace.database, "first")
    with workspace.database.connect() as connection:
        keep_account(connection, Account("ann", "Ann", (AccountRole.VIEWER,)))
        for number in (1, 2):
            add_batch(connection, content_id=str(number), feed="f", profile="{}", corrects=None)
    for _ in range(3):
        reconcile(workspace, found("1"))
    tamper(workspace, "reconciliation", "UPDATE reconciliation SET previous_id = 1 WHERE id = 3")
    tamper(workspace, "batch", "UPDATE batch SET state = 'merged'")
    tamper(workspace, "account", "UPDATE account SET roles = 'administrator'")
    with workspace.database.connect() as connection:
        told = str(verify(connection, "0" * 63 + "1").broken)
    for fault in (
        "no link has the hash",
        "reconciliation 3 is behind reconciliation 1, and so is reconciliation 2",
        "reconciliation 3 is not what",
        "batch 1 is merged",
        "batch 2 is merged",
        "the account 'ann' is not what",
    ):
        assert fault in told


def test_a_run_that_was_made_one_of_other_tenants_is_told(workspace: Workspace) -> None:
    """Its scope decides who sees the run, and who is mailed it."""
    reconcile(workspace, found())
    tamper(workspace, "reconciliation", "UPDATE reconciliation SET scope = 'tenants 8'")
    with workspace.database.connect() as connection:
        assert "the scope of reconciliation 1 is not" in str(verify(connection).broken)
