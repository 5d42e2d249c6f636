"""The truth sources the database holds, as frames: extract rows, database rows, answers, listings.

Money arrives as exact decimals; an amount that does not fit them arrives as the text it has.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TypeAlias

import polars as pl
import psycopg

from connectors.postgres.bulk.copy_out import copied, in_pieces
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
"""Frames in the pieces in which they were read: whoever goes through them often makes one of these.

An amount beyond 20 digits before the point or 18 behind it is null there, and its text is beside it
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
    """E: the staged rows of some batches with their end states; rejected ones have null fields.

    They come as they lie there, about `at_once` bytes at a time or all of them; `by_row` has them
    in their order. The connections are not free until all have come, or nobody reads on (`close`).
    `places` names the files: columns `extract_id` and `file`. `others` see what the connection
    sees (`one_moment.others_at_it`), and read some of the rows.
    """
    by_key = "c.error_data IS NOT NULL"
    place: dict[str, tuple[str, Dtype]] = {
        "state": (row_state(f"CASE WHEN {by_key} THEN '{BY_KEY}' ELSE {STATE} END"), WORD),
        "line": (position("first_line"), pl.Int64()),
        **_place("s"),
    }
    staged = f"{SCHEMA}.{staged_name(table)}"
    mine = f"s.batch_id = ANY('{{{_numbers(batches)}}}'::int[])"

    def source(reader: psycopg.Connection, pages: str) -> WantedRows | None:
        return _staged(reader, table, f"{staged} s", f"{mine} AND {pages}")

    unread: dict[str, tuple[str, Dtype]] = {
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
    """Rows of an extract by extract and record number, each column of one piece.

    The server would write all of them out to sort them, and here they are sorted some at a time.
    """
    extract, row = pl.col("extract_id"), pl.col("row")
    after = extract.diff() > 0, (extract.diff() == 0) & (row.diff() > 0)
    sorted_ones = rows.select(pl.any_horizontal(after).fill_null(value=True).all()).item()
    return rows.rechunk() if sorted_ones else rows.sort("extract_id", "row")


def _staged(
    connection: psycopg.Connection, table: Table, staged: str, wanted: str
) -> WantedRows | None:
    """Some staged rows with what became of them; None where there is no such row.

    Mostly they are of one extract, none is in error and one receipt speaks of all: then what it
    says is known, and the server joins nothing.
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
    # Without it the outcomes of all rows would be gone through for each part that is read.
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
    """The end state of all rows of a range that are not in error; None where they may differ.

    Where the batch was undone or discarded it is that of all its rows.
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
    """E: the staged rows that wrote records of some batches which say something else by now.

    Few do: nothing of ours changes a record without being named as its writer.
    """
    columns, texts = _columns(table, "s"), _texts_beyond(table, "s")
    place: dict[str, tuple[str, Dtype]] = {
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
    """The rows of some extracts whose text is in the kept file alone: `extract_id` and `row`."""
    columns: dict[str, tuple[str, Dtype]] = {
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

    `others` and `at_once` as for `extract_rows`.
    """
    target = f"{SCHEMA}.{table.name}"

    def source(_: psycopg.Connection, pages: str) -> WantedRows:
        return WantedRows(f"{target} t WHERE {pages}")

    return _read((connection, *others), table, "t", target, source, _place("t"), at_once)


def answers(connection: psycopg.Connection, operation: str, batches: Sequence[int]) -> pl.DataFrame:
    """A: what became of the sends of an operation, one line per staged row.

    A row that was not sent itself, because its record was sent by another row, has the answer that
    this one got.
    """
    columns: dict[str, tuple[str, Dtype]] = {
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
    # Only an operation of the operation table comes here.
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
    place: Mapping[str, tuple[str, Dtype]],
    at_once: int | None,
) -> Rows:
    """The rows that `source` has of some pages of `relation`, of all its pages; once at least.

    They are read by columns, and only those on pages with an amount that no exact column holds, or
    a time of no year of ours, are read row by row, which is the slower way.
    """
    columns, texts = _columns(table, alias), _texts_beyond(table, alias)
    wanted = {**columns, **place, **texts}
    # As they are in the database, with the types that frames have.
    whole = {name: (f"{alias}.{quoted(name)}", dtype) for name, (_, dtype) in columns.items()}
    whole |= place

    def by_rows(reader: psycopg.Connection, rows: WantedRows) -> pl.DataFrame:
        asked = {name: of for name, of in wanted.items() if name not in rows.known}
        return copied(reader, asked, rows.source).with_columns(**rows.known).select([*wanted])

    connection = connections[0]
    connection.execute("SET LOCAL max_parallel_workers_per_gather = 0")
    # One statement is asked for each part; to compile it takes longer than to do it.
    connection.execute("SET LOCAL jit = off")
    nothing = [pl.lit(None, dtype).alias(name) for name, (_, dtype) in texts.items()]
    parts = (
        part if part.width > len(whole) else part.with_columns(nothing)
        for part in paged(connections, relation, alias, whole, source, by_rows)
    )
    types = {name: dtype for name, (_, dtype) in wanted.items()}
    # A loop would hold what it has given away until the next rows are there.
    yield from map(partial(_spelled_beyond, [*texts]), _together(parts, types, at_once))
    connection.execute("SET LOCAL max_parallel_workers_per_gather TO DEFAULT")
    connection.execute("SET LOCAL jit TO DEFAULT")


def _together(
    parts: Iterable[pl.DataFrame], types: Mapping[str, Dtype], at_once: int | None
) -> Iterator[pl.DataFrame]:
    """The parts of about so many bytes as one frame; one without rows where there are none."""
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
    """The rows with the texts of what no exact column holds, where there are any."""
    rows = _without_empty(rows, texts)
    there = [name for name in texts if name in rows.columns]
    if not there:
        return rows
    return rows.with_columns(
        pl.col(there).map_elements(lambda text: spelled(Decimal(text)), return_dtype=pl.String)
    )


def _without_empty(rows: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """The rows without those of some columns that have no value."""
    nulls = rows.null_count().row(0, named=True)
    empty = {name for name in names if nulls[name] == rows.height}
    return rows[[name for name in rows.columns if name not in empty]]


def _place(alias: str) -> dict[str, tuple[str, Dtype]]:
    return {
        "row": (f"{alias}.record_number", pl.Int64()),
        "extract_id": (f"{alias}.extract_id", pl.Int32()),
        "batch_id": (f"{alias}.batch_id", pl.Int32()),
    }


def _columns(table: Table, alias: str) -> dict[str, tuple[str, Dtype]]:
    return {
        name: column
        for field in table.delivered
        for name, column in _field_columns(field, alias).items()
    }


def _field_columns(field: Field, alias: str) -> dict[str, tuple[str, Dtype]]:
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
    """SQL for a time; the nearest that a delivery can say for one of no year from 1 to 9999.

    Of an instant this is about the clock at its offset too. Nearly all are far within.
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


def _texts_beyond(table: Table, alias: str) -> dict[str, tuple[str, Dtype]]:
    """Texts of the amounts that no exact column holds."""
    return {
        name + BEYOND: (
            f"CASE WHEN NOT ({_fits(name, alias)}) THEN {alias}.{quoted(name)}::text END",
            pl.String(),
        )
        for name in table.amounts
    }


def _unreadable(field: Field, alias: str) -> str:
    """SQL for what stands in place of an amount of a row in error, in words; null: a number does.

    What was delivered is quoted. An amount that need not be there and is not is none, and no
    number either: it is unreadable only where the row says so of it, or could not be told apart.
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
