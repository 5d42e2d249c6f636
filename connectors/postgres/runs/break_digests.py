"""The hashes of breaks and of decisions that the trail holds them by."""

from collections.abc import Iterable, Sequence

import psycopg

from schemas.guards.trail_functions import breaks_digest
from schemas.guards.trail_rules import content_hash
from schemas.ledger import BREAK_STATE


def breaks_hash(connection: psycopg.Connection, number: int, table: str = BREAK_STATE.name) -> str:
    """The hash of everything the ledger keeps of a run's breaks, or is about to keep."""
    row = connection.execute(
        f"SELECT {breaks_digest(table)} WHERE reconciliation_id = %s", [number]
    ).fetchone()
    assert row is not None
    return str(row[0])


def decisions_hash(lines: Iterable[Sequence[object]]) -> str:
    """The hash of decisions, a ceiling last; one without is hashed as before there were any."""
    return content_hash(line if line[-1] is not None else line[:-1] for line in lines)
