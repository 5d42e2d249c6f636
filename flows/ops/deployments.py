"""The deployments in one table: which flow runs when, with which limit and which parameters.

`recon deploy` registers them on a Prefect server (`registering`). `prefect.yaml` says the same for
`prefect deploy`; `python -m flows.ops.deployments` writes it and a test compares it.
"""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import yaml  # type: ignore[import-untyped]
from prefect import Flow
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule

POOL = "recon"
"""The default name of the work pool."""
ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
TAG = "recon"
"""The tag of every run of the table, by which the UI's run list filters."""
ONE_AT_A_TIME = ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)
"""The later run waits. If it were cancelled instead, it could block its schedule for ever."""


def _cron(line: str) -> CronSchedule:
    return CronSchedule(cron=line, timezone="UTC")


def _minutes(number: int) -> IntervalSchedule:
    # A fixed start, so that registering again does not move runs.
    return IntervalSchedule(interval=timedelta(minutes=number), anchor_date=ANCHOR)


@dataclass(frozen=True, slots=True)
class Deployment:
    flow: str
    """The module under `flows`, and the flow in it."""
    name: str
    description: str
    schedule: CronSchedule | IntervalSchedule | None = None
    """When runs are made, in UTC; the schedule's slug is the name of the deployment."""
    one_at_a_time: bool = False
    """Whether a second run waits for the first; each batch also has its lease."""
    tags: tuple[str, ...] = ()
    paused: bool = False
    """Its state when first registered; later the operator's switch counts. A page's switch is the
    deployment's: it would look on if only the schedule were off."""

    @property
    def entrypoint(self) -> str:
        """Where a worker with this package installed finds the flow."""
        return f"flows.{self.flow}.{self.flow}"

    @property
    def full_name(self) -> str:
        """The name that `prefect deployment run` takes."""
        return f"{self.flow.replace('_', '-')}/{self.name}"


DEPLOYMENTS = (
    Deployment(
        "import_batch",
        "adhoc",
        "Import a delivery now: name its files or folder.",
        one_at_a_time=True,
        tags=("import",),
    ),
    Deployment(
        "rerun_batch",
        "rerun",
        "Continue a batch where it stopped, or import its corrected rows.",
        tags=("repair",),
    ),
    Deployment(
        "push_batch",
        "push",
        "Send applied rows that the service has not acknowledged yet.",
        schedule=_minutes(15),
        one_at_a_time=True,
        tags=("push",),
    ),
    Deployment(
        "reconcile",
        "daily",
        "Compare files, requests, answers, database and listings.",
        schedule=_cron("0 6 * * *"),
        tags=("reconcile",),
    ),
    Deployment(
        "reconcile", "any-day", "Make the daily comparison now, for any day.", tags=("reconcile",)
    ),
    Deployment(
        "resolve",
        "resolve",
        "Decide about rows that are in doubt or refused, with a reason.",
        tags=("repair",),
    ),
    Deployment(
        "do_job",
        "desk",
        "Do a job that somebody ordered at the desk; the desk starts this.",
        tags=("desk",),
    ),
    Deployment(
        "pull_listings",
        "pull",
        "Read the listings of the service. The schedule is off until you switch it on.",
        schedule=_cron("30 5 * * *"),
        paused=True,
        tags=("reconcile",),
    ),
    Deployment(
        "watch_inbox",
        "watch",
        "Start an import for every delivery that is complete in the inbox.",
        schedule=_minutes(5),
        one_at_a_time=True,
        tags=("import",),
    ),
    Deployment(
        "watch_inbox",
        "nightly",
        "Look into the inbox at a fixed hour, for inboxes that are emptied once a day. The "
        "schedule is off until you switch it on; then switch that of watch off.",
        schedule=_cron("0 2 * * *"),
        paused=True,
        one_at_a_time=True,
        tags=("import",),
    ),
    Deployment(
        "batch_board",
        "board",
        "The table of batches: state, errors, next step.",
        schedule=_cron("0 * * * *"),
        one_at_a_time=True,
        tags=("board",),
    ),
    Deployment(
        "housekeeping",
        "weekly",
        "Remove what no batch needs any more; a dry run unless told otherwise.",
        schedule=_cron("0 3 * * 0"),
        one_at_a_time=True,
        tags=("housekeeping",),
    ),
)


def load(line: Deployment) -> Flow[..., Any]:
    found = getattr(import_module(f"flows.{line.flow}"), line.flow)
    assert isinstance(found, Flow), line.entrypoint
    return found


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
    # Only stated if needed: `paused: false` would switch on what an operator switched off.
    if line.paused:
        entry["paused"] = True
    when: dict[str, Any] = {"slug": line.name, "timezone": "UTC"}
    match line.schedule:
        case CronSchedule(cron=cron):
            entry["schedules"] = [when | {"cron": cron}]
        case IntervalSchedule(interval=interval):
            every = {"interval": int(interval.total_seconds()), "anchor_date": ANCHOR.isoformat()}
            entry["schedules"] = [when | every]
    return entry


if __name__ == "__main__":
    sys.stdout.write(prefect_yaml())
