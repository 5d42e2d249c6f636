"""Rows whose record somebody has changed in the database directly, not by a batch.

Such a change keeps the name of the row that wrote the record, although that row has sent another
body than the record now has. So a row that found the record unchanged must not end as that writer
did.
"""

from collections.abc import Mapping

import psycopg

from connectors.postgres.database import nested_loops
from connectors.postgres.push.lane import unanswered_error
from schemas.derived.sql_names import staged_name
from schemas.derived.views import joined, of_batch, quoted
from schemas.field import Table
from schemas.kinds import stored_columns
from schemas.operations import PUSHES

TWIN = "(o.writer_extract_id, o.writer_record_number) <> (o.extract_id, o.record_number)"
"""The condition of the index `send_twins`."""
OVERWRITTEN = """x.state = 'superseded' AND x.twin
    AND (x.writer_extract_id, x.writer_record_number) = (x.extract_id, x.record_number)"""
"""SQL for rows `x` that found their record unchanged, but another body in it when planned."""
WRITTEN_BEFORE = """(i.image::json ->> 'extract_id')::integer,
    (i.image::json ->> 'record_number')::bigint"""
"""SQL for the extract and record number of the row that wrote the content of before-image `i`."""

_OF_OPERATION = "x.batch_id = %(batch)s AND x.operation = %(operation)s"
_OWN = f"{_OF_OPERATION} AND x.state = 'unsent'"
_FOLLOWER = f"x.twin AND {TWIN.replace('o.', 'x.')}"
_LATER = f"""(o.writer_extract_id, o.writer_record_number) =
        (x.writer_extract_id, x.writer_record_number) AND {TWIN}
    AND (o.extract_id, o.record_number) > (x.extract_id, x.record_number)
    AND o.batch_id IN (SELECT id FROM batch WHERE state <> 'undone')"""
"""SQL for whether a later row `o` found the record of a row `x` unchanged."""
_WRITER = "x.writer_"
"""Prefix of the columns that say which row wrote the record of a row `x`."""
_WRITTEN_BY_HAND = "somebody has written what it says into the database, beside all batches"


def same_stored(table: Table, row: str = "t") -> str:
    """SQL for whether every column of a row has what a staged row `s` says of its record."""
    columns = map(quoted, stored_columns(table))
    return " AND ".join(f"{row}.{name} IS NOT DISTINCT FROM s.{name}" for name in columns)


def part_from_changed(
    connection: psycopg.Connection, table: Table, values: Mapping[str, object]
) -> None:
    """Keep planned rows from following rows that say something else, inside the open transaction.

    Such a PUT is sent itself. Such a POST is in doubt, since nobody knows whether the service has
    its content.
    """
    _find_writers(connection, table, values)
    operation = PUSHES[table.name]
    change = "twin = FALSE"
    if not operation.keyed:
        change += ", state = 'in_doubt', error_data = %(error)s, changed_at = now()"
    values = {**values, "error": unanswered_error(operation, _WRITTEN_BY_HAND)}
    _change(connection, table, change, f"{_OWN} AND {_FOLLOWER}", _WRITER, values)


def part_decided(connection: psycopg.Connection, table: Table, batch_id: int, number: int) -> None:
    """The same for rows that a decision lets be sent again; these are sent, POSTs included."""
    which = f"{_OWN} AND {_FOLLOWER} AND x.decision_number = %(number)s"
    values = {"batch": batch_id, "operation": PUSHES[table.name].name, "number": number}
    _change(connection, table, "twin = FALSE", which, _WRITER, values)


def supersede_changed(connection: psycopg.Connection, table: Table, batch_id: int) -> None:
    """Mark rows as superseded if a later row has found other content in their record."""
    values = {"batch": batch_id, "operation": PUSHES[table.name].name}
    change = "state = 'superseded', changed_at = now()"
    _change(connection, table, change, f"{_OWN} AND {_LATER}", "o.", values, "send o,")


def _change(
    connection: psycopg.Connection,
    table: Table,
    change: str,
    which: str,
    other: str,
    values: Mapping[str, object],
    others: str = "",
) -> None:
    """Change rows `x` whose content differs from that of another row.

    `other` is the prefix of the columns with that row's place, `others` a FROM item for them.
    """
    asked = f"SELECT DISTINCT x.extract_id, {other}extract_id FROM {others} send x WHERE {which}"
    found = connection.execute(asked, values).fetchall()
    if not found:
        return
    mine, theirs = (list(set(extracts)) for extracts in zip(*found, strict=True))
    # There are no statistics for the rows that were planned just now.
    with nested_loops(connection, on=False):
        connection.execute(
            f"""UPDATE send x SET {change}
            FROM {others} {staged_name(table)} s, {staged_name(table)} w
            WHERE {which} AND s.extract_id = ANY(%(mine)s) AND w.extract_id = ANY(%(theirs)s)
                AND (s.extract_id, s.record_number) = (x.extract_id, x.record_number)
                AND (w.extract_id, w.record_number) = ({other}extract_id, {other}record_number)
                AND NOT ({same_stored(table, "w")})""",
            {**values, "mine": mine, "theirs": theirs},
        )


def _find_writers(
    connection: psycopg.Connection, table: Table, values: Mapping[str, object]
) -> None:
    """Let rows follow the writer of their record if it was changed only after they found it.

    Planning had marked them superseded, as if a later batch had overwritten the record.
    """
    overwritten = f"{_OF_OPERATION} AND {OVERWRITTEN}"
    asked = f"SELECT FROM send x WHERE {overwritten} LIMIT 1"
    if connection.execute(asked, values).fetchone() is None:
        return
    these = f"""{overwritten} AND {of_batch("s")}
        AND (s.extract_id, s.record_number) = (x.extract_id, x.record_number)"""
    with nested_loops(connection, on=False):
        connection.execute(
            f"""UPDATE send x SET state = 'unsent', changed_at = now(),
                writer_extract_id = w.extract_id, writer_record_number = w.record_number
            FROM {staged_name(table)} s JOIN {table.name} t ON {joined(table)}
            JOIN {staged_name(table)} w
                ON (w.extract_id, w.record_number) = (t.extract_id, t.record_number)
                AND w.extract_id = ANY(ARRAY(SELECT DISTINCT t.extract_id
                    FROM send x, {staged_name(table)} s JOIN {table.name} t ON {joined(table)}
                    WHERE {these}))
            WHERE {these} AND {same_stored(table, "w")}""",
            values,
        )
