"""The deployments: which flow runs when, with which limit and which parameters; one table.

`recon deploy` registers them on a Prefect server and `prefect.yaml` says the same for
`prefect deploy`; it is written by `python -m flows.ops.deployments` and compared by a test.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import count
from typing import Any
from uuid import UUID

import yaml  # type: ignore[import-untyped]
from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.objects import (
    ConcurrencyLimitStrategy,
    ConcurrencyOptions,
)
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import SCHEDULE_TYPES, CronSchedule, IntervalSchedule
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools import validate

from connectors.errors import SettingsError

POOL = "recon"
"""Name of the work pool where nothing else is said."""
ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
TAG = "recon"
"""Every run of ours carries it; automations and the run list of the UI go by it."""
PAGE = 200
"""Deployments the server lists at once, at most."""
ONE_AT_A_TIME = ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)
"""The later run waits. One that was cancelled instead could block its schedule for ever."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When runs are made: a cron line or a number of minutes, in UTC."""

    slug: str
    cron: str | None = None
    minutes: int | None = None

    def __post_init__(self) -> None:
        assert (self.cron is None) != (self.minutes is None), self.slug


@dataclass(frozen=True, slots=True)
class Deployment:
    """One line of the table."""

    flow: str
    """Module under `flows` and the flow in it."""
    name: str
    description: str
    schedule: Schedule | None = None
    one_at_a_time: bool = False
    """A second run waits for the first; each batch is guarded by its lease as well."""
    tags: tuple[str, ...] = ()
    paused: bool = False
    """As it is first registered; afterwards the operator's switch counts. The switch of a page is
    that of the deployment: it would look on where only its schedule is off."""

    @property
    def entrypoint(self) -> str:
        """Where a worker that has this package installed finds the flow."""
        return f"flows.{self.flow}.{self.flow}"

    @property
    def full_name(self) -> str:
        """As `prefect deployment run` takes it."""
        return f"{self.flow.replace('_', '-')}/{self.name}"


DEPLOYMENTS = (
    Deployment(
        "import_batch",
        "adhoc",
        "Take in a delivery now: name its files or folder.",
        one_at_a_time=True,
        tags=("import",),
    ),
    Deployment(
        "rerun_batch",
        "rerun",
        "Go on with a batch where it stopped, or take its corrected rows in.",
        tags=("repair",),
    ),
    Deployment(
        "push_batch",
        "push",
        "Send what is applied and not yet acknowledged to the service.",
        schedule=Schedule("push", minutes=15),
        one_at_a_time=True,
        tags=("push",),
    ),
    Deployment(
        "reconcile",
        "daily",
        "Compare files, requests, answers, database and listings.",
        schedule=Schedule("daily", cron="0 6 * * *"),
        tags=("reconcile",),
    ),
    Deployment(
        "reconcile",
        "any-day",
        "The same comparison now, for any day.",
        tags=("reconcile",),
    ),
    Deployment(
        "resolve",
        "resolve",
        "Settle rows that are in doubt or refused, with a reason.",
        tags=("repair",),
    ),
    Deployment(
        "do_job",
        "desk",
        "Do what somebody asked for at the desk; the desk starts it.",
        tags=("desk",),
    ),
    Deployment(
        "pull_listings",
        "pull",
        "Fetch the listings of the service. The schedule waits to be switched on.",
        schedule=Schedule("pull", cron="30 5 * * *"),
        paused=True,
        tags=("reconcile",),
    ),
    Deployment(
        "watch_inbox",
        "watch",
        "Start an import for every delivery that is complete in the inbox.",
        schedule=Schedule("watch", minutes=5),
        one_at_a_time=True,
        tags=("import",),
    ),
    Deployment(
        "watch_inbox",
        "nightly",
        "The same look at a fixed hour, for inboxes that are emptied once a day. The schedule "
        "waits to be switched on; switch that of watch off.",
        schedule=Schedule("nightly", cron="0 2 * * *"),
        paused=True,
        one_at_a_time=True,
        tags=("import",),
    ),
    Deployment(
        "batch_board",
        "board",
        "The table of batches: state, errors, next step.",
        schedule=Schedule("board", cron="0 * * * *"),
        one_at_a_time=True,
        tags=("board",),
    ),
    Deployment(
        "housekeeping",
        "weekly",
        "Remove what no batch needs any more; a dry run unless it is told otherwise.",
        schedule=Schedule("weekly", cron="0 3 * * 0"),
        one_at_a_time=True,
        tags=("housekeeping",),
    ),
)


def load(line: Deployment) -> Flow[..., Any]:
    found = getattr(import_module(f"flows.{line.flow}"), line.flow)
    assert isinstance(found, Flow), line.entrypoint
    return found


def create_pool(name: str = POOL, kind: str = "process") -> None:
    """Create the work pool unless it is there; raises SettingsError where it is of another kind.

    It comes first: Prefect takes a deployment to a missing pool and its runs wait for ever.
    """
    with get_client(sync_client=True) as client:
        try:
            client.create_work_pool(WorkPoolCreate(name=name, type=kind))
        except ObjectAlreadyExists:
            found = client.read_work_pool(name).type
            if found != kind:
                raise SettingsError(
                    f"The work pool {name!r} is of type {found!r}, not {kind!r}. "
                    "Use another name, or delete the pool."
                ) from None


@dataclass(frozen=True, slots=True)
class Registered:
    """A deployment on the server."""

    name: str
    notes: tuple[str, ...] = ()
    """What is other than the table has it, and what could not be kept, for operators."""


def register(pool: str = POOL) -> list[Registered]:
    """Create or update every deployment of this version.

    The table says which flow runs, in which pool, how many at once, and how schedules begin. What
    operators set stays as it is on the server: parameters that the flow still takes, job variables,
    the queue, tags, and schedules: theirs, and ours as they changed, switched off or deleted them.
    """
    with get_client(sync_client=True) as client:
        return [_register(client, line, pool) for line in DEPLOYMENTS]


def left_over() -> list[str]:
    """Deployments of ours on the server that are not in the table: an earlier version made them.

    Their schedules go on. Whether somebody needs them is for an operator to say.
    """
    known = {line.full_name for line in DEPLOYMENTS}
    with get_client(sync_client=True) as client:
        names = [
            f"{client.read_flow(one.flow_id).name}/{one.name}"
            for one in _tagged(client)
            if (one.entrypoint or "").startswith("flows.")
        ]
    return sorted(set(names) - known)


def _tagged(client: SyncPrefectClient) -> Iterator[DeploymentResponse]:
    ours = DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG]))
    for offset in count(step=PAGE):
        page = client.read_deployments(deployment_filter=ours, limit=PAGE, offset=offset)
        yield from page
        if len(page) < PAGE:
            return


def _register(client: SyncPrefectClient, line: Deployment, pool: str) -> Registered:
    flow = load(line)
    schema = parameter_schema(flow).model_dump(exclude_unset=True)
    found = _existing(client, line)
    off_inside = found is not None and _off_inside(line, found)
    parameters, refused = _parameters(found, schema)
    schedules, other = _schedules(line, found)
    if off_inside:
        schedules = [one.model_copy(update={"active": True}) for one in schedules]
    limit = found.global_concurrency_limit if found else None
    # An update could not take a schedule away; this request replaces the whole deployment.
    deployment = client.create_deployment(
        flow_id=client.create_flow_from_name(flow.name),
        name=line.name,
        description=line.description,
        tags=list(dict.fromkeys([TAG, *line.tags, *(found.tags if found else ())])),
        parameters=parameters,
        parameter_openapi_schema=schema,
        enforce_parameter_schema=True,
        schedules=schedules,
        paused=line.paused if found is None or off_inside else found.paused,
        concurrency_limit=1 if line.one_at_a_time else limit.limit if limit else None,
        concurrency_options=(
            ONE_AT_A_TIME if line.one_at_a_time else found.concurrency_options if found else None
        ),
        work_pool_name=pool,
        work_queue_name=found.work_queue_name if found and found.work_pool_name == pool else None,
        job_variables=found.job_variables if found else None,
        entrypoint=line.entrypoint,
        pull_steps=[],
    )
    _bound(client, deployment, schedules)
    return Registered(line.full_name, (*refused, *other))


def _parameters(
    found: DeploymentResponse | None, schema: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The parameters of a deployment that its flow still takes, and what is to be said of others.

    The server would refuse the whole deployment for one of these.
    """
    kept, refused = {}, []
    for name, value in (found.parameters if found else {}).items():
        if name not in schema.get("properties", {}):
            refused.append(f"parameter {name}: its flow has it no more, so it is not kept")
        elif problems := validate({name: value}, schema, ignore_required=True):
            told = problems[0].message.partition("\n")[0][:200]
            refused.append(f"parameter {name}: its flow does not take it any more: {told}")
        else:
            kept[name] = value
    return kept, refused


def _existing(client: SyncPrefectClient, line: Deployment) -> DeploymentResponse | None:
    try:
        return client.read_deployment_by_name(line.full_name)
    except ObjectNotFound:
        return None


def _off_inside(line: Deployment, found: DeploymentResponse) -> bool:
    """Whether it is as an earlier version made it: switched off, and its page shows it on."""
    return line.paused and len(found.schedules) == 1 and not found.schedules[0].active


def _schedules(
    line: Deployment, found: DeploymentResponse | None
) -> tuple[list[DeploymentScheduleCreate], list[str]]:
    """Every schedule as it is on the server, ours where it is new, and what is other of ours."""
    kept = [
        DeploymentScheduleCreate(
            **one.model_dump(
                include={"slug", "schedule", "active", "parameters", "max_scheduled_runs"}
            )
        )
        for one in (found.schedules if found else ())
    ]
    if line.schedule is None:
        return kept, []
    slug, ours = line.schedule.slug, _when(line.schedule)
    there = [one for one in kept if one.slug == slug]
    if not there:
        # A run that somebody did not want any more must not come back by itself.
        new = DeploymentScheduleCreate(slug=slug, schedule=ours, active=found is None)
        said = f"schedule {slug}: it was not there; made again, switched off"
        return [new, *kept], [said] if found else []
    return kept, [
        f"schedule {slug}: stays {_told(one.schedule)}, as somebody set it; ours is {_told(ours)}"
        for one in there
        if _told(one.schedule) != _told(ours)
    ]


def _bound(
    client: SyncPrefectClient, deployment: UUID, given: list[DeploymentScheduleCreate]
) -> None:
    """Set how many runs a schedule makes ahead; the server drops that from a deployment."""
    most = {(one.slug, _told(one.schedule)): one.max_scheduled_runs for one in given}
    for one in client.read_deployment(deployment).schedules if any(most.values()) else ():
        if ahead := most.get((one.slug, _told(one.schedule))):
            client.update_deployment_schedule(deployment, one.id, max_scheduled_runs=ahead)


def _told(schedule: SCHEDULE_TYPES) -> str:
    """When it makes runs, in words; two that say the same are one schedule."""
    match schedule:
        case CronSchedule():
            return f"{schedule.cron} ({schedule.timezone or 'UTC'})"
        case IntervalSchedule():
            return f"every {schedule.interval} from {schedule.anchor_date.isoformat()}"
        case _:
            return str(getattr(schedule, "rrule", "without a time"))


def _when(schedule: Schedule) -> CronSchedule | IntervalSchedule:
    if schedule.cron:
        return CronSchedule(cron=schedule.cron, timezone="UTC")
    assert schedule.minutes
    # A fixed start, so that registering again moves no run.
    return IntervalSchedule(interval=timedelta(minutes=schedule.minutes), anchor_date=ANCHOR)


HEADER = """# Written by `python -m flows.ops.deployments`; the table is in that module.
# `recon deploy` registers the same and creates the work pool first. With `prefect deploy --all`
# create it yourself: prefect work-pool create recon --type process
# A second `prefect deploy --all` sets schedules and parameters as they are here, and so switches on
# what operators switched off; only `recon deploy` keeps what they set.
"""


def prefect_yaml() -> str:
    """The table as the file that `prefect deploy` reads."""
    entries = [_yaml_entry(line) for line in DEPLOYMENTS]
    document = {"name": "recon", "pull": [], "deployments": entries}
    return HEADER + str(yaml.safe_dump(document, sort_keys=False, width=100))


def _yaml_entry(line: Deployment) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": line.name,
        "description": line.description,
        "entrypoint": line.entrypoint,
        "tags": [TAG, *line.tags],
        "parameters": {},
        "work_pool": {"name": POOL},
    }
    if line.one_at_a_time:
        strategy = ONE_AT_A_TIME.collision_strategy.value
        entry["concurrency_limit"] = {"limit": 1, "collision_strategy": strategy}
    # Said only where it is needed: `paused: false` would switch on what an operator switched off.
    if line.paused:
        entry["paused"] = True
    if line.schedule is not None:
        entry["schedules"] = [_yaml_schedule(line.schedule)]
    return entry


def _yaml_schedule(schedule: Schedule) -> dict[str, Any]:
    when: dict[str, Any] = {"slug": schedule.slug, "timezone": "UTC"}
    if schedule.cron:
        when["cron"] = schedule.cron
    else:
        assert schedule.minutes
        when |= {"interval": schedule.minutes * 60, "anchor_date": ANCHOR.isoformat()}
    return when


if __name__ == "__main__":
    sys.stdout.write(prefect_yaml())
