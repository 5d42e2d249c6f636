"""The truth sources in the database as frames: extract rows, database rows, answers, listings.

Amounts are exact decimals; an amount that does not fit these comes as text.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TypeAlias

import polars as pl
import psycopg

from connectors.postgres.bulk.copy_out import Columns, copied, in_pieces
from connectors.postgres.bulk.page_columns import WantedRows, paged
from connectors.postgres.push.changed_records import TWIN
from schemas.amounts import BEYOND, UNREADABLE, spelled
from schemas.derived.sql_names import SCHEMA, listed, staged_name
from schemas.derived.views import (
    BY_KEY,
    ENDS,
    STATE,
    apply_stage,
    outcome_joins,
    position,
    quoted,
    row_state,
)
from schemas.field import Field, Kind, Table
from schemas.frame_types import AMOUNT, WORD, Dtype
from schemas.kinds import OFFSET
from schemas.reasons import NOT_SHOWN

Rows: TypeAlias = "Generator[pl.DataFrame, None, None]"
"""Frames in the pieces in which they were read; callers that need them often join them into one.

An amount of more than 20 digits before the point or 18 after it is null, with its text beside it
(`BEYOND`).
"""


def extract_rows(
    connection: psycopg.Connection,
    table: Table,
    batches: Sequence[int],
    places: pl.DataFrame,
    others: Sequence[psycopg.Connection] = (),
    at_once: int | None = None,
) -> Rows:
    """E: the staged rows of these batches with their end states; rejected ones have null fields.

    They come in the order in which they are stored, about `at_once` bytes at a time or all at once;
    `by_row` sorts them. The connections are busy until all rows have come or the generator is
    closed. `places` names the files in columns `extract_id` and `file`. `others` share the
    connection's snapshot (`one_moment.others_at_it`) and read some of the rows.
    """
    by_key = "c.error_data IS NOT NULL"
    place: Columns = {
        "state": (row_state(f"CASE WHEN {by_key} THEN '{BY_KEY}' ELSE {STATE} END"), WORD),
        "line": (position("first_line"), pl.Int64()),
        **_place("s"),
    }
    staged = f"{SCHEMA}.{staged_name(table)}"
    mine = f"s.batch_id = ANY('{{{_numbers(batches)}}}'::int[])"

    def source(reader: psycopg.Connection, pages: str) -> WantedRows | None:
        return _staged(reader, table, f"{staged} s", f"{mine} AND {pages}")

    unread: Columns = {
        name + UNREADABLE: (_unreadable(table.by_name[name], "s"), pl.String())
        for name in table.amounts
    }
    file = pl.col("extract_id").replace_strict(
        places["extract_id"], places["file"], default=None, return_dtype=WORD
    )

    def named(rows: pl.DataFrame) -> pl.DataFrame:
        rows = _without_empty(rows, unread)
        return rows.hstack(rows.select(file.alias("file")))

    connections = (connection, *others)
    yield from map(named, _read(connections, table, "s", staged, source, place | unread, at_once))


def by_row(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of an extract by extract and record number, each column in one chunk.

    To sort all rows the server would write them to disk; here a part is sorted at a time.
    """
    extract, row = pl.col("extract_id"), pl.col("row")
    after = extract.diff() > 0, (extract.diff() == 0) & (row.diff() > 0)
    sorted_ones = rows.select(pl.any_horizontal(after).fill_null(value=True).all()).item()
    return rows.rechunk() if sorted_ones else rows.sort("extract_id", "row")


def _staged(
    connection: psycopg.Connection, table: Table, staged: str, wanted: str
) -> WantedRows | None:
    """The staged rows wanted, with their outcomes; None if there are none.

    Mostly they belong to one extract, none is in error and one receipt covers all. Then the state
    is known from the receipt, and the server joins nothing.
    """
    found = connection.execute(
        "SELECT min(s.extract_id), max(s.extract_id), min(s.batch_id), max(s.batch_id), "
        "min(s.record_number), max(s.record_number), count(s.first_line), count(s.error_data) "
        f"FROM {staged} WHERE {wanted}"
    ).fetchone()
    if found is None or found[0] is None:
        return None
    low, high, least, most, first, last, lines, errors = found
    known: dict[str, pl.Expr] = {}
    if not lines:
        known["line"] = pl.col("row") + 1
    if not errors:
        known |= {name + UNREADABLE: pl.lit(None, pl.String()) for name in table.amounts}
    if least == most:
        known["batch_id"] = pl.lit(least, pl.Int32())
    if low == high:
        known["extract_id"] = pl.lit(low, pl.Int32())
    # Without this limit, each part read would go through the outcomes of all rows.
    among = (
        f"{{0}}.extract_id BETWEEN {low} AND {high} "
        f"AND {{0}}.record_number BETWEEN {first} AND {last}"
    )
    state = _one_state(connection, table, among, low, first, last) if low == high else None
    if state is not None and not errors:
        return WantedRows(f"{staged} WHERE {wanted}", known | {"state": pl.lit(state, WORD)})
    of_batch = f"JOIN {SCHEMA}.batch b ON b.id = s.batch_id"
    joins = f"{of_batch} {outcome_joins(table, batch=False, among=among)}"
    return WantedRows(f"{staged} {joins} WHERE {wanted}", known)


def _one_state(
    connection: psycopg.Connection, table: Table, among: str, extract: int, first: int, last: int
) -> str | None:
    """The end state of all rows of a range that are not in error; None if they may differ.

    If the batch was undone or discarded, that is the state of all its rows.
    """
    found = connection.execute(
        f"SELECT (SELECT b.state FROM {SCHEMA}.extract e JOIN {SCHEMA}.batch b "
        f"ON b.id = e.batch_id WHERE e.id = %(extract)s AND b.state IN ({listed(ENDS)})), "
        f"EXISTS (SELECT FROM {SCHEMA}.outcome o WHERE {among.format('o')}), count(*), "
        "bool_and(first_record <= %(first)s AND last_record >= %(last)s), min(verdict) "
        f"FROM {SCHEMA}.receipt WHERE extract_id = %(extract)s AND stage = %(stage)s "
        "AND first_record <= %(last)s AND last_record >= %(first)s",
        {"extract": extract, "stage": apply_stage(table), "first": first, "last": last},
    ).fetchone()
    assert found is not None
    ended, outcomes, receipts, all_of_it, verdict = found
    if ended:
        return str(ended)
    if outcomes or receipts > 1 or all_of_it is False:
        return None
    return verdict or "pending"


def rewritten_rows(
    connection: psycopg.Connection, table: Table, batches: Collection[int]
) -> pl.DataFrame:
    """E: the staged rows that wrote records of these batches which now say something else.

    There are few: nothing of ours changes a record without becoming its named writer.
    """
    columns, texts = _columns(table, "s"), _texts_beyond(table, "s")
    place: Columns = {
        "state": ("'updated'", WORD),
        "line": (position("first_line"), pl.Int64()),
        **_place("s"),
    }
    written = f"{SCHEMA}.{staged_name(table)} s JOIN {SCHEMA}.{table.name} t"
    differ = (f"s.{quoted(name)} IS DISTINCT FROM t.{quoted(name)}" for name in columns)
    source = f"""{written} ON (t.extract_id, t.record_number) = (s.extract_id, s.record_number)
        WHERE t.batch_id = ANY('{{{_numbers(batches)}}}'::int[]) AND ({" OR ".join(differ)})"""
    return _spelled_beyond([*texts], copied(connection, {**columns, **place, **texts}, source))


def without_text(
    connection: psycopg.Connection, table: Table, extracts: Collection[int]
) -> pl.DataFrame:
    """The rows of these extracts whose text is only in the kept file: `extract_id` and `row`."""
    columns: Columns = {
        "extract_id": ("extract_id", pl.Int32()),
        "row": ("record_number", pl.Int64()),
    }
    source = f"""{SCHEMA}.{staged_name(table)}
        WHERE extract_id = ANY('{{{_numbers(extracts)}}}'::int[]) AND data IS NULL"""
    return copied(connection, columns, source)


def database_rows(
    connection: psycopg.Connection,
    table: Table,
    others: Sequence[psycopg.Connection] = (),
    at_once: int | None = None,
) -> Rows:
    """D: the rows of the target as they are now, with the staged row that last wrote each.

    `others` and `at_once` are as for `extract_rows`.
    """
    target = f"{SCHEMA}.{table.name}"

    def source(_: psycopg.Connection, pages: str) -> WantedRows:
        return WantedRows(f"{target} t WHERE {pages}")

    return _read((connection, *others), table, "t", target, source, _place("t"), at_once)


def answers(connection: psycopg.Connection, operation: str, batches: Sequence[int]) -> pl.DataFrame:
    """A: the outcomes of the sends of an operation, one line per staged row.

    A row that was not sent itself, because another row sent its record, has that row's answer.
    """
    columns: Columns = {
        "row": ("x.record_number", pl.Int64()),
        "extract_id": ("x.extract_id", pl.Int32()),
        "state": ("x.state", WORD),
        "status": ("coalesce(x.status, o.status)", pl.Int32()),
        "echo": ("coalesce(x.echo, o.echo)", pl.String()),
        "errors": (
            "CASE WHEN coalesce(x.echo, o.echo) IS NOT NULL "
            "THEN coalesce(x.error_data, o.error_data) END",
            pl.String(),
        ),
        "carried_out": ("coalesce(x.carried_out, o.carried_out)", WORD),
        "decision": ("coalesce(x.decision, o.decision)", WORD),
    }
    # Only operations of the operation table get here, so the name is safe in SQL.
    source = f"""{SCHEMA}.send x LEFT JOIN LATERAL (
            SELECT o.status, o.echo, o.error_data, o.carried_out, o.decision
            FROM {SCHEMA}.send o
            WHERE x.twin AND x.status IS NULL AND o.operation = x.operation AND o.state = x.state
                AND (o.extract_id, o.record_number) = (x.writer_extract_id, x.writer_record_number)
                AND NOT o.twin
            UNION ALL
            SELECT o.status, o.echo, o.error_data, o.carried_out, o.decision
            FROM {SCHEMA}.send o
            WHERE x.twin AND x.status IS NULL AND o.operation = x.operation AND o.state = x.state
                AND o.writer_extract_id = x.writer_extract_id
                AND o.writer_record_number = x.writer_record_number AND {TWIN} AND NOT o.twin
            LIMIT 1
        ) o ON TRUE
        WHERE x.operation = '{operation}'
        AND x.batch_id = ANY('{{{_numbers(batches)}}}'::int[])"""
    return copied(connection, columns, source)


def _numbers(numbers: Iterable[int]) -> str:
    return ",".join(str(int(number)) for number in numbers)


def _read(
    connections: Sequence[psycopg.Connection],
    table: Table,
    alias: str,
    relation: str,
    source: Callable[[psycopg.Connection, str], WantedRows | None],
    place: Columns,
    at_once: int | None,
) -> Rows:
    """Read what `source` wants of the pages of `relation`; gives at least one frame.

    Pages are read by columns. Only pages with an amount that no exact column holds, or a time
    outside the years 1 to 9999, are read row by row, which is slower.
    """
    columns, texts = _columns(table, alias), _texts_beyond(table, alias)
    wanted = {**columns, **place, **texts}
    # The values as stored, with the types of the frame.
    whole = {name: (f"{alias}.{quoted(name)}", dtype) for name, (_, dtype) in columns.items()}
    whole |= place

    def by_rows(reader: psycopg.Connection, rows: WantedRows) -> pl.DataFrame:
        asked = {name: of for name, of in wanted.items() if name not in rows.known}
        return copied(reader, asked, rows.source).with_columns(**rows.known).select([*wanted])

    connection = connections[0]
    connection.execute("SET LOCAL max_parallel_workers_per_gather = 0")
    # Each part is a statement of its own, whose compilation takes longer than its execution.
    connection.execute("SET LOCAL jit = off")
    nothing = [pl.lit(None, dtype).alias(name) for name, (_, dtype) in texts.items()]
    parts = (
        part if part.width > len(whole) else part.with_columns(nothing)
        for part in paged(connections, relation, alias, whole, source, by_rows)
    )
    types = {name: dtype for name, (_, dtype) in wanted.items()}
    # Not a loop, whose variable would hold a frame until the next one is read.
    yield from map(partial(_spelled_beyond, [*texts]), _together(parts, types, at_once))
    connection.execute("SET LOCAL max_parallel_workers_per_gather TO DEFAULT")
    connection.execute("SET LOCAL jit TO DEFAULT")


def _together(
    parts: Iterable[pl.DataFrame], types: Mapping[str, Dtype], at_once: int | None
) -> Iterator[pl.DataFrame]:
    """Join parts up to about `at_once` bytes into frames; an empty frame if there are no parts."""
    waiting: list[pl.DataFrame] = []
    size, number = 0, 0
    for part in parts:
        waiting.append(part)
        size += int(part.estimated_size())
        if at_once is not None and size >= at_once:
            yield _given(waiting)
            size, number = 0, number + 1
    if waiting:
        yield _given(waiting)
    elif not number:
        yield pl.DataFrame(schema=types)


def _given(waiting: list[pl.DataFrame]) -> pl.DataFrame:
    rows = in_pieces(waiting)
    waiting.clear()
    return rows


def _spelled_beyond(texts: Sequence[str], rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the texts of amounts that no exact column holds, if there are any."""
    rows = _without_empty(rows, texts)
    there = [name for name in texts if name in rows.columns]
    if not there:
        return rows
    return rows.with_columns(
        pl.col(there).map_elements(lambda text: spelled(Decimal(text)), return_dtype=pl.String)
    )


def _without_empty(rows: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """The rows without those of these columns that have no value at all."""
    nulls = rows.null_count().row(0, named=True)
    empty = {name for name in names if nulls[name] == rows.height}
    return rows[[name for name in rows.columns if name not in empty]]


def _place(alias: str) -> Columns:
    return {
        "row": (f"{alias}.record_number", pl.Int64()),
        "extract_id": (f"{alias}.extract_id", pl.Int32()),
        "batch_id": (f"{alias}.batch_id", pl.Int32()),
    }


def _columns(table: Table, alias: str) -> Columns:
    return {
        name: column
        for field in table.delivered
        for name, column in _field_columns(field, alias).items()
    }


def _field_columns(field: Field, alias: str) -> Columns:
    column = f"{alias}.{quoted(field.name)}"
    match field.kind:
        case Kind.DOUBLE if field.amount:
            exact = f"CASE WHEN {_fits(field.name, alias)} THEN {column} END"
            return {field.name: (exact, AMOUNT)}
        case Kind.DOUBLE:
            return {field.name: (column, pl.Float64())}
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            zone = "UTC" if field.kind is Kind.DATETIME_OFFSET else None
            offset = f"{alias}.{quoted(field.name + OFFSET)}"
            held = _within_years(column, offset if zone else None)
            moment = f"(extract(epoch FROM {held}) * 1000000)::bigint"
            return {
                field.name: (moment, pl.Datetime("us", zone)),
                field.name + OFFSET: (offset, pl.Int16()),
            }
        case Kind.INTEGER:
            return {field.name: (column, pl.Int32())}
        case Kind.INTEGER64:
            return {field.name: (column, pl.Int64())}
        case Kind.BOOLEAN:
            return {field.name: (f"{column}::text", pl.Boolean())}
        case _:
            return {field.name: (column, pl.String())}


def _within_years(column: str, offset: str | None) -> str:
    """SQL for a time, moved to the nearest that a delivery can express if outside years 1 to 9999.

    For an instant this applies to the clock at its offset too. Nearly all times are far within.
    """
    first, last = "'0001-01-01'::timestamp", "'9999-12-31 23:59:59.999999'::timestamp"
    if offset is not None:
        ahead = f"coalesce({offset}, 0)"
        first = f"({first} AT TIME ZONE 'UTC' - least({ahead}, 0) * interval '1 minute')"
        last = f"({last} AT TIME ZONE 'UTC' - greatest({ahead}, 0) * interval '1 minute')"
    return f"""CASE WHEN {column} IS NULL OR {column} BETWEEN '0002-01-01' AND '9999-01-01'
        THEN {column} ELSE greatest(least({column}, {last}), {first}) END"""


def _fits(name: str, alias: str) -> str:
    column = f"{alias}.{quoted(name)}"
    return f"abs({column}) < 1e20 AND scale(trim_scale({column})) <= 18"


def _texts_beyond(table: Table, alias: str) -> Columns:
    """SQL for the texts of the amounts that no exact column holds."""
    return {
        name + BEYOND: (
            f"CASE WHEN NOT ({_fits(name, alias)}) THEN {alias}.{quoted(name)}::text END",
            pl.String(),
        )
        for name in table.amounts
    }


def _unreadable(field: Field, alias: str) -> str:
    """SQL for what a row in error has in place of an amount, in words; null if it has a number.

    The delivered text is quoted. An optional amount that is missing is null too: it counts as
    unreadable only if the row has an error on it, or could not be divided into fields.
    """
    named = "coalesce(e ->> 'FieldName', '')"
    of_field, of_row = f"{named} = '{field.name}'", f"{named} = ''"
    value = "e -> 'Meta' ->> 'value'"
    reason = f"""SELECT CASE WHEN NOT {of_field} THEN 'the row cannot be told apart'
            WHEN {value} = '{NOT_SHOWN}' THEN 'not shown'
            WHEN {value} IS NULL THEN 'it is empty' ELSE '"' || ({value}) || '"' END
        FROM json_array_elements({alias}.error_data::json) e
        WHERE {of_field} OR {of_row} ORDER BY {of_field} DESC LIMIT 1"""
    otherwise = "'it is empty'" if field.required else "NULL"
    return f"""CASE WHEN {alias}.error_data IS NOT NULL AND {alias}.{quoted(field.name)} IS NULL
        THEN coalesce(({reason}), {otherwise}) END"""
