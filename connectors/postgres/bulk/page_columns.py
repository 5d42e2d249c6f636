"""Many rows of a table as a frame, some pages of it at a time: a message for each column of these.

A message for each row costs the client more than all that is in it, and so does writing numbers as
text. Here the server puts the values of a column behind each other, as it would send each of them.
Amounts and texts have no size of their own, so they come with a sign between them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import psycopg
from psycopg.pq import ExecStatus

from connectors.postgres.bulk.copy_out import refusal
from connectors.postgres.one_moment import in_turn
from connectors.postgres.query import one_value
from schemas.derived.views import quoted
from schemas.frame_types import AMOUNT, WORD, Dtype

PAGES = 512
"""Pages of a table that are read together."""
MOST_TEXT = 16 * 1024 * 1024
"""Bytes of texts on so many pages, unpacked: rows with more of them come one by one."""
_SINCE_1970 = 946_684_800_000_000
"""Microseconds to 2000, where the server begins to count."""
_FIXED: dict[Dtype, tuple[str, str, str]] = {
    pl.Int16(): ("int2send", "smallint", ">i2"),
    pl.Int32(): ("int4send", "integer", ">i4"),
    pl.Int64(): ("int8send", "bigint", ">i8"),
    pl.Float64(): ("float8send", "double precision", ">f8"),
    pl.Boolean(): ("boolsend", "boolean", "?"),
}
"""What sends a value of a type, and how it is sent."""
_TIMES = {True: "timestamptz", False: "timestamp"}
_DAY = 86_400_000_000
_OWN_YEARS = -719_162 * _DAY, 2_932_897 * _DAY - 1
"""The first and last microsecond of the years 1 to 9999."""
_ANY_OFFSET = _OWN_YEARS[0] + _DAY, _OWN_YEARS[1] - _DAY
_WHOLE, _BEHIND = "1e20", 18
"""What an exact decimal column holds: less than this, and so many digits behind the point."""
Columns = Mapping[str, tuple[str, Dtype]]
"""Name -> SQL of the value as it is in the database, and its type in the frame."""


@dataclass(frozen=True, slots=True)
class WantedRows:
    source: str
    """What follows FROM."""
    known: Mapping[str, pl.Expr] = field(default_factory=dict)
    """Columns that are the same in all of them, or follow from others: nobody asks for them."""


class _NotAsColumnsError(Exception):
    """Some value has no exact place in its column, which the reader by rows tells of."""


def paged(
    connections: Sequence[psycopg.Connection],
    relation: str,
    alias: str,
    columns: Columns,
    source: Callable[[psycopg.Connection, str], WantedRows | None],
    by_rows: Callable[[psycopg.Connection, WantedRows], pl.DataFrame],
) -> Iterator[pl.DataFrame]:
    """The rows of a table with these columns, in the order in which they lie there.

    `source` says of a condition on the table's pages which rows are wanted, or None where there is
    none; `by_rows` reads such rows that do not fit columns, and may have more of these. The
    connections have to see one moment; each of them reads some pages at the same time.
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
    """Whether the texts of some rows fit a message; the server knows their sizes unread."""
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
    """The rows that are wanted.

    `mixed` are the columns of which some have a null, or differ in a word. It costs the server
    something to say which, so it is asked only when that is known; once it was, the column is read.
    """
    unknown = {name: of for name, of in columns.items() if name not in wanted.known}
    selected = ", ".join(f"{sql} AS {quoted(name)}" for name, (sql, _) in unknown.items())
    while True:
        # Another connection may find out more meanwhile.
        then = frozenset(mixed)
        asked = {
            name: _asked(quoted(name), dtype, mixed=name in then)
            for name, (_, dtype) in unknown.items()
        }
        parts = ["count(*)", *(part for of in asked.values() for part in of)]
        # Behind an OFFSET the server works out each of them once.
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
    """What is asked of a column: its values, and where some rows have none, which have one."""
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
    """What a statement with one row says, as it is sent."""
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
    """A column of what was answered of it; None where more has to be asked."""
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
    """The values of a column that are not null."""
    if dtype == AMOUNT:
        return pl.read_csv(
            values, has_header=False, separator="\t", quote_char=None, schema={"amount": dtype}
        )["amount"]
    if dtype in (WORD, pl.String()):
        texts = pl.Series([values.decode()]).str.split("\0").explode()
        return texts.cast(dtype)
    if isinstance(dtype, pl.Datetime):
        moments = np.frombuffer(values, ">i8").astype(np.int64)
        # An instant may be of the year before or behind at its offset.
        least, most = _OWN_YEARS if dtype.time_zone is None else _ANY_OFFSET
        if moments.min() < least - _SINCE_1970 or moments.max() > most - _SINCE_1970:
            raise _NotAsColumnsError
        moments += _SINCE_1970
        return pl.Series(moments).cast(dtype)
    form = np.dtype(_FIXED[dtype][2])
    return pl.Series(np.frombuffer(values, form).astype(form.newbyteorder("=")))
