"""Partitions in processes of this machine, and what an import has left behind."""

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.postgres.batches.lease import Lease, hold_batch
from connectors.postgres.database import open_database
from connectors.settings import Settings
from flows.stages.partitions import Partition, Run, stage_in_partitions, stage_partition
from flows.stages.receive import receive
from flows.stages.receiving.terms import StatedTerms
from flows.stages.sequence import run_batch
from flows.stages.workspace import Workspace

PASSING = {"written_at", "epoch", "opened_at", "ended_at", "lease_owner", "lease_epoch", "clues"}
"""Columns that tell when, by whom, or where to look; they differ from run to run."""
TRAIL = {"event", "event_chain", "push_epoch", "alembic_version"}


def stage_here(settings: Settings, text: str) -> int:
    workspace = Workspace(settings, open_database(settings))
    with workspace.database.connect() as connection:
        return stage_partition(workspace, connection, Partition.from_json(json.loads(text)))


def crash_at(point: str) -> None:
    os.environ["CRASH_AT"] = point


@contextmanager
def processes(settings: Settings, crash: str | None = None) -> Iterator[Run]:
    """Two processes that take partitions; with `crash`, each dies at that recovery point."""
    setup = {"initializer": crash_at, "initargs": (crash,)} if crash else {}
    # What a partition needs is imported once, in the process they are forked from.
    made = get_context("forkserver")
    made.set_forkserver_preload(["__main__", __name__])
    with ProcessPoolExecutor(2, made, **setup) as pool:  # type: ignore[arg-type]

        def run(partition: Partition) -> int:
            return pool.submit(stage_here, settings, json.dumps(partition.as_json())).result()

        yield run


@contextmanager
def received(
    workspace: Workspace, paths: Sequence[Path], profile: Profile = DEFAULT
) -> Iterator[Lease]:
    batch = receive(workspace, [str(path) for path in paths], StatedTerms(profile)).batch_id
    with workspace.database.connect() as connection, hold_batch(connection, batch) as lease:
        yield lease


def import_in_partitions(
    workspace: Workspace, paths: Sequence[Path], profile: Profile = DEFAULT
) -> None:
    with received(workspace, paths, profile) as lease, processes(workspace.settings) as run:
        stage_in_partitions(workspace, lease, run, chunks=2)
        batch = lease.batch_id
    run_batch(workspace, batch)


def left_behind(workspace: Workspace) -> dict[str, Any]:
    """Every table as rows and a hash of all of them, and the reports."""
    found: dict[str, Any] = {}
    with workspace.database.connect() as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'recon' ORDER BY 1"
        ).fetchall()
        for (table,) in tables:
            if table in TRAIL:
                continue
            columns = connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass "
                "AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                [table],
            ).fetchall()
            kept = ", ".join(f'"{name}"' for (name,) in columns if name not in PASSING)
            found[table] = connection.execute(
                "SELECT count(*), md5(string_agg(row, E'\\n' ORDER BY row)) "
                f"FROM (SELECT ROW({kept})::text AS row FROM {table}) AS t"
            ).fetchone()
    for path in sorted(workspace.settings.reports.rglob("report.*")):
        found[str(path.relative_to(workspace.settings.reports))] = path.read_bytes()
    return found
