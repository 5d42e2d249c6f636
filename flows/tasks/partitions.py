"""One large delivery over several processes or machines: its partitions as tasks on Dask workers.

`RECON_DASK` names the cluster: `local:4` starts four processes for as long as a delivery is staged,
`tcp://HOST:PORT` or `tls://HOST:PORT` is the scheduler of one that is there. Unset, or when the
delivery is small, the run stages it by itself; what ends up in the database is the same.
"""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from prefect import task

from connectors.errors import SettingsError
from connectors.postgres import ledger
from connectors.postgres.lease import Lease
from flows.stages.partitions import (
    MOST_PARTITIONS,
    Partition,
    is_large,
    stage_in_partitions,
    stage_partition,
)
from flows.stages.stage import stage
from flows.stages.workspace import Workspace
from flows.tasks.attempts import FROM_LEDGER
from flows.tasks.holding import open_workspace

if TYPE_CHECKING:
    from prefect_dask.task_runners import DaskTaskRunner

CLUSTER = "RECON_DASK"
AT_ONCE = "RECON_DASK_AT_ONCE"


def stage_delivery(workspace: Workspace, lease: Lease) -> None:
    """Stage the batch of this lease: on the cluster where there is one and it is worth it."""
    cluster = os.environ.get(CLUSTER)
    if not cluster or not is_large(workspace, lease):
        stage(workspace, lease)
        return
    feed = ledger.find_batch(lease.connection, lease.batch_id).feed
    most = at_once(os.environ.get(AT_ONCE, ""), feed)
    with dask_runner(cluster) as runner:
        _connect(runner, cluster)

        def run(partition: Partition) -> int:
            future = runner.submit(stage_one_partition, {"partition": partition.as_json()})
            return int(future.result())

        stage_in_partitions(workspace, lease, run, at_once=most)


def _connect(runner: "DaskTaskRunner", cluster: str) -> None:
    """Make its client, which several threads then share; raises SettingsError."""
    try:
        assert runner.client
    except OSError as error:
        raise SettingsError(
            f"{CLUSTER}={cluster!r}: no cluster is to be reached there ({type(error).__name__}). "
            "Start its scheduler and run again, or unset it; nothing was staged."
        ) from None


@task(
    name="stage partition",
    task_run_name="stage partition of batch {partition[batch_id]}",
    **FROM_LEDGER,
)
def stage_one_partition(partition: Mapping[str, Any]) -> int:
    """Stage a partition under the lease of the run that handed it out; returns its rows."""
    workspace = open_workspace()
    wanted = Partition.from_json(partition)
    with workspace.database.connect() as connection:
        return stage_partition(workspace, connection, wanted)


def dask_runner(cluster: str) -> "DaskTaskRunner":
    """The task runner of a cluster; raises SettingsError."""
    local = re.fullmatch(r"local:([1-9]\d{0,2})", cluster)
    if not local and not re.fullmatch(r"(tcp|tls)://[^\s/@]+:\d+", cluster):
        raise SettingsError(
            f"{CLUSTER} is neither local:NUMBER nor tcp://HOST:PORT nor tls://HOST:PORT of a Dask "
            "scheduler, without a login."
        )
    try:
        from prefect_dask.task_runners import DaskTaskRunner  # noqa: PLC0415 - An extra.
    except ImportError:
        raise SettingsError(
            f"{CLUSTER} is set, and the package prefect-dask is not installed: install recon with "
            "the extra `scale`, or unset it."
        ) from None
    if not local:
        return DaskTaskRunner(address=cluster)
    # One thread each: a partition keeps more than one core busy by itself. What it keeps in memory
    # is bounded, and Dask's own bound, a share of the machine, would end workers on a small one.
    processes = {"n_workers": int(local[1]), "threads_per_worker": 1, "processes": True}
    return DaskTaskRunner(cluster_kwargs=processes | {"memory_limit": 0, "dashboard_address": None})


def at_once(setting: str, feed: str) -> int:
    """Most partitions of one delivery at once: `16`, or `16,FEED=4` with less for a feed."""
    chosen: dict[str, int] = {}
    for one in filter(None, (part.strip() for part in setting.split(","))):
        name, _, number = one.rpartition("=")
        if not re.fullmatch(r"[1-9]\d{0,3}", number):
            raise SettingsError(
                f"{AT_ONCE}={setting!r}: {one!r} is neither a number nor FEED=NUMBER."
            )
        chosen[name.strip()] = int(number)
    return chosen.get(feed, chosen.get("", MOST_PARTITIONS))
