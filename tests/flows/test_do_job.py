"""Jobs of the desk as runs: the flows below do the work, in the name of who asked."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import ReconError
from connectors.files.incoming.uploads import Upload, uploads_folder
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.jobs import find_job, order_again, order_job
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.jobs import JobKind
from tests.accounts.people import ADA, OTTO, add, logged_in
from tests.flows.test_import_batch import FAIL_ONCE, on_payment
from tests.flows.test_rerun_batch import RATES
from tests.stages.payments import HEADER, line, write


def ordered(place: Workspace, kind: JobKind, **arguments: Any) -> int:
    with place.database.connect() as connection:
        return order_job(connection, kind, arguments, None)


def test_a_job_runs_the_flow_that_does_it(
    workspace: Workspace, rows: Callable[..., list[tuple[Any, ...]]]
) -> None:
    from flows.do_job import do_job

    add(workspace, ADA, OTTO)
    upload = Upload.begin(workspace.settings)
    upload.open("a.csv")
    upload.write("\n".join((HEADER, line(1), line(2, amount="x"), "")).encode())
    upload.keep()
    otto = logged_in(workspace, OTTO)
    number = ordered(otto, JobKind.IMPORT, upload=upload.token)
    ended = do_job(number, return_state=True)
    assert (ended.type.value, ended.name) == ("COMPLETED", "CompletedWithErrors")
    with workspace.database.connect() as connection:
        job = find_job(connection, number)
        assert (job.exit_code, job.batches, bool(job.flow_run)) == (1, (1,), True)
        assert "1 of 2 rows carries HasError" in (job.said or "")
        stages = connection.execute(
            "SELECT by, detail FROM event WHERE batch_id = 1 AND what LIKE 'batch %'"
        ).fetchall()
    assert {by for by, _ in stages} == {"otto"}
    assert {json.loads(detail)["job"] for _, detail in stages} == {number}
    assert rows("SELECT count(*) FROM payment") == [(1,)]
    assert [*uploads_folder(workspace.settings).iterdir()] == []
    assert do_job(number, return_state=True).name == "Skipped", "it has ended"

    undo = ordered(otto, JobKind.UNDO, batch=1, reason="wrong")
    assert do_job(undo, return_state=True).name == "Completed"
    assert rows("SELECT by FROM event WHERE what = 'undo'") == [("otto",)]
    refused = ordered(otto, JobKind.RERUN, batch=1)
    failed = do_job(refused, return_state=True)
    assert (failed.type.value, "Batch 1 is undone" in failed.message) == ("FAILED", True)


@pytest.mark.long
def test_a_held_batch_is_released_and_its_next_run_is_one_of_the_flow(
    workspace: Workspace, rows: Callable[..., list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    from flows.do_job import do_job

    held = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    import_delivery(workspace, [held], replace(DEFAULT, budget_errors=0))
    ((event,),) = rows("SELECT id FROM event WHERE what = 'batch held'")
    number = ordered(workspace, JobKind.RELEASE, batch=1, reason="agreed", held=event)
    assert do_job(number, return_state=True).name == "CompletedWithErrors"
    assert rows("SELECT what FROM event WHERE what IN ('released', 'run began') ORDER BY id") == [
        ("released",), ("run began",)
    ]  # fmt: skip


@pytest.mark.long
def test_a_batch_is_read_from_the_start_once_for_a_job(
    workspace: Workspace,
    rows: Callable[..., list[tuple[Any, ...]]],
    tmp_path: Path,
    database_url: str,
) -> None:
    """It fails with half of the rows applied; ordered again, it goes on behind them."""
    from flows.do_job import do_job

    folder = tmp_path / "in"
    write(folder / "payments.csv", line(1))
    (folder / "currency_rates.csv").write_text(RATES)
    on_payment(database_url, FAIL_ONCE.replace("= 1", "IN (1, 3)"))
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "CREATE TRIGGER meddle BEFORE INSERT ON recon.currency_rate "
            "FOR EACH ROW EXECUTE FUNCTION recon.meddle()"
        )
    with pytest.raises(ReconError, match="on fire"):
        import_delivery(workspace, [str(folder)], DEFAULT)
    number = ordered(workspace, JobKind.RERUN, batch=1, from_start=True)
    assert do_job(number, return_state=True).name == "Failed"
    assert rows("SELECT count(*) FROM currency_rate") == [(1,)]
    with workspace.database.connect() as connection:
        order_again(connection, number, None)
    ended = do_job(number, return_state=True)
    assert ended.name == "Completed", ended.message
    assert rows("SELECT count(*) FROM payment") == [(1,)]
    assert rows("SELECT count(*) FROM event WHERE what = 'rewound'") == [(1,)]


@pytest.mark.long
def test_a_job_that_wants_somebody_ends_as_its_flow_does(
    workspace: Workspace, rows: Callable[..., list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    from flows.do_job import do_job
    from flows.ops.automations import ATTENTION

    def ends(number: int) -> tuple[str, str | None]:
        state = do_job(number, return_state=True)
        with workspace.database.connect() as connection:
            assert find_job(connection, number).exit_code == 1, "as the command ends"
        assert state.name in ATTENTION
        return state.type.value, state.name

    held = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    import_delivery(workspace, [held], replace(DEFAULT, budget_errors=0))
    assert ends(ordered(workspace, JobKind.RERUN, batch=1)) == ("FAILED", "Held")
    assert ends(ordered(workspace, JobKind.RECONCILE)) == ("FAILED", "Incomplete")
    ((event,),) = rows("SELECT max(id) FROM event WHERE what = 'batch held'")
    released = ordered(workspace, JobKind.RELEASE, batch=1, reason="agreed", held=event)
    assert do_job(released, return_state=True).name == "CompletedWithErrors"
    assert ends(ordered(workspace, JobKind.RECONCILE)) == ("COMPLETED", "Breaks")


@pytest.mark.long
def test_the_import_of_a_job_that_was_killed_is_told_as_crashed(
    workspace: Workspace,
    rows: Callable[..., list[tuple[Any, ...]]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The worker knows the run of the job alone, and calls its hooks; a later run below goes on."""
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed, Running
    from prefect.tasks import Task

    from flows.do_job import do_job
    from flows.import_batch import import_batch
    from flows.tasks import hooks

    emitted: list[dict[str, Any]] = []
    monkeypatch.setattr(hooks, "emit_event", lambda **event: emitted.append(event))
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    parameters = {"delivery": {"paths": ["a.csv"]}}
    with get_client(sync_client=True) as client:
        job = client.create_flow_run(do_job, parameters={"job": 1}, state=Running())

        def begin() -> Any:
            above = client.create_task_run(Task(import_batch.fn), job.id, str(len(begun)))
            return client.create_flow_run(
                import_batch,
                parameters=parameters,
                name="import a.csv",
                parent_task_run_id=above.id,
                state=Running(),
            )

        begun: list[Any] = []
        begun.append(begin())
        killed = Crashed()
        begun.append(begin())
        with workspace.database.connect() as connection:
            for one in begun:
                hooks.note_run(connection, 1, one)
        for hook in do_job.on_crashed_hooks:
            hook(do_job, job, killed)
        states = [client.read_flow_run(one.id).state_name for one in begun]
    assert states == ["Crashed", "Running"]
    said = "SELECT batch_id, detail::json ->> 'run' FROM event WHERE what = 'run crashed'"
    assert rows(said) == [(1, str(begun[0].id))]
    assert [(one["event"], one["payload"]["flow"]) for one in emitted] == [
        ("recon.batch.crashed", "import-batch")
    ]


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize("name", ["Cancelling", "Cancelled"])
def test_a_job_whose_import_was_cancelled_says_so(name: str) -> None:
    """On the page of the import, which its job goes on behind: that is no fault of the program."""
    from prefect import states

    from flows.do_job import _done

    done = _done(getattr(states, name)())
    assert (done.exit_code, done.held) == (2, False)
    assert "was cancelled" in done.message
    assert "start the job again" in done.message
