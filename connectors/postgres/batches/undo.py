"""Undo: take back what a batch inserted and updated, using its before-images."""

from collections.abc import Sequence
from typing import NoReturn

import psycopg

from connectors.errors import BatchStateError
from connectors.postgres.accounts import OF_OTHERS, batch_label
from connectors.postgres.batches.ledger import TAKEN_BACK, batch_span
from connectors.postgres.database import nested_loops
from connectors.postgres.query import one_value
from connectors.postgres.trail import through_before
from schemas.derived.sql_names import (
    SCHEMA,
    content_columns,
    inserted_columns,
    listed,
    staged_name,
    target_columns,
)
from schemas.derived.views import (
    FOUND,
    STATE,
    WRITTEN,
    apply_stage,
    joined,
    of_batch,
    outcome_joins,
    quoted,
)
from schemas.field import Table

ASK = "Ask somebody who sees every batch to undo that one first"
TAKEN = ("deleted", "restored")
"""Keys of the counts of rows taken back."""


def refuse_if_corrected(
    connection: psycopg.Connection, batch_id: int, done: str = "undone"
) -> None:
    """Raise BatchStateError while a correction of the batch stands; `done` is what is refused.

    Without the row that it repairs, a row of the correction would lead back to none. The row that
    was delivered first would be in error again, and could be repaired again with other values.
    """
    found = connection.execute(
        "SELECT max(id) FROM batch WHERE corrects = %s AND id > corrects "
        f"AND state NOT IN ({listed(TAKEN_BACK)})",
        [batch_id],
    )
    if (other := one_value(found)) is not None:
        raise BatchStateError(
            f"Batch {batch_id} cannot be {done}: batch {other} corrects it. Undo batch {other} "
            "first, or discard it where it is held; nothing was changed."
        )


def refuse_if_touched(connection: psycopg.Connection, table: Table, batch_id: int) -> None:
    """Raise BatchStateError if a later batch has written rows of this one, or depends on them.

    A batch depends on a row that was already there when it delivered the same record: it wrote
    nothing, and without that row its record would be nowhere. If a record is gone, the images of
    later batches tell who wrote it: undoing one of these would bring back what this batch wrote.
    """
    title = table.title.lower()

    def refuse(other: int, has: str, then: str = "") -> NoReturn:
        named = batch_label(connection, other)
        raise BatchStateError(
            f"Batch {batch_id} cannot be undone: {named} {has}. "
            f"{ASK if named is OF_OTHERS else f'Undo {named} first'}; {then}nothing was changed."
        )

    row = connection.execute(
        f"""SELECT t.batch_id, count(*) FROM ({_written(table)}) s
        LEFT JOIN {table.name} t ON {joined(table)}
        WHERE (t.extract_id, t.record_number) IS DISTINCT FROM (s.extract_id, s.record_number)
        GROUP BY 1 ORDER BY 1 DESC NULLS LAST LIMIT 1""",
        batch_span(connection, batch_id),
    ).fetchone()
    if row is not None and row[0] is not None:
        refuse(row[0], f"has since written {row[1]} of its {title} rows")
    for other in () if row is None else _applied_since(connection, table, batch_id, ["updated"]):
        if found := _images_of(connection, table, batch_id, other):
            refuse(other, f"has since written {found} of its {title} rows")
    for other in _applied_since(connection, table, batch_id, FOUND):
        if found := _found_there(connection, table, batch_id, other):
            refuse(
                other,
                f"delivered {found} of its {title} rows too, and wrote none of them because they "
                "were there",
                "what it delivered can be imported again afterwards, and ",
            )


def _applied_since(
    connection: psycopg.Connection, table: Table, batch_id: int, verdicts: Sequence[str]
) -> list[int]:
    """The batches with these verdicts on records that this one may have written, last first."""
    batches = connection.execute(
        f"""SELECT DISTINCT r.batch_id FROM receipt r JOIN batch b ON b.id = r.batch_id
        WHERE r.stage = %(stage)s AND r.batch_id <> %(batch)s
            AND b.state NOT IN ({listed(TAKEN_BACK)}) AND r.counts::jsonb ?| %(verdicts)s
            AND NOT {through_before("r.batch_id", "%(batch)s")}
        ORDER BY 1 DESC""",
        {"stage": apply_stage(table), "batch": batch_id, "verdicts": list(verdicts)},
    )
    return [one for (one,) in batches]


def _images_of(connection: psycopg.Connection, table: Table, batch_id: int, other: int) -> int:
    """How many records another batch overwrote that were last written by this one."""
    found = connection.execute(
        f"""SELECT count(*) FROM before_image i WHERE {of_batch("i")} AND i.record = %(record)s
            AND (i.image::json ->> 'batch_id')::int = %(undone)s""",
        batch_span(connection, other) | {"undone": batch_id, "record": table.name},
    )
    return int(one_value(found))


def _found_there(connection: psycopg.Connection, table: Table, batch_id: int, other: int) -> int:
    """How many rows of another batch wrote nothing because this batch had written their record."""
    found = connection.execute(
        f"""SELECT count(*) FROM {staged_name(table)} s {outcome_joins(table)}
        JOIN {table.name} t ON {joined(table)} AND t.batch_id = %(undone)s
        WHERE {of_batch("s")} AND {STATE} IN ({listed(FOUND)})""",
        batch_span(connection, other) | {"undone": batch_id},
    )
    return int(one_value(found))


def changed_by_hand(connection: psycopg.Connection, table: Table, batch_id: int) -> int:
    """How many rows last written by the batch are gone, or differ from what it wrote.

    Nothing of ours changes a row and keeps its writer, so somebody changed them in the database.
    """
    content = content_columns(table)
    mine = ", ".join(f"s.{quoted(name)}" for name in content) or "TRUE"
    theirs = ", ".join(f"t.{quoted(name)}" for name in content) or "TRUE"
    found = connection.execute(
        f"""SELECT count(*) FROM ({_written(table)}) s LEFT JOIN {table.name} t ON {joined(table)}
        WHERE t.batch_id IS NULL OR ROW({mine}) IS DISTINCT FROM ROW({theirs})""",
        batch_span(connection, batch_id),
    )
    return int(one_value(found))


def take_back(
    connection: psycopg.Connection, table: Table, batch_id: int, *, lost: bool = False
) -> dict[str, int]:
    """Delete what the batch inserted and restore what it updated; gives the counts.

    With `lost`, rows that it updated may be gone, and are inserted as they were before it.
    """
    values = ", ".join(f"{quoted(name)} = b.{quoted(name)}" for name in target_columns(table))
    span = batch_span(connection, batch_id)
    # Qualified, since a built-in type hides a table of its name: point, line, money, date.
    row = f"{SCHEMA}.{quoted(table.name)}"
    images = f"""before_image i, json_populate_record(NULL::{row}, i.image::json) b
        WHERE {of_batch("i")} AND i.record = '{table.name}'"""
    # No statistics exist for rows that another undo has just given back, as for a new batch.
    with nested_loops(connection, on=False):
        restored = connection.execute(
            f"""UPDATE {table.name} t SET {values} FROM {images}
                AND t.batch_id = %(batch)s AND t.extract_id = i.extract_id
                AND t.record_number = i.record_number""",
            span,
        ).rowcount
    if lost:
        columns = [quoted(name) for name in inserted_columns(table)]
        restored += connection.execute(
            f"""INSERT INTO {table.name} ({", ".join(columns)})
            SELECT {", ".join(f"b.{name}" for name in columns)} FROM {images}
                AND NOT EXISTS (SELECT FROM {table.name} t WHERE {joined(table, "b")})""",
            span,
        ).rowcount
    deleted = connection.execute(
        f"DELETE FROM {table.name} WHERE batch_id = %(batch)s", span
    ).rowcount
    return dict(zip(TAKEN, (deleted, restored), strict=True))


def _written(table: Table) -> str:
    return f"""SELECT s.* FROM {staged_name(table)} s {outcome_joins(table)}
        WHERE {of_batch("s")} AND {STATE} IN ({listed(WRITTEN)})"""
