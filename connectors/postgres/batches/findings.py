"""What is wrong with the rows of a batch: reasons, notes, and the rejected rows themselves."""

import json
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row, namedtuple_row

from connectors.files.chunks.skipped_lines import SkippedLines
from connectors.files.text.dialect import RecordFault
from connectors.postgres.batches.digests import CLUES, STAGED, clues_digests
from connectors.postgres.batches.ledger import (
    TAKEN_BACK,
    Extract,
    Receipt,
    batch_span,
    list_receipts,
    tables_of_extract,
)
from connectors.postgres.batches.written_over import OF_OTHERS, SECOND_RECORD
from connectors.postgres.query import one_value
from connectors.postgres.trail import read_detail
from schemas.derived.sql_names import listed, staged_name
from schemas.derived.views import (
    AT_PLACES,
    CORRECTED,
    at_places,
    of_batch,
    position,
    staged_rows,
)
from schemas.field import Table
from schemas.reasons import REASONS
from schemas.tables import EXTRACTS

REASONS_OF = "reasons"
"""The clue of a chunk that counts its reasons."""
SEARCHED = 4_096
"""Records searched first for a line; each further step is eight times as large."""

_BROKEN = frozenset(fault.code for fault in RecordFault)


class Finding(NamedTuple):
    """One reason against rows of one record kind, with the first row that has it."""

    record: str
    code: str
    field: str
    rows: int
    extract_id: int
    line: int
    record_number: int
    value: str


class Note(NamedTuple):
    """A finding that rejected no row."""

    record: str
    code: str
    field: str
    value: str
    rows: int
    extract_id: int
    record_number: int
    line: int
    message: str


class RejectedRow(NamedTuple):
    """One row that carries HasError."""

    extract_id: int
    record_number: int
    first_line: int
    last_line: int
    byte_start: int
    byte_end: int
    data: str | None
    raw: str | None
    error_data: str
    record: str
    """The record kind it was staged as: that of its file, or that of the record inside."""


def findings(
    connection: psycopg.Connection, tables: Iterable[Table], batch_id: int
) -> dict[str, list[Finding]]:
    """The reasons of a batch by record kind, most frequent first."""
    span = batch_span(connection, batch_id)
    counted = _counted(connection, span)
    return {
        table.name: _findings(connection, table, span, counted and counted(table))
        for table in tables
    }


def _findings(
    connection: psycopg.Connection,
    table: Table,
    span: Mapping[str, int],
    counted: list[Finding] | None,
) -> list[Finding]:
    rows = connection.execute(
        f"""WITH reasons AS (
            SELECT extract_id, record_number, first_line,
                json_array_elements(error_data::json) AS reason
            FROM ({_erroneous(table, staged=counted is None)}) r
        ), named AS (
            SELECT extract_id, record_number, first_line, reason ->> 'ErrorCode' AS code,
                reason ->> 'FieldName' AS field, reason -> 'Meta' ->> 'value' AS value, 1 AS rows
            FROM reasons
            UNION ALL SELECT * FROM unnest(%(extract_id)s::int[], %(record_number)s::bigint[],
                %(line)s::bigint[], %(code)s::text[], %(field)s::text[], %(value)s::text[],
                %(rows)s::int[])
        )
        SELECT '{table.name}', code, field, sum(rows)::bigint,
            (array_agg(extract_id ORDER BY extract_id, record_number))[1],
            (array_agg(first_line ORDER BY extract_id, record_number))[1],
            (array_agg(record_number ORDER BY extract_id, record_number))[1],
            coalesce((array_agg(value ORDER BY extract_id, record_number))[1], '')
        FROM named GROUP BY code, field
        ORDER BY sum(rows) DESC, code COLLATE "C", field COLLATE "C" """,
        {
            **span,
            **{name: [getattr(one, name) for one in counted or ()] for name in Finding._fields},
        },
    ).fetchall()
    return [Finding(*row) for row in rows]


def _counted(
    connection: psycopg.Connection, span: Mapping[str, int]
) -> Callable[[Table], list[Finding] | None] | None:
    """The reasons against rows rejected while reading, as counted by each chunk.

    None if not all chunks counted them, somebody has altered the counts, or rows of the batch were
    corrected, whose reasons no longer count.
    """
    corrected, staged = connection.execute(
        f"""SELECT EXISTS (SELECT FROM outcome c WHERE {of_batch("c")}
                AND c.verdict = '{CORRECTED}'),
            (SELECT detail FROM event WHERE batch_id = %(batch)s AND what = '{STAGED}'
                ORDER BY id DESC LIMIT 1)""",
        span,
    ).fetchone() or (True, None)
    batch_id, digest = span["batch"], read_detail(staged).get(CLUES)
    if corrected or digest not in (None, clues_digests(connection, [batch_id]).get(batch_id, "")):
        return None
    by_record = defaultdict[str, list[Receipt]](list)
    for receipt in list_receipts(connection, batch_id, "stage"):
        for record in {*receipt.totals, *receipt.clues}:
            by_record[record].append(receipt)

    def of_kind(table: Table) -> list[Finding] | None:
        found = []
        for receipt in by_record[table.name]:
            states = receipt.totals.get(table.name, {})
            reasons = receipt.clues.get(table.name, {}).get(REASONS_OF)
            if reasons is None and "rejected" in states:
                return None
            for code, field, rows, number, line, value in reasons or ():
                found.append(
                    Finding(table.name, code, field, rows, receipt.extract_id, line, number, value)
                )
        return found

    return of_kind


def rejected_rows(
    connection: psycopg.Connection,
    tables: Iterable[Table],
    batch_id: int,
    *,
    most: int | None = None,
    after: tuple[int, int] = (0, 0),
) -> Generator[RejectedRow, None, None]:
    """The rows of these record kinds that carry HasError, in the order of delivery.

    `after` is the extract and record number of the row to start after.
    """
    limit = "" if most is None else f"LIMIT {int(most)}"
    every = " UNION ALL ".join(
        f"""(SELECT *, '{table.name}' AS record FROM ({_erroneous(table)}) e
        WHERE (extract_id, record_number) > (%(extract)s, %(number)s)
        ORDER BY extract_id, record_number {limit})"""
        for table in tables
    )
    if not every:
        return
    with connection.cursor(row_factory=class_row(RejectedRow)) as cursor:
        yield from cursor.stream(
            f"SELECT * FROM ({every}) r ORDER BY extract_id, record_number {limit}",
            batch_span(connection, batch_id) | {"extract": after[0], "number": after[1]},
        )


def rows_at(
    connection: psycopg.Connection,
    table: Table,
    batch_id: int,
    extracts: Sequence[int],
    numbers: Sequence[int],
) -> Iterator[RejectedRow]:
    """Rows of one record kind by extract and record number, rejected or not, in order.

    They are read some thousand at a time, since neighbouring rows are stored together.
    """
    places = sorted(zip(extracts, numbers, strict=True))
    with connection.cursor(row_factory=class_row(RejectedRow)) as cursor:
        for begin in range(0, len(places), SEARCHED):
            near = places[begin : begin + SEARCHED]
            asked = [number for _, number in near]
            yield from cursor.execute(
                f"""SELECT {_PLACED}, s.data, s.raw,
                    coalesce(s.error_data, '[]') AS error_data, '{table.name}' AS record
                FROM {staged_name(table)} s {AT_PLACES}
                WHERE {of_batch("s")} AND s.record_number BETWEEN %(first)s AND %(last)s
                ORDER BY s.extract_id, s.record_number""",
                batch_span(connection, batch_id)
                | at_places(near)
                | {"first": min(asked), "last": max(asked)},
            )


_NOTED = f"""note n WHERE n.batch_id = %s AND NOT (n.code = '{SECOND_RECORD}' AND EXISTS (
    SELECT FROM batch b WHERE (b.id = n.batch_id OR b.id::text = n.value)
    AND b.state IN ({listed(TAKEN_BACK)})))"""
"""SQL for a batch's notes, except of two records for one row if either batch was taken back."""


def notes(connection: psycopg.Connection, batch_id: int, most: int) -> list[Note]:
    """The first notes about a batch, which reject no rows, each with its line.

    Notes about other deliveries come first. References have a note for each value, in any number,
    so these come last and are cut off first.
    """
    noted = connection.execute(
        "SELECT record, code, field, value, rows, extract_id, record_number, "
        "CASE record_number WHEN 0 THEN value::bigint ELSE record_number + 1 END, message "
        f"FROM {_NOTED} ORDER BY code NOT IN ({listed(OF_OTHERS)}), "
        "starts_with(code, 'Reference')"
        ', record COLLATE "C", code COLLATE "C", field COLLATE "C", value COLLATE "C", extract_id '
        "LIMIT %s",
        [batch_id, most],
    ).fetchall()
    in_order = sorted(map(Note._make, noted), key=lambda of: (of.code not in OF_OTHERS, of.record))
    found: list[Note] = []
    for record, of_record in groupby(in_order, key=attrgetter("record")):
        found += _with_lines(connection, EXTRACTS[record], batch_id, list(of_record))
    return found


def count_notes(connection: psycopg.Connection, batch_id: int) -> int:
    return int(one_value(connection.execute(f"SELECT count(*) FROM {_NOTED}", [batch_id])))


def note_left_out(
    connection: psycopg.Connection,
    table: Table,
    batch_id: int,
    left_out: Iterable[tuple[str, str, int, int, int]],
) -> None:
    """Note which rows a feed profile leaves out.

    `left_out`: column, cell, how many rows, and the extract and record number of the first.
    """
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO note (batch_id, extract_id, record_number, record, code, field, value, "
            "rows, message) VALUES (%s, %s, %s, %s, 'LeftOut', %s, %s, %s, %s)",
            [
                (batch_id, extract, number, table.name, column, cell, rows, message)
                for column, cell, rows, extract, number in left_out
                for message in (REASONS["LeftOut"].message(field=column, value=cell),)
            ],
        )


def note_no_records(
    connection: psycopg.Connection,
    table: Table,
    batch_id: int,
    code: str,
    skipped: Mapping[int, SkippedLines],
) -> None:
    """Note by extract which lines became no record; these notes have record number 0."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO note (batch_id, extract_id, record_number, record, code, field, value, "
            "rows, message) VALUES (%s, %s, 0, %s, %s, '', %s, %s, %s)",
            [
                (batch_id, extract, table.name, code, str(first), lines, REASONS[code].message())
                for extract, (lines, first) in skipped.items()
            ],
        )


def _with_lines(
    connection: psycopg.Connection, table: Table, batch_id: int, of_record: Sequence[Note]
) -> list[Note]:
    """The notes of one record kind, with the first line of their row if it is staged."""
    rows = connection.execute(
        f"""SELECT s.extract_id, s.record_number, {position("first_line")}
        FROM {staged_name(table)} s {AT_PLACES} WHERE {of_batch("s")}""",
        batch_span(connection, batch_id)
        | at_places((note.extract_id, note.record_number) for note in of_record),
    ).fetchall()
    lines = {(extract_id, number): line for extract_id, number, line in rows}
    return [
        note._replace(line=lines.get((note.extract_id, note.record_number), note.line))
        for note in of_record
    ]


def wrong_fields(error_data: str) -> frozenset[str]:
    """The fields that a row's reasons name; an empty text for a reason against the whole row."""
    return frozenset(str(error["FieldName"]) for error in json.loads(error_data))


def is_broken(error_data: str | None) -> bool:
    """Whether a row has no cells, because its line could not be divided into them."""
    return any(error["ErrorCode"] in _BROKEN for error in json.loads(error_data or "[]"))


def find_row(connection: psycopg.Connection, extract_id: int, record_number: int) -> list[Any]:
    """Everything known about one staged row except its proof, which `locate` adds."""
    rows = staged_rows(tables_of_extract(connection, extract_id))
    if not rows:
        return []
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return cursor.execute(
            f"SELECT *, NULL AS proof FROM ({rows}) r WHERE extract_id = %s AND record_number = %s",
            [extract_id, record_number],
        ).fetchall()


class LastRow(NamedTuple):
    """The last row that begins at or before a line; it may end before that line."""

    record_number: int
    last_line: int


def row_from_line(connection: psycopg.Connection, extract: Extract, line: int) -> LastRow | None:
    """The row that contains a line, else the last one before it; None if there is none.

    If a line holds several records, the last of them.
    """
    high, span = _chunk_of(connection, extract, line)[1], SEARCHED
    while high > 0:
        found = _rows_from(connection, extract, line, max(0, high - span), high)
        if found:
            return max(found)
        high, span = high - span, span * 8
    return None


def records_of_line(connection: psycopg.Connection, extract: Extract, line: int) -> list[int]:
    """Numbers of the records that contain a line or were made of it; empty if it is in none."""
    first, last = _chunk_of(connection, extract, line)
    found = _rows_from(connection, extract, line, first - 1, last, within=True)
    return sorted(row.record_number for row in found)


def _chunk_of(connection: psycopg.Connection, extract: Extract, line: int) -> tuple[int, int]:
    """First and last record of the chunk with a line, else of the last chunk before it."""
    receipts = list_receipts(connection, extract.batch_id, "stage", extract.id, with_clues=False)
    inside = next((one for one in receipts if line <= (one.last_line or 0)), None)
    found = inside or max(receipts, key=lambda one: one.last_record, default=None)
    return (found.first_record, found.last_record) if found else (1, 0)


def _rows_from(
    connection: psycopg.Connection,
    extract: Extract,
    line: int,
    above: int,
    most: int,
    *,
    within: bool = False,
) -> list[LastRow]:
    """By record kind, the last row among a range of records that begins at or before a line.

    With `within`, all rows that contain the line instead.
    """
    receipts = list_receipts(connection, extract.batch_id, "stage", extract.id, with_clues=False)
    values = {"batch": extract.batch_id, "extract": extract.id, "line": line}
    last = f"AND {position('last_line')} >= %(line)s" if within else ""
    return [
        LastRow(*row)
        for name in sorted({name for one in receipts for name in one.totals})
        for row in connection.execute(
            f"""SELECT s.record_number, {position("last_line")}
            FROM {staged_name(EXTRACTS[name])} s
            WHERE s.batch_id = %(batch)s AND s.extract_id = %(extract)s
                AND s.record_number > %(above)s AND s.record_number <= %(most)s
                AND {position("first_line")} <= %(line)s {last}
            ORDER BY s.record_number DESC {"" if within else "LIMIT 1"}""",
            values | {"above": above, "most": most},
        )
    ]


_PLACED = ", ".join(
    f"{position(name)} AS {name}"
    for name in ("extract_id", "record_number", "first_line", "last_line", "byte_start", "byte_end")
)


def _erroneous(table: Table, *, staged: bool = True) -> str:
    """SQL for the rows with errors; with `staged`, also those rejected while reading."""
    rejected = f"""
        SELECT {_PLACED}, s.data, s.raw, s.error_data
        FROM {staged_name(table)} s WHERE {of_batch("s")} AND s.error_data IS NOT NULL
            AND {_not_corrected()}
        UNION ALL"""
    return f"""{rejected if staged else ""}
        SELECT {_PLACED}, s.data, s.raw, o.error_data
        FROM {staged_name(table)} s
        JOIN outcome o ON o.extract_id = s.extract_id AND o.record_number = s.record_number
        WHERE {of_batch("s")} AND {of_batch("o")} AND o.error_data IS NOT NULL
            AND {_not_corrected()}"""


def _not_corrected() -> str:
    return f"""NOT EXISTS (SELECT 1 FROM outcome c WHERE {of_batch("c")}
        AND c.extract_id = s.extract_id AND c.record_number = s.record_number
        AND c.verdict = '{CORRECTED}')"""
