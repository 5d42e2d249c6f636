"""The records of a chunk that take the fast path, typed in one loop over their bytes."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from flows.steps.fast.cells import Bytes, byte_at, read_decimal, read_integer, read_moment
from schemas.compiled import compiled

Places = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Form(IntEnum):
    """How a delivered column is read."""

    SKIP = 0
    INTEGER = 1
    DECIMAL = 2
    WALL = 3
    """A time, kept as its wall clock."""
    INSTANT = 4
    """A time, kept as the moment in UTC."""


_SKIP, _INTEGER, _DECIMAL, _WALL = Form.SKIP, Form.INTEGER, Form.DECIMAL, Form.WALL
_MINUTE = 60_000_000


@compiled
def read_records(
    text: Bytes,
    start: Places,
    stop: Places,
    fast: Flags,
    signs: tuple[int, int],
    form: NDArray[np.int8],
    most: Places,
    values: Places,
    beside: NDArray[np.int16],
) -> int:
    """Type the records that are `fast` so far; those that cannot be are taken out of it.

    `signs`: delimiter and quote. By delivered column: `form` is its `Form`, `most` the largest
    integer it holds. Values go to the lines of `values`, which are as long as there are records,
    one after the other without gaps; `beside` takes the offset of a time in minutes, or the digits
    an amount was written with behind its point. Returns how many are left.
    """
    delimiter, quote = signs
    last = len(form) - 1
    count = 0
    for record in range(len(start)):
        if not fast[record]:
            continue
        at, end = start[record], stop[record]
        known = True
        for column in range(last + 1):
            kind = form[column]
            if kind == _INTEGER:
                at, value, known = read_integer(text, at, end)
                known = known and value <= most[column]
                values[column, count] = value
            elif kind == _DECIMAL:
                at, value, scale, known = read_decimal(text, at, end)
                values[column, count], beside[column, count] = value, scale
            else:
                first = at
                while at < end and byte_at(text, at) != delimiter and byte_at(text, at) != quote:
                    at += 1
                if kind != _SKIP:
                    wall, offset, known = read_moment(text, first, at)
                    values[column, count] = wall if kind == _WALL else wall - offset * _MINUTE
                    beside[column, count] = offset
            # A cell ends with its delimiter, the last one with the record.
            if not known:
                break
            if column == last:
                known = at == end
            elif at == end or byte_at(text, at) != delimiter:
                known = False
                break
            at += 1
        fast[record] = known
        if known:
            count += 1
    return count
