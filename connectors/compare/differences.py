"""The differences of a comparison on disk: kept as they are found, put in order at the end.

Every difference belongs to a group: one for each way a whole row can differ, one for each column.
Within a group, differences are in row order. Partitions of the sides are compared one after the
other, so the rows that different partitions report interleave.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import polars as pl

from connectors.compare.sides import Side
from connectors.files.disk.atomic import private_folder
from connectors.files.incoming.columnar import arrow_rows, parquet_rows
from schemas.breaks import Status
from schemas.cells.formula_columns import defused

FOUND: dict[str, pl.DataType] = {
    "status": pl.String(),
    "left_row": pl.UInt32(),
    "right_row": pl.UInt32(),
    "column": pl.String(),
    "left": pl.String(),
    "right": pl.String(),
    "delta": pl.String(),
}
"""The columns kept of a difference: rows by number, both values, right minus left."""
UNIT = " s"
"""Unit after the delta of two times."""
LAST = ("column", "left", "right", "delta", "left_at", "right_at")
ROWS_AT_ONCE = 1 << 17
"""How many differences, or rows for keys, are in memory at once."""
_BATCH_ROWS = 1 << 14
_NUMBER = pl.col("delta").str.strip_suffix(UNIT)
_NEARLY = 1e-12
"""Relative distance below which doubles do not tell the larger of two deltas."""
_ROW = pl.coalesce("left_row", "right_row")
"""The row number by which a difference is ordered."""


class _Run(NamedTuple):
    """Differences of a group in one file, in row order."""

    file: Path
    first: int
    last: int
    height: int

    def read(self, begin: int = 0, stop: int = 2**32) -> pl.DataFrame:
        """The differences of rows from `begin` to before `stop`."""
        lines = arrow_rows([self.file])
        if begin > self.first or stop <= self.last:
            lines = lines.filter((begin <= _ROW) & (stop > _ROW))
        return lines.collect()


@dataclass
class Differences:
    """Differences found so far; with `scratch` None, only the first ones are kept."""

    left: Side
    right: Side
    key: Sequence[str]
    scratch: Path | None
    most: int
    """How many per group and status are kept in memory to be shown: those that differ most."""
    texts: Callable[[pl.Series], pl.Series]
    """Formats values as they are shown."""
    count: int = 0
    _runs: dict[int, list[_Run]] = field(default_factory=lambda: defaultdict(list))
    _files: int = 0
    _first: dict[tuple[int, str], pl.DataFrame] = field(default_factory=dict)

    def add(self, group: int, found: pl.DataFrame) -> None:
        """Keep differences of a group, given in row order; missing columns of FOUND are null."""
        if found.is_empty():
            return
        lines = found.select(
            (pl.col(name) if name in found.columns else pl.lit(None)).cast(dtype).alias(name)
            for name, dtype in FOUND.items()
        )
        self.count += lines.height
        for (status,), some in lines.group_by("status", maintain_order=True):
            self._show(group, str(status), some)
        if self.scratch is not None:
            for begin in range(0, lines.height, ROWS_AT_ONCE):
                self._keep(group, lines[begin : begin + ROWS_AT_ONCE], self.scratch)

    def _show(self, group: int, status: str, lines: pl.DataFrame) -> None:
        held = self._first.get((group, status))
        lines = _largest(lines if held is None else pl.concat([held, lines]), self.most)
        # Copied, so that it does not hold on to the columns it comes from.
        self._first[group, status] = pl.DataFrame(lines.rows(), schema=FOUND, orient="row")

    def _keep(self, group: int, lines: pl.DataFrame, scratch: Path) -> None:
        file = scratch / f"{self._files:06}.arrow"
        self._files += 1
        lines.write_ipc(file, compression="lz4", record_batch_size=_BATCH_ROWS)
        ends = lines[[0, -1]].select(_ROW).to_series()
        self._runs[group].append(_Run(file, ends[0], ends[1], lines.height))

    def first(self) -> tuple[Mapping[str, object], ...]:
        """The largest differences of each group and status, as lines of differences.csv."""
        if not self._first:
            return ()
        order = {place: lines.select(_ROW.min()).item() for place, lines in self._first.items()}
        places = sorted(order, key=lambda place: (place[0], order[place]))
        return tuple(self._named(pl.concat([self._first[place] for place in places])).to_dicts())

    def write(self) -> dict[str, Path]:
        """Write differences.csv and differences.parquet into the scratch folder."""
        assert self.scratch is not None
        final = self.scratch / "final"
        private_folder(final)
        with (self.scratch / "differences.csv").open("wb") as file:
            for number, lines in enumerate(_in_partitions(self._lines())):
                named = self._named(lines)
                _defused(named).write_csv(file, include_header=number == 0)
                named.write_parquet(final / f"{number:06}.parquet", compression="lz4")
        parquet_rows(sorted(final.iterdir())).sink_parquet(self.scratch / "differences.parquet")
        names = ("differences.csv", "differences.parquet")
        return {name: self.scratch / name for name in names}

    def _lines(self) -> Iterator[pl.DataFrame]:
        """All differences by group and row, in frames of bounded size."""
        for _, runs in sorted(self._runs.items()):
            for some in _overlapping(runs):
                yield from _merged(some)

    def _named(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Differences with the keys and places of their rows in place of row numbers."""
        keys = self._keys(lines)
        return pl.DataFrame(
            [
                lines["status"],
                *(one.alias(title) for one, title in zip(keys, self._titles(), strict=True)),
                *(lines[name] for name in ("column", "left", "right", "delta")),
                _line_numbers(self.left, lines["left_row"], "left_at"),
                _line_numbers(self.right, lines["right_row"], "right_at"),
            ]
        )

    def _titles(self) -> list[str]:
        """Titles for the key columns that are distinct from our own columns and each other."""
        ours = {"status", *LAST}
        titles: list[str] = []
        for name in self.key:
            title = name
            while title in ours or (title != name and title in (*self.key, *titles)):
                title += " (key)"
            titles.append(title)
        return titles

    def _keys(self, lines: pl.DataFrame) -> list[pl.Series]:
        """The keys of differences as texts; only rows that were never compared may lack a part."""
        names = [str(number) for number in range(len(self.key))]
        parts = [pl.DataFrame(schema=dict.fromkeys(names, pl.String()) | {"place": pl.UInt32()})]
        for side, own in ((self.left, "left_row"), (self.right, "right_row")):
            mine = pl.col(own).is_not_null()
            if own == "right_row":
                mine &= pl.col("left_row").is_null()
            places = lines.select(mine.arg_true()).to_series()
            rows = lines[own].gather(places)
            for here, keys in _picked(side, self.key, rows):
                key_texts = [
                    self.texts(one).alias(name) for one, name in zip(keys, names, strict=True)
                ]
                parts.append(pl.DataFrame([*key_texts, places.gather(here).alias("place")]))
        return pl.concat(parts).sort("place").select(names).get_columns()


def largest(lines: pl.DataFrame, most: int) -> pl.DataFrame:
    """Differences with a delta, furthest from zero first; equal ones in row order.

    Deltas may have more digits than a double; doubles only preselect which are worth a look.
    """
    sizes = lines.select(_NUMBER.cast(pl.Float64).abs()).to_series()
    if lines.height > most:
        least = sizes.top_k(most).min()
        lines = lines.filter(sizes >= least * (1 - _NEARLY))  # type: ignore[operator]
    numbers = lines.select(_NUMBER).to_series()
    exact = {text: Decimal(text).copy_abs() for text in numbers.unique()}
    ranks = {size: rank for rank, size in enumerate(sorted({*exact.values()}, reverse=True))}
    rank = numbers.replace_strict(
        [*exact], [ranks[size] for size in exact.values()], return_dtype=pl.UInt32
    )
    return lines.with_columns(rank.alias("rank")).sort("rank", _ROW).drop("rank").head(most)


def _largest(lines: pl.DataFrame, most: int) -> pl.DataFrame:
    """The largest differences; those without a delta come last, in row order."""
    sized = largest(lines.filter(pl.col("delta").is_not_null()), most)
    others = lines.filter(pl.col("delta").is_null()).sort(_ROW)
    return pl.concat([sized, others.head(most - sized.height)])


def _picked(
    side: Side, names: Sequence[str], rows: pl.Series
) -> Iterator[tuple[pl.Series, pl.DataFrame]]:
    """Places in `rows` and the columns of those rows, for a bounded number of rows at a time."""
    windows = rows // ROWS_AT_ONCE
    for window in windows.unique().sort():
        here = (windows == window).arg_true()
        wanted = rows.gather(here)
        begin, last = int(wanted.min()), int(wanted.max())  # type: ignore[arg-type]
        yield here, side.frame(names, begin, last + 1)[wanted - begin]


def _overlapping(runs: Sequence[_Run]) -> Iterator[list[_Run]]:
    """Runs in order; runs whose row ranges overlap are grouped together."""
    together: list[_Run] = []
    last = -1
    for run in sorted(runs, key=lambda run: run.first):
        if together and run.first > last:
            yield together
            together = []
        together.append(run)
        last = max(last, run.last)
    if together:
        yield together


def _merged(runs: Sequence[_Run]) -> Iterator[pl.DataFrame]:
    """Their differences in row order; a row has at most one, so a range of rows bounds a frame."""
    if sum(run.height for run in runs) <= ROWS_AT_ONCE:
        edges = [0, 2**32]
    else:
        edges = [*range(0, max(run.last for run in runs), ROWS_AT_ONCE), 2**32]
    for begin, stop in pairwise(edges):
        some = [run.read(begin, stop) for run in runs if run.last >= begin and run.first < stop]
        if len(some) == 1:
            yield some[0]
        elif some:
            yield pl.concat(some).sort(_ROW)


def _in_partitions(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same lines in frames of ROWS_AT_ONCE; at least one frame, which may be empty."""
    held = pl.DataFrame(schema=FOUND)
    for lines in frames:
        held = pl.concat([held, lines])
        while held.height > ROWS_AT_ONCE:
            yield held[:ROWS_AT_ONCE]
            held = held[ROWS_AT_ONCE:]
    yield held


def _defused(lines: pl.DataFrame) -> pl.DataFrame:
    """Differences without cells that a spreadsheet takes for formulas; Parquet keeps them as is."""
    titles = pl.Series("titles", lines.columns)
    # A delta is no delivered text, so it needs no defusing.
    texts = [n for n, dtype in lines.schema.items() if dtype == pl.String and n != "delta"]
    safe = lines.with_columns(defused(pl.col(name)).name.keep() for name in texts)
    unique: list[str] = []
    for title in titles.to_frame().select(defused(pl.col("titles"))).to_series():
        unique.append(_distinct(title, {*unique, *titles[len(unique) + 1 :]}))
    return safe.rename(dict(zip(titles, unique, strict=True)))


def _distinct(title: str, others: set[str]) -> str:
    while title in others:
        title = f"'{title}"
    return title


def _line_numbers(side: Side, rows: pl.Series, name: str) -> pl.Series:
    known = rows.is_not_null().arg_true() if side.placed else rows.head(0)
    numbers = pl.Series(name, [None], dtype=pl.Int64).new_from_index(0, rows.len())
    return numbers.scatter(known, side.line_numbers(rows.gather(known))) if known.len() else numbers


def row_differences(status: Status, row: str, rows: pl.Series) -> pl.DataFrame:
    """Whole rows as differences; `row` names the column of their side."""
    return rows.alias(row).to_frame().with_columns(pl.lit(status.value).alias("status"))
