"""The sides of a comparison: CSV, Parquet and database tables, read one column at a time.

A side that cannot be read by column (CSV, a pulled table) is first written into a scratch folder as
Arrow files, block by block, so that memory does not grow with its size.
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
"""Column in a partition's files: the number of a row in the whole side."""
SAMPLE_ROWS = 1 << 16
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""Errors raised for unreadable content; for some of it polars panics."""


@dataclass(slots=True)
class SideLines:
    """The lines that rows begin on: per block one number if every record is a line, else a file."""

    starts: list[int] = field(default_factory=list)
    """Number of the first row of each block."""
    first: list[int] = field(default_factory=list)
    wrapped: dict[int, Path] = field(default_factory=dict)

    def add(self, row: int, line: int, wrapped: Path | None) -> None:
        """Add a block that begins with this row on this line."""
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
    """What a side is made from: its columns are known, but no row has been read."""

    @property
    def name(self) -> str:
        """The name in reports; never with a password."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """All of its columns, even those that nobody asks for."""

    def side(self, names: Sequence[str]) -> "Side":
        """The side, of which only these columns will be read."""


@dataclass(frozen=True)
class Side:
    """One side: Parquet or Arrow files with the same columns, and their origin."""

    name: str
    """The name in reports; never with a password."""
    kind: str
    files: tuple[Path, ...]
    columns: Mapping[str, Column]
    rows: int
    placed: bool = True
    """Whether rows have a meaningful place: a line, or a number in a file."""
    lines: SideLines | None = None
    """The lines that rows begin on in their file."""
    broken: tuple[Path, ...] = ()
    """Files of the unreadable records (`connectors.compare.unreadable`)."""
    broken_count: int = 0
    notes: tuple[str, ...] = ()
    mixed: frozenset[str] = frozenset()
    """Columns kept as numbers in some blocks and as texts in others; the content is the same."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """Column -> its name in the files, if that differs."""
    numbered: bool = False
    """Whether it is a partition, whose files also number its rows in the whole side."""

    def side(self, names: Sequence[str]) -> "Side":  # noqa: ARG002 -- read when asked for.
        """Returns itself: its files can be read by column."""
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
        """One whole column, in one chunk: its values are picked in any order."""
        return self._read(self._columns([name]), name).to_series().rechunk()

    def rows_of(self, name: str, begin: int, stop: int) -> pl.Series:
        return self.frame([name], begin, stop).to_series()

    def frame(self, names: Sequence[str], begin: int, stop: int) -> pl.DataFrame:
        lines = self._columns(names).slice(begin, stop - begin)
        try:
            return lines.collect()
        except UNREADABLE:
            # Only reading the columns one by one shows which one is broken.
            return pl.concat(
                [
                    self._read(self._columns([name]).slice(begin, stop - begin), name)
                    for name in names
                ],
                how="horizontal",
            )

    def row_numbers(self) -> pl.Series | None:
        """A partition's row numbers in the whole side; None if it is the whole side."""
        if not self.numbered:
            return None
        return arrow_rows(self.files).select(ROW).collect().to_series()

    def _read(self, lines: pl.LazyFrame, name: str) -> pl.DataFrame:
        try:
            return lines.collect()
        except UNREADABLE as error:
            # A file's metadata says what it should hold; only its content shows whether it does.
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
        """Where rows are: the line in a file, else the row number counted from 1."""
        return rows.cast(pl.Int64) + 1 if self.lines is None else self.lines.of(rows)


def partitions(
    side: Side,
    names: Sequence[str],
    blocks: Iterable[tuple[pl.DataFrame, pl.Series]],
    count: int,
    scratch: Path,
) -> list[Side]:
    """Share the rows of a side out to `count` partitions, written into `scratch`.

    `blocks` are the columns `names` of consecutive rows, with the partition of each row.
    """
    private_folder(scratch)
    files: list[list[Path]] = [[] for _ in range(count)]
    rows = [0] * count
    written = row = 0
    stored = {name: str(place) for place, name in enumerate(names)}
    for block, partition in blocks:
        numbers = pl.int_range(row, row + block.height, dtype=pl.UInt32, eager=True).alias(ROW)
        # A stable sort keeps the side's row order within each partition.
        order = np.argsort(partition.to_numpy(), kind="stable")
        ordered = block.rename(stored).with_columns(numbers)[order]
        begin = 0
        # A reader takes in a whole file, so each partition has its own files.
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
    """Write a block of a side; Arrow costs half as much as Parquet, and the file is short-lived."""
    file = scratch / f"{number:06}{SPILLED}"
    frame.write_ipc(file, compression="uncompressed")
    return file


def no_room(error: OSError) -> bool:
    """Whether a disk is full; polars says so only in its message."""
    full = (errno.ENOSPC, errno.EDQUOT)
    return error.errno in full or any(f"(os error {one})" in str(error) for one in full)


def unreadable(files: Sequence[Path], together: str, lines: Callable[[Path], pl.LazyFrame]) -> str:
    """The first file that cannot be read alone, or the common name if each can."""
    if len(files) == 1:
        return together
    for file in files:
        try:
            lines(file).collect()
        except UNREADABLE:
            return str(file)
    return together


def first_line(error: BaseException) -> str:
    """The first line of a foreign error's text; a panic has no text for people."""
    if isinstance(error, pl.exceptions.PanicException):
        return "its content is broken"
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
