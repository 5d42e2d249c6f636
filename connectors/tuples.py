"""Rows as PostgreSQL's COPY reads and writes them in binary, all rows of a frame at once.

Only columns of a fixed size are written so, and one text of any length behind them. A row is laid
out as COPY wants it: for every column its length and its bytes, null being the length -1. The
amounts of a column have as many groups of four decimal digits as the widest of them needs; the
server drops those that say nothing.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.field import Kind, Table
from schemas.kinds import SCALE, stored_columns
from schemas.ledger import LINEAGE
from schemas.sql import IDENTITY, key_columns

HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TAIL = b"\xff\xff"
MOST_PATTERNS = 16
"""Different sets of empty columns in one frame; beyond, too little is alike."""
COUNT_BYTES = 2
"""A tuple begins with the number of its columns."""
LENGTH_BYTES = 4
"""Before the bytes of every value."""

_FIXED = (
    Kind.INTEGER,
    Kind.INTEGER64,
    Kind.DOUBLE,
    Kind.BOOLEAN,
    Kind.DATETIME,
    Kind.DATETIME_OFFSET,
)
_SINCE_2000 = 946_684_800_000_000
"""Microseconds from 1970, where frames begin to count, to 2000, where the server does."""
_AMOUNT = r"^-?[0-9]{1,9}(\.[0-9]{1,6})?$"
_ALWAYS_PLAIN = 8
"""A decimal of so few characters has at most six behind the point."""
_MICRO = 1_000_000
_NEGATIVE = 0x4000
_NUMERIC = [("digits", ">i2"), ("weight", ">i2"), ("sign", ">u2"), ("scale", ">i2")]

Bytes = NDArray[np.uint8]


class Tuples(NamedTuple):
    """Rows with the same columns empty: which they are, and their bytes as COPY wants them."""

    rows: NDArray[np.intp]
    body: Bytes
    """Two-dimensional: a line per row."""


def has_fixed_width(table: Table) -> bool:
    """Whether rows of this record can be written out as tuples of few different lengths."""
    return key_columns(table) != (IDENTITY,) and all(
        field.kind in _FIXED for field in table.delivered
    )


def target_columns(table: Table) -> tuple[str, ...]:
    """The columns of a target's tuple."""
    return (*stored_columns(table), *(field.name for field in LINEAGE))


def plain_rows(table: Table, frame: pl.DataFrame) -> pl.Series:
    """Which rows can be written out: none of the decimals has too many digits."""
    amounts = [
        field.name
        for field in table.delivered
        if field.kind is Kind.DOUBLE
        and frame.select((pl.col(field.name).str.len_bytes() > _ALWAYS_PLAIN).any()).item()
    ]
    if not amounts:
        return pl.Series("plain", [True]).new_from_index(0, frame.height)
    plain = [pl.col(name).is_null() | pl.col(name).str.contains(_AMOUNT) for name in amounts]
    return frame.select(pl.all_horizontal(plain).alias("plain"))["plain"]


def in_millionths(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """`plain_rows` with every decimal as an integer, and the number of digits it was written with.

    Those are columns of their own, behind the others.
    """
    doubles = [field.name for field in table.delivered if field.kind is Kind.DOUBLE]
    return frame.with_columns(
        part
        for name in doubles
        for part in (
            # A decimal without a point has none behind it.
            (pl.col(name).str.len_bytes() - pl.col(name).str.find(".", literal=True) - 1)
            .fill_null(0)
            .cast(pl.Int8)
            .alias(name + SCALE),
            pl.col(name).cast(pl.Decimal(18, 6)).to_physical().cast(pl.Int64),
        )
    )


def encode(table: Table, frame: pl.DataFrame, columns: Sequence[str]) -> list[Tuples] | None:
    """The columns of rows `in_millionths` as tuples; None: too many sets of empty columns."""
    if frame.is_empty():
        return []
    scales = [name for name in frame.columns if name.endswith(SCALE)]
    frame = frame.select([*columns, *scales])
    empty = [name for name in columns if frame[name].null_count()]
    every = np.arange(frame.height)
    if not empty:
        return [Tuples(every, _pack(table, frame, columns))]
    pattern = np.zeros(frame.height, np.uint64)
    for number, name in enumerate(empty):
        pattern |= frame[name].is_null().to_numpy().astype(np.uint64) << np.uint64(number)
    found = np.unique(pattern)
    if len(found) > MOST_PATTERNS or len(empty) > 64:
        return None
    parts = []
    for bits in found.tolist():
        rows = np.flatnonzero(pattern == bits)
        left_out = [name for number, name in enumerate(empty) if bits >> number & 1]
        parts.append(Tuples(rows, _pack(table, frame[rows], columns, left_out)))
    return parts


def with_texts(
    body: Bytes, source: Bytes, start: NDArray[np.int64], end: NDArray[np.int64]
) -> Bytes:
    """Tuples with one more column: a piece of the source for each.

    Rows whose pieces are of one length are copied at once, so they leave in that order.
    """
    columns = int.from_bytes(body[0, :COUNT_BYTES].tobytes(), "big")
    count = np.frombuffer((columns + 1).to_bytes(COUNT_BYTES, "big"), f"V{COUNT_BYTES}")[0]
    values = body[:, COUNT_BYTES:]
    values = values.view(f"V{values.shape[1]}").reshape(len(body))
    length = end - start
    width = COUNT_BYTES + values.itemsize + LENGTH_BYTES
    out = np.empty(len(body) * width + int(length.sum()), np.uint8)
    # Few lengths occur, and sixteen bits are sorted by counting.
    order = np.argsort(
        length.astype(np.uint16) if length.max() < 1 << 16 else length, kind="stable"
    )
    ordered = length[order]
    edges = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1)).tolist()
    done = 0
    for first, beyond in pairwise(edges):
        chosen, size = order[first:beyond], int(ordered[first])
        forms = (count.dtype, values.dtype, ">i4", f"V{size}")
        form = np.dtype([(str(number), form) for number, form in enumerate(forms)])
        view = out[done : done + form.itemsize * len(chosen)].view(form)
        windows = np.ndarray((len(source) - size + 1,), f"V{size}", source.data, strides=(1,))
        view["0"], view["2"] = count, size
        view["1"], view["3"] = values[chosen], windows[start[chosen]]
        done += view.nbytes
    return out


def _pack(
    table: Table, frame: pl.DataFrame, columns: Sequence[str], left_out: Sequence[str] = ()
) -> Bytes:
    layout: list[tuple[str, str | np.dtype[Any]]] = [("count", ">i2")]
    values: dict[str, NDArray[np.generic]] = {}
    for number, name in enumerate(columns):
        if name in left_out:
            layout.append((f"length{number}", ">i4"))
            continue
        value = _values(table, frame, name)
        layout += [(f"length{number}", ">i4"), (f"value{number}", value.dtype.newbyteorder(">"))]
        values[f"value{number}"] = value
    form = np.dtype(layout)
    alike = np.zeros((), form)
    alike["count"] = len(columns)
    for number in range(len(columns)):
        given = values.get(f"value{number}")
        alike[f"length{number}"] = -1 if given is None else given.itemsize
    packed = np.full(frame.height, alike.view(f"V{form.itemsize}"))
    fields = packed.view(form)
    for name, value in values.items():
        fields[name] = value
    return packed.view(np.uint8).reshape(frame.height, form.itemsize)


def _values(table: Table, frame: pl.DataFrame, name: str) -> NDArray[np.generic]:
    field, column = table.by_name.get(name), frame[name]
    if field is not None and field.kind is Kind.DOUBLE:
        return _numerics(column.to_numpy(), frame[name + SCALE].to_numpy())
    if isinstance(column.dtype, pl.Datetime):
        return column.cast(pl.Int64).to_numpy() - _SINCE_2000
    if column.dtype == pl.Boolean:
        return column.cast(pl.UInt8).to_numpy()
    return column.to_numpy()


def _numerics(micro: NDArray[np.int64], scale: NDArray[np.generic]) -> NDArray[np.generic]:
    """Up to nine digits before and six behind the point, with the scale as written."""
    whole, part = np.divmod(np.abs(micro), _MICRO)
    whole, part = whole.astype(np.uint32), part.astype(np.uint32)
    groups = [whole % 10_000, part // 100]
    for least in (10_000, 100_000_000):
        if whole.max() >= least:
            groups.insert(0, whole // least % 10_000)
    weight = len(groups) - 2
    if (rest := part % 100).any():
        groups.append(rest * 100)
    out = np.empty(len(micro), [*_NUMERIC, *((f"group{n}", ">i2") for n in range(len(groups)))])
    out["digits"], out["weight"], out["scale"] = len(groups), weight, scale
    out["sign"] = np.where(micro < 0, _NEGATIVE, 0)
    for number, group in enumerate(groups):
        out[f"group{number}"] = group
    # As one value of so many bytes it is copied at once.
    return out.view(f"V{out.itemsize}")


def pieces(parts: Sequence[bytes | memoryview], size: int) -> Iterator[bytes | memoryview]:
    """What is sent, in pieces of a size the server takes well."""
    for part in parts:
        view = memoryview(part)
        for begin in range(0, len(view), size):
            yield view[begin : begin + size]
