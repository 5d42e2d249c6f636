"""Corrections: rows rejected because they cannot repair the row that they name.

As in `batch_keys`, outcomes are only added here. A *repair* is a row whose column `parent` names a
row of the batch that its batch corrects; its *origin* is the row that was delivered first, across
repairs in between. A repair does not become another row, so that a mistyped key does not overwrite
a good record. Nor do several repairs make several records of one row.

Each function writes one reason. They find repairs in temporary tables: `_gather_claims` fills
`repair_claims` with their origins, `_gather_repairs` fills `named_repairs` with their content.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import psycopg

from connectors.postgres.batches.attempts import (
    AttemptRow,
    attempts_at,
    checked_of,
    first_batch,
    standing_batches,
)
from connectors.postgres.batches.batch_keys import READY, error_data, key_value
from connectors.postgres.batches.corrections import lock_corrections, names_its_kind
from connectors.postgres.batches.ledger import batch_span, find_batch, staged_tables
from connectors.postgres.batches.ranges import Range
from connectors.postgres.database import nested_loops
from schemas.derived.sql_names import TARGET_NAMES, key_columns, listed, place_number, staged_name
from schemas.derived.views import (
    APPLIED,
    AT_PLACES,
    COUNTS_NOT,
    ERRORS,
    FOR_NONE,
    IS_UNDIVIDED,
    STATE,
    at_places,
    joined,
    json_expression,
    of_batch,
    outcome_joins,
    position,
    quoted,
    same_content,
)
from schemas.field import Table
from schemas.own_columns import PARENT_COLUMN
from schemas.tables import INSERT_BATCH_DATA

_IS_REPAIR = f"{READY} AND btrim(s.parent) <> ''"
"""SQL for whether a staged row `s` of a batch is a repair that may still be taken in."""
_NAME = "s.extract_id || ':' || s.record_number"
"""SQL for the name by which repairs refer to a staged row `s` in their column `parent`."""
_LINE_OF_BATCH = (
    f"'Line ' || {position('first_line')} || ' of ' || e.name || ' in batch ' || s.batch_id"
)
"""SQL for where people find a staged row `s` of an extract `e`."""


def mark_unmatched_repairs(connection: psycopg.Connection, table: Table, batch_id: int) -> int:
    """Reject rows that name no row of their kind in the corrected batch; gives how many."""
    rows = f"""
        SELECT s.extract_id, s.record_number, s.parent AS key_value,
            {position("first_line")} AS line
        FROM {staged_name(table)} s
        WHERE {_IS_REPAIR} AND NOT {names_its_kind(table)}"""
    span = batch_span(connection, batch_id)
    return _reject(connection, batch_id, "RepairsNothing", PARENT_COLUMN, rows, span)


def mark_repaired_twice(
    connection: psycopg.Connection, tables: Iterable[Table], batch_id: int, corrects: int
) -> int:
    """Reject rows with different keys that repair the same row; gives how many.

    One row is one record, and only the sender knows which of them it is. Rows with the same key are
    left to `mark_duplicates`. Any number of rows may repair a line that could not be divided into
    cells, because nobody knows how many records it held.
    """
    _gather_claims(connection, tables, batch_id, corrects)
    rows = """
        WITH claimed AS (
            SELECT *, first_value(key) OVER (PARTITION BY origin ORDER BY place) AS first_key
            FROM repair_claims WHERE origin IS NOT NULL
        ), twice AS (
            SELECT origin, min(place) AS first_place,
                min(place) FILTER (WHERE key <> first_key) AS other_place
            FROM claimed GROUP BY origin HAVING min(key) <> max(key)
        )
        SELECT c.extract_id, c.record_number, c.key_value, c.line,
            'Line ' || o.line || ' of ' || e.name AS of_row
        FROM claimed c JOIN twice t USING (origin)
        JOIN repair_claims o
            ON o.place = CASE WHEN c.key = c.first_key THEN t.other_place ELSE t.first_place END
        JOIN extract e ON e.id = o.extract_id"""
    return _reject(connection, batch_id, "RepairedTwice", PARENT_COLUMN, rows)


def mark_applied_otherwise(
    connection: psycopg.Connection, table: Table, batch_id: int, corrects: int
) -> int:
    """Reject repairs of applied rows if they have another key; gives how many.

    Nothing takes back the record that such a row became, so one row would have made two records.
    The key of a record kind without one is its whole content.
    """
    if table.name not in TARGET_NAMES or not _gather_repairs(connection, table, batch_id):
        return 0
    rows = f"""
        SELECT m.extract_id, m.record_number, m.parent AS key_value,
            {position("first_line", "n")} AS line, {_LINE_OF_BATCH} AS of_row
        FROM named_repairs m
        JOIN {staged_name(table)} n USING (extract_id, record_number)
        JOIN {staged_name(table)} s ON m.parent = {_NAME}
        JOIN extract e ON e.id = s.extract_id {outcome_joins(table)}
        WHERE {of_batch("s")} AND n.batch_id = %(repairing)s
            AND {STATE} IN ({listed(APPLIED)}) AND NOT ({_same_key(table, "n")})"""
    span = {**batch_span(connection, corrects), "repairing": batch_id}
    return _reject(connection, batch_id, "AppliedOtherwise", PARENT_COLUMN, rows, span)


def mark_taken_keys(
    connection: psycopg.Connection,
    table: Table,
    batch_id: int,
    *,
    merges: bool,
    only: Range | None = None,
) -> int:
    """Reject repairs with the key of a row that they do not repair; gives how many.

    All batches of the delivery are searched. A row with the same content is a repeat, which does no
    harm if the feed's policy `merges` such rows. A row without ReconRow is known by its key alone:
    it claims to be the record with that key. A row that was repaired since, or is repaired by this
    very batch, counts only as its last repair. Corrections are searched one after the other: a
    repair not checked yet will itself search this batch, so that not both of them give way. Rows
    that name no row never search, so they are found before their check. `only` limits the repairs
    to a range, under the lock of the target, which puts the searches in order by itself.
    """
    if not table.key or not _gather_repairs(connection, table, batch_id, only):
        return 0
    if only is None:
        lock_corrections(connection, first_batch(connection, batch_id))
    others = set(standing_batches(connection, batch_id)) - {batch_id}
    checked = set(checked_of(connection, others))
    matches = [
        match
        for other in sorted(others)
        if table in staged_tables(connection, other)
        for match in _rows_with_key(
            connection, table, other, repairs=other in checked, merges=merges
        )
    ]
    if not matches:
        return 0
    origins, states = attempts_at(connection, batch_id)
    deciding = {*checked, batch_id}
    last_repairs: dict[AttemptRow, AttemptRow] = {}
    for repair, origin in origins.items():
        if repair.batch_id in deciding and states[repair] not in (*ERRORS, FOR_NONE):
            last_repairs[origin] = max(repair, last_repairs.get(origin, repair))
    unnamed = {match.row for match in matches} - origins.keys()
    by_key = _repaired_by_key(connection, table, unnamed, others)
    taken: dict[tuple[int, int], str] = {}
    for repair_place, row, location in matches:
        row_origins = {origins.get(one, one) for one in by_key.get(row, [row])}
        is_last = any(last_repairs.get(origin, row) <= row for origin in row_origins)
        if is_last and origins[AttemptRow(batch_id, *repair_place)] not in row_origins:
            taken.setdefault(repair_place, location)
    rows = f"""
        SELECT s.extract_id, s.record_number, {key_value(table)} AS key_value,
            {position("first_line")} AS line, (%(locations)s::text[])[w.at] AS of_row
        FROM {staged_name(table)} s {AT_PLACES} WHERE {of_batch("s")}"""
    parameters = {
        **batch_span(connection, batch_id),
        **at_places(taken),
        "locations": [*taken.values()],
    }
    return _reject(connection, batch_id, "KeyOfAnother", table.identity[0], rows, parameters)


def mark_taken_records(
    connection: psycopg.Connection, table: Table, batch_id: int, only: Range | None = None
) -> int:
    """Reject repairs that would change a record of another delivery; gives how many.

    A repair with the key of its origin is allowed: the origin was an erroneous delivery of that
    record. The key of an origin that cannot be read is unknown, so that its repair is rejected.
    """
    is_target = table.key and table.name in TARGET_NAMES
    if not is_target or not _gather_repairs(connection, table, batch_id, only):
        return 0
    span = batch_span(connection, batch_id)
    delivery = sorted({*standing_batches(connection, batch_id), batch_id})
    matches = connection.execute(
        f"""SELECT s.extract_id, s.record_number,
            'Record ' || t.record_number || ' of ' || e.name || ' in batch ' || t.batch_id
        FROM named_repairs m JOIN {staged_name(table)} s USING (extract_id, record_number)
        JOIN {table.name} t ON {joined(table)} JOIN extract e ON e.id = t.extract_id
        WHERE {of_batch("s")} AND t.batch_id <> ALL(%(delivery)s) AND NOT {same_content(table)}
        ORDER BY 1, 2""",
        {**span, "delivery": delivery},
    ).fetchall()
    if not matches:
        return 0
    origin_of, _ = attempts_at(connection, batch_id)
    origins = [origin_of[AttemptRow(batch_id, *place)] for *place, _ in matches]
    rows = f"""
        SELECT s.extract_id, s.record_number, {key_value(table)} AS key_value,
            {position("first_line")} AS line, (%(locations)s::text[])[w.at] AS of_row,
            'record ' || o.number || ' of ' || e.name || ' in batch ' || e.batch_id AS repaired
        FROM {staged_name(table)} s {AT_PLACES}
        JOIN unnest(%(origin_extracts)s::int[], %(origin_numbers)s::bigint[])
            WITH ORDINALITY AS o (extract_id, number, at) ON o.at = w.at
        JOIN extract e ON e.id = o.extract_id
        WHERE {of_batch("s")} AND NOT EXISTS (SELECT 1 FROM {staged_name(table)} f
            WHERE f.extract_id = o.extract_id AND f.record_number = o.number
            AND {_same_key(table, "f")})"""
    parameters = {
        **span,
        **at_places((extract, number) for extract, number, _ in matches),
        "locations": [location for *_, location in matches],
        "origin_extracts": [origin.extract_id for origin in origins],
        "origin_numbers": [origin.record_number for origin in origins],
    }
    return _reject(connection, batch_id, "RecordOfAnother", table.identity[0], rows, parameters)


def _reject(
    connection: psycopg.Connection,
    batch_id: int,
    code: str,
    field: str,
    rows: str,
    parameters: Mapping[str, object] | None = None,
) -> int:
    """Add a rejecting outcome for some rows of a batch; gives how many.

    `rows` is SQL for their `extract_id` and `record_number`, and for what `error_data` needs.
    """
    statement = f"""
        INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
        SELECT %(rejecting)s, extract_id, record_number, 'rejected', {error_data(code, field)}
        FROM ({rows}) s"""
    return connection.execute(statement, {**(parameters or {}), "rejecting": batch_id}).rowcount


def _same_key(table: Table, alias: str) -> str:
    """SQL for whether a row of this alias has the key of a staged row `s`."""
    names = map(quoted, key_columns(table))
    return " AND ".join(f"{alias}.{name} = s.{name}" for name in names)


def _gather_claims(
    connection: psycopg.Connection, tables: Iterable[Table], batch_id: int, corrects: int
) -> None:
    """Fill the temporary table `repair_claims`: a batch's repairs, with their keys and origins.

    From `parent` the way leads back through the corrections in between, one batch at a time: each
    row reached is the origin so far, and its `parent` names the next. The way ends below a line
    that had no cells, each repair of which is a row in its own right without an origin. Nor does it
    lead to a row of another kind, which a row that names it does not repair.
    """
    connection.execute(
        """DROP TABLE IF EXISTS pg_temp.repair_claims;
        CREATE TEMP TABLE repair_claims (extract_id int, record_number bigint, place bigint,
            line bigint, key_value text, record text, key text, parent text, origin text)
            ON COMMIT DROP"""
    )
    for table in tables:
        keys = ", ".join(f"s.{quoted(name)}" for name in key_columns(table))
        connection.execute(
            f"""INSERT INTO repair_claims
            SELECT s.extract_id, s.record_number, {place_number("s")},
                {position("first_line")}, s.parent, '{table.name}',
                '{table.name} ' || ROW({keys})::text, s.parent
            FROM {staged_name(table)} s WHERE {_IS_REPAIR}""",
            batch_span(connection, batch_id),
        )
    connection.execute("ANALYZE repair_claims")
    current: int | None = corrects
    while current is not None:
        for table in staged_tables(connection, current):
            of_kind = "TRUE" if table is INSERT_BATCH_DATA else f"c.record = '{table.name}'"
            connection.execute(
                f"""UPDATE repair_claims c SET origin = c.parent, parent = s.parent
                FROM {staged_name(table)} s WHERE {of_batch("s")} AND {of_kind}
                AND c.parent = {_NAME} AND NOT {IS_UNDIVIDED}""",
                batch_span(connection, current),
            )
        above = find_batch(connection, current).corrects
        current = above if above is not None and above < current else None


def _gather_repairs(
    connection: psycopg.Connection, table: Table, batch_id: int, only: Range | None = None
) -> int:
    """Fill the temporary table `named_repairs`: the repairs of a batch, or `only` of one range.

    Gives how many.
    """
    keys = ", ".join(f"s.{quoted(name)}" for name in key_columns(table))
    connection.execute("DROP TABLE IF EXISTS pg_temp.named_repairs")
    with nested_loops(connection, on=False):
        found = connection.execute(
            f"""CREATE TEMP TABLE named_repairs ON COMMIT DROP AS
            SELECT s.extract_id, s.record_number, {keys}, s.parent,
                md5({json_expression(table, "s")}) AS content
            FROM {staged_name(table)} s
            WHERE {_IS_REPAIR} AND {only.within("s") if only else "TRUE"}""",
            {**batch_span(connection, batch_id), **(only.parameters() if only else {})},
        ).rowcount
    connection.execute("ANALYZE named_repairs")
    return found


class _KeyMatch(NamedTuple):
    """A repair, and a row of another batch with the same key."""

    repair_place: tuple[int, int]
    row: AttemptRow
    location: str
    """Where people find that row."""


def _rows_with_key(
    connection: psycopg.Connection, table: Table, batch_id: int, *, repairs: bool, merges: bool
) -> list[_KeyMatch]:
    """Rows of a batch that count, with the key of a repair of another row but other content.

    With `repairs`, rows that are repairs themselves are included; without `merges`, rows of the
    same content too.
    """
    statement = f"""
        SELECT m.extract_id, m.record_number, s.extract_id, s.record_number, {_LINE_OF_BATCH}
        FROM named_repairs m JOIN {staged_name(table)} s ON {_same_key(table, "m")}
        JOIN extract e ON e.id = s.extract_id {outcome_joins(table)}
        WHERE {of_batch("s")} AND {STATE} NOT IN ({listed(COUNTS_NOT)})
            AND m.parent <> {_NAME}
            AND (NOT %(merges)s OR m.content <> md5({json_expression(table, "s")}))
            AND (%(repairs)s OR coalesce(btrim(s.parent), '') = '')
        ORDER BY 1, 2, 3, 4"""
    span = batch_span(connection, batch_id) | {"repairs": repairs, "merges": merges}
    return [
        _KeyMatch((extract, number), AttemptRow(batch_id, *place), location)
        for extract, number, *place, location in connection.execute(statement, span)
    ]


def _repaired_by_key(
    connection: psycopg.Connection,
    table: Table,
    rows: Collection[AttemptRow],
    batches: Collection[int],
) -> dict[AttemptRow, list[AttemptRow]]:
    """For rows that name none, the rows with their key in earlier batches of the delivery."""
    found: dict[AttemptRow, list[AttemptRow]] = {}
    for batch_id in sorted({row.batch_id for row in rows}):
        statement = f"""
            SELECT s.extract_id, s.record_number, r.batch_id, r.extract_id, r.record_number
            FROM {staged_name(table)} s {AT_PLACES}
            JOIN {staged_name(table)} r
                ON r.batch_id = ANY(%(before)s) AND {_same_key(table, "r")}
            WHERE {of_batch("s")}"""
        parameters = {
            **batch_span(connection, batch_id),
            **at_places(row[1:] for row in rows if row.batch_id == batch_id),
            "before": [one for one in batches if one < batch_id],
        }
        for extract, number, *repaired in connection.execute(statement, parameters):
            row = AttemptRow(batch_id, extract, number)
            found.setdefault(row, []).append(AttemptRow(*repaired))
    return found
