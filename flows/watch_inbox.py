"""Look into an inbox, and start a run of import-batch for every complete delivery."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import httpx
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.objects import State as RunState
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.states import Completed, Failed
from pydantic import Field, ValidationError

from connectors.errors import InboxHeldElsewhere, ReconError
from connectors.files.incoming.inbox import Inbox, Waiting
from connectors.settings import SETTLE_SECONDS
from flows.report.markdown import cell
from flows.stages.inbox import InboxLine, Start, Started, Watch, import_here
from flows.stages.workspace import Workspace
from flows.tasks.artifacts import MOST, publish_table
from flows.tasks.blocks import run_settings
from flows.tasks.delivery import BareAddress, BarePlace, Delivery, OverBudget
from flows.tasks.holding import open_workspace
from flows.tasks.hooks import UNKEPT
from flows.tasks.missed_runs import overtaken
from flows.tasks.run_names import called
from flows.tasks.states import WITH_ERRORS

NOTHING_THERE = {"File": "none", "Became": "", "Detail": ""}
IMPORT = "import-batch/adhoc"
MOST_FAILED = 3
"""The failed or crashed runs of one delivery after which only a person can continue."""


@flow(
    name="watch-inbox",
    flow_run_name=called(lambda given: f"look into {given['inbox'] or 'the inbox'}"),
    **UNKEPT,
)
def watch_inbox(
    inbox: BareAddress | None = None,
    settle_seconds: Annotated[float, Field(ge=0, le=600)] = SETTLE_SECONDS,
    profile: BarePlace | None = None,
    over_budget: OverBudget | None = None,
    deployment: Annotated[str, Field(pattern=r"^import-batch/[^/]+$")] = IMPORT,
) -> RunState[Any]:
    """Start an import for every complete delivery in an inbox, once for each content.

    Args:
        inbox: The folder, as the worker sees it; if empty, inbox in RECON_HOME, which is created
            if it is missing.
        settle_seconds: A file that has not changed for this number of seconds is complete. A file
            whose manifest states its bytes and SHA-256 is complete as soon as it has its size.
        profile: Path of the feed's TOML file; if empty, that of the deployment, or else the form
            of the service document.
        over_budget: What an import does over its error budget (ask, discard or release); if empty,
            what the deployment says, or else ask.
        deployment: Which deployment imports, on the terms of its own parameter `delivery`. If
            there is no import-batch/adhoc, this run imports by itself.
    """
    if (skipped := overtaken()) is not None:
        return skipped
    try:
        lines = look_into_inbox(inbox, settle_seconds, profile, over_budget, deployment)
    except InboxHeldElsewhere as busy:
        # A run that hangs in the middle of its look would keep all later ones from looking.
        late = time.time() - busy.since >= run_settings().limits.inbox_wait_seconds
        return Completed(name=WITH_ERRORS if late else None, message=str(busy))
    counts = ", ".join(
        f"{sum(line.became == became for line in lines)} {became}"
        for became in dict.fromkeys(line.became for line in lines)
    )
    publish_table(
        inbox_table(lines), key="inbox", about=counts or "nothing was there", lines=len(lines)
    )
    failed = [line for line in lines if line.became == "failed"]
    if failed:
        return Failed(message=f"{counts}. First: {failed[0].detail}")
    if left := {line.became for line in lines if line.exit_code}:
        in_inbox, of_runs = {"unfinished", "left alone"}, {"waiting", "started again"}
        of_batches = left - in_inbox - of_runs - {"quarantined"}
        steps = {
            "read the .why.txt files": left & {"quarantined"},
            "complete what waits in the inbox, or take it out": left & in_inbox,
            "see to the runs that the table names": left & of_runs,
            "`recon status` names the next step of each batch": of_batches,
        }
        todo = [step for step, of in steps.items() if of]
        return Completed(name=WITH_ERRORS, message=f"{counts}. Next: {'; '.join(todo)}.")
    return Completed(message=counts or "nothing was there")


@task(name="look into inbox", persist_result=False, cache_policy=NO_CACHE, result_serializer="json")
def look_into_inbox(
    inbox: str | None,
    settle_seconds: float,
    profile: str | None,
    over_budget: OverBudget | None,
    deployment: str,
) -> list[InboxLine]:
    """Look once; the lines say what became of every file."""
    given = {"profile": profile, "over_budget": over_budget}
    watch = watch_on(open_workspace(), inbox, _own_terms(deployment), given, deployment)
    return watch.look(settle_seconds)


def watch_on(
    workspace: Workspace,
    inbox: str | None,
    own: Mapping[str, Any] | None,
    given: Mapping[str, Any],
    deployment: str,
) -> Watch:
    """A watch that opens deliveries on the terms their imports will take.

    `own`: terms of the deployment that imports; None if there is none. `given`: terms of the watch.
    """
    asked = {**(own or {}), **{name: value for name, value in given.items() if value is not None}}
    terms = Delivery.model_validate({"paths": ["any"]} | asked).terms
    start = import_here(workspace, terms) if own is None else _deployed(deployment, asked)
    found = Inbox.of(workspace.settings.home, Path(inbox) if inbox else None)
    return Watch(workspace, found, terms, start)


def _own_terms(name: str) -> dict[str, Any] | None:
    """The deployment's terms; None if there is no deployment and nobody named another one.

    A run that is given a parameter uses only that: Prefect does not merge it with the deployment's.
    """
    with get_client(sync_client=True) as client:
        try:
            own = client.read_deployment_by_name(name).parameters.get("delivery") or {}
        except ObjectNotFound:
            if name == IMPORT:
                return None
            raise ReconError(
                f"There is no deployment {name}. Name one that there is; what is delivered stays "
                "in the inbox."
            ) from None
    try:
        terms = Delivery.model_validate({"paths": ["any"]} | own)
    except (TypeError, ValidationError) as error:
        raise ReconError(
            f"The parameter delivery of the deployment {name} cannot be used: {_first(error)}. "
            "Mend it on the page of the deployment; what is delivered stays in the inbox."
        ) from None
    return terms.model_dump(mode="json", exclude_unset=True)


def _first(error: TypeError | ValidationError) -> str:
    if isinstance(error, TypeError):
        return "it is no form of a delivery"
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"


def _deployed(name: str, terms: Mapping[str, Any]) -> Start:
    """Start imports as runs of a deployment, with the content as key, so that each is made once.

    If the run with a key has ended, it belongs to an earlier delivery or came to nothing, and the
    next key starts an import, until too many runs have failed. If a batch has taken the content
    already, another run finds that out.
    """

    def start(waiting: Waiting) -> Started:
        taken = {"paths": waiting.paths, "files_hash": waiting.files_hash}
        try:
            delivery = Delivery.model_validate({**terms, **taken})
            parameter = json.loads(delivery.model_dump_json(exclude_unset=True))
        except ValueError as error:  # An address that looks like a secret, or that is no UTF-8.
            raise ReconError(
                f"{name} cannot be told a name of this delivery: it is not UTF-8, or reads like a "
                "login or a key in an address. Deliver it under another name; it is kept in "
                f"{waiting.folder}."
            ) from error
        try:
            return _started(name, parameter, waiting)
        except (PrefectException, httpx.HTTPError) as error:
            raise ReconError(
                f"{name} could not be started: {type(error).__name__}. The delivery is kept in "
                f"{waiting.folder} and is started at the next look."
            ) from error

    return start


def _started(name: str, parameter: object, waiting: Waiting) -> Started:
    """How the delivery's run stands: scheduled, at work, or created now.

    A run that was started for this very delivery and ended well has no successor, since another
    would find the same. Neither have too many failed runs.
    """
    number, failed, before = max(waiting.run, 1), waiting.failed, None
    while True:
        run = run_deployment(
            name,
            parameters={"delivery": parameter},
            timeout=0,
            idempotency_key=waiting.key if number == 1 else f"{waiting.key}.{number}",
            as_subflow=False,
        )
        assert isinstance(run, FlowRun)
        stands = f"run {run.name} of {name}"
        if not _is_over(run):
            break
        if number == waiting.run and run.state is not None and run.state.is_completed():
            return Started(f"{stands} has ended, and no batch has these very files", became="known")
        if waiting.run:
            before = run
            failed += _is_failed(run)
            if failed >= MOST_FAILED:
                return Started(_given_up(stands, run, waiting), 1, number, "waiting", failed - 1)
        number += 1
    if number == waiting.run:
        since = run.state.timestamp if run.state else None
        message = f"{stands} is {_state_of(run)}"
        return Started(message, int(failed > 0), number, "waiting", failed, since)
    if before is None or not failed:
        return Started(stands, run=number)
    message = f"{stands}, after one that is {_state_of(before)}: {before.id}"
    return Started(message, 1, number, "started again", failed)


def _given_up(stands: str, run: FlowRun, waiting: Waiting) -> str:
    return (
        f"{stands} is {_state_of(run)}, after {MOST_FAILED - 1} that failed or crashed: {run.id}. "
        "Fix the cause it names, and retry it in Prefect or deliver the file again: until then "
        f"no other run is started. To have it imported no more, move {waiting.folder} elsewhere"
    )


def _state_of(run: FlowRun) -> str:
    return (run.state and run.state.name) or "to come"


def _is_failed(run: FlowRun) -> bool:
    """Whether the run failed, or crashed, perhaps because of its file; a Cancel does not count."""
    return run.state is not None and (run.state.is_failed() or run.state.is_crashed())


def _is_over(run: FlowRun) -> bool:
    return run.state is not None and (run.state.is_final() or run.state.is_cancelling())


def inbox_table(lines: Sequence[InboxLine]) -> list[dict[str, str]]:
    """One line per file or delivery, those that need attention first."""
    first = ("failed", "quarantined")
    order = sorted(lines, key=lambda line: line.became not in first)
    table = [
        {"File": cell(line.name), "Became": line.became, "Detail": cell(line.detail, 160)}
        for line in order[:MOST]
    ]
    return table or [NOTHING_THERE]
