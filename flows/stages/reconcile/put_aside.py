"""Large sides put aside: in parts by ranges of the key, in files without a name.

Ranges, not hashes: numbers that lie close together are paired without a join
(`near_keys.near_partners`), and parts that follow each other by the key are records in order
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
"""Byte: of what is large nothing stays."""
_MOST = 1024
"""Ranges: each takes a piece of some kilobytes of each part of a side that is read."""
_OWN_FILES = 64
"""Frames with a file of their own, read in a third of the time; fewer where few may be open."""
_SMALL = MIB
"""Bytes of small frames that may stay in memory, where they are there sooner."""


def has_ranges(table: Table) -> bool:
    """Whether the records of a kind can be parted.

    Not those of kinds whose key does not begin with a number, and of which a row in error is told
    by its place alone.
    """
    first = table.delivered[0]
    return (
        first.name == table.identity[0] != table.tenant
        and first.kind in INTEGERS
        and not table.unquotable
        and table is not INSERT_BATCH_DATA
    )


def ranges(table: Table, numbers: pl.Series, parts: int) -> Ranges | None:
    """Ranges that part records about evenly, by their first numbers; None where they stay whole."""
    if parts < 2 or not has_ranges(table):
        return None
    of_key = even_ranges(table.identity[0], numbers, min(parts, _MOST))
    return of_key if len(of_key) > 1 else None


def put_aside(
    ranges: Ranges, frames: Iterable[pl.DataFrame], arranged: Change = pl.DataFrame.rechunk
) -> Sequence[Load]:
    """Put the rows of a side into files, those of each range `arranged`; what reads each range.

    Of one piece each: what is gathered from it later takes half the time. Rows that come as several
    frames go through a file of their own first, and are never there together.
    """
    nothing, parted = _parted(ranges, iter(frames))
    keep = keeper(0)
    loads = {part: keep(arranged(some)) for part, some in parted}
    return [loads.get(part, held(nothing)) for part in range(len(ranges))]


def _parted(
    ranges: Ranges, frames: Iterator[pl.DataFrame]
) -> tuple[pl.DataFrame, Iterator[tuple[int, pl.DataFrame]]]:
    """A frame without rows, and those of each range that has some, all with the same columns."""
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
    """Puts frames into files: some into one of its own each, the others all into one.

    Those that are no more than so many bytes together stay in memory.
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
    """The rows of frames with the same columns, put into a file at once where there are several."""
    first, *others = islice(parts := iter(parts), 2)
    if not others:
        return held_rows(first)
    file = FrameFile(_NONE, "lz4")
    for part in chain((first, *others), parts):
        file.add(part)
    return PartedRows(first.columns, lambda names: file.frames(columns=names))


def _read(file: FrameFile, number: int, columns: list[str]) -> pl.DataFrame:
    return next(file.frames(number, columns=columns))
