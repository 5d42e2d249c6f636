"""Compiled loops that count and write the records made from the lines of a table.

Only lines without quotes are read here: their cells lie between the delimiters.
"""

from typing import NamedTuple

import numpy as np

from connectors.files.text.bitmask import Bytes, Places
from schemas.compiled import compiled, loop_part

_BLANK, _TAB, _LINE_FEED = ord(" "), ord("\t"), ord("\n")


class TableShape(NamedTuple):
    """The conversion of a table's columns, as arrays."""

    delimiter: int
    kept: Places
    """Columns repeated in each record."""
    making: Places
    """Columns that each make one record."""
    labels: Bytes
    """Labels of those columns, concatenated, as written in a record."""
    label_ends: Places
    null: Bytes
    """Cell texts that make no record, concatenated."""
    null_ends: Places
    trimmed: bool
    """Whether the blanks around a cell are dropped first."""
    ends: Places
    """Scratch space for the ends of a line's cells."""


@compiled
def count_records(
    text: Bytes, start: Places, stop: Places, shape: TableShape, counts: Places, kept: Places
) -> None:
    """Count the records of each line, and the bytes of it that are repeated in each of them."""
    for line in range(len(start)):
        _find_ends(text, start[line], stop[line], shape)
        count, size = 0, 0
        for column in shape.making:
            count += _has_value(text, start[line], column, shape)
        for column in shape.kept:
            size += shape.ends[column] - _begin(start[line], column, shape)
        counts[line], kept[line] = count, size


@compiled
def write_records(
    text: Bytes,
    start: Places,
    stop: Places,
    shape: TableShape,
    out: Bytes,
    begins: Places,
    ends: Places,
) -> int:
    """Write the records of each line to `out`, one to a line, and note where each is."""
    at, record = 0, 0
    for line in range(len(start)):
        first = start[line]
        _find_ends(text, first, stop[line], shape)
        for place in range(len(shape.making)):
            column = shape.making[place]
            if not _has_value(text, first, column, shape):
                continue
            begins[record] = at
            for other in shape.kept:
                at = _copy(text, _begin(first, other, shape), shape.ends[other], out, at)
                at = _write(out, at, shape.delimiter)
            label = shape.label_ends[place - 1] if place > 0 else 0
            at = _copy(shape.labels, label, shape.label_ends[place], out, at)
            at = _write(out, at, shape.delimiter)
            at = _copy(text, _begin(first, column, shape), shape.ends[column], out, at)
            ends[record] = at
            at = _write(out, at, _LINE_FEED)
            record += 1
    return at


@loop_part
def _find_ends(text: Bytes, start: int, stop: int, shape: TableShape) -> None:
    """Find where the cells of a line end: at the delimiters and at the end of the line."""
    column = 0
    for at in range(start, stop):
        if text[np.uint64(at)] == shape.delimiter:
            shape.ends[column] = at
            column += 1
    shape.ends[column] = stop


@loop_part
def _begin(start: int, column: int, shape: TableShape) -> int:
    return shape.ends[column - 1] + 1 if column > 0 else start


@loop_part
def _has_value(text: Bytes, start: int, column: int, shape: TableShape) -> bool:
    """Whether a cell makes a record: it is not empty and not one of the null texts."""
    begin, end = _begin(start, column, shape), shape.ends[column]
    if shape.trimmed:
        while begin < end and text[np.uint64(begin)] in (_BLANK, _TAB):
            begin += 1
        while begin < end and text[np.uint64(end - 1)] in (_BLANK, _TAB):
            end -= 1
    if begin == end:
        return False
    first = 0
    for word in shape.null_ends:
        size = word - first
        if size == end - begin:
            place = 0
            while place < size and text[np.uint64(begin + place)] == shape.null[first + place]:
                place += 1
            if place == size:
                return False
        first = word
    return True


@loop_part
def _copy(source: Bytes, begin: int, end: int, out: Bytes, at: int) -> int:
    for place in range(begin, end):
        out[np.uint64(at)] = source[np.uint64(place)]
        at += 1
    return at


@loop_part
def _write(out: Bytes, at: int, sign: int) -> int:
    out[np.uint64(at)] = sign
    return at + 1
