"""Ranges of numbers, by which the rows of large frames are split into parts."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

_SLICE = 65_536
"""Rows of a large frame that are filtered together."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of a column of numbers; rows without a number belong to the last range."""

    column: str
    bounds: pl.Series
    """The lowest number of every range except the first, ascending."""

    def __len__(self) -> int:
        return self.bounds.len() + 1

    def split(self, rows: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield each range that has rows, in ascending order, with its rows in their order."""
        number = pl.lit(self.bounds).search_sorted(pl.col(self.column), side="right")
        last = self.bounds.len()
        parts = rows.select(
            pl.when(pl.col(self.column).is_null()).then(last).otherwise(number).alias("part")
        ).to_series()
        if not parts.is_sorted() and rows.height < _SLICE * len(self):
            # For small ranges one sort is cheaper than a scan of all rows per range.
            order = parts.to_frame().select(pl.arg_sort_by("part", maintain_order=True)).to_series()
            rows, parts = rows[order], parts.gather(order)
        if parts.is_sorted():
            for part, length in parts.rle().struct.unnest().select("value", "len").iter_rows():
                yield part, rows.head(length)
                rows = rows.slice(length)
        else:
            for part in parts.unique().sort():
                yield part, _some(rows, parts == part)


def _some(rows: pl.DataFrame, wanted: pl.Series) -> pl.DataFrame:
    """Filter a large frame slice by slice; a filter of the whole would first make it contiguous."""
    slices = rows.iter_slices(_SLICE)
    return pl.concat(
        (some.filter(wanted.slice(number * _SLICE, _SLICE)) for number, some in enumerate(slices)),
        rechunk=False,
    )


def even_ranges(column: str, numbers: pl.Series, parts: int) -> Ranges:
    """At most `parts` ranges that split rows about evenly, estimated from a sample of numbers."""
    numbers = numbers.drop_nulls().sort()
    places = [numbers.len() * part // parts for part in range(1, parts)] if numbers.len() else []
    return Ranges(column, numbers.gather(places).unique(maintain_order=True))
