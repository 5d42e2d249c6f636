"""Many rows of a table as a frame, some pages at a time, with one message per column.

A message per row costs the client more than its contents, and so does writing numbers as text. Here
the server concatenates the values of a column in their wire format. Amounts and texts have no fixed
size, so a separator stands between them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import psycopg
from psycopg.pq import ExecStatus

from connectors.postgres.bulk.copy_out import Columns, refusal
from connectors.postgres.one_moment import in_turn
from connectors.postgres.query import one_value
from schemas.derived.views import quoted
from schemas.frame_types import AMOUNT, WORD, Dtype

PAGES = 512
"""Pages of a table that are read together."""
MOST_TEXT = 16 * 1024 * 1024
"""Most bytes of uncompressed texts on these pages; rows with more come one by one."""
_SINCE_1970 = 946_684_800_000_000
"""Microseconds from 1970 to 2000, the epoch of the server."""
_FIXED: dict[Dtype, tuple[str, str, str]] = {
    pl.Int16(): ("int2send", "smallint", ">i2"),
    pl.Int32(): ("int4send", "integer", ">i4"),
    pl.Int64(): ("int8send", "bigint", ">i8"),
    pl.Float64(): ("float8send", "double precision", ">f8"),
    pl.Boolean(): ("boolsend", "boolean", "?"),
}
"""By type: the function that sends a value, its SQL type, and the format of what is sent."""
_TIMES = {True: "timestamptz", False: "timestamp"}
_DAY = 86_400_000_000
_OWN_YEARS = -719_162 * _DAY, 2_932_897 * _DAY - 1
"""The first and last microsecond of the years 1 to 9999."""
_ANY_OFFSET = _OWN_YEARS[0] + _DAY, _OWN_YEARS[1] - _DAY
_WHOLE, _BEHIND = "1e20", 18
"""Limits of an exact decimal column: the absolute value, and the decimal places."""


@dataclass(frozen=True, slots=True)
class WantedRows:
    source: str
    """What follows FROM in a query."""
    known: Mapping[str, pl.Expr] = field(default_factory=dict)
    """Columns that are the same in all rows or follow from others, so they are not queried."""


class _NotAsColumnsError(Exception):
    """A value does not fit its column exactly; the reader by rows handles it."""


def paged(
    connections: Sequence[psycopg.Connection],
    relation: str,
    alias: str,
    columns: Columns,
    source: Callable[[psycopg.Connection, str], WantedRows | None],
    by_rows: Callable[[psycopg.Connection, WantedRows], pl.DataFrame],
) -> Iterator[pl.DataFrame]:
    """The rows of a table with these columns, in the order in which they are stored.

    Given a condition on the table's pages, `source` says which rows are wanted, or None if there
    are none; `by_rows` reads rows that do not fit columns, and may add columns. `columns` name
    values as stored. The connections must share a snapshot; each reads some pages at the same time.
    """
    asked = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int"
    size = int(one_value(connections[0].execute(asked, [relation])))
    mixed: set[str] = set()

    def read(connection: psycopg.Connection, first: int) -> pl.DataFrame | None:
        pages = f"{alias}.ctid >= '({first},0)'::tid AND {alias}.ctid < '({first + PAGES},0)'::tid"
        rows = source(connection, pages)
        if rows is None:
            return None
        try:
            if not texts_fit(connection, f"{relation} {alias} WHERE {pages}", alias, columns):
                raise _NotAsColumnsError
            return _read(connection, columns, rows, mixed)
        except _NotAsColumnsError:
            return by_rows(connection, rows)

    for part in in_turn(connections, read, range(0, size, PAGES)):
        if part is not None:
            yield part


def texts_fit(connection: psycopg.Connection, rows: str, alias: str, columns: Columns) -> bool:
    """Whether the texts of these rows fit a message; the server knows their sizes unread."""
    sizes = [
        f"coalesce(octet_length({sql}), 0)::bigint"
        for sql, dtype in columns.values()
        if dtype == pl.String() and sql.startswith(f'{alias}."')
    ]
    if not sizes:
        return True
    size = one_value(connection.execute(f"SELECT sum({' + '.join(sizes)}) FROM {rows}"))
    return size is None or size <= MOST_TEXT


def _read(
    connection: psycopg.Connection, columns: Columns, wanted: WantedRows, mixed: set[str]
) -> pl.DataFrame:
    """Read the wanted rows.

    `mixed` are columns with nulls in some rows, or with different words. Telling which rows costs
    the server something, so a column is asked that only after it was found to be mixed.
    """
    unknown = {name: of for name, of in columns.items() if name not in wanted.known}
    selected = ", ".join(f"{sql} AS {quoted(name)}" for name, (sql, _) in unknown.items())
    while True:
        # Another connection may add to it meanwhile.
        then = frozenset(mixed)
        asked = {
            name: _asked(quoted(name), dtype, mixed=name in then)
            for name, (_, dtype) in unknown.items()
        }
        parts = ["count(*)", *(part for of in asked.values() for part in of)]
        # OFFSET 0 makes the server compute each expression once.
        rows = f"(SELECT {selected} FROM {wanted.source} OFFSET 0) rows"
        values = iter(_one_row(connection, f"SELECT {', '.join(parts)} FROM {rows}"))
        height = int.from_bytes(next(values) or b"", "big")
        read = {
            name: _column([next(values) for _ in of], columns[name][1], height, mixed=name in then)
            for name, of in asked.items()
        }
        again = {name for name, column in read.items() if column is None}
        if not again:
            frame = pl.DataFrame(
                [column.alias(name) for name, column in read.items() if column is not None]
            )
            return frame.with_columns(**wanted.known).select([*columns])
        mixed |= again


def _asked(column: str, dtype: Dtype, *, mixed: bool) -> list[str]:
    """SQL for the values of a column and, if only some rows have one, for which these are."""
    values = _values(column, dtype, mixed=mixed)
    return [*values, f"string_agg(boolsend({column} IS NOT NULL), '')"] if mixed else values


def _values(column: str, dtype: Dtype, *, mixed: bool) -> list[str]:
    if dtype == AMOUNT:
        bounds = f"max({column}) < {_WHOLE} AND min({column}) > -{_WHOLE}"
        fits = f"coalesce({bounds} AND max(scale({column})) <= {_BEHIND}, TRUE)"
        return [fits, f"string_agg({column}::text, E'\\n')"]
    if dtype == WORD and not mixed:
        ends = [f'{end}({column} COLLATE "C")' for end in ("min", "max")]
        return [f"count({column})", f"CASE WHEN {ends[0]} = {ends[1]} THEN {ends[0]} END"]
    if dtype in (WORD, pl.String()):
        return [f"string_agg(textsend({column}::text), '\\x00'::bytea)"]
    if isinstance(dtype, pl.Datetime):
        return [f"string_agg({_TIMES[bool(dtype.time_zone)]}_send({column}), '')"]
    send, kind, _ = _FIXED[dtype]
    return [f"string_agg({send}({column}::{kind}), '')"]


def _one_row(connection: psycopg.Connection, statement: str) -> list[bytes | None]:
    """The values of a statement's only row, in binary format."""
    result = connection.pgconn.exec_params(statement.encode(), [], result_format=1)
    if result.status != ExecStatus.TUPLES_OK:
        raise refusal(connection.pgconn, result)
    try:
        return [result.get_value(0, place) for place in range(result.nfields)]
    finally:
        result.clear()


def _column(
    answered: Sequence[bytes | None], dtype: Dtype, height: int, *, mixed: bool
) -> pl.Series | None:
    """A column made from its answer; None if the column must be asked as a mixed one."""
    if dtype == WORD and not mixed:
        count, word = answered
        words = int.from_bytes(count or b"", "big")
        if words and (words < height or word is None):
            return None
        only = None if word is None else word.decode()
        return pl.Series([only], dtype=dtype).new_from_index(0, height)
    if dtype == AMOUNT:
        fits, *answered = answered
        if fits != b"\1":
            raise _NotAsColumnsError
    values, *given = answered
    if values is None:
        return pl.Series([None], dtype=dtype).new_from_index(0, height)
    there = _typed(values, dtype)
    if there.len() == height:
        return there
    if not mixed:
        return None
    known = np.frombuffer(given[0] or b"", np.bool_)
    place = np.maximum(np.cumsum(known, dtype=np.uint32), 1) - np.uint32(1)
    held = pl.DataFrame({"known": known, "there": there.gather(pl.Series(place))})
    return held.select(pl.when("known").then("there")).to_series()


def _typed(values: bytes, dtype: Dtype) -> pl.Series:
    """Parse the values of a column that are not null."""
    if dtype == AMOUNT:
        return pl.read_csv(
            values, has_header=False, separator="\t", quote_char=None, schema={"amount": dtype}
        )["amount"]
    if dtype in (WORD, pl.String()):
        texts = pl.Series([values.decode()]).str.split("\0").explode()
        return texts.cast(dtype)
    if isinstance(dtype, pl.Datetime):
        moments = np.frombuffer(values, ">i8").astype(np.int64)
        # At its offset, an instant may fall in the year before or after.
        least, most = _OWN_YEARS if dtype.time_zone is None else _ANY_OFFSET
        if moments.min() < least - _SINCE_1970 or moments.max() > most - _SINCE_1970:
            raise _NotAsColumnsError
        moments += _SINCE_1970
        return pl.Series(moments).cast(dtype)
    form = np.dtype(_FIXED[dtype][2])
    return pl.Series(np.frombuffer(values, form).astype(form.newbyteorder("=")))
