"""Corrections: rows that say which row they repair, and cannot be what they say.

Like `batch_keys`, outcomes are only added here. A row repairs a row of the batch that its batch
corrects, and it does not become another one: a key typed wrong must not write over a good record.
Nor do several make several records of one.
"""

from collections.abc import Collection, Iterable

import psycopg

from connectors.postgres.attempts import (
    AttemptRow,
    attempts_at,
    checked_of,
    first_batch,
    standing_batches,
)
from connectors.postgres.batch_keys import error_data, key_value, ready, untold
from connectors.postgres.corrections import lock_corrections, staged_tables
from connectors.postgres.ledger import batch_span, find_batch
from connectors.postgres.ranges import Range
from schemas.derived.sql_names import TARGET_NAMES, key_columns, listed, staged_name
from schemas.derived.views import (
    APPLIED,
    AT_PLACES,
    COUNTS_NOT,
    ERRORS,
    STATE,
    at_places,
    is_undivided,
    joined,
    json_expression,
    of_batch,
    position,
    quoted,
    same_content,
    told_joins,
)
from schemas.field import Table
from schemas.own_columns import PARENT_COLUMN
from schemas.tables import INSERT_BATCH_DATA


def mark_strays(connection: psycopg.Connection, table: Table, batch_id: int, corrects: int) -> int:
    """Reject rows that name no row of their kind in the corrected batch; returns how many."""
    statement = f"""
        INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
        SELECT %(batch)s, extract_id, record_number, 'rejected',
            {error_data("RepairsNothing", PARENT_COLUMN)}
        FROM (SELECT s.extract_id, s.record_number, s.parent AS key_value,
                  {position("first_line")} AS line
              FROM {staged_name(table)} s
              WHERE {ready()} AND {untold()} AND btrim(s.parent) <> '' AND NOT EXISTS (
                  SELECT 1 FROM staged_row r WHERE r.batch_id = %(corrects)s
                  AND r.record IN ('{table.name}', '{INSERT_BATCH_DATA.name}')
                  AND r.extract_id || ':' || r.record_number = s.parent)) s"""
    span = {**batch_span(connection, batch_id), "corrects": corrects}
    return connection.execute(statement, span).rowcount


def mark_repaired_twice(
    connection: psycopg.Connection, tables: Iterable[Table], batch_id: int, corrects: int
) -> int:
    """Reject rows with different keys that repair the same row; returns how many.

    One row is one record, and which of them it is only the sender knows. Rows of one key are left
    to `mark_duplicates`. Of a line that could not be divided into cells nobody knows how many
    records it was, so that any number may repair it.
    """
    _offer_claims(connection, tables, batch_id)
    _lead_back(connection, corrects)
    statement = f"""
        WITH claimed AS (
            SELECT *, first_value(key) OVER (PARTITION BY repaired ORDER BY place) AS first_key
            FROM repair_claims WHERE repaired IS NOT NULL
        ), twice AS (
            SELECT repaired, min(place) AS one,
                min(place) FILTER (WHERE key <> first_key) AS other
            FROM claimed GROUP BY repaired HAVING min(key) <> max(key)
        )
        INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
        SELECT %(batch)s, extract_id, record_number, 'rejected',
            {error_data("RepairedTwice", PARENT_COLUMN)}
        FROM (SELECT c.extract_id, c.record_number, c.key_value, c.line,
                  'Line ' || o.line || ' of ' || e.name AS of_row
              FROM claimed c JOIN twice t USING (repaired)
              JOIN repair_claims o
                ON o.place = CASE WHEN c.key = c.first_key THEN t.other ELSE t.one END
              JOIN extract e ON e.id = o.extract_id) s"""
    return connection.execute(statement, {"batch": batch_id}).rowcount


def _offer_claims(connection: psycopg.Connection, tables: Iterable[Table], batch_id: int) -> None:
    """The temporary table `repair_claims`: rows that name the one they repair, each with its key.

    `named` is that name, and `repaired` the row that `_lead_back` finds.
    """
    connection.execute(
        """DROP TABLE IF EXISTS pg_temp.repair_claims;
        CREATE TEMP TABLE repair_claims (extract_id int, record_number bigint, place bigint,
            line bigint, key_value text, key text, named text, repaired text) ON COMMIT DROP"""
    )
    for table in tables:
        keys = ", ".join(f"s.{quoted(name)}" for name in key_columns(table))
        connection.execute(
            f"""INSERT INTO repair_claims
            SELECT s.extract_id, s.record_number, (s.extract_id::bigint << 40) + s.record_number,
                {position("first_line")}, s.parent, '{table.name} ' || ROW({keys})::text, s.parent
            FROM {staged_name(table)} s
            WHERE {ready()} AND {untold()} AND btrim(s.parent) <> ''""",
            batch_span(connection, batch_id),
        )
    connection.execute("ANALYZE repair_claims")


def _lead_back(connection: psycopg.Connection, corrects: int) -> None:
    """Find the row that each of `repair_claims` goes back to, over the corrections between.

    The way ends below a line that had no cells: each repair of it is a row in its own right.
    """
    current: int | None = corrects
    while current is not None:
        for table in staged_tables(connection, current):
            connection.execute(
                f"""UPDATE repair_claims SET repaired = named, named = s.parent
                FROM {staged_name(table)} s
                WHERE {of_batch("s")} AND named = s.extract_id || ':' || s.record_number
                    AND NOT {is_undivided("s")}""",
                batch_span(connection, current),
            )
        above = find_batch(connection, current).corrects
        current = above if above is not None and above < current else None


def mark_applied_otherwise(
    connection: psycopg.Connection, table: Table, batch_id: int, corrects: int
) -> int:
    """Reject repairs of applied rows whose key is another one; returns how many.

    Nothing takes back what such a row became, so that there would be two records of one row. A
    record without a key is its whole content.
    """
    if table.name not in TARGET_NAMES or not _offer_repairs(connection, table, batch_id):
        return 0
    same = " AND ".join(f"n.{quoted(name)} = s.{quoted(name)}" for name in key_columns(table))
    statement = f"""
        INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
        SELECT %(of)s, m.extract_id, m.record_number, 'rejected',
            {error_data("AppliedOtherwise", PARENT_COLUMN)}
        FROM (SELECT m.extract_id, m.record_number, m.repaired AS key_value,
                  {position("first_line", "n")} AS line,
                  'Line ' || {position("first_line")} || ' of ' || e.name || ' in batch '
                      || s.batch_id AS of_row
              FROM named_repairs m
              JOIN {staged_name(table)} n USING (extract_id, record_number)
              JOIN {staged_name(table)} s ON m.repaired = s.extract_id || ':' || s.record_number
              JOIN extract e ON e.id = s.extract_id {told_joins(table)}
              WHERE {of_batch("s")} AND n.batch_id = %(of)s
                  AND {STATE} IN ({listed(APPLIED)}) AND NOT ({same})) m"""
    span = batch_span(connection, corrects) | {"of": batch_id}
    return connection.execute(statement, span).rowcount


def mark_taken_keys(connection: psycopg.Connection, table: Table, batch_id: int) -> int:
    """Reject repairs with the key of a row that they do not repair; returns how many.

    Looked for in all batches of the delivery. The same content is a repeat, and no harm. A row
    without ReconRow is known by its key alone: it says that it is the record with that key. What
    was repaired again since, or is by this very batch, is its last repair and nothing else. One
    correction after the other looks: a repair that is not checked yet will look at this batch, and
    the two do not both give way. Rows that repair none by name never look, so they are met at once.
    """
    if not table.key or not _offer_repairs(connection, table, batch_id):
        return 0
    lock_corrections(connection, first_batch(connection, batch_id))
    others = set(standing_batches(connection, batch_id)) - {batch_id}
    checked = set(checked_of(connection, others))
    met = [
        one
        for other in sorted(others)
        if table in staged_tables(connection, other)
        for one in _rows_with_their_key(connection, table, other, repairs=other in checked)
    ]
    if not met:
        return 0
    first, states = attempts_at(connection, batch_id)
    latest: dict[AttemptRow, AttemptRow] = {}
    for row, of in first.items():
        if row.batch_id in {*checked, batch_id} and states[row] not in ERRORS:
            latest[of] = max(row, latest.get(of, row))
    known = _repaired_by_key(connection, table, {row for _, row, _ in met} - first.keys(), others)
    taken: dict[tuple[int, int], str] = {}
    for repair, row, said in met:
        mine = first[AttemptRow(batch_id, *repair)]
        repaired = {first.get(one, one) for one in known.get(row, [row])}
        stands = any(latest.get(of, row) <= row for of in repaired)
        if mine not in repaired and stands:
            taken.setdefault(repair, said)
    statement = f"""
        INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
        SELECT %(batch)s, extract_id, record_number, 'rejected',
            {error_data("KeyOfAnother", table.identity[0])}
        FROM (SELECT s.extract_id, s.record_number, {key_value(table)} AS key_value,
                  {position("first_line")} AS line, (%(said)s::text[])[w.at] AS of_row
              FROM {staged_name(table)} s {AT_PLACES} WHERE {of_batch("s")}) s"""
    places = at_places(taken) | {"said": list(taken.values())}
    return connection.execute(statement, batch_span(connection, batch_id) | places).rowcount


def mark_taken_records(
    connection: psycopg.Connection, table: Table, batch_id: int, only: Range | None = None
) -> int:
    """Reject repairs that would change a record of another delivery; returns how many.

    Asked as the batch is checked, so that it counts for its budget, and again once the target is
    locked, of the range that is applied `only`: between the two, which may be days of a batch that
    is held, others bring records.
    Not those with the key of the row that was delivered first of all that they repair: it is that
    record then that was delivered with an error. Of one whose key cannot be read nobody knows it.
    """
    is_target = table.key and table.name in TARGET_NAMES
    if not is_target or not _offer_repairs(connection, table, batch_id, only):
        return 0
    span = batch_span(connection, batch_id)
    own = sorted({*standing_batches(connection, batch_id), batch_id})
    found = connection.execute(
        f"""SELECT s.extract_id, s.record_number,
            'Record ' || t.record_number || ' of ' || e.name || ' in batch ' || t.batch_id
        FROM named_repairs m JOIN {staged_name(table)} s USING (extract_id, record_number)
        JOIN {table.name} t ON {joined(table)} JOIN extract e ON e.id = t.extract_id
        WHERE {of_batch("s")} AND t.batch_id <> ALL(%(own)s) AND NOT {same_content(table)}
        ORDER BY 1, 2""",
        {**span, "own": own},
    ).fetchall()
    if not found:
        return 0
    first, _ = attempts_at(connection, batch_id)
    firsts = [first[AttemptRow(batch_id, *place)] for *place, _ in found]
    same = " AND ".join(f"f.{quoted(name)} = s.{quoted(name)}" for name in key_columns(table))
    statement = f"""
        INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
        SELECT %(batch)s, extract_id, record_number, 'rejected',
            {error_data("RecordOfAnother", table.identity[0])}
        FROM (SELECT s.extract_id, s.record_number, {key_value(table)} AS key_value,
                  {position("first_line")} AS line, (%(said)s::text[])[w.at] AS of_row,
                  'record ' || o.number || ' of ' || e.name || ' in batch ' || e.batch_id
                      AS repaired
              FROM {staged_name(table)} s {AT_PLACES}
              JOIN unnest(%(of_extracts)s::int[], %(of_numbers)s::bigint[])
                  WITH ORDINALITY AS o (extract_id, number, at) ON o.at = w.at
              JOIN extract e ON e.id = o.extract_id
              WHERE {of_batch("s")} AND NOT EXISTS (SELECT 1 FROM {staged_name(table)} f
                  WHERE f.extract_id = o.extract_id AND f.record_number = o.number AND {same})) s"""
    places = at_places((extract, number) for extract, number, _ in found)
    facts = {
        "said": [said for *_, said in found],
        "of_extracts": [row.extract_id for row in firsts],
        "of_numbers": [row.record_number for row in firsts],
    }
    return connection.execute(statement, span | places | facts).rowcount


def _offer_repairs(
    connection: psycopg.Connection, table: Table, batch_id: int, only: Range | None = None
) -> int:
    """The temporary table `named_repairs`: rows that name the one they repair. Returns how many.

    Of a batch, or `only` of a range of it.
    """
    keys = ", ".join(f"s.{quoted(name)}" for name in key_columns(table))
    connection.execute("DROP TABLE IF EXISTS pg_temp.named_repairs")
    found = connection.execute(
        f"""CREATE TEMP TABLE named_repairs ON COMMIT DROP AS
        SELECT s.extract_id, s.record_number, {keys}, s.parent AS repaired,
            md5({json_expression(table, "s")}) AS content
        FROM {staged_name(table)} s
        WHERE {ready()} AND {untold()} AND btrim(s.parent) <> ''
            AND {only.within("s") if only else "TRUE"}""",
        {**batch_span(connection, batch_id), **(only.parameters() if only else {})},
    ).rowcount
    connection.execute("ANALYZE named_repairs")
    return found


def _rows_with_their_key(
    connection: psycopg.Connection, table: Table, batch_id: int, *, repairs: bool
) -> list[tuple[tuple[int, int], AttemptRow, str]]:
    """Rows of a batch that count, with the key of a repair of another row and other content.

    Each with the place of the repair, and how people find it; `repairs`: also those that name the
    row that they repair.
    """
    same = " AND ".join(f"m.{quoted(name)} = s.{quoted(name)}" for name in key_columns(table))
    statement = f"""
        SELECT m.extract_id, m.record_number, s.extract_id, s.record_number,
            'Line ' || {position("first_line")} || ' of ' || e.name || ' in batch ' || s.batch_id
        FROM named_repairs m JOIN {staged_name(table)} s ON {same}
        JOIN extract e ON e.id = s.extract_id {told_joins(table)}
        WHERE {of_batch("s")} AND {STATE} NOT IN ({listed(COUNTS_NOT)})
            AND m.repaired <> s.extract_id || ':' || s.record_number
            AND m.content <> md5({json_expression(table, "s")})
            AND (%(repairs)s OR coalesce(btrim(s.parent), '') = '')
        ORDER BY 1, 2, 3, 4"""
    return [
        ((extract, number), AttemptRow(batch_id, *place), said)
        for extract, number, *place, said in connection.execute(
            statement, batch_span(connection, batch_id) | {"repairs": repairs}
        )
    ]


def _repaired_by_key(
    connection: psycopg.Connection,
    table: Table,
    rows: Collection[AttemptRow],
    batches: Collection[int],
) -> dict[AttemptRow, list[AttemptRow]]:
    """Of rows that name none: those with their key in batches of the delivery before theirs."""
    same = " AND ".join(f"r.{quoted(name)} = s.{quoted(name)}" for name in key_columns(table))
    found: dict[AttemptRow, list[AttemptRow]] = {}
    for batch_id in sorted({row.batch_id for row in rows}):
        mine = [row for row in rows if row.batch_id == batch_id]
        statement = f"""
            SELECT s.extract_id, s.record_number, r.batch_id, r.extract_id, r.record_number
            FROM {staged_name(table)} s {AT_PLACES}
            JOIN {staged_name(table)} r ON r.batch_id = ANY(%(before)s) AND {same}
            WHERE {of_batch("s")}"""
        given = at_places(row[1:] for row in mine) | {
            "before": [one for one in batches if one < batch_id]
        }
        for extract, number, *known in connection.execute(
            statement, batch_span(connection, batch_id) | given
        ):
            found.setdefault(AttemptRow(batch_id, extract, number), []).append(AttemptRow(*known))
    return found
