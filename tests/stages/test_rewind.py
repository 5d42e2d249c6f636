"""Read from the start: what was staged and judged is forgotten, and told again from the archive."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchHeldElsewhere, BatchStateError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.lease import EndedBatch, hold_batch
from connectors.postgres.batches.ledger import State
from flows.stages.rewind import rewind_batch
from flows.stages.sequence import discard_batch, import_delivery, release_batch, run_batch
from flows.stages.workspace import Workspace
from tests.recon import run
from tests.stages.payments import line, write

LINES = (line(1), line(1), line(2, amount="2"), line(2, amount="3"), line(3, amount="x"), line(4))


@pytest.fixture
def held(workspace: Workspace, tmp_path: Path) -> int:
    path = write(tmp_path / "a.csv", *LINES)
    return import_delivery(workspace, [path], replace(DEFAULT, budget_errors=0)).batch.id


def told(rows: Any) -> list[Any]:
    return [
        rows("SELECT record_number, state, error_data FROM staged_row ORDER BY 1"),
        rows("SELECT stage, chunk, counts, totals FROM receipt ORDER BY 1, 2"),
        rows("SELECT code, value, rows FROM note ORDER BY 1, 2"),
        rows("SELECT state, held_because FROM batch"),
    ]


@pytest.mark.long
def test_what_is_told_again_is_what_was_told(workspace: Workspace, rows: Any, held: int) -> None:
    before = told(rows)
    rewind_batch(workspace, held)
    assert rows("SELECT state FROM batch") == [("received",)]
    for table in ("staged_payment", "outcome", "receipt", "note"):
        assert rows(f"SELECT count(*) FROM {table}") == [(0,)]
    run_batch(workspace, held)
    assert told(rows) == before
    release_batch(workspace, held, by=None, reason="test")
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (4,)]


@pytest.mark.long
def test_only_while_nothing_is_applied_and_nobody_else_works_on_it(
    workspace: Workspace, rows: Any, held: int
) -> None:
    with (
        workspace.database.connect() as connection,
        hold_batch(connection, held),
        pytest.raises(BatchHeldElsewhere),
    ):
        rewind_batch(workspace, held)
    release_batch(workspace, held, by=None, reason="test")
    before = told(rows)
    with pytest.raises(BatchStateError, match="rows of it are in the database"):
        rewind_batch(workspace, held)
    assert told(rows) == before


def test_a_batch_without_a_record_has_ended_all_the_same(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(3, amount="x"))
    batch = import_delivery(workspace, [path], DEFAULT).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    with pytest.raises(BatchStateError, match="none of its rows became a record"):
        rewind_batch(workspace, batch.id)


@pytest.mark.long
def test_a_discarded_batch_is_not_read_again(workspace: Workspace, held: int) -> None:
    discard_batch(workspace, held, by=None, reason="test")
    with pytest.raises(BatchStateError, match="Import its files again"):
        rewind_batch(workspace, held)


@pytest.mark.long
def test_killed_in_the_middle_nothing_was_forgotten(
    workspace: Workspace, database_url: str, rows: Any, held: int
) -> None:
    before = told(rows)
    home = workspace.settings.home

    def rerun(crash_at: str) -> int:
        asked = ("rerun", str(held), "--from-start")
        return run(database_url, home, *asked, CRASH_AT=crash_at).returncode

    assert rerun("rewind") == -signal.SIGKILL
    assert told(rows) == before
    assert rerun("chunk") == -signal.SIGKILL
    assert rows("SELECT state FROM batch") == [(State.RECEIVED,)]
    assert rerun("") == 1
    assert told(rows) == before


@pytest.mark.long
def test_what_has_ended_is_read_without_a_hold_and_never_written(
    workspace: Workspace, rows: Any, held: int
) -> None:
    release_batch(workspace, held, by=None, reason="test")
    before = told(rows)
    with workspace.database.connect() as connection:
        ended = EndedBatch(connection, held)
        with pytest.raises(BatchStateError, match="has ended"):
            ended.set_state(State.RECEIVED)
    assert told(rows) == before
