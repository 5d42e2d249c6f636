"""How runs end: names, types and messages; what the hooks leave behind."""

import inspect
from typing import Any

import pytest

from connectors.errors import BatchStateError
from connectors.postgres.batches.ledger import State
from tests.flows.runs import artifact, flow_run, run
from tests.flows.test_import_batch import on_payment
from tests.stages.payments import line, write

pytestmark = pytest.mark.flows

ENDS = [
    (State.COMPLETE, {"verdict": "complete"}, "COMPLETED", "Completed"),
    (State.COMPLETE, {"verdict": "complete", "known": "It is."}, "COMPLETED", "Completed"),
    (State.COMPLETE_WITH_ERRORS, {"errors": 1}, "COMPLETED", "CompletedWithErrors"),
    (State.COMPLETE_WITH_ERRORS, {"refused": 1}, "COMPLETED", "CompletedWithErrors"),
    # Every error was corrected since.
    (State.COMPLETE_WITH_ERRORS, {"verdict": "complete"}, "COMPLETED", "Completed"),
    (State.HELD, {"errors": 1, "held_because": "too many"}, "FAILED", "Held"),
    (State.DISCARDED, {"errors": 1}, "FAILED", "Rejected"),
]


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize(("state", "facts", "kind", "name"), ENDS)
def test_a_batch_ends_its_run_by_a_name_operators_can_filter_by(
    state: State, facts: dict[str, Any], kind: str, name: str
) -> None:
    from flows.tasks.batch import BatchStatus
    from flows.tasks.states import end_state

    end = end_state(BatchStatus(batch_id=3, state=state, rows={"inserted": 4}, **facts))
    assert (end.type.value, end.name) == (kind, name)
    assert "Batch 3: " in str(end.message)
    assert ("Next: " in str(end.message)) == (name in ("CompletedWithErrors", "Held"))
    # What asks again is another run: of a job, or of a batch that was discarded, a Retry does not.
    assert "Retry" not in str(end.message)


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize(
    ("known", "told"),
    [("recon push 3", "Next: recon push 3."), ("", "Next: read the report in /reports.")],
)
def test_the_message_names_the_next_step(known: str, told: str) -> None:
    from flows.tasks.batch import BatchStatus
    from flows.tasks.states import end_state

    batch = BatchStatus(
        batch_id=3,
        state=State.COMPLETE_WITH_ERRORS,
        rows={"inserted": 1},
        folder="/reports",
        next=known,
    )
    assert str(end_state(batch).message).endswith(told)


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize(
    ("files", "told"),
    [
        (["a.csv (too_large)"], "1 file refused: a.csv (too_large)"),
        (["a.csv (x)", "b.csv (y)"], "2 files refused, the first: a.csv (x)"),
    ],
)
def test_the_message_names_the_first_file_that_was_refused(files: list[str], told: str) -> None:
    from flows.tasks.batch import BatchStatus
    from flows.tasks.states import end_state

    refused = {"refused": len(files), "refused_first": files[0]}
    end = end_state(BatchStatus(batch_id=3, state=State.COMPLETE_WITH_ERRORS, **refused))
    assert str(end.message).startswith(f"Batch 3: 0 rows, no errors, {told}. Next: ")


TIES_NOT = "Payment PaidAmount: 5.00 in currency 978 unexplained"
VERDICTS = [
    # verdict, open breaks, why; the state, and what follows where the report is
    ("RECONCILED", 0, "", ("COMPLETED", "Completed"), ""),
    ("RECONCILED_WITH_ACCEPTED", 0, "1 break is accepted", ("COMPLETED", "Completed"), ""),
    ("NOT_RECONCILED", 2, "2 open breaks", ("COMPLETED", "Breaks"),
     " 2 open breaks. Next: recon breaks list --run 3."),
    # No break says what to settle: why the run does not reconcile does.
    ("NOT_RECONCILED", 0, TIES_NOT, ("COMPLETED", "Breaks"), f" {TIES_NOT}."),
    ("INCOMPLETE", 0, "no listing: pull it", ("FAILED", "Incomplete"), " no listing: pull it."),
    ("INCOMPLETE", 1, "no listing: pull it; 1 open break", ("FAILED", "Incomplete"),
     " no listing: pull it; 1 open break. Next: recon breaks list --run 3."),
]  # fmt: skip


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize(("verdict", "left", "because", "ends", "told"), VERDICTS)
def test_a_reconciliation_says_what_is_in_the_way_of_a_better_verdict(
    verdict: str, left: int, because: str, ends: tuple[str, str], told: str
) -> None:
    from flows.reconcile import ReconciliationEnd, end_state

    end = end_state(
        ReconciliationEnd(
            number=3, scope="everything", verdict=verdict, open_breaks=left, because=because,
            report_hash="", folder="/reports",
        )
    )  # fmt: skip
    assert (end.type.value, end.name) == ends
    assert str(end.message).partition(" Report: /reports.")[2] == told


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize("state", [one for one in State if one not in {end[0] for end in ENDS}])
def test_a_batch_at_no_end_fails_its_run(state: State) -> None:
    from flows.tasks.batch import BatchStatus
    from flows.tasks.states import end_state

    with pytest.raises(BatchStateError, match=r"recon rerun 3|Import its files again"):
        end_state(BatchStatus(batch_id=3, state=state))


@pytest.mark.usefixtures("no_database")
def test_every_flow_of_a_batch_has_the_hooks_as_a_worker_calls_them() -> None:
    from flows.import_batch import import_batch
    from flows.rerun_batch import rerun_batch
    from flows.tasks import hooks

    for flow in (import_batch, rerun_batch):
        assert [flow.on_completion_hooks, flow.on_failure_hooks] == [[hooks.on_end]] * 2
        assert flow.on_crashed_hooks == [hooks.on_crash]
        assert flow.on_cancellation_hooks == [hooks.on_cancellation]
    for hook in (hooks.on_end, hooks.on_crash, hooks.on_crash_above, hooks.on_cancellation):
        parameters = inspect.signature(hook).parameters
        assert list(parameters) == ["flow", "flow_run", "state"]


@pytest.mark.long
def test_the_end_of_a_run_is_in_the_audit_trail(tmp_path: Any, rows: Any) -> None:
    clean = run(write(tmp_path / "a.csv", line(1)))
    held = run(write(tmp_path / "b.csv", line(2, amount="x")), max_errors=0)
    told = rows(
        "SELECT batch_id, what, detail::json ->> 'run', detail::json ->> 'name' FROM event "
        "WHERE what LIKE 'run %%' ORDER BY id"
    )
    runs = [str(flow_run(state).id) for state in (clean, held)]
    assert told == [
        (1, "run began", runs[0], "import a.csv"),
        (1, "run completed", runs[0], "import a.csv"),
        (2, "run began", runs[1], "import b.csv"),
        (2, "run held", runs[1], "import b.csv"),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "terms", "told"),
    [
        ("a.csv", {}, ("recon.batch.completed", 1)),
        ("bad.csv", {}, ("recon.batch.completed_with_errors", 1)),
        ("bad.csv", {"max_errors": 0}, ("recon.batch.held", 1)),
        ("bad.csv", {"max_errors": 0, "over_budget": "discard"}, ("recon.batch.rejected", 1)),
        ("nowhere.csv", {}, ("recon.batch.failed", None)),
    ],
)
def test_the_end_of_a_run_is_an_event_with_its_batch(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, path: str, terms: Any, told: Any
) -> None:
    from flows.tasks import hooks

    emitted: list[dict[str, Any]] = []
    monkeypatch.setattr(hooks, "emit_event", lambda **event: emitted.append(event))
    write(tmp_path / "a.csv", line(1))
    write(tmp_path / "bad.csv", line(1, amount="x"))
    state = run(str(tmp_path / path), **terms)
    (event,) = emitted
    assert (event["event"], event["payload"]["batch_id"]) == told
    assert event["resource"]["prefect.resource.id"] == f"recon.batch.{told[1] or 'none'}"
    assert event["payload"]["run_id"] == str(state.state_details.flow_run_id)
    assert event["payload"]["state"] == state.name


@pytest.mark.long
def test_a_hook_never_raises_whatever_is_the_matter(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from flows.import_batch import import_batch
    from flows.tasks import hooks

    state = run(write(tmp_path / "a.csv", line(1)))
    ended = flow_run(state)
    monkeypatch.setenv("RECON_DATABASE_URL", "postgresql://nobody:canary@127.0.0.1:1/nowhere")

    def fail(**_event: Any) -> None:
        raise RuntimeError("canary")

    monkeypatch.setattr(hooks, "emit_event", fail)
    for hook in (hooks.on_end, hooks.on_cancellation):
        hook(import_batch, ended, state)
    assert caplog.text.count("not be added to the audit trail: DatabaseUnusable") == 2
    assert caplog.text.count("No event could be sent about the end of this run: RuntimeError") == 2
    assert "canary" not in caplog.text


@pytest.mark.usefixtures("no_database")
@pytest.mark.parametrize(
    ("unsent", "told"),
    [
        ({}, ""),
        ({3: 0}, ""),
        ({3: 1, 4: 0}, "1 row of batch 3 is unsent (`recon push 3`). "),
        (
            {3: 1400, 5: 2},
            "1,400 rows of batch 3 are unsent (`recon push 3`). "
            "2 rows of batch 5 are unsent (`recon push 5`). ",
        ),
    ],
)
def test_a_cancelled_run_says_what_is_unsent_and_the_way_on(
    unsent: dict[int, int], told: str
) -> None:
    from flows.tasks.hooks import way_on

    assert way_on(unsent) == f"{told}Retry goes on where this run stopped."


@pytest.mark.long
def test_a_run_that_was_cancelled_is_told_by_the_name_the_docs_give(
    tmp_path: Any, rows: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Prefect calls the hook while the run is still Cancelling."""
    from prefect.states import Cancelling

    from flows.import_batch import import_batch
    from flows.ops import automations
    from flows.tasks import hooks

    ended = flow_run(run(write(tmp_path / "a.csv", line(1))))
    emitted: list[dict[str, Any]] = []
    monkeypatch.setattr(hooks, "emit_event", lambda **event: emitted.append(event))
    hooks.on_cancellation(import_batch, ended, Cancelling())
    assert [(one["event"], one["payload"]["state"]) for one in emitted] == [
        ("recon.batch.cancelled", "Cancelled")
    ]
    assert "Retry goes on where this run stopped." in caplog.text
    assert rows("SELECT what FROM event WHERE what LIKE 'run c%%' ORDER BY id") == [
        ("run completed",),
        ("run cancelled",),
    ]
    assert {"held", "cancelled"} <= set(automations.BATCH_ENDS)


def test_a_cancelled_run_publishes_what_its_batch_comes_to(
    tmp_path: Any, database_url: str
) -> None:
    """It stopped in the middle, so nothing else tells of its batch."""
    from prefect.artifacts import Artifact
    from prefect.states import Cancelling

    from flows.import_batch import import_batch
    from flows.tasks import hooks

    run(write(tmp_path / "a.csv", line(1)))
    on_payment(database_url, "RAISE 'stopped here';")
    stopped = flow_run(run(write(tmp_path / "b.csv", line(2), line(3, amount="x"))))
    assert "2 rows read, 1 with errors" not in artifact("import-summary").data
    hooks.on_cancellation(import_batch, stopped, Cancelling())
    for key in ("import-summary", "batch-2"):
        told = Artifact.get(key)
        assert told is not None
        assert told.flow_run_id == stopped.id
        assert str(told.description).startswith(
            "Batch 2, checked, as a cancelled run left it. Retry goes on where this run stopped."
        )
        assert "2 rows read, 1 with errors" in str(told.data)


@pytest.mark.usefixtures("no_database")
def test_what_runs_of_earlier_versions_have_kept_is_read() -> None:
    """A Retry goes on with the batch that the run had opened before the upgrade."""
    from prefect.serializers import JSONSerializer

    from flows.tasks.batch import BatchStatus

    kept = JSONSerializer().dumps(BatchStatus(batch_id=3, state="merged", rows={"inserted": 4}))
    assert b"flows.tasks.batch.BatchStatus" in kept
    before = kept.replace(b"BatchStatus", b"Manifest")
    assert JSONSerializer().loads(before) == JSONSerializer().loads(kept)


@pytest.mark.usefixtures("no_database")
def test_what_is_kept_of_a_run_does_not_say_that_its_rows_need_no_proof() -> None:
    """They may be applied days later, by another process, from what is kept."""
    from prefect.serializers import JSONSerializer

    from flows.tasks.batch import BatchStatus

    now = BatchStatus(batch_id=3, state="staged", proven=True)
    kept = JSONSerializer().loads(JSONSerializer().dumps(now))
    assert (now.model_copy().proven, kept.proven) == (True, False)
    # Nor is the same work done anew because it does.
    assert str(now) == str(kept)


@pytest.mark.long
def test_a_run_that_was_killed_is_told_by_the_name_on_its_page(
    tmp_path: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that tells of it knows the run as it was before it began."""
    from prefect.states import Crashed

    from flows.import_batch import import_batch
    from flows.tasks import hooks

    ended = flow_run(run(write(tmp_path / "a.csv", line(1))))
    before = ended.model_copy(update={"name": "chivalrous-frog"})
    emitted: list[dict[str, Any]] = []
    monkeypatch.setattr(hooks, "emit_event", lambda **event: emitted.append(event))
    hooks.on_end(import_batch, before, Crashed())
    assert emitted[0]["payload"]["run_name"] == "import a.csv"
    told = rows("SELECT detail::json ->> 'name' FROM event WHERE what = 'run crashed'")
    assert told == [("import a.csv",)]
