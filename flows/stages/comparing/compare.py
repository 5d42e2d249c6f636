"""Compare: two sides, row by row and column by column, exactly, in bounded memory.

Keys are matched first. Then every column is read once on both sides, compared and released;
differences are written as they are found. If the sides are too large, both are split by their keys
and compared partition by partition, with the same result.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl

from connectors.compare import unreadable
from connectors.compare.differences import UNIT, Differences, largest, row_differences
from connectors.compare.sides import Side, SideSource, partitions
from connectors.errors import SidesRefused
from flows.steps.match.cells import Leeway, differing
from flows.steps.match.keys import KeyFrames, Partners, comparable, partition_numbers, partners
from flows.steps.match.statuses import ColumnResult, Comparison, SideResult
from schemas.breaks import Status
from schemas.cells.readings import NUMBERS, TIMES, Column, remark
from schemas.toml_text import suggestion

UNREADABLE_SHOWN = 20
"""How many unreadable records of a side are listed by line."""
SLICE_ROWS = 250_000
"""Pairs whose cells are compared at a time."""
BLOCK_ROWS, BLOCK_BYTES = 250_000, 16 << 20
"""The most rows, and bytes, of a side that are partitioned at a time."""
_DIFFERENT, _TOLERATED = 2, 1
_ROWS = ("left_row", "right_row")
_PATTERN = re.compile(r"\*|\^.*\$", re.DOTALL)
"""Names that polars would take for patterns of column names."""
_STATUSES = (
    Status.MATCHED_EXACT,
    Status.MATCHED_TOLERANCE,
    Status.MISMATCH,
    Status.MISSING_IN_TARGET,
    Status.MISSING_IN_EXTRACT,
    Status.DUPLICATE,
    Status.UNKNOWN,
)
"""In the order of reports."""
Verdicts = np.ndarray[tuple[int], np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Question:
    key: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    leeways: Mapping[str, Leeway] = field(default_factory=dict)
    as_given: Mapping[str, str] = field(default_factory=dict)
    """The tolerances as they were given, for reports."""


@dataclass
class _Column:
    counts: Counter[bool] = field(default_factory=Counter)
    """Differences by whether they are tolerated."""
    largest: tuple[Decimal, int, str] | None = None
    """The delta furthest from zero: its distance, minus its row, and the delta itself."""


@dataclass
class _Tally:
    columns: dict[str, _Column]
    statuses: Counter[Status] = field(default_factory=Counter)
    pairs: int = 0
    repeated: tuple[int, int] = (0, 0)
    keyless: tuple[int, int] = (0, 0)


def compare_sides(
    left: Side,
    right: Side,
    question: Question,
    found: Differences,
    *,
    count: int,
    scratch: Path | None,
    equal: int,
    method: str,
) -> Comparison:
    """Compare two sides; every difference goes to `found`.

    Both are compared in `count` partitions, which are written into `scratch`. `equal` rows were
    found the same on both sides before, and are not in the sides.
    """
    names = compared_columns(left, right, question)
    tally = _Tally({name: _Column() for name in names}, pairs=equal)
    tally.statuses.update(dict.fromkeys(Status, 0) | {Status.MATCHED_EXACT: equal})
    for mine, theirs in _shared_out(left, right, question.key, names, count, scratch):
        _partition(mine, theirs, question, tally, found)
    return Comparison(
        left=side_result(left, right, question, equal),
        right=side_result(right, left, question, equal),
        key=question.key,
        ignored=question.ignore,
        tolerances=question.as_given,
        statuses={status: tally.statuses[status] for status in _STATUSES},
        columns=tuple(
            ColumnResult(
                name,
                left.columns[name].shown,
                right.columns[name].shown,
                tally.pairs,
                one.counts[False],
                one.counts[True],
                one.largest[2] if one.largest else None,
                remark(left.columns[name], right.columns[name]),
            )
            for name, one in tally.columns.items()
        ),
        pairs=tally.pairs,
        method=method,
        repeated=tally.repeated,
        keyless=tally.keyless,
        shown=found.first(),
        differences=found.count,
    )


def _shared_out(
    left: Side,
    right: Side,
    key: tuple[str, ...],
    names: list[str],
    count: int,
    scratch: Path | None,
) -> Iterator[tuple[Side, Side]]:
    """Both sides, or partitions of both in which equal keys stay together."""
    if count == 1 or scratch is None:
        yield left, right
        return
    wanted = [*key, *names]
    shared = []
    for side, other, folder in ((left, right, "left"), (right, left, "right")):
        dtypes = [(side.columns[name].dtype, other.columns[name].dtype) for name in key]
        readings = [(side.columns[name].reading, other.columns[name].reading) for name in key]
        rows = max(1, min(BLOCK_ROWS, BLOCK_BYTES * side.rows // max(1, side.size(wanted))))
        numbers = (
            (block, partition_numbers([block[name] for name in key], dtypes, readings, count))
            for begin in range(0, max(1, side.rows), rows)
            for block in [side.frame(wanted, begin, begin + rows)]
        )
        shared.append(partitions(side, wanted, numbers, count, scratch / folder))
    for mine, theirs in zip(*shared, strict=True):
        if mine.rows or theirs.rows:
            yield mine, theirs


def compared_columns(left: SideSource, right: SideSource, question: Question) -> list[str]:
    """The columns of both sides besides the key; raises SidesRefused for names neither has."""
    mine, theirs = left.columns, right.columns
    for name in question.key:
        for side, columns in ((left, mine), (right, theirs)):
            if name not in columns:
                raise SidesRefused(
                    f"{side.name} has no key column {name!r}. "
                    + suggestion(name, columns, "Its columns")
                )
    known = {**mine, **theirs}
    for name in (*question.ignore, *question.leeways):
        if name not in known:
            raise SidesRefused(
                f"Neither side has a column {name!r}. {suggestion(name, known, 'Its columns')}"
            )
    leeways = [name for name in question.leeways if name in question.key]
    if leeways:
        raise SidesRefused(f"{leeways[0]!r} is part of the key; a key has no tolerance.")
    for name, leeway in question.leeways.items():
        if name in mine and name in theirs and name not in question.ignore:
            _refuse_other_unit(name, leeway, (mine[name], theirs[name]))
    left_out = {*question.key, *question.ignore}
    names = [name for name in mine if name in theirs and name not in left_out]
    for name in (*question.key, *names):
        if _PATTERN.fullmatch(name):
            raise SidesRefused(
                f"The column {name!r} has a name that stands for others here: * does, and what "
                "begins with ^ and ends with $. Rename it on both sides, or leave it out with "
                "--ignore."
            )
    return names


def _refuse_other_unit(name: str, leeway: Leeway, columns: Sequence[Column]) -> None:
    """Refuse seconds for numbers, or a number for times, which would silently tolerate nothing.

    A column without any value fits either.
    """
    columns = [one for one in columns if one.dtype != pl.Null]
    numbers = [one for one in columns if one.reading not in TIMES or one.dtype.is_integer()]
    times = [one for one in columns if one.reading not in NUMBERS]
    wrong, meant = (times, "numbers") if leeway.seconds is None else (numbers, "times")
    if wrong:
        raise SidesRefused(
            f"--tolerance {name}: its unit is one of {meant}, and the column is {wrong[0].shown}"
            f"{' of whole numbers' if wrong[0].dtype.is_integer() else ''}. Write a number (0.01) "
            "or a percentage (0.1%) for numbers, a time (2s, 5m, 1h, 1d) for times."
        )


def side_result(side: Side, other: Side, question: Question, equal: int) -> SideResult:
    """One side for reports, including the rows that were found equal before."""
    only = [name for name in side.columns if name not in other.columns]
    lines = [f"line {line}: {reason}" for line, reason in unreadable.first(side, UNREADABLE_SHOWN)]
    if more := side.broken_count - len(lines):
        lines.append(f"{more} more that cannot be read")
    return SideResult(
        side.name,
        side.kind,
        side.rows + equal,
        side.broken_count,
        tuple(name for name in only if name not in question.ignore),
        (*side.notes, *lines),
    )


def _partners(left: Side, right: Side, key: tuple[str, ...]) -> Partners:
    keys = KeyFrames()
    for name in key:
        readings = (left.columns[name].reading, right.columns[name].reading)
        keys.add(*comparable(left.read(name), right.read(name), readings))
    return partners(*keys.frames(), keys.behind)


def _partition(
    left: Side, right: Side, question: Question, tally: _Tally, found: Differences
) -> None:
    """Compare all of two sides, or a partition of both."""
    pairs = _partners(left, right, question.key)
    numbers = dict(zip(_ROWS, (left.row_numbers(), right.row_numbers()), strict=True))
    whole = _whole_rows(pairs)
    for group, (status, row, rows) in enumerate(whole):
        for begin in range(0, rows.len(), SLICE_ROWS):
            lines = row_differences(status, row, rows.slice(begin, SLICE_ROWS))
            found.add(group, _numbered(lines, numbers))
        tally.statuses[status] += rows.len()
    verdict = np.zeros(pairs.left.len(), np.uint8)
    for group, name in enumerate(tally.columns, len(whole)):
        leeway = question.leeways.get(name)
        for cells in _differing(left, right, name, pairs, leeway, verdict):
            lines = _numbered(cells, numbers).with_columns(pl.lit(name).alias("column"))
            _count(tally.columns[name], lines)
            found.add(group, lines)
    tally.pairs += pairs.left.len()
    tally.statuses.update(_verdicts(verdict))
    tally.repeated = _sums(tally.repeated, pairs.repeated_left, pairs.repeated_right)
    tally.keyless = _sums(tally.keyless, pairs.keyless_left, pairs.keyless_right)


def _numbered(lines: pl.DataFrame, numbers: Mapping[str, pl.Series | None]) -> pl.DataFrame:
    """Differences of a partition, with the numbers of their rows in the whole side."""
    return lines.with_columns(
        whole.gather(lines[row]).alias(row)
        for row, whole in numbers.items()
        if whole is not None and row in lines.columns
    )


def _sums(before: tuple[int, int], left: pl.Series, right: pl.Series) -> tuple[int, int]:
    return before[0] + left.len(), before[1] + right.len()


def _whole_rows(pairs: Partners) -> list[tuple[Status, str, pl.Series]]:
    """Rows that have no partner: their status, their side, and which they are."""
    left, right = _ROWS
    return [
        (Status.MISSING_IN_TARGET, left, pairs.only_left),
        (Status.MISSING_IN_EXTRACT, right, pairs.only_right),
        (Status.DUPLICATE, left, pairs.repeated_left),
        (Status.DUPLICATE, right, pairs.repeated_right),
        (Status.UNKNOWN, left, pairs.keyless_left),
        (Status.UNKNOWN, right, pairs.keyless_right),
    ]


def _differing(
    left: Side, right: Side, name: str, pairs: Partners, leeway: Leeway | None, verdict: Verdicts
) -> Iterator[pl.DataFrame]:
    """The differing cells of a column; `verdict` keeps the worst finding for each pair."""
    if pairs.left.is_empty():
        return
    readings = left.columns[name].reading, right.columns[name].reading
    theirs = right.read(name)
    for begin in range(0, pairs.left.len(), SLICE_ROWS):
        rows = [side.slice(begin, SLICE_ROWS) for side in (pairs.left, pairs.right)]
        cells = differing(_values(left, name, rows[0]), _picked(theirs, rows[1]), readings, leeway)
        if cells.is_empty():
            continue
        places = cells["place"].to_numpy()
        worst = np.where(cells["within"].to_numpy(), _TOLERATED, _DIFFERENT).astype(np.uint8)
        here = verdict[begin : begin + SLICE_ROWS]
        here[places] = np.maximum(here[places], worst)
        yield cells.select(
            pl.when("within")
            .then(pl.lit(Status.MATCHED_TOLERANCE.value))
            .otherwise(pl.lit(Status.MISMATCH.value))
            .alias("status"),
            *(one.gather(cells["place"]).alias(row) for row, one in zip(_ROWS, rows, strict=True)),
            "left",
            "right",
            "delta",
            "within",
        )


def _values(side: Side, name: str, rows: pl.Series) -> pl.Series:
    """The values of ascending rows, read from the first of them to the last."""
    begin, stop = int(rows[0]), int(rows[-1]) + 1
    values = side.rows_of(name, begin, stop)
    return values if values.len() == rows.len() else values.gather(rows - begin)


def _picked(values: pl.Series, rows: pl.Series) -> pl.Series:
    begin = int(rows[0])
    # If both sides have the same order, the rows are sliced instead of looked up one by one.
    if (
        int(rows[-1]) - begin + 1 == rows.len()
        and (rows.cast(pl.Int64).diff().drop_nulls() == 1).all()
    ):
        return values.slice(begin, rows.len())
    return values.gather(rows)


def _count(column: _Column, cells: pl.DataFrame) -> None:
    beyond = cells.filter(~pl.col("within"))
    column.counts.update({True: cells.height - beyond.height, False: beyond.height})
    known = beyond.select("delta", "left_row", "right_row").drop_nulls("delta")
    for delta, row, _ in largest(known, 1).rows():
        candidate = (Decimal(delta.removesuffix(UNIT)).copy_abs(), -row, delta)
        column.largest = max(column.largest or candidate, candidate)


def _verdicts(verdict: Verdicts) -> dict[Status, int]:
    matched = np.bincount(verdict, minlength=3)
    return {
        Status.MATCHED_EXACT: int(matched[0]),
        Status.MATCHED_TOLERANCE: int(matched[_TOLERATED]),
        Status.MISMATCH: int(matched[_DIFFERENT]),
    }
