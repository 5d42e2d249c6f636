"""One large delivery over several processes or machines: its partitions as tasks on Dask workers.

`RECON_DASK` names the cluster: `local:4` starts four processes for as long as a delivery is staged,
`tcp://HOST:PORT` or `tls://HOST:PORT` is the scheduler of one that is there. Unset, or when the
delivery is small, the run stages it by itself; what ends up in the database is the same.
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
"""How long a cluster without a worker is given for its first one."""
WORKERLESS_SECONDS = 1800
"""How long one is given for the next, once all of its workers are gone."""
LOOK_SECONDS = 60
"""How often it is asked whether it has one, while a partition has not come back."""


def stage_delivery(workspace: Workspace, lease: Lease) -> bool:
    """Stage the batch of this lease: on the cluster where there is one and it is worth it.

    Returns as `stage` does whether anything was left to do.
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
    """Let its workers say no more that they have lost their scheduler: it closes, as they do."""
    client: Any = runner.client
    with suppress(Exception):  # It is for the log alone.
        client.run(_say_nothing, on_error="ignore")


def _say_nothing() -> None:
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)


class _HandedOut:
    """The partitions that workers of the cluster have, or wait for."""

    def __init__(self, runner: "DaskTaskRunner", cluster: str) -> None:
        self._runner, self._cluster = runner, cluster
        self._waited_for: list[Any] = []
        self._is_over = False
        self._workerless_since: float | None = None

    def run(self, partition: Partition) -> int:
        """Raises what the partition raised, and ClusterFailed for all that Dask says."""
        try:
            future = self._runner.submit(stage_one_partition, {"partition": partition.as_json()})
            handed_out: Any = future.wrapped_future
            self._waited_for.append(handed_out)
            if self._is_over:
                handed_out.cancel()
            # How the task ended is a value to Dask; only what Dask itself says is raised here.
            self._wait_for(handed_out)
        except Exception as error:
            if isinstance(error, ClusterFailed) or prefect_line(error) is not None:
                raise
            raise ClusterFailed(
                f"{CLUSTER}={self._cluster!r}: the cluster gave a partition back undone "
                f"({_named(error)}). What was written stays: Retry goes on with the rest once its "
                f"scheduler and workers run, or unset {CLUSTER} and the run does it by itself."
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
        """Raises ClusterFailed once it has had none for too long: a partition waits for ever."""
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
                f"{WORKERLESS_SECONDS / 60:.0f} minutes. What was written stays: start one (`dask "
                f"worker`) and Retry goes on with the rest, or unset {CLUSTER} and the run does it "
                "by itself."
            )

    def take_back(self) -> None:
        """Wait only for those that a worker has: it has begun one, and may hold the next."""
        self._is_over = True
        client: Any = self._runner.client
        if client.status != "running":
            return  # It has lost its scheduler, and with it all of them.
        with suppress(Exception):  # Then they are done before the run ends.
            held = {key for keys in client.processing().values() for key in keys}
            client.cancel([one for one in self._waited_for if one.key not in held], force=True)

    def give_up(self) -> None:
        """Wait for none of them any more; one that a worker has begun may yet go on there."""
        self._is_over = True
        client: Any = self._runner.client
        with suppress(Exception):  # Nothing is to be done about it, and the run ends.
            client.cancel(self._waited_for, force=True)


def connect(runner: "DaskTaskRunner", cluster: str, seconds: float = WORKER_SECONDS) -> None:
    """Make its client, which several threads then share, and see that there is a worker.

    Raises SettingsError.
    """
    try:
        try:
            has_worker = _has_worker(runner, seconds)
        except AssertionError:
            # Dask takes it for impossible that a scheduler says something behind its first word
            # at once, as one that is busy does.
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
    """Close a client that its runner never had: the end of the process would wait for it.

    So would the next client for ever, where this one is collected while Dask's lock is held:
    Dask closes what is collected, and takes the same lock for it.
    """
    from distributed import Client  # noqa: PLC0415 - An extra.

    # Nothing else knows it, Dask's own list not always. By its type: proxies are asked nothing.
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
        return "no cluster is to be reached there", "Start its scheduler"
    return "what answers there is no Dask scheduler", "Name the address of one"


def _named(error: Exception) -> str:
    """What Dask or a library of it says, in one line."""
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
    if is_empty(run_settings()):  # Opened, it would be made here.
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
