"""A run of a scope saved with its breaks."""

from collections.abc import Iterable
from datetime import date

import polars as pl
import psycopg
from psycopg import sql

from connectors.postgres.binary_copy import pieces
from connectors.postgres.break_digests import breaks_hash
from connectors.postgres.database import COPY_BYTES
from connectors.postgres.reconciliations import (
    MANIFEST_NOTED,
    Reconciliation,
    find_run,
    latest_run,
    scope_hash,
)
from connectors.postgres.staging import copy_text
from connectors.postgres.trail import detail_text, write_trail
from connectors.process import whoami
from schemas.ledger import BREAK_STATE

DRAFTED_BREAKS = f"draft_{BREAK_STATE.name}"


def save_run(
    connection: psycopg.Connection,
    *,
    number: int,
    scope: str,
    as_of: date,
    rules_hash: str,
    verdict: str,
    report_hash: str,
    chain_hash: str,
    previous: Reconciliation | None,
    decided_through: int,
    folder: str,
    breaks: Iterable[pl.DataFrame],
    signed_through: int,
    by: str | None = None,
    reason: str = "",
    rules_text: str | None = None,
    version: str | None = None,
    manifest_hash: str | None,
) -> Reconciliation:
    """Save a run with its breaks in one transaction; the caller holds the scope.

    `reason` is that of a restatement, `signed_through` the event up to which page one knows what is
    signed, `manifest_hash` the SHA-256 of its manifest. `breaks` are frames with the columns of the
    ledger's break states, without the run's number.
    """
    facts = {
        "id": number,
        "scope_hash": scope_hash(scope),
        "as_of": as_of.isoformat(),
        "rules_hash": rules_hash,
        "verdict": verdict,
        "report_hash": report_hash,
        "chain_hash": chain_hash,
        "previous_id": previous.id if previous else None,
        "decided_through": decided_through,
        "folder": folder,
    }
    with connection.transaction():
        last = latest_run(connection, scope)
        assert (last and last.id) == facts["previous_id"], "the scope is held by its caller"
        saved = copy_breaks(connection, number, breaks)
        hashed = breaks_hash(connection, number, DRAFTED_BREAKS)
        told = facts | {"version": version, "breaks": saved, "breaks_hash": hashed}
        told |= {"signed_through": signed_through}
        noted = {"restates": reason, MANIFEST_NOTED: manifest_hash}
        detail = detail_text(told | {name: one for name, one in noted.items() if one})
        values = facts | {"scope": scope, "rules_text": rules_text, "version": version}
        connection.execute("SELECT draft('reconciliation')")
        connection.execute(
            f"INSERT INTO draft_reconciliation ({', '.join(values)}) "
            f"VALUES ({', '.join(f'%({name})s' for name in values)})",
            values,
        )
        write_trail(connection, "conclude", by or whoami(), detail)
    return find_run(connection, number)


def copy_breaks(connection: psycopg.Connection, number: int, breaks: Iterable[pl.DataFrame]) -> int:
    """Draft the breaks of a run, part by part, and say how many they are.

    The frames have the columns of the ledger but the run's number.
    """
    names = [field.name for field in BREAK_STATE]
    connection.execute("SELECT draft('break_state')")
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(DRAFTED_BREAKS), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    told = 0
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for part in breaks:
            rows = part.select(pl.lit(number, pl.Int32).alias("reconciliation_id"), *names[1:])
            for piece in pieces([copy_text(rows)], COPY_BYTES):
                copy.write(piece)
            told += rows.height
    return told
