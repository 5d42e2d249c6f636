"""The flows `batch-board` and `housekeeping`: their artifacts and their states."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.flows.runs import DeployedRun, artifact, run
from tests.stages.payments import HEADER, line, write

pytestmark = pytest.mark.flows

NO_ERRORS = replace(DEFAULT, budget_errors=0)


def board(**terms: Any) -> Any:
    from flows.batch_board import batch_board

    return batch_board(return_state=True, **terms)


@pytest.mark.long
def test_the_board_lists_batches_with_their_next_step(tmp_path: Path, workspace: Workspace) -> None:
    assert board().message == "0 batches, 0 held, 0 with a next step"
    assert artifact("batches").table[0]["Batch"] == "none"
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    import_delivery(workspace, [write(tmp_path / "b.csv", line(2), line(3, amount="x"))], DEFAULT)
    import_delivery(workspace, [write(tmp_path / "c.csv", line(4, amount="y"))], NO_ERRORS)
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET feed = '[x](javascript:1)|b' WHERE id = 1")
    state = board()
    assert state.message == "3 batches, 1 held, 2 with a next step"
    table = artifact("batches").table
    shown = [(one["Batch"], one["State"], one["Rows"], one["Errors"], one["Next"]) for one in table]
    assert shown == [
        ("3", "held", "1", "1", "recon release 3 --reason ..., or recon discard 3 --reason ..."),
        ("2", "complete with errors", "2", "1", "recon rejects 2 --out FOLDER"),
        ("1", "complete", "1", "0", ""),
    ]
    assert table[2]["Feed"] == r"\[x\]\(javascript:1\)\|b"
    assert "1 of 1 row has errors" in table[0]["Held because"]
    assert len(table[0]) == 8
    repair = tmp_path / "repair.csv"
    repair.write_text(f"ReconRow,{HEADER}\n2:2,{line(3)}\n")
    import_delivery(workspace, [str(repair)], DEFAULT, corrects=2)
    board()
    corrected = artifact("batches").table[2]
    assert (corrected["Errors"], corrected["Next"]) == ("0", "its reject repaired by batch 4")


@pytest.mark.long
def test_the_board_shows_old_batches_while_they_wait_and_200_at_most(
    tmp_path: Path, workspace: Workspace
) -> None:
    import_delivery(workspace, [write(tmp_path / "c.csv", line(4, amount="y"))], NO_ERRORS)
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET opened_at = now() - interval '30 days'")
    assert board(days=14).message.startswith("1 batch, 1 held")
    with workspace.database.connect() as connection:
        connection.execute(
            "INSERT INTO batch (content_id, feed, profile, state, opened_at, lease_epoch) "
            "SELECT 'x', 'f', '{}', 'complete', now(), 0 FROM generate_series(1, 300)"
        )
    assert board().message.startswith("the latest 200 batches, 0 held")
    assert len(artifact("batches").table) == 200
    assert artifact("batches").table[0]["Batch"] == "302"


@pytest.mark.long
def test_of_several_runs_that_wait_the_first_writes_the_board() -> None:
    from flows.batch_board import batch_board

    runs = [DeployedRun(batch_board) for _ in range(3)]
    assert [one.work().name for one in runs] == ["Completed", "Skipped", "Skipped"]
    told = f"Run {runs[0].id} began when this one was due, and has done the same."
    assert str(runs[2].state.message).startswith(told)
    runs[2].retry()
    assert runs[2].work().name == "Completed"


@pytest.mark.long
def test_housekeeping_counts_first_and_removes_when_told(
    tmp_path: Path, workspace: Workspace, prefect_home: Path
) -> None:
    from flows.housekeeping import housekeeping

    run(write(tmp_path / "a.csv", line(1)))
    home = workspace.settings.home
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET ended_at = '2020-01-01'")
    (content,) = home.glob("archive/??/*.csv")
    os.utime(content, (1, 1))
    kept = sorted((prefect_home / "storage" / "recon").rglob("*"))
    missing = housekeeping(inbox=str(tmp_path / "typo"), return_state=True)
    assert (missing.name, "no such inbox" in missing.message) == ("Failed", True)
    itself = housekeeping(inbox=str(home), return_state=True)
    assert (itself.name, "is RECON_HOME itself" in itself.message) == ("Failed", True)
    dry = housekeeping(return_state=True)
    assert dry.name == "Completed"
    assert dry.message.startswith("1 item, ")
    assert "would be removed" in dry.message
    assert content.exists()
    assert housekeeping(dry_run=False, return_state=True).message.endswith("bytes removed")
    assert not content.exists()
    assert sorted((prefect_home / "storage" / "recon").rglob("*")) == kept
    lines = {row["What"]: row["Number"] for row in json.loads(artifact("housekeeping").data)}
    assert lines == {
        "archived contents": "1",
        "deliveries of the inbox": "0",
        "batch reports": "0",
        "results of runs": "0",
    }
    with workspace.database.connect() as connection:
        ((key,),) = connection.execute("SELECT content_id FROM batch").fetchall()
    # With the name that it has while it is removed, it is too long for a file system.
    stays = home / "inbox" / "archive" / key[:2] / f"{key}-{'1' * 186}"
    stays.mkdir(parents=True)
    os.utime(stays, (1, 1))
    failed = housekeeping(dry_run=False, return_state=True)
    assert failed.name == "Failed"
    assert "removed. 1 item could not be looked at or removed" in failed.message


@pytest.mark.parametrize("terms", [{"archive_days": 0}, {"result_days": 7}])
def test_what_a_run_may_still_need_cannot_be_asked_away(terms: dict[str, int]) -> None:
    from prefect.exceptions import ParameterTypeError

    from flows.housekeeping import housekeeping

    with pytest.raises(ParameterTypeError):
        housekeeping.validate_parameters(terms)
