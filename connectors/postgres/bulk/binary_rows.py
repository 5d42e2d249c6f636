"""Rows in PostgreSQL's binary COPY format, written in one compiled loop.

A row is its number of columns and, for each column, the length of its value and the bytes, all
big-endian; a length of -1 means null.
Source: PostgreSQL, COPY, "Binary Format"; `numeric_send` in numeric.c for amounts.
"""

import numpy as np
from numpy.typing import NDArray

from schemas.compiled import compiled, loop_part

_COUNT, _LENGTH = 2, 4
"""Bytes of the number of columns, and of a value's length."""
_MOST_AMOUNT = 8 + 2 * 6
"""Bytes of an amount: 64 bits of millionths take four groups before the point, two after it."""
_NEGATIVE = 0x4000
_BASE = 10_000
"""Amounts are written in groups of four decimal digits."""
_MOST_BEFORE = 4
"""Most groups before the point."""
_MICRO = 1_000_000
_WORD = 8


def room(sizes: NDArray[np.int64], rows: int) -> int:
    """Upper limit of the bytes of rows, with the length of each row's text but not its bytes.

    `sizes` is as for `write_rows`.
    """
    values = int(np.where(sizes == 0, _MOST_AMOUNT, sizes).sum())
    return rows * (_COUNT + _LENGTH * (len(sizes) + 1) + values)


@compiled
def write_rows(
    values: NDArray[np.int64],
    scales: NDArray[np.int8],
    given: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    text: NDArray[np.uint8],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> int:
    """Write the rows of `values` (one line per column) to `out`; returns how many bytes.

    `given` says which values are not null. `sizes` is the width in bytes of each column's values;
    0 means amounts in millionths, each with the number of decimal places that `scales`
    gives. If `start` has an entry per row, one more column is the slice of `text` from there to
    `stop`.
    """
    columns, rows = values.shape
    texts = len(start) > 0
    at = 0
    for row in range(rows):
        at = _write(out, at, _COUNT, columns + texts)
        for column in range(columns):
            if not given[column, row]:
                at = _write(out, at, _LENGTH, -1)
            elif sizes[column] == 0:
                at = _write_numeric(out, at, values[column, row], scales[column, row])
            # Nearly all columns have these two sizes; a constant size needs no loop.
            elif sizes[column] == 8:
                at = _write(out, at, _LENGTH, 8)
                at = _write(out, at, 8, values[column, row])
            elif sizes[column] == 4:
                at = _write(out, at, _LENGTH, 4)
                at = _write(out, at, 4, values[column, row])
            else:
                at = _write(out, at, _LENGTH, sizes[column])
                at = _write(out, at, sizes[column], values[column, row])
        if texts:
            size = stop[row] - start[row]
            at = _write(out, at, _LENGTH, size)
            at = _copy(out, at, size, text, start[row])
    return at


@loop_part
def _copy(out: NDArray[np.uint8], at: int, size: int, text: NDArray[np.uint8], start: int) -> int:
    """Write a slice of a text; returns where the next value goes."""
    if size < _WORD:
        for byte in range(size):
            out[np.uint64(at + byte)] = text[np.uint64(start + byte)]
        return at + size
    for done in range(0, size - _WORD, _WORD):
        _copy_word(out, at + done, text, start + done)
    # The last word may overlap the one before.
    _copy_word(out, at + size - _WORD, text, start + size - _WORD)
    return at + size


@loop_part
def _copy_word(out: NDArray[np.uint8], at: int, text: NDArray[np.uint8], start: int) -> None:
    """Copy eight bytes, reading all before writing any, which compiles to a single move."""
    word = 0
    for byte in range(_WORD):
        word |= int(text[np.uint64(start + byte)]) << 8 * byte
    for byte in range(_WORD):
        out[np.uint64(at + byte)] = word >> 8 * byte & 0xFF


@loop_part
def _write(out: NDArray[np.uint8], at: int, size: int, value: int) -> int:
    """Write an integer of `size` bytes; returns where the next value goes."""
    whole = int(value)
    for byte in range(size):
        # An unsigned index needs no check for counting from the end.
        out[np.uint64(at + byte)] = whole >> 8 * (size - 1 - byte) & 0xFF
    return at + size


@loop_part
def _write_numeric(out: NDArray[np.uint8], at: int, micro: int, scale: int) -> int:
    """Write an amount: number of groups, weight of the first, sign, scale as delivered, groups."""
    whole, part = abs(micro) // _MICRO, abs(micro) % _MICRO
    before = int(whole > 0) + int(whole >= _BASE) + int(whole >= _BASE**2) + int(whole >= _BASE**3)
    behind = int(part > 0) + int(part % 100 > 0)
    _write(out, at, _LENGTH, 8 + 2 * (before + behind))
    _write(out, at + 4, 2, before + behind)
    _write(out, at + 6, 2, before - 1)
    _write(out, at + 8, 2, _NEGATIVE if micro < 0 else 0)
    _write(out, at + 10, 2, scale)
    # Write all possible groups: absent leading ones are shifted out, which leaves room at the end.
    groups = whole // _BASE**3 << 48 | whole // _BASE**2 % _BASE << 32
    groups |= whole // _BASE % _BASE << 16 | whole % _BASE
    none = 8 * (_MOST_BEFORE - before)
    first = _write(out, at + 12, 8, groups << none << none) - 2 * (_MOST_BEFORE - before)
    _write(out, first, 4, part // 100 << 16 | part % 100 * 100)
    return first + 2 * behind
