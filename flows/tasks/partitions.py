"""A large delivery staged by several processes or machines, with partitions as Dask tasks.

`RECON_DASK` names the cluster: `local:4` starts four processes while a delivery is staged, and
`tcp://HOST:PORT` or `tls://HOST:PORT` is the scheduler of an existing cluster. If it is unset, or
the delivery is small, the run stages it by itself; the resulting database is the same.
"""

import gc
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from prefect import task

from connectors.errors import ClusterFailed, SettingsError
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import Lease
from connectors.postgres.database import is_empty
from flows.stages.partitions import (
    MOST_PARTITIONS,
    Partition,
    is_large,
    other_database,
    stage_in_partitions,
    stage_partition,
)
from flows.stages.stage import stage
from flows.stages.workspace import Workspace
from flows.tasks.attempts import FROM_LEDGER
from flows.tasks.blocks import run_settings
from flows.tasks.error_lines import prefect_line
from flows.tasks.holding import open_workspace

if TYPE_CHECKING:
    from prefect_dask.task_runners import DaskTaskRunner

CLUSTER = "RECON_DASK"
AT_ONCE = "RECON_DASK_AT_ONCE"
WORKER_SECONDS = 60
"""How long to wait for a cluster's first worker."""
WORKERLESS_SECONDS = 1800
"""How long to wait for the next worker once all are gone."""
LOOK_SECONDS = 60
"""How often the cluster is asked for workers while a partition has not come back."""


def stage_delivery(workspace: Workspace, lease: Lease) -> bool:
    """Stage the batch of this lease, on the cluster if there is one and it is worthwhile.

    Returns, like `stage`, whether anything was left to do.
    """
    cluster = os.environ.get(CLUSTER)
    if not cluster or not is_large(workspace, lease):
        return stage(workspace, lease)
    feed = ledger.find_batch(lease.connection, lease.batch_id).feed
    most = at_once(os.environ.get(AT_ONCE, ""), feed)
    with dask_runner(cluster) as runner:
        connect(runner, cluster)
        handed = _HandedOut(runner, cluster)
        left = stage_in_partitions(
            workspace,
            lease,
            handed.run,
            at_once=most,
            take_back=handed.take_back,
            give_up=handed.give_up,
        )
        if cluster.startswith("local:"):
            quieten(runner)
    return left


def quieten(runner: "DaskTaskRunner") -> None:
    """Keep workers from reporting the loss of their scheduler, which closes along with them."""
    client: Any = runner.client
    with suppress(Exception):  # Only log lines depend on it.
        client.run(_say_nothing, on_error="ignore")


def _say_nothing() -> None:
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)


class _HandedOut:
    """The partitions that workers of the cluster have or wait for."""

    def __init__(self, runner: "DaskTaskRunner", cluster: str) -> None:
        self._runner, self._cluster = runner, cluster
        self._waited_for: list[Any] = []
        self._is_over = False
        self._workerless_since: float | None = None

    def run(self, partition: Partition) -> int:
        """Run a partition; raises what it raised, and ClusterFailed for errors of Dask."""
        try:
            future = self._runner.submit(stage_one_partition, {"partition": partition.as_json()})
            handed_out: Any = future.wrapped_future
            self._waited_for.append(handed_out)
            if self._is_over:
                handed_out.cancel()
            # To Dask, the end of a task is a value; only Dask's own errors are raised here.
            self._wait_for(handed_out)
        except Exception as error:
            if isinstance(error, ClusterFailed) or prefect_line(error) is not None:
                raise
            raise ClusterFailed(
                f"{CLUSTER}={self._cluster!r}: the cluster gave a partition back undone "
                f"({_named(error)}). What was written stays: once its scheduler and workers run, "
                f"Retry goes on with the rest. If you unset {CLUSTER}, the run does it by itself."
            ) from error
        return int(future.result())

    def _wait_for(self, handed_out: Any) -> None:
        while True:
            try:
                handed_out.result(LOOK_SECONDS)
            except TimeoutError:
                if handed_out.done():
                    raise
                self._see_that_it_has_a_worker()
            else:
                return

    def _see_that_it_has_a_worker(self) -> None:
        """Raise ClusterFailed after too long without a worker: partitions would wait for ever."""
        client: Any = self._runner.client
        try:
            there = bool(client.scheduler_info(n_workers=1)["workers"])
        except Exception:  # noqa: BLE001 - A scheduler that is gone gives all partitions back.
            there = True
        since = monotonic() if there or self._workerless_since is None else self._workerless_since
        self._workerless_since = None if there else since
        if monotonic() - since > WORKERLESS_SECONDS:
            raise ClusterFailed(
                f"{CLUSTER}={self._cluster!r}: its scheduler has had no worker for "
                f"{WORKERLESS_SECONDS / 60:.0f} minutes. What was written stays: start a worker "
                f"(`dask worker`), and Retry goes on with the rest. If you unset {CLUSTER}, the "
                "run does it by itself."
            )

    def take_back(self) -> None:
        """Wait only for partitions that workers have begun or hold; cancel the others."""
        self._is_over = True
        client: Any = self._runner.client
        if client.status != "running":
            return  # The scheduler is lost, and all partitions with it.
        with suppress(Exception):  # Otherwise they are done before the run ends.
            held = {key for keys in client.processing().values() for key in keys}
            client.cancel([one for one in self._waited_for if one.key not in held], force=True)

    def give_up(self) -> None:
        """Stop waiting for all partitions; a worker may still go on with one it has begun."""
        self._is_over = True
        client: Any = self._runner.client
        with suppress(Exception):  # The run ends anyway.
            client.cancel(self._waited_for, force=True)


def connect(runner: "DaskTaskRunner", cluster: str, seconds: float = WORKER_SECONDS) -> None:
    """Make the runner's client, which several threads then share, and wait for a worker.

    Raises SettingsError.
    """
    try:
        try:
            has_worker = _has_worker(runner, seconds)
        except AssertionError:
            # Dask assumes that a scheduler never sends two messages right away, but a busy one
            # may.
            _close_unconnected()
            has_worker = _has_worker(runner, seconds)
    except Exception as error:
        _close_unconnected()
        why, todo = _why_not(cluster, error)
        raise SettingsError(
            f"{CLUSTER}={cluster!r}: {why} ({_named(error)}). {todo} and run again, or unset it; "
            "nothing more was staged."
        ) from error
    if not has_worker:
        raise SettingsError(
            f"{CLUSTER}={cluster!r}: its scheduler has had no worker for {seconds:.0f} s. Start "
            "one (`dask worker`) and run again, or unset it; nothing more was staged."
        )


def _has_worker(runner: "DaskTaskRunner", seconds: float) -> bool:
    client = runner.client
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError:
        return False
    return True


def _close_unconnected() -> None:
    """Close a client that its runner never got, since the end of the process would wait for it.

    The next client could also wait for ever, if this one is garbage-collected while Dask's lock is
    held: Dask closes what is collected, and takes the same lock for that.
    """
    from distributed import Client  # noqa: PLC0415 - An extra.

    # Nothing else refers to it, not always even Dask's own list. By type, so as not to touch
    # proxies.
    clients: list[Any] = [one for one in gc.get_objects() if issubclass(type(one), Client)]
    for client in clients:
        if client.status == "connecting":
            client.close(timeout=1)


def _why_not(cluster: str, error: Exception) -> tuple[str, str]:
    """Why there is no client, and what to do about it."""
    if cluster.startswith("local:"):
        return "its processes do not start", "Name fewer of them"
    if isinstance(error, TypeError) and cluster.startswith("tls:"):
        todo = "Name them in Dask's configuration (distributed.comm.tls)"
        return "tls:// needs certificates, and there are none", todo
    if isinstance(error, OSError):
        return "no cluster can be reached there", "Start its scheduler"
    return "what answers there is not a Dask scheduler", "Name the address of one"


def _named(error: Exception) -> str:
    """The message of an error from Dask or a library of it, in one line."""
    why = str(error).splitlines()[:1] or [""]
    return f"{type(error).__name__}{f': {why[0]}' if why[0] else ''}"


@task(
    name="stage partition",
    task_run_name="stage partition of batch {partition[batch_id]}",
    **FROM_LEDGER,
)
def stage_one_partition(partition: Mapping[str, Any]) -> int:
    """Stage a partition under the lease of the run that handed it out; returns its rows."""
    wanted = Partition.from_json(partition)
    if is_empty(run_settings()):  # Opening the database would create it here.
        raise other_database(wanted)
    workspace = open_workspace()
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
    # One thread each, because a partition keeps more than one core busy by itself. Its memory is
    # bounded, while Dask's bound, a share of the machine, would end workers on a small one.
    processes = {"n_workers": int(local[1]), "threads_per_worker": 1, "processes": True}
    return DaskTaskRunner(cluster_kwargs=processes | {"memory_limit": 0, "dashboard_address": None})


def at_once(setting: str, feed: str) -> int:
    """The most partitions of a delivery at once: `16`, or `16,FEED=4` with fewer for a feed."""
    chosen: dict[str, int] = {}
    for one in filter(None, (part.strip() for part in setting.split(","))):
        name, _, number = one.rpartition("=")
        if not re.fullmatch(r"[1-9]\d{0,3}", number):
            raise SettingsError(
                f"{AT_ONCE}={setting!r}: {one!r} is neither a number nor FEED=NUMBER."
            )
        chosen[name.strip()] = int(number)
    return chosen.get(feed, chosen.get("", MOST_PARTITIONS))
