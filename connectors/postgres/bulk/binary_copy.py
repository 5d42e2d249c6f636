"""Rows of a frame encoded together in PostgreSQL's binary COPY format.

This covers columns of a fixed size, amounts of up to six decimal places and, as the last
column, one text of any length.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.field import Kind, Table
from schemas.kinds import SCALE

HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TAIL = b"\xff\xff"
_FIXED = (
    Kind.INTEGER,
    Kind.INTEGER64,
    Kind.DOUBLE,
    Kind.BOOLEAN,
    Kind.DATETIME,
    Kind.DATETIME_OFFSET,
)
_SINCE_2000 = 946_684_800_000_000
"""Microseconds from 1970, the epoch of frames, to 2000, the epoch of the server."""


class Texts(NamedTuple):
    """A slice of a text for each row."""

    source: NDArray[np.uint8]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]


_NOWHERE = np.empty(0, np.int64)
# Read-only like the text of a chunk; the loop would be compiled again for a writable array.
_NO_TEXTS = Texts(np.frombuffer(b"", np.uint8), _NOWHERE, _NOWHERE)


def has_fixed_width(table: Table) -> bool:
    """Whether rows of this kind can be encoded in binary, since each column has a fixed size."""
    return key_columns(table) != (IDENTITY,) and all(
        field.kind in _FIXED for field in table.delivered
    )


def encode(
    table: Table, frame: pl.DataFrame, columns: Sequence[str], texts: Texts = _NO_TEXTS
) -> memoryview:
    """Encode the columns of rows `in_millionths` for COPY, followed by the rows' own texts."""
    # Its compiler takes longer to load than a small delivery to import.
    from connectors.postgres.bulk.binary_rows import room, write_rows  # noqa: PLC0415

    shape = len(columns), frame.height
    values, given = np.empty(shape, np.int64), np.ones(shape, np.bool_)
    sizes, scales = np.empty(len(columns), np.int64), np.zeros(shape, np.int8)
    # All columns in one query: a query for each takes longer than the rows of a small delivery.
    # Flags are cast to bytes first, since filling in a number would make them four bytes wide.
    flags = cs.boolean().cast(pl.UInt8)
    filled = frame.select(columns).with_columns(flags).select(pl.all().to_physical().fill_null(0))
    for number, name in enumerate(columns):
        column, cells = frame[name], filled[name].to_numpy()
        if column.null_count():
            given[number] = column.is_not_null().to_numpy()
        values[number], sizes[number] = cells, cells.dtype.itemsize
        if isinstance(column.dtype, pl.Datetime):
            values[number] -= _SINCE_2000
        field = table.by_name.get(name)
        if field is not None and field.kind is Kind.DOUBLE:
            sizes[number] = 0
            scales[number] = frame[name + SCALE].to_numpy()
    out = np.empty(room(sizes, frame.height) + int((texts.stop - texts.start).sum()), np.uint8)
    return out[: write_rows(values, scales, given, sizes, *texts, out)].data


def pieces(parts: Iterable[bytes | memoryview], size: int) -> Iterator[bytes | memoryview]:
    """Split what is sent into pieces of a size that the server takes well."""
    for part in parts:
        view = memoryview(part)
        for begin in range(0, len(view), size):
            yield view[begin : begin + size]
