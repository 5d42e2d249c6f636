"""The sides of a comparison: CSV, Parquet and database tables, read one column at a time.

What cannot be read by column (CSV, a table that is pulled) is first written into a scratch folder
as Arrow files, block by block, so that memory does not grow with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from connectors.errors import SidesRefused
from schemas.cells.readings import Column, column
from schemas.frame_types import Dtype

PARQUET = (".parquet", ".pq")
SPILLED = ".arrow"


@dataclass(frozen=True, slots=True)
class Broken:
    """A record of a side that cannot be read: it is told, and compared with nothing."""

    line: int
    code: str


@dataclass(slots=True)
class SideLines:
    """The lines rows begin on: by block one number where every record is a line, else all."""

    starts: list[int] = field(default_factory=list)
    """Number of the first row of each block."""
    first: list[int] = field(default_factory=list)
    wrapped: dict[int, pl.Series] = field(default_factory=dict)

    def add(self, row: int, line: int, wrapped: pl.Series | None) -> None:
        """Tell of a block that begins with this row on this line."""
        if wrapped is not None:
            self.wrapped[len(self.starts)] = wrapped
        self.starts.append(row)
        self.first.append(line)

    def of(self, rows: pl.Series) -> pl.Series:
        """The line of each row."""
        if not self.starts:
            return rows.cast(pl.Int64)
        starts = pl.Series(self.starts, dtype=pl.Int64)
        numbers = rows.cast(pl.Int64)
        block = starts.search_sorted(numbers, side="right").cast(pl.Int64) - 1
        within = numbers - starts.gather(block)
        lines = pl.Series(self.first, dtype=pl.Int64).gather(block) + within
        for number, exact in self.wrapped.items():
            here = (block == number).arg_true()
            if here.len():
                lines = lines.scatter(here, exact.gather(within.gather(here)))
        return lines


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
    broken: tuple[Broken, ...] = ()
    """The first records that cannot be read."""
    broken_count: int = 0
    notes: tuple[str, ...] = ()
    mixed: frozenset[str] = frozenset()
    """Columns kept as numbers in some blocks and as texts in others; both say the same."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """Column -> its name in the files, where it is another."""

    def read(self, name: str) -> pl.Series:
        """One whole column, in one piece: its values are going to be picked in any order."""
        return self._series(self._column(name), name).rechunk()

    def rows_of(self, name: str, begin: int, stop: int) -> pl.Series:
        """Some consecutive rows of a column."""
        return self._series(self._column(name).slice(begin, stop - begin), name)

    def _series(self, lines: pl.LazyFrame, name: str) -> pl.Series:
        try:
            return lines.collect().to_series().alias(name)
        except pl.exceptions.PolarsError as error:
            # The head of a file says what should be in it; whether it is, only its content.
            raise SidesRefused(
                f"{self.name}: the column {name!r} cannot be read: {first_line(error)}"
            ) from None

    def _column(self, name: str) -> pl.LazyFrame:
        stored = pl.col(self.stored.get(name, name)).cast(self.columns[name].dtype)
        files = list(self.files)
        if files[0].suffix != SPILLED:
            return pl.scan_parquet(files).select(stored)
        if name not in self.mixed:
            return pl.scan_ipc(files).select(stored)
        return pl.concat([pl.scan_ipc(file).select(stored) for file in files])

    def line_numbers(self, rows: pl.Series) -> pl.Series:
        """Where rows stand: the line of a file, otherwise the number of the row from 1."""
        return rows.cast(pl.Int64) + 1 if self.lines is None else self.lines.of(rows)


def parquet_side(path: Path) -> Side:
    """A Parquet file, or a folder of them."""
    files = tuple(sorted(path.rglob("*.parquet"))) if path.is_dir() else (path,)
    if not files:
        raise SidesRefused(f"{path}: no Parquet file is in this folder.")
    try:
        schema = _one_schema(path, files)
        scan = pl.scan_parquet(list(files))
        rows = scan.select(pl.len()).collect().item()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SidesRefused(f"{path}: cannot be read as Parquet: {first_line(error)}") from error
    columns = {name: column(name, dtype) for name, dtype in schema.items()}
    return Side(str(path), "Parquet", files, columns, rows)


def _one_schema(path: Path, files: tuple[Path, ...]) -> Mapping[str, Dtype]:
    """The columns of the first file, which every other has too; raises SidesRefused."""
    first = pl.read_parquet_schema(files[0])
    for file in files[1:]:
        other = pl.read_parquet_schema(file)
        if other == first:
            continue
        named = sorted(name for name in {*first, *other} if first.get(name) != other.get(name))
        told = "the order of its columns"
        if named:
            types = [one.get(named[0], "missing") for one in (first, other)]
            told = f"the column {named[0]!r}, {types[1]} there and {types[0]} in {files[0].name}"
        raise SidesRefused(
            f"{path}: {file.relative_to(path)} differs in {told}. Files of one folder are one "
            "table: write them with the same columns and types, or compare them one by one."
        )
    return first


def spill(frame: pl.DataFrame, scratch: Path, number: int) -> Path:
    """Write a block of a side; Arrow costs half of what Parquet does, and is gone soon."""
    file = scratch / f"{number:06}{SPILLED}"
    frame.write_ipc(file, compression="uncompressed")
    return file


def first_line(error: BaseException) -> str:
    """The first line of a foreign error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
