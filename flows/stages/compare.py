"""Compare: two sides, row by row and column by column, exactly, in bounded memory.

Keys are matched first; then every column is read once on both sides, compared and let go. What
differs is written as it is found.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from connectors.compare.differences import Differences, row_differences
from connectors.compare.sides import Side
from connectors.errors import SidesRefused
from flows.steps.match.cells import Leeway, differing
from flows.steps.match.keys import KeyFrames, Partners, comparable, partners
from flows.steps.match.statuses import ColumnResult, Comparison, SideResult
from schemas.breaks import Status
from schemas.cells.readings import NUMBERS, TIMES, Column, remark
from schemas.toml_text import suggestion

SLICE_ROWS = 500_000
"""Pairs whose cells are compared at a time."""
_DIFFERENT, _TOLERATED = 2, 1
Verdicts = np.ndarray[tuple[int], np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be compared, and how."""

    key: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    leeways: Mapping[str, Leeway] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)
    """The tolerances as they were given, for reports."""


def compare_sides(
    left: Side,
    right: Side,
    question: Question,
    found: Differences,
    *,
    equal: int = 0,
    method: str = "",
) -> Comparison:
    """Compare two sides; every difference goes to `found`.

    `equal` rows were found to be the same on both sides before, and are not in them.
    """
    names = compared_columns(left, right, question)
    pairs = _partners(left, right, question.key)
    for status, mine, theirs in _whole_rows(pairs):
        found.add(row_differences(status, mine, theirs))
    verdict = np.zeros(pairs.left.len(), np.uint8)
    columns = tuple(
        _column(left, right, name, pairs, question.leeways.get(name), verdict, found)
        for name in names
    )
    return Comparison(
        left=told(left, right, question, equal),
        right=told(right, left, question, equal),
        key=question.key,
        ignored=question.ignore,
        tolerances=question.told,
        statuses=_statuses(pairs, verdict, equal),
        columns=tuple(replace(one, compared=one.compared + equal) for one in columns),
        pairs=pairs.left.len() + equal,
        method=method,
        repeated=(pairs.repeated_left.len(), pairs.repeated_right.len()),
        keyless=(pairs.keyless_left.len(), pairs.keyless_right.len()),
        shown=found.first(),
        differences=found.count,
    )


def compared_columns(left: Side, right: Side, question: Question) -> list[str]:
    """The columns both sides have, beside the key; raises SidesRefused for what nobody has."""
    for name in question.key:
        for side in (left, right):
            if name not in side.columns:
                raise SidesRefused(
                    f"{side.name} has no key column {name!r}. "
                    + suggestion(name, side.columns, "Its columns")
                )
    known = {**left.columns, **right.columns}
    for name in (*question.ignore, *question.leeways):
        if name not in known:
            raise SidesRefused(
                f"Neither side has a column {name!r}. {suggestion(name, known, 'Its columns')}"
            )
    leeways = [name for name in question.leeways if name in question.key]
    if leeways:
        raise SidesRefused(f"{leeways[0]!r} is part of the key; a key has no tolerance.")
    for name, leeway in question.leeways.items():
        if name in left.columns and name in right.columns and name not in question.ignore:
            _refuse_other_unit(name, leeway, (left.columns[name], right.columns[name]))
    left_out = {*question.key, *question.ignore}
    return [name for name in left.columns if name in right.columns and name not in left_out]


def _refuse_other_unit(name: str, leeway: Leeway, columns: tuple[Column, Column]) -> None:
    """Seconds between numbers, or a number between times, would tolerate nothing, silently."""
    numbers = [one for one in columns if one.reading not in TIMES or one.dtype.is_integer()]
    times = [one for one in columns if one.reading not in NUMBERS]
    wrong, meant = (numbers, "times") if leeway.seconds else (times, "numbers")
    if wrong:
        raise SidesRefused(
            f"--tolerance {name}: its unit is one of {meant}, and the column is {wrong[0].shown}"
            f"{' of whole numbers' if wrong[0].dtype.is_integer() else ''}. Write a number (0.01) "
            "or a percentage (0.1%) for numbers, a time (2s, 5m, 1h, 1d) for times."
        )


def told(side: Side, other: Side, question: Question, equal: int = 0) -> SideResult:
    """One side as reports tell of it, with the rows that were found equal before."""
    only = [name for name in side.columns if name not in other.columns]
    return SideResult(
        side.name,
        side.kind,
        side.rows + equal,
        side.broken_count,
        tuple(name for name in only if name not in question.ignore),
        (*side.notes, *(f"line {one.line}: {one.code}" for one in side.broken[:20])),
    )


def _partners(left: Side, right: Side, key: tuple[str, ...]) -> Partners:
    keys = KeyFrames()
    for name in key:
        readings = (left.columns[name].reading, right.columns[name].reading)
        keys.add(*comparable(left.read(name), right.read(name), readings))
    return partners(*keys.frames())


def _whole_rows(pairs: Partners) -> list[tuple[Status, pl.Series | None, pl.Series | None]]:
    return [
        (Status.MISSING_IN_TARGET, pairs.only_left, None),
        (Status.MISSING_IN_EXTRACT, None, pairs.only_right),
        (Status.DUPLICATE, pairs.repeated_left, None),
        (Status.DUPLICATE, None, pairs.repeated_right),
        (Status.UNKNOWN, pairs.keyless_left, None),
        (Status.UNKNOWN, None, pairs.keyless_right),
    ]


def _column(
    left: Side,
    right: Side,
    name: str,
    pairs: Partners,
    leeway: Leeway | None,
    verdict: Verdicts,
    found: Differences,
) -> ColumnResult:
    """Compare one column; `verdict` keeps the worst of what was found of each pair."""
    columns = left.columns[name], right.columns[name]
    readings = columns[0].reading, columns[1].reading
    theirs = right.read(name)
    counts: Counter[bool] = Counter()
    largest: str | None = None
    for begin in range(0, pairs.left.len(), SLICE_ROWS):
        rows = [side.slice(begin, SLICE_ROWS) for side in (pairs.left, pairs.right)]
        cells = differing(_values(left, name, rows[0]), _picked(theirs, rows[1]), readings, leeway)
        if cells.is_empty():
            continue
        places = cells["place"].to_numpy()
        worst = np.where(cells["within"].to_numpy(), _TOLERATED, _DIFFERENT).astype(np.uint8)
        here = verdict[begin : begin + SLICE_ROWS]
        here[places] = np.maximum(here[places], worst)
        beyond = cells.filter(~pl.col("within"))
        counts.update({True: cells.height - beyond.height, False: beyond.height})
        largest = _larger(largest, beyond["delta"])
        found.add(
            cells.select(
                pl.when("within")
                .then(pl.lit(Status.MATCHED_TOLERANCE.value))
                .otherwise(pl.lit(Status.MISMATCH.value))
                .alias("status"),
                rows[0].gather(cells["place"]).alias("left_row"),
                rows[1].gather(cells["place"]).alias("right_row"),
                pl.lit(name).alias("column"),
                "left",
                "right",
                "delta",
            )
        )
    return ColumnResult(
        name,
        columns[0].shown,
        columns[1].shown,
        pairs.left.len(),
        counts[False],
        counts[True],
        remark(*columns),
        largest,
    )


def _values(side: Side, name: str, rows: pl.Series) -> pl.Series:
    """The values of ascending rows, read from the first to the last of them."""
    begin, stop = int(rows[0]), int(rows[-1]) + 1
    values = side.rows_of(name, begin, stop)
    return values if values.len() == rows.len() else values.gather(rows - begin)


def _picked(values: pl.Series, rows: pl.Series) -> pl.Series:
    begin = int(rows[0])
    # The rows of sides in the same order are picked without looking each of them up.
    if (
        int(rows[-1]) - begin + 1 == rows.len()
        and (rows.cast(pl.Int64).diff().drop_nulls() == 1).all()
    ):
        return values.slice(begin, rows.len())
    return values.gather(rows)


def _larger(largest: str | None, deltas: pl.Series) -> str | None:
    """The delta that is furthest from zero; texts are put in order by the double they are near."""
    known = deltas.drop_nulls()
    if known.is_empty():
        return largest
    sizes = known.str.strip_suffix(" s").cast(pl.Float64, strict=False).abs()
    best = sizes.arg_max()
    candidate = str(known[0 if best is None else best])
    sooner = [text for text in (largest, candidate) if text is not None]
    return max(sooner, key=lambda text: abs(float(text.removesuffix(" s"))))


def _statuses(pairs: Partners, verdict: Verdicts, equal: int) -> dict[Status, int]:
    matched = np.bincount(verdict, minlength=3)
    return {
        Status.MATCHED_EXACT: int(matched[0]) + equal,
        Status.MATCHED_TOLERANCE: int(matched[_TOLERATED]),
        Status.MISMATCH: int(matched[_DIFFERENT]),
        Status.MISSING_IN_TARGET: pairs.only_left.len(),
        Status.MISSING_IN_EXTRACT: pairs.only_right.len(),
        Status.DUPLICATE: pairs.repeated_left.len() + pairs.repeated_right.len(),
        Status.UNKNOWN: pairs.keyless_left.len() + pairs.keyless_right.len(),
    }
