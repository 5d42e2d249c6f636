"""Do a job by the stages of its command, in the name of the last person who ordered it.

A job whose process was killed can be started again. Work that commands can do twice without harm is
repeated; work that would be refused, or done once more, is first looked for in the trail.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import psycopg

from connectors.errors import JobRefused, ReconError
from connectors.files.disk.scratch import scratch_folder
from connectors.files.incoming.uploads import drop_upload, upload_paths
from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import with_terms
from connectors.postgres.batches.ledger import State
from connectors.postgres.command_rights import refuse_without_right
from connectors.postgres.jobs import Job, done_for, end_job, find_job, hold_job, ordered_by
from connectors.postgres.push.sends import SendDecision
from connectors.postgres.resume import resumed
from connectors.postgres.runs.reconciliations import find_run, run_of_event
from flows.report.reconciled.verdicts import word_of
from flows.report.text import refused_line, verdict_of
from flows.stages.chosen_sends import ChosenSends
from flows.stages.finish import write_owed
from flows.stages.jobs.arguments import (
    CorrectArguments,
    DiscardArguments,
    HeldArguments,
    ImportArguments,
    PushArguments,
    ReconcileArguments,
    ReleaseArguments,
    RerunArguments,
    ResolveArguments,
    UndoArguments,
    check_arguments,
    profile_of,
)
from flows.stages.pull import pull_compared, wanted
from flows.stages.reconcile.as_of import today_there
from flows.stages.reconcile.rules import rules_of
from flows.stages.reconcile.run import finish, reconcile
from flows.stages.reconcile.scope import Asked, Scope
from flows.stages.resolve import resolve
from flows.stages.rewind import REWOUND, rewind_batch
from flows.stages.rows.rejects import waiting_correction, write_rejects
from flows.stages.sequence import (
    Ended,
    discard_batch,
    import_delivery,
    push_batch,
    push_waiting,
    release_held,
    report_again,
    run_batch,
)
from flows.stages.undo import undo_and_tell
from flows.stages.way_on import goes_on_by
from flows.stages.workspace import Workspace
from flows.steps.rules.file import TAKEN
from flows.steps.rules.rules import Rules
from schemas.counting import grouped, quantity
from schemas.derived.left_out import means_a_state
from schemas.guards.batch_states import RESOLVE, UNDO
from schemas.guards.commands import command_of
from schemas.guards.trail_functions import SAVED
from schemas.jobs import COULD_NOT_RUN
from schemas.life import RECONCILED

BEFORE = "It was done before the job stopped, and is not done twice."


@dataclass(frozen=True, slots=True)
class Done:
    exit_code: int
    """The exit code of the command that does the same."""
    message: str
    batches: tuple[int, ...] = ()
    """The batches it is about, whether or not anything was done in them."""
    reconciliation: int | None = None
    verdict: str | None = None
    """The verdict of the reconciliation."""
    held: bool = False
    """Whether a batch waits for somebody to decide."""


Work = Callable[[Workspace, Job], Done]


def do_job(
    workspace: Workspace, number: int, work: Work | None = None, flow_run: str | None = None
) -> Done:
    """Do one job, alone, and note the outcome; raises JobUnknown and JobHeldElsewhere.

    Raises StatementRefused if the database account may not do it; the job then waits for one that
    may. A refusal by the work itself is an outcome. Any other error is a fault of the program and
    is raised.
    """
    with workspace.database.connect() as connection:
        refuse_without_right(connection, command_of(find_job(connection, number).kind))
        way_on = goes_on_by(f"recon job {number}")
        with hold_job(connection, number, flow_run) as job, way_on:
            return _do_held(workspace, connection, job, work or do_as_asked)


def _do_held(workspace: Workspace, held: psycopg.Connection, job: Job, work: Work) -> Done:
    try:
        done = work(workspace.for_job(job.id), job)
    except ReconError as error:
        done = Done(error.exit_code, str(error))
    except Exception as error:
        name = type(error).__name__
        fault = f"A fault of the program, {name}; its log has the places. See what is there."
        _end(workspace, held, job.id, Done(COULD_NOT_RUN, fault))
        raise
    _end(workspace, held, job.id, done)
    if done.exit_code < COULD_NOT_RUN and (upload := job.arguments.get("upload")):
        drop_upload(workspace.settings, str(upload))
    return done


def _end(workspace: Workspace, held: psycopg.Connection, number: int, done: Done) -> None:
    """Note the outcome in the session that holds the job, or in another one if that was lost."""
    values = (number, done.exit_code, done.message, done.batches, done.reconciliation)

    def end() -> None:
        if held.broken:
            with workspace.database.connect() as connection:
                end_job(connection, *values)
        else:
            end_job(held, *values)

    try:
        end()
    except psycopg.OperationalError:
        if not held.broken:
            raise
        resumed(workspace.database, end)


def do_as_asked(workspace: Workspace, job: Job) -> Done:
    """Do the work of a job by the stages themselves."""
    match check_arguments(job.kind, job.arguments):
        case ImportArguments() as asked:
            return _import(workspace, asked)
        case CorrectArguments() as asked:
            return _correct(workspace, asked)
        case RerunArguments() as asked:
            return _rerun(workspace, asked, job)
        case ReleaseArguments() as asked:
            release_as_asked(workspace, asked, job)
            return done_of(run_batch(workspace, asked.batch))
        case DiscardArguments() as asked:
            return _discard(workspace, asked, job)
        case UndoArguments() as asked:
            return _undo(workspace, asked, job)
        case ResolveArguments() as asked:
            return _resolve(workspace, asked, job)
        case PushArguments() as asked:
            return _push(workspace, asked)
        case ReconcileArguments() as asked:
            return _reconcile(workspace, asked, job)
        case other:
            raise AssertionError(f"no work is written for {type(other).__name__}")


def _import(workspace: Workspace, asked: ImportArguments) -> Done:
    settings = workspace.settings
    terms = {"tenant": asked.tenant, "push": asked.push or None}
    profile = with_terms(profile_of(settings, asked.profile), terms)
    paths = upload_paths(settings, asked.upload)
    return done_of(import_delivery(workspace, paths, profile, record=asked.record))


def _correct(workspace: Workspace, asked: CorrectArguments) -> Done:
    if asked.upload:
        paths = upload_paths(workspace.settings, asked.upload)
        terms = replace(DEFAULT, change_records=asked.change_records)
        return done_of(import_delivery(workspace, paths, terms, corrects=asked.batch))
    with scratch_folder(workspace.settings.scratch) as folder:
        # The rows are taken in from this folder, and need the secrets they were delivered with.
        if not write_rejects(workspace, asked.batch, folder, with_secrets=True):
            # A batch that this job opened before its process was gone may have them.
            waiting = waiting_correction(workspace, asked.batch)
            if waiting is not None:
                return done_of(run_batch(workspace, waiting))
            return Done(0, f"Batch {asked.batch} has no rows with errors left to correct.")
        return done_of(import_delivery(workspace, [str(folder)], DEFAULT, corrects=asked.batch))


def _rerun(workspace: Workspace, asked: RerunArguments, job: Job) -> Done:
    def rewind() -> None:
        if not has_rewound(workspace, job):
            rewind_batch(workspace, asked.batch)

    if asked.from_start:
        resumed(workspace.database, rewind)
    return done_of(run_batch(workspace, asked.batch))


def has_rewound(workspace: Workspace, job: Job) -> bool:
    """Whether the job had its batch's rows forgotten before its process was gone."""
    with workspace.database.connect() as connection:
        return done_for(connection, job, REWOUND) is not None


def release_as_asked(workspace: Workspace, asked: ReleaseArguments, job: Job) -> None:
    """Release a held batch, unless the job did so before its process was gone."""
    _decide(workspace, asked, job, "released", release_held)


def _discard(workspace: Workspace, asked: DiscardArguments, job: Job) -> Done:
    before = _decide(workspace, asked, job, "discarded", discard_batch)
    message = f"Batch {asked.batch} is discarded; nothing of it was applied."
    return Done(0, f"{message} {BEFORE}" if before else message)


def _decide(
    workspace: Workspace, asked: HeldArguments, job: Job, what: str, decision: Callable[..., None]
) -> bool:
    """Decide about a held batch, once; gives whether it was done before."""

    def decide() -> bool:
        with workspace.database.connect() as connection:
            if done_for(connection, job, what):
                write_owed(workspace, connection, asked.batch)
                return True
            by = ordered_by(connection, job.id)
        decision(workspace, asked.batch, by=by, reason=asked.reason, held=asked.held)
        return False

    return resumed(workspace.database, decide)


def _undo(workspace: Workspace, asked: UndoArguments, job: Job) -> Done:
    with workspace.database.connect() as connection:
        if done_for(connection, job, UNDO):
            write_owed(workspace, connection, asked.batch)
            return Done(0, f"Batch {asked.batch} is undone. {BEFORE}")
        by = ordered_by(connection, job.id)
    undone = undo_and_tell(
        workspace, asked.batch, by=by, reason=asked.reason, over_changes=asked.over_changes
    )
    return Done(undone.exit_code, "\n".join(undone.lines))


def _resolve(workspace: Workspace, asked: ResolveArguments, job: Job) -> Done:
    with workspace.database.connect() as connection:
        before = done_for(connection, job, RESOLVE)
        by = ordered_by(connection, job.id)
    if before:
        ended = report_again(workspace, asked.batch)
        return Done(ended.exit_code, f"The rows are settled. {BEFORE}")
    chosen = ChosenSends(asked.rows, asked.operation, asked.states, asked.places or None)
    resolved = resolve(
        workspace,
        asked.batch,
        chosen,
        asked.decision,
        by=by,
        reason=asked.reason,
        expected=asked.expected,
    )
    rows = quantity(resolved.rows, "row", grouped)
    message = f"{rows} of batch {asked.batch}: {asked.decision.value}."
    if asked.decision is SendDecision.RESEND:
        message += " The next push sends them."
    return Done(resolved.ended.exit_code, message)


def _push(workspace: Workspace, asked: PushArguments) -> Done:
    if asked.batch is not None:
        return done_of(push_batch(workspace, asked.batch))
    done = [
        done_of(ended) if isinstance(ended, Ended) else Done(ended.exit_code, str(ended), (number,))
        for number, ended in push_waiting(workspace)
    ]
    if not done:
        return Done(0, "Nothing is unsent.")
    return Done(max(one.exit_code for one in done), "\n".join(one.message for one in done))


def _reconcile(workspace: Workspace, asked: ReconcileArguments, job: Job) -> Done:
    with workspace.database.connect() as connection:
        if event := done_for(connection, job, SAVED):
            made = run_of_event(connection, event)
        else:
            scope, rules = _terms(workspace, connection, asked)
            by = ordered_by(connection, job.id)
            day = today_there(connection, workspace.settings.time_zone)
    if event:
        not_mailed = finish(workspace, made)
        message = f"Reconciliation {made.id} of {made.scope}: {word_of(made.verdict)}. {BEFORE}"
        message += _mail_text(made.id, not_mailed)
        return Done(int(made.verdict not in RECONCILED), message, (), made.id, made.verdict)
    unread = pull_compared(workspace, scope).unread if wanted(workspace, scope) else {}
    done = reconcile(workspace, Asked(scope, day, rules, by=by, unread=unread))
    message = done.sentence + _mail_text(done.run.id, done.not_mailed)
    return Done(done.exit_code, message, (), done.run.id, done.run.verdict)


def _mail_text(number: int, not_mailed: bool) -> str:
    """The line about unsent mail, without names and addresses, which not every user may see."""
    if not not_mailed:
        return ""
    return f"\nSubscribers wait for it: `recon report mail {number}` sends it, or says why not."


def _terms(
    workspace: Workspace, connection: psycopg.Connection, asked: ReconcileArguments
) -> tuple[Scope, Rules]:
    """What to compare, and by which rules; raises JobRefused if the run cannot be repeated."""
    if asked.run is None:
        return Scope(), Rules()
    run = find_run(connection, asked.run)
    scope, rules = Scope.read(run.scope), rules_of(workspace, connection, run.rules_hash)
    if scope is None:
        raise JobRefused(
            f"Reconciliation {run.id} is a restatement, and is not made again like that. Say what "
            "is to be restated: `recon reconcile --as-of DAY --restate REASON`."
        )
    if rules is None:
        raise JobRefused(
            f"The rules of reconciliation {run.id} are not kept, or not for this version. Name "
            "them: `recon reconcile --rules FILE`."
        )
    for one in rules.exclusions:
        if means_a_state(one.id):
            raise JobRefused(
                f"The rules of reconciliation {run.id} have an exclusion {one.id!r}: {TAKEN}, and "
                "name the file: `recon reconcile --rules FILE`."
            )
    return scope, rules


def done_of(ended: Ended) -> Done:
    """A batch after its run, in the words of its report."""
    verdict = verdict_of(ended.report)
    refused = [refused_line(file) for file in ended.report.files if file.refused]
    state = f"Batch {ended.batch.id}: {ended.batch.state.replace('_', ' ')}"
    if ended.batch.held_because:
        state += f", because {ended.batch.held_because}"
    outcome = f"{verdict.word}: {verdict.meaning} {verdict.remedy}"
    return Done(
        ended.exit_code,
        "\n".join([*ended.messages, *refused[:20], outcome, state]),
        (ended.batch.id,),
        held=ended.batch.state is State.HELD,
    )
