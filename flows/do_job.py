"""Do a job: work ordered at the desk, as a run with the runs of its flows below it."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State as RunState
from prefect.states import Completed, Failed

from connectors.errors import JobHeldElsewhere, JobRefused, ReconError, StatementRefused
from connectors.files.incoming.uploads import upload_paths
from connectors.postgres.jobs import Job
from flows.import_batch import import_batch
from flows.push_batch import push_batch
from flows.reconcile import end_of
from flows.rerun_batch import rerun_batch
from flows.stages.jobs.arguments import (
    CorrectArguments,
    ImportArguments,
    Number,
    PushArguments,
    ReleaseArguments,
    RerunArguments,
    check_arguments,
    profile_path,
)
from flows.stages.jobs.work import Done, do_as_asked, has_rewound, release_as_asked
from flows.stages.jobs.work import do_job as do_alone
from flows.stages.workspace import Workspace
from flows.tasks.attempts import this_run
from flows.tasks.delivery import Delivery
from flows.tasks.holding import open_workspace, working_for
from flows.tasks.hooks import HELD, SKIPPED, UNKEPT
from flows.tasks.run_names import called
from flows.tasks.states import COMPLETED, WITH_ERRORS
from schemas.jobs import COULD_NOT_RUN

CANCELLED = (
    "The run that did it was cancelled on its page in Prefect. `recon status` shows how far its "
    "batch is; start the job again to go on."
)


@flow(
    name="do-job",
    flow_run_name=called(lambda given: f"do job {given['job']}"),
    **UNKEPT,
)
def do_job(job: Number) -> RunState[Any]:
    """Do a job ordered at the desk, in the name of the person who ordered it.

    Args:
        job: Number of the job, as the desk's page Jobs lists it.
    """
    run = this_run()
    try:
        done = do_alone(open_workspace(), job, _by_flows, str(run.id) if run else None)
    except JobHeldElsewhere as busy:
        return Completed(name=SKIPPED, message=str(busy))
    except (JobRefused, StatementRefused) as refused:
        return Failed(message=str(refused))
    if done.exit_code >= COULD_NOT_RUN:
        # Returned and not raised, because a retry would end the same way.
        return Failed(message=done.message)
    if done.held:
        return Failed(name=HELD, message=done.message)
    if done.verdict is not None:
        return end_of(done.verdict, done.message)
    return Completed(name=WITH_ERRORS if done.exit_code else COMPLETED, message=done.message)


def _by_flows(workspace: Workspace, job: Job) -> Done:
    """Run the flow that does a job; the stages do all others, and search the trail first."""
    with working_for(job.id):
        match check_arguments(job.kind, job.arguments):
            case ImportArguments() as asked:
                path = profile_path(workspace.settings, asked.profile)
                delivery = Delivery(
                    paths=upload_paths(workspace.settings, asked.upload),
                    profile=str(path) if path else None,
                    record=asked.record,
                    tenant=asked.tenant,
                    push=asked.push,
                )
                return _done(import_batch(delivery, return_state=True))
            case CorrectArguments(upload=str(upload)) as asked:
                delivery = Delivery(
                    paths=upload_paths(workspace.settings, upload),
                    corrects=asked.batch,
                    change_records=asked.change_records,
                )
                return _done(import_batch(delivery, return_state=True))
            case CorrectArguments(batch=batch):
                return _done(rerun_batch(batch, only="failed rows", return_state=True))
            case RerunArguments(batch=batch, from_start=True) if not has_rewound(workspace, job):
                return _done(rerun_batch(batch, from_stage="stage", return_state=True))
            case RerunArguments(batch=batch):
                return _done(rerun_batch(batch, return_state=True))
            case ReleaseArguments() as asked:
                release_as_asked(workspace, asked, job)
                return _done(rerun_batch(asked.batch, return_state=True))
            case PushArguments(batch=batch):
                return _done(push_batch(batch or 0, return_state=True))
            case _:
                return do_as_asked(workspace, job)


def _done(state: RunState[Any]) -> Done:
    """The end of a run, in terms of the command that does the same."""
    if state.is_completed():
        data: Any = state.result(raise_on_failure=False)
        ended = data if isinstance(data, list) else [data]
        known = [one["batch_id"] for one in ended if isinstance(one, dict)]
        return Done(int(state.name != COMPLETED), state.message or "", tuple(known))
    if state.is_cancelling() or state.is_cancelled():
        return Done(COULD_NOT_RUN, CANCELLED)
    found = state.result(raise_on_failure=False)
    if isinstance(found, ReconError):
        return Done(found.exit_code, str(found))
    held = state.name == HELD
    return Done(1 if held else COULD_NOT_RUN, state.message or "It did not run.", held=held)
