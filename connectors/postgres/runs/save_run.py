"""Saving a run of a scope with its breaks."""

from collections.abc import Iterable
from dataclasses import asdict

import polars as pl
import psycopg
from psycopg import sql

from connectors.postgres.batches.staging import copy_text
from connectors.postgres.bulk.binary_copy import pieces
from connectors.postgres.database import COPY_BYTES
from connectors.postgres.runs.reconciliations import (
    MANIFEST_NOTED,
    Reconciliation,
    RunFacts,
    breaks_hash,
    find_run,
    latest_run,
    scope_hash,
)
from connectors.postgres.trail import detail_text, write_trail
from connectors.process import whoami
from schemas.ledger import BREAK_STATE

DRAFTED_BREAKS = f"draft_{BREAK_STATE.name}"


def save_run(
    connection: psycopg.Connection,
    run: RunFacts,
    breaks: Iterable[pl.DataFrame],
    *,
    signed_through: int,
    manifest_hash: str | None,
    restates: str = "",
    by: str | None = None,
) -> Reconciliation:
    """Save a run with its breaks in one transaction; the caller holds the scope.

    `breaks` are frames with the columns of the ledger's break states except the run's number.
    `signed_through` is the last event whose signatures page one knows, `manifest_hash` the SHA-256
    of the manifest, `restates` the reason if the run restates another.
    """
    row = asdict(run) | {"as_of": run.as_of.isoformat(), "scope_hash": scope_hash(run.scope)}
    with connection.transaction():
        last = latest_run(connection, run.scope)
        assert (last and last.id) == run.previous_id, "the scope is held by its caller"
        saved = copy_breaks(connection, run.id, breaks)
        hashed = breaks_hash(connection, run.id, DRAFTED_BREAKS)
        facts = {name: one for name, one in row.items() if name not in ("scope", "rules_text")}
        facts |= {"breaks": saved, "breaks_hash": hashed, "signed_through": signed_through}
        noted = {"restates": restates, MANIFEST_NOTED: manifest_hash}
        detail = detail_text(facts | {name: one for name, one in noted.items() if one})
        connection.execute("SELECT draft('reconciliation')")
        connection.execute(
            f"INSERT INTO draft_reconciliation ({', '.join(row)}) "
            f"VALUES ({', '.join(f'%({name})s' for name in row)})",
            row,
        )
        write_trail(connection, "conclude", by or whoami(), detail)
    return find_run(connection, run.id)


def copy_breaks(connection: psycopg.Connection, number: int, breaks: Iterable[pl.DataFrame]) -> int:
    """Write the breaks of a run to the draft table, part by part; gives how many.

    The frames have the columns of the ledger except the run's number.
    """
    names = [field.name for field in BREAK_STATE]
    connection.execute("SELECT draft('break_state')")
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(DRAFTED_BREAKS), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    count = 0
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for part in breaks:
            rows = part.select(pl.lit(number, pl.Int32).alias("reconciliation_id"), *names[1:])
            for piece in pieces([copy_text(rows)], COPY_BYTES):
                copy.write(piece)
            count += rows.height
    return count
