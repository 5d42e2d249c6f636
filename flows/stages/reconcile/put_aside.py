"""Large sides put aside in parts by ranges of the key, in nameless files.

Ranges rather than hashes: numbers that lie close together are paired without a join
(`near_keys.near_partners`), and parts that follow each other by key give ordered records
(`signed.packed_parts`).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, count, islice

import polars as pl

from connectors.files.disk.system_errors import most_open
from connectors.settings import MIB
from flows.stages.frame_file import FrameFile
from flows.steps.frames.beyond import texts_last
from flows.steps.frames.parts import Change, Keep, KeptFrame, Load, PartedRows, held, held_rows
from flows.steps.frames.ranges import Ranges, even_ranges
from schemas.field import INTEGERS, Table
from schemas.tables import INSERT_BATCH_DATA

_NONE = 1
"""The byte limit by which nothing stays in memory."""
_MOST = 1024
"""The most ranges: each takes some kilobytes of every part of a side that is read."""
_OWN_FILES = 64
"""Frames with a file of their own, which read three times as fast; fewer if few may be open."""
_SMALL = MIB
"""Bytes of small frames that may stay in memory, where reading them is faster."""


def has_ranges(table: Table) -> bool:
    """Whether the records of a kind can be split into ranges.

    Not if the kind's key does not begin with a number, or if its rows in error are known by their
    place alone.
    """
    first = table.delivered[0]
    return (
        first.name == table.identity[0] != table.tenant
        and first.kind in INTEGERS
        and not table.unquotable
        and table is not INSERT_BATCH_DATA
    )


def ranges(table: Table, numbers: pl.Series, parts: int) -> Ranges | None:
    """Even ranges over the numbers of the first key column; None if records stay whole."""
    if parts < 2 or not has_ranges(table):
        return None
    of_key = even_ranges(table.identity[0], numbers, min(parts, _MOST))
    return of_key if len(of_key) > 1 else None


def put_aside(
    ranges: Ranges, frames: Iterable[pl.DataFrame], arranged: Change = pl.DataFrame.rechunk
) -> Sequence[Load]:
    """Put the rows of a side into files, each range `arranged`; returns a reader for each range.

    Every range is one piece, which halves the time for gathering from it later. Rows that come as
    several frames go through a file first, and are never in memory together.
    """
    nothing, parted = _parted(ranges, iter(frames))
    keep = keeper(0)
    loads = {part: keep(arranged(some)) for part, some in parted}
    return [loads.get(part, held(nothing)) for part in range(len(ranges))]


def _parted(
    ranges: Ranges, frames: Iterator[pl.DataFrame]
) -> tuple[pl.DataFrame, Iterator[tuple[int, pl.DataFrame]]]:
    """A frame without rows, and the rows of each range that has some, with equal columns."""
    begun = [*islice(frames, 2)]
    nothing = begun[0].clear()
    if len(begun) == 1:
        return nothing, ranges.split(begun[0])
    file = FrameFile(_NONE)
    while begun:
        rows = begun.pop(0)
        nothing = texts_last(pl.concat([nothing, rows.clear()], how="diagonal"))
        for part, some in ranges.split(rows):
            file.add(some, part)
        begun += islice(frames, 1)
    return nothing, (
        (part, pl.concat([nothing, *file.frames(part)], how="diagonal")) for part in file.parts
    )


def keeper(in_memory: int = _SMALL) -> Keep:
    """Puts frames into files: some into one each, all others into a shared one.

    Frames that together have at most `in_memory` bytes stay in memory.
    """
    shared, numbers, left = FrameFile(_NONE), count(), in_memory

    def keep(rows: pl.DataFrame) -> Load:
        nonlocal left
        size = int(rows.estimated_size())
        if size <= left:
            left -= size
            return held(rows)
        number = next(numbers)
        own = number < _OWN_FILES and number < most_open(_OWN_FILES)
        file = FrameFile(_NONE) if own else shared
        file.add(rows, number)
        return KeptFrame(rows.columns, partial(_read, file, number))

    return keep


def kept_parts(parts: Iterable[pl.DataFrame]) -> PartedRows:
    """The rows of frames with the same columns, in a file unless there is only one frame."""
    first, *others = islice(parts := iter(parts), 2)
    if not others:
        return held_rows(first)
    file = FrameFile(_NONE, "lz4")
    for part in chain((first, *others), parts):
        file.add(part)
    return PartedRows(first.columns, lambda names: file.frames(columns=names))


def _read(file: FrameFile, number: int, columns: list[str]) -> pl.DataFrame:
    return next(file.frames(number, columns=columns))
