"""The sides of a comparison: CSV, Parquet and database tables, read one column at a time.

What cannot be read by column (CSV, a table that is pulled) is first written into a scratch folder
as Arrow files, block by block, so that memory does not grow with it.
"""

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from connectors.errors import SidesRefused
from connectors.files.disk.atomic import private_folder
from connectors.files.incoming.columnar import arrow_rows, parquet_rows
from schemas.cells.readings import Column

SPILLED = ".arrow"
ROW = "row"
"""In the files of a partition: the number of a row in the whole side."""
SAMPLE_ROWS = 1 << 16
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What is raised where content cannot be read; polars panics over some."""


@dataclass(slots=True)
class SideLines:
    """The lines rows begin on: by block one number where every record is a line, else a file."""

    starts: list[int] = field(default_factory=list)
    """Number of the first row of each block."""
    first: list[int] = field(default_factory=list)
    wrapped: dict[int, Path] = field(default_factory=dict)

    def add(self, row: int, line: int, wrapped: Path | None) -> None:
        """Tell of a block that begins with this row on this line."""
        if wrapped is not None:
            self.wrapped[len(self.starts)] = wrapped
        self.starts.append(row)
        self.first.append(line)

    def of(self, rows: pl.Series) -> pl.Series:
        if not self.starts:
            return rows.cast(pl.Int64)
        starts = pl.Series(self.starts, dtype=pl.Int64)
        numbers = rows.cast(pl.Int64)
        block = starts.search_sorted(numbers, side="right").cast(pl.Int64) - 1
        within = numbers - starts.gather(block)
        lines = pl.Series(self.first, dtype=pl.Int64).gather(block) + within
        for number in self.wrapped.keys() & set(block.unique()):
            here = (block == number).arg_true()
            exact = arrow_rows([self.wrapped[number]]).collect().to_series()
            lines = lines.scatter(here, exact.gather(within.gather(here)))
        return lines


class SideSource(Protocol):
    """What a side is made of: its columns are known, and no row of it is read yet."""

    @property
    def name(self) -> str:
        """As reports show it; never with a password."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """All of its columns, also those that nobody asks for."""

    def side(self, names: Sequence[str]) -> "Side":
        """The side, of which only these columns are ever read."""


@dataclass(frozen=True)
class Side:
    """One side: Parquet or Arrow files with the same columns, and what they came from."""

    name: str
    """As reports show it; never with a password."""
    kind: str
    files: tuple[Path, ...]
    columns: Mapping[str, Column]
    rows: int
    placed: bool = True
    """Whether rows have a place that means something: a line, or a number in a file."""
    lines: SideLines | None = None
    """On which line of its file a row begins."""
    broken: tuple[Path, ...] = ()
    """Files of the records that cannot be read (`connectors.compare.unreadable`)."""
    broken_count: int = 0
    notes: tuple[str, ...] = ()
    mixed: frozenset[str] = frozenset()
    """Columns kept as numbers in some blocks and as texts in others; both say the same."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """Column -> its name in the files, where it is another."""
    numbered: bool = False
    """Whether it is a partition: its files also have the numbers of its rows in the whole side."""

    def side(self, names: Sequence[str]) -> "Side":  # noqa: ARG002 -- read when asked for.
        """Itself: what can be read by column is read where it is."""
        return self

    def size(self, names: Sequence[str]) -> int:
        """About how many bytes these columns take in memory."""
        on_disk = sum(file.stat().st_size for file in self.files)
        if self.files[0].suffix == SPILLED or not self.rows:
            return on_disk
        some = min(self.rows, SAMPLE_ROWS)
        sample = int(self.frame(names, 0, some).estimated_size())
        return max(on_disk, sample * self.rows // some)

    def read(self, name: str) -> pl.Series:
        """One whole column, in one piece: its values are going to be picked in any order."""
        return self._read(self._columns([name]), name).to_series().rechunk()

    def rows_of(self, name: str, begin: int, stop: int) -> pl.Series:
        return self.frame([name], begin, stop).to_series()

    def frame(self, names: Sequence[str], begin: int, stop: int) -> pl.DataFrame:
        lines = self._columns(names).slice(begin, stop - begin)
        try:
            return lines.collect()
        except UNREADABLE:
            # Which of them it is, is only seen when it is read alone.
            return pl.concat(
                [
                    self._read(self._columns([name]).slice(begin, stop - begin), name)
                    for name in names
                ],
                how="horizontal",
            )

    def row_numbers(self) -> pl.Series | None:
        """Of a partition the numbers of its rows in the whole side; None: they are its own."""
        if not self.numbered:
            return None
        return arrow_rows(self.files).select(ROW).collect().to_series()

    def _read(self, lines: pl.LazyFrame, name: str) -> pl.DataFrame:
        try:
            return lines.collect()
        except UNREADABLE as error:
            # The head of a file says what should be in it; whether it is, only its content.
            broken = self.name
            if self.files[0].suffix != SPILLED:
                broken = unreadable(
                    self.files, broken, lambda file: replace(self, files=(file,))._columns([name])
                )
            raise SidesRefused(
                f"{broken}: the column {name!r} cannot be read: {first_line(error)}"
            ) from None

    def _columns(self, names: Sequence[str]) -> pl.LazyFrame:
        stored = [
            pl.col(self.stored.get(name, name)).cast(self.columns[name].dtype).alias(name)
            for name in names
        ]
        if self.files[0].suffix != SPILLED:
            return parquet_rows(self.files).select(stored)
        if self.numbered or self.mixed.isdisjoint(names):
            return arrow_rows(self.files).select(stored)
        return pl.concat([arrow_rows([file]).select(stored) for file in self.files])

    def line_numbers(self, rows: pl.Series) -> pl.Series:
        """Where rows stand: the line of a file, otherwise the number of the row from 1."""
        return rows.cast(pl.Int64) + 1 if self.lines is None else self.lines.of(rows)


def partitions(
    side: Side,
    names: Sequence[str],
    blocks: Iterable[tuple[pl.DataFrame, pl.Series]],
    count: int,
    scratch: Path,
) -> list[Side]:
    """The rows of a side shared out to `count` partitions, written into `scratch`.

    `blocks` are the columns `names` of consecutive rows, with the partition of each row.
    """
    private_folder(scratch)
    files: list[list[Path]] = [[] for _ in range(count)]
    rows = [0] * count
    written = row = 0
    stored = {name: str(place) for place, name in enumerate(names)}
    for block, partition in blocks:
        numbers = pl.int_range(row, row + block.height, dtype=pl.UInt32, eager=True).alias(ROW)
        # Of equal numbers the order stays: a partition has its rows in the order of the side.
        order = np.argsort(partition.to_numpy(), kind="stable")
        ordered = block.rename(stored).with_columns(numbers)[order]
        begin = 0
        # A reader of a file takes in all of it, so that each partition has its own.
        for number, size in enumerate(np.bincount(partition.to_numpy(), minlength=count).tolist()):
            if size or not files[number]:
                files[number].append(spill(ordered[begin : begin + size], scratch, written))
                written += 1
                rows[number] += size
                begin += size
        row += block.height
    return [
        replace(side, files=tuple(some), rows=height, stored=stored, numbered=True)
        for some, height in zip(files, rows, strict=True)
    ]


def spill(frame: pl.DataFrame, scratch: Path, number: int) -> Path:
    """Write a block of a side; Arrow costs half of what Parquet does, and is gone soon."""
    file = scratch / f"{number:06}{SPILLED}"
    frame.write_ipc(file, compression="uncompressed")
    return file


def no_room(error: OSError) -> bool:
    """Whether a disk is full; polars says so in words only."""
    full = (errno.ENOSPC, errno.EDQUOT)
    return error.errno in full or any(f"(os error {one})" in str(error) for one in full)


def unreadable(files: Sequence[Path], together: str, lines: Callable[[Path], pl.LazyFrame]) -> str:
    """The first of some files that cannot be read alone; else what they are called together."""
    if len(files) == 1:
        return together
    for file in files:
        try:
            lines(file).collect()
        except UNREADABLE:
            return str(file)
    return together


def first_line(error: BaseException) -> str:
    """The first line of a foreign error's text; a panic has none for people."""
    if isinstance(error, pl.exceptions.PanicException):
        return "its content is broken"
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
