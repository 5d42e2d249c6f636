"""Undo: what a batch inserted and updated is taken back, from its before-images."""

from collections.abc import Collection

import psycopg

from connectors.errors import BatchStateError
from connectors.postgres.ledger import batch_span
from schemas.derived.sql_names import content_columns, listed, staged_name, target_columns
from schemas.derived.views import STATE, WRITTEN, joined, of_batch, quoted, told_joins
from schemas.field import Table


def refuse_if_touched(connection: psycopg.Connection, table: Table, batch_id: int) -> None:
    """Raise BatchStateError when a later batch has written rows that this one wrote."""
    row = connection.execute(
        f"""SELECT t.batch_id, count(*) FROM ({_written(table)}) s
        JOIN {table.name} t ON {joined(table)}
        WHERE (t.extract_id, t.record_number) <> (s.extract_id, s.record_number)
        GROUP BY 1 ORDER BY 1 DESC LIMIT 1""",
        batch_span(connection, batch_id),
    ).fetchone()
    if row is not None:
        raise BatchStateError(
            f"Batch {batch_id} cannot be undone: batch {row[0]} has since written {row[1]} of its "
            f"{table.title.lower()} rows. Undo batch {row[0]} first; nothing was changed."
        )


def changed_by_hand(connection: psycopg.Connection, table: Table, batch_id: int) -> int:
    """How many rows that the batch wrote last are gone, or other than it wrote them.

    Nothing of ours changes a row and leaves the name of its writer: somebody did, in the database.
    """
    content = content_columns(table)
    mine = ", ".join(f"s.{quoted(name)}" for name in content) or "TRUE"
    theirs = ", ".join(f"t.{quoted(name)}" for name in content) or "TRUE"
    row = connection.execute(
        f"""SELECT count(*) FROM ({_written(table)}) s LEFT JOIN {table.name} t ON {joined(table)}
        WHERE t.batch_id IS NULL OR ROW({mine}) IS DISTINCT FROM ROW({theirs})""",
        batch_span(connection, batch_id),
    ).fetchone()
    return row[0] if row else 0


def take_back(connection: psycopg.Connection, table: Table, batch_id: int) -> dict[str, int]:
    """Delete what the batch inserted and restore what it updated; returns the counts."""
    values = ", ".join(f"{quoted(name)} = b.{quoted(name)}" for name in target_columns(table))
    span = batch_span(connection, batch_id)
    restored = connection.execute(
        f"""UPDATE {table.name} t SET {values}
        FROM before_image i, json_populate_record(NULL::{table.name}, i.image::json) b
        WHERE {of_batch("i")} AND i.record = '{table.name}'
            AND t.batch_id = %(batch)s AND t.extract_id = i.extract_id
            AND t.record_number = i.record_number""",
        span,
    ).rowcount
    deleted = connection.execute(
        f"DELETE FROM {table.name} WHERE batch_id = %(batch)s", span
    ).rowcount
    return {"deleted": deleted, "restored": restored}


def undone_by(connection: psycopg.Connection, batch_id: int, events: Collection[int]) -> int | None:
    """Which of these events undid the batch; None: none of them was committed."""
    row = connection.execute(
        "SELECT id FROM event WHERE batch_id = %s AND what = 'undo' AND id = ANY(%s)",
        [batch_id, list(events)],
    ).fetchone()
    return None if row is None else int(row[0])


def _written(table: Table) -> str:
    return f"""SELECT s.* FROM {staged_name(table)} s {told_joins(table)}
        WHERE {of_batch("s")} AND {STATE} IN ({listed(WRITTEN)})"""
