"""Register deployments on a Prefect server as in the table, keeping what operators set."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import SCHEDULE_TYPES, CronSchedule, IntervalSchedule
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools import validate
from prefect.variables import Variable

from connectors.errors import SettingsError
from flows.ops.deployments import DEPLOYMENTS, ONE_AT_A_TIME, POOL, TAG, Deployment, load

PAGE = 200
"""The most deployments that the server lists at once."""
REGISTERED = "recon_deployments"
"""The variable of the server that lists the registered deployments; one that it lists and the
server no longer has was deleted by somebody."""
MADE_AGAIN = "it was missing; created again, switched off"


def create_pool(name: str = POOL, kind: str = "process") -> None:
    """Create the work pool unless it exists; raises SettingsError if it is of another kind.

    It comes first, because Prefect accepts a deployment to a missing pool, whose runs wait for
    ever.
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
    name: str
    notes: tuple[str, ...] = ()
    """Notes for operators on what differs from the table, and what could not be kept."""


def register(pool: str = POOL) -> list[Registered]:
    """Create or update every deployment of this version.

    The table decides which flow runs, in which pool, how many at once, and how schedules begin.
    Everything that operators set stays as on the server: parameters the flow still takes, job
    variables, the queue, tags, and schedules, theirs and ours as changed, switched off or deleted.
    A deployment that they deleted is made again, switched off.
    """
    noted = Variable.get(REGISTERED)
    before = {str(name) for name in noted} if isinstance(noted, list) else set()
    with get_client(sync_client=True) as client:
        done = [
            register_one(client, line, pool, before=line.full_name in before)
            for line in DEPLOYMENTS
        ]
    names = sorted(before | {one.name for one in done})
    Variable.set(REGISTERED, names, tags=[TAG], overwrite=True)
    return done


def left_over() -> list[str]:
    """Deployments of ours on the server that are not in the table, from an earlier version.

    Their schedules go on; an operator has to say whether somebody needs them.
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


def register_one(
    client: SyncPrefectClient, line: Deployment, pool: str, *, before: bool = False
) -> Registered:
    """Create or update one; `before`: it was registered on this server by then."""
    flow = load(line)
    # Unknown parameters are refused like wrong values, because no run could begin with them.
    schema = parameter_schema(flow).model_dump(exclude_unset=True) | {"additionalProperties": False}
    found: DeploymentResponse | None = None
    with suppress(ObjectNotFound):
        found = client.read_deployment_by_name(line.full_name)
    off_inside = found is not None and _off_inside(line, found)
    deleted = before and found is None and line.schedule is not None
    parameters, refused = _parameters(found, schema)
    schedules, other = _schedules(line, found)
    other += _unusable(schedules, parameters, schema)
    if off_inside:
        schedules = [one.model_copy(update={"active": True}) for one in schedules]
    limit = found.global_concurrency_limit if found else None
    # An update could not remove a schedule; this request replaces the whole deployment.
    deployment = client.create_deployment(
        flow_id=client.create_flow_from_name(flow.name),
        name=line.name,
        description=line.description,
        tags=list(dict.fromkeys([TAG, *line.tags, *(found.tags if found else ())])),
        parameters=parameters,
        parameter_openapi_schema=schema,
        enforce_parameter_schema=True,
        schedules=schedules,
        # A run that somebody did not want any more must not come back by itself.
        paused=(line.paused or deleted) if found is None or off_inside else found.paused,
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
    gone = [MADE_AGAIN] if deleted else []
    return Registered(line.full_name, (*gone, *refused, *other))


def _parameters(
    found: DeploymentResponse | None, schema: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The parameters of a deployment that its flow still takes, and notes about the others.

    The server would refuse the whole deployment because of one of these.
    """
    kept, refused = {}, []
    for name, value in (found.parameters if found else {}).items():
        # With its value, because no other place has it from now on.
        lost = f"parameter {name} = {json.dumps(value, ensure_ascii=False)} is not kept, because"
        if name not in schema.get("properties", {}):
            refused.append(f"{lost} its flow no longer has it")
        elif problems := validate({name: value}, schema, ignore_required=True):
            refused.append(f"{lost} its flow no longer takes it: {_first(problems)}")
        else:
            kept[name] = value
    return kept, refused


def _off_inside(line: Deployment, found: DeploymentResponse) -> bool:
    """Whether an earlier version switched it off by its schedule, so that its page shows it on."""
    return line.paused and len(found.schedules) == 1 and not found.schedules[0].active


def _schedules(
    line: Deployment, found: DeploymentResponse | None
) -> tuple[list[DeploymentScheduleCreate], list[str]]:
    """Every schedule as on the server, ours if it is new, and notes on differences of ours."""
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
    slug, ours = line.name, line.schedule
    there = [one for one in kept if one.slug == slug]
    if not there:
        # As with a deployment that somebody deleted.
        new = DeploymentScheduleCreate(slug=slug, schedule=ours, active=found is None)
        return [new, *kept], [f"schedule {slug}: {MADE_AGAIN}"] if found else []
    return kept, [
        f"schedule {slug}: stays {_schedule_text(one.schedule)}, as somebody set it; "
        f"ours is {_schedule_text(ours)}"
        for one in there
        if _schedule_text(one.schedule) != _schedule_text(ours)
    ]


def _unusable(
    schedules: list[DeploymentScheduleCreate], parameters: dict[str, Any], schema: dict[str, Any]
) -> list[str]:
    """Notes about schedules whose runs cannot begin, which the server does not check."""
    return [
        f"schedule {one.slug or _schedule_text(one.schedule)}: its runs will fail, because its "
        f"flow does not take its parameters: {_first(problems)}"
        for one in schedules
        if (problems := validate(parameters | one.parameters, schema))
    ]


def _first(problems: Sequence[Any]) -> str:
    return str(problems[0].message).partition("\n")[0][:200]


def _bound(
    client: SyncPrefectClient, deployment: UUID, given: list[DeploymentScheduleCreate]
) -> None:
    """Set how many runs a schedule makes ahead, which the server ignores in a deployment."""
    most = {(one.slug, _schedule_text(one.schedule)): one.max_scheduled_runs for one in given}
    for one in client.read_deployment(deployment).schedules if any(most.values()) else ():
        if ahead := most.get((one.slug, _schedule_text(one.schedule))):
            client.update_deployment_schedule(deployment, one.id, max_scheduled_runs=ahead)


def _schedule_text(schedule: SCHEDULE_TYPES) -> str:
    """When a schedule makes runs, in words; schedules with equal words are the same."""
    match schedule:
        case CronSchedule():
            return f"{schedule.cron} ({schedule.timezone or 'UTC'})"
        case IntervalSchedule():
            return f"every {schedule.interval} from {schedule.anchor_date.isoformat()}"
        case _:
            return str(getattr(schedule, "rrule", "without a time"))
