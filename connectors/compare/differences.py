"""The differences of a comparison on disk: kept as they are found, put together at the end."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from connectors.compare.sides import Side
from connectors.errors import SidesRefused
from connectors.files.atomic import PRIVATE_FILE, private_folder
from schemas.breaks import Status
from schemas.cells.formulas import defused

FOUND: dict[str, pl.DataType] = {
    "status": pl.String(),
    "left_row": pl.UInt32(),
    "right_row": pl.UInt32(),
    "column": pl.String(),
    "left": pl.String(),
    "right": pl.String(),
    "delta": pl.String(),
}
"""What is kept of a difference: rows by number, both values, right minus left."""
LAST = ("column", "left", "right", "delta", "left_at", "right_at")
ROWS_AT_ONCE = 1_000_000


@dataclass
class Differences:
    """Differences found so far; `scratch` None keeps the first ones only."""

    left: Side
    right: Side
    key: Sequence[str]
    scratch: Path | None
    most: int
    """How many of each status and column are kept at hand to be shown."""
    texts: Callable[[pl.Series], pl.Series]
    """Values as they are shown."""
    count: int = 0
    files: list[Path] = field(default_factory=list)
    _first: list[pl.DataFrame] = field(default_factory=list)
    _held: dict[tuple[object, object], int] = field(default_factory=dict)

    def add(self, found: pl.DataFrame) -> None:
        """Keep differences; columns of FOUND, missing ones are null."""
        if found.is_empty():
            return
        lines = found.select(
            (pl.col(name) if name in found.columns else pl.lit(None)).cast(dtype).alias(name)
            for name, dtype in FOUND.items()
        )
        self.count += lines.height
        for (status, column), some in lines.group_by("status", "column", maintain_order=True):
            held = self._held.get((status, column), 0)
            if held < self.most:
                self._first.append(some.head(self.most - held))
                self._held[status, column] = held + self._first[-1].height
        if self.scratch is not None:
            file = self.scratch / f"{len(self.files):06}.parquet"
            lines.write_parquet(file, compression="lz4", statistics=False)
            self.files.append(file)

    def first(self) -> tuple[Mapping[str, object], ...]:
        """The first differences, as lines of differences.csv."""
        if not self._first:
            return ()
        return tuple(next(self._named([pl.concat(self._first)])).to_dicts())

    def write(self, folder: Path) -> None:
        """Write differences.csv and differences.parquet."""
        assert self.scratch is not None
        final = self.scratch / "final"
        private_folder(final)
        with (self.scratch / "differences.csv").open("wb") as file:
            for number, named in enumerate(self._lines()):
                _defused(named).write_csv(file, include_header=number == 0)
                named.write_parquet(final / f"{number:06}.parquet", compression="lz4")
        try:
            private_folder(folder)
            whole = self.scratch / "differences.parquet"
            pl.scan_parquet(sorted(final.iterdir())).sink_parquet(whole)
            for name in ("differences.csv", "differences.parquet"):
                _place(self.scratch / name, folder / name)
        except OSError as error:
            raise SidesRefused(f"{folder}: cannot be written: {error.strerror}.") from error

    def _lines(self) -> Iterator[pl.DataFrame]:
        """All differences as they are written, in frames of bounded size; at least one."""
        yield from self._named([pl.DataFrame(schema=FOUND)])
        group: list[pl.DataFrame] = []
        for file in self.files:
            group.append(pl.read_parquet(file))
            if sum(lines.height for lines in group) >= ROWS_AT_ONCE:
                yield from self._named(group)
                group.clear()
        if group:
            yield from self._named(group)

    def _named(self, group: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Differences with the keys and places of their rows instead of row numbers."""
        lines = pl.concat(group)
        # A key column is read as a whole, so it is read for many differences at a time.
        keys = [self._key(name, lines).alias(self._title(name)) for name in self.key]
        yield pl.DataFrame(
            [
                lines["status"],
                *keys,
                *(lines[name] for name in ("column", "left", "right", "delta")),
                _line_numbers(self.left, lines["left_row"], "left_at"),
                _line_numbers(self.right, lines["right_row"], "right_at"),
            ]
        )

    def _title(self, name: str) -> str:
        return f"{name} (key)" if name in ("status", *LAST) else name

    def _key(self, name: str, lines: pl.DataFrame) -> pl.Series:
        if lines.is_empty():
            return pl.Series(name, [], dtype=pl.String)
        sides = [
            self.texts(side.read(name).gather(lines[row]))
            for side, row in ((self.left, "left_row"), (self.right, "right_row"))
        ]
        return pl.select(pl.coalesce(*sides)).to_series()


def _defused(lines: pl.DataFrame) -> pl.DataFrame:
    """Differences no cell of which a spreadsheet takes for a formula; Parquet has them as is."""
    titles = pl.Series("titles", lines.columns)
    # A delta is no delivered text.
    texts = [n for n, dtype in lines.schema.items() if dtype == pl.String and n != "delta"]
    shown = lines.with_columns(defused(pl.col(name)).name.keep() for name in texts)
    told = titles.to_frame().select(defused(pl.col("titles"))).to_series()
    return shown.rename(dict(zip(titles, told, strict=True)))


def _place(whole: Path, name: Path) -> None:
    """Give a finished file its name; it is on disk before it has one."""
    with whole.open("rb") as file:
        os.fsync(file.fileno())
    # Written in a private folder by polars, whose files have the mode of the umask.
    whole.chmod(PRIVATE_FILE)
    shutil.move(whole, name)


def _line_numbers(side: Side, rows: pl.Series, name: str) -> pl.Series:
    known = rows.is_not_null().arg_true() if side.placed else rows.head(0)
    numbers = pl.Series(name, [None], dtype=pl.Int64).new_from_index(0, rows.len())
    return numbers.scatter(known, side.line_numbers(rows.gather(known))) if known.len() else numbers


def row_differences(
    status: Status, left: pl.Series | None, right: pl.Series | None
) -> pl.DataFrame:
    """Whole rows as differences."""
    columns = {"left_row": left, "right_row": right}
    given = {name: rows for name, rows in columns.items() if rows is not None}
    return pl.DataFrame(given).with_columns(pl.lit(status.value).alias("status"))
