"""A run that is begun again, by Retry or by an answer: on its own batch, by what was seen of it.

The runs belong to deployments and are carried out here, as a worker does it.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.trail import add_event
from flows.stages.rewind import rewind_batch
from flows.stages.sequence import discard_batch, import_delivery, release_batch, run_batch
from flows.stages.workspace import Workspace
from tests.conftest import Databases
from tests.flows.runs import DeployedRun, imported
from tests.flows.test_approval import DISCARD, RELEASE, decisions
from tests.flows.test_import_batch import FAIL_ONCE, on_payment
from tests.flows.test_rerun_batch import RATES
from tests.stages.payments import line, write

pytestmark = pytest.mark.flows

OVER_BUDGET = replace(DEFAULT, budget_errors=0)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(tmp_path / "a.csv", line(1), line(2, amount="x"))


@pytest.fixture
def restored(
    databases: Databases, database_url: str, workspace: Workspace, tmp_path: Path
) -> Callable[..., None]:
    """Restore the database as it was before the test, and let others deliver afterwards.

    The reports are lost too: otherwise no number would be given again.
    """
    kept = databases.keep(database_url)

    def restore(*, others: int = 1) -> None:
        databases.restore(database_url, kept)
        shutil.rmtree(workspace.settings.reports, ignore_errors=True)
        for number in range(others):
            other = write(tmp_path / f"other{number}.csv", line(8 + number), line(9, amount="x"))
            import_delivery(workspace, [other], OVER_BUDGET)

    return restore


def rerun(batch_id: int, **terms: Any) -> DeployedRun:
    from flows.rerun_batch import rerun_batch

    return DeployedRun(rerun_batch, batch_id=batch_id, **terms)


@pytest.mark.long
@pytest.mark.parametrize("others", [0, 1])
def test_a_run_of_before_a_restore_receives_its_own_delivery_anew_and_asks_about_that(
    path: str, rows: Any, restored: Callable[..., None], others: int
) -> None:
    waiting = imported(path, max_errors=0)
    assert waiting.work().name == "Suspended"
    restored(others=others)
    waiting.answer(RELEASE)
    assert waiting.work().name == "Suspended"
    assert decisions(rows) == []
    assert rows("SELECT batch_id, name FROM extract ORDER BY 1") == [
        *((1, "other0.csv") for _ in range(others)),
        (1 + others, "a.csv"),
    ]
    waiting.answer(RELEASE)
    assert waiting.work().name == "CompletedWithErrors"
    assert rows('SELECT "Id" FROM payment') == [(1,)]
    assert [batch for batch, *_ in decisions(rows)] == [1 + others]


@pytest.mark.long
def test_a_retry_after_a_restore_works_on_its_own_delivery(
    path: str, rows: Any, restored: Callable[..., None], database_url: str
) -> None:
    on_payment(database_url, FAIL_ONCE)
    failed = imported(path)
    assert failed.work().name == "Failed"
    restored()
    failed.retry()
    assert failed.work().name == "CompletedWithErrors"
    assert rows("SELECT id, state FROM batch ORDER BY id") == [
        (1, "held"),
        (2, "complete_with_errors"),
    ]
    assert rows('SELECT "Id" FROM payment') == [(1,)]


def numbered(flow: str) -> DeployedRun:
    """A run about batch 1 that fails before it does anything."""
    from flows.push_batch import push_batch
    from flows.resolve import resolve

    match flow:
        case "rerun":
            return rerun(1, only="failed rows", corrected_file="/nowhere.csv")
        case "push":
            return DeployedRun(push_batch, batch_id=1)
        case "resolve":
            said = {"decision": "abandon", "reason": "lost", "by": "ann", "all_rows": True}
            return DeployedRun(resolve, batch_id=1, **said)
        case _:
            return imported("/nowhere.csv", corrects=1)


@pytest.mark.long
@pytest.mark.parametrize("flow", ["rerun", "push", "resolve", "correct"])
def test_a_number_that_a_run_was_asked_for_is_no_other_batch_after_a_restore(
    path: str, workspace: Workspace, restored: Callable[..., None], flow: str
) -> None:
    import_delivery(workspace, [path], DEFAULT)
    asked = numbered(flow)
    first = asked.work()
    asked.retry()
    again = asked.work()
    assert (first.name, again.message) == ("Failed", first.message)
    restored()
    asked.retry()
    assert "the database was restored in between. Nothing was done." in asked.work().message


def test_a_rerun_from_the_start_that_waited_reads_once_and_does_what_was_answered(
    path: str, rows: Any, workspace: Workspace
) -> None:
    import_delivery(workspace, [path], OVER_BUDGET)
    waiting = rerun(1, from_stage="stage")
    assert waiting.work().name == "Suspended"
    waiting.answer(RELEASE)
    assert waiting.work().name == "CompletedWithErrors"
    told = rows(
        "SELECT what FROM event WHERE what IN ('rewound', 'batch held', 'released') ORDER BY id"
    )
    assert [what for (what,) in told] == ["batch held", "rewound", "batch held", "released"]


@pytest.mark.long
def test_an_answer_about_one_reading_of_a_batch_is_none_about_the_next(
    path: str, rows: Any, workspace: Workspace
) -> None:
    waiting = imported(path, max_errors=0)
    assert waiting.work().name == "Suspended"
    rewind_batch(workspace, 1)
    run_batch(workspace, 1)
    waiting.answer(RELEASE)
    assert waiting.work().name == "Suspended"
    assert decisions(rows) == []
    waiting.answer(DISCARD)
    assert waiting.work().name == "Rejected"
    assert [one[1:3] for one in decisions(rows)] == [("discarded", "A. Meyer")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("settle", "name"), [(release_batch, "CompletedWithErrors"), (discard_batch, "Rejected")]
)
@pytest.mark.parametrize("from_stage", ["stage", "where it stopped"])
def test_what_was_decided_while_a_rerun_waits_stands(
    path: str, rows: Any, workspace: Workspace, settle: Any, name: str, from_stage: str
) -> None:
    import_delivery(workspace, [path], OVER_BUDGET)
    waiting = rerun(1, from_stage=from_stage)
    assert waiting.work().name == "Suspended"
    settle(workspace, 1, by="B. Roth", reason="by telephone")
    waiting.answer(RELEASE if name == "Rejected" else DISCARD)
    assert waiting.work().name == name
    assert [one[2:] for one in decisions(rows)] == [("B. Roth", "by telephone")]


@pytest.mark.long
def test_a_retried_import_that_waits_again_keeps_to_what_was_decided_meanwhile(
    path: str, rows: Any, workspace: Workspace
) -> None:
    """A Retry is asked anew, and what was decided while that waits stands as well."""
    import_delivery(workspace, [path], OVER_BUDGET)
    asked = imported(path, max_errors=0)
    assert asked.work().name == "Suspended"
    (kept,) = workspace.settings.archive.glob("??/*.csv")
    delivered = kept.read_bytes()
    kept.write_bytes(delivered.replace(b"10.50", b"99.50"))
    asked.answer(RELEASE)
    assert asked.work().name == "Failed"
    kept.write_bytes(delivered)
    asked.retry()
    assert asked.work().name == "Suspended"
    discard_batch(workspace, 1, by="B. Roth", reason="by telephone")
    asked.answer(RELEASE)
    assert asked.work().name == "Rejected"
    assert rows("SELECT state FROM batch") == [("discarded",)]


@pytest.mark.long
def test_what_an_earlier_version_asked_is_not_asked_once_more(
    path: str, workspace: Workspace
) -> None:
    """It told of its question without the hold that the question is about."""
    import_delivery(workspace, [path], OVER_BUDGET)
    waiting = imported(path)
    detail = {"run": str(waiting.id), "attempt": 1}
    with workspace.database.connect() as connection:
        add_event(connection, "run held", batch_id=1, detail=detail)
    assert waiting.work().state_details.pause_key == "approval-1-1"
    waiting.answer(RELEASE)
    assert waiting.work().name == "CompletedWithErrors"


@pytest.mark.long
def test_a_rerun_from_the_start_that_failed_half_way_goes_on_behind_what_is_applied(
    tmp_path: Path, rows: Any, workspace: Workspace, database_url: str
) -> None:
    folder = tmp_path / "in"
    write(folder / "payments.csv", line(1), line(2, amount="x"))
    (folder / "currency_rates.csv").write_text(RATES)
    import_delivery(workspace, [str(folder)], OVER_BUDGET)
    on_payment(database_url, FAIL_ONCE)
    asked = rerun(1, from_stage="stage", over_budget="release")
    assert asked.work().name == "Failed"
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM recon.currency_rate").fetchone() == (1,)
    asked.retry()
    assert asked.work().name == "CompletedWithErrors"
    assert rows('SELECT "Id" FROM payment') == [(1,)]
    assert rows("SELECT count(*) FROM event WHERE what = 'rewound'") == [(1,)]
