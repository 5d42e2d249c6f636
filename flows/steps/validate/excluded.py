"""Rows that a feed profile leaves out: kept and counted, and neither checked nor applied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

COLUMN, VALUE = "column", "value"


@dataclass(frozen=True, slots=True)
class Exclusions:
    """By column: cells whose rows are left out, and cells that a row needs not to be."""

    leave_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    keep_only: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def of(self, cells: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame | None:
        """Column and cell that leave out each row; null where it is not; None: no row is.

        `names` are those of the columns of `cells`.
        """
        rules = [
            *((name, texts, True) for name, texts in self.leave_out.items()),
            *((name, texts, False) for name, texts in self.keep_only.items()),
        ]
        if not rules:
            return None
        places = {name.casefold(): str(place) for place, name in enumerate(names)}
        told = [_told(places, *rule) for rule in rules]
        found = cells.select(pl.coalesce(told).alias("told")).unnest("told")
        return found if found[COLUMN].is_not_null().any() else None


def _told(places: Mapping[str, str], name: str, texts: Sequence[str], listed: bool) -> pl.Expr:
    cell = pl.col(places[name.strip().casefold()]).fill_null("").str.strip_chars(" \t")
    there = cell.is_in(list(texts))
    told = pl.struct(pl.lit(name).alias(COLUMN), cell.alias(VALUE))
    return pl.when(there if listed else ~there).then(told)


def counts(found: pl.DataFrame, numbers: pl.Series) -> list[list[object]]:
    """Column, cell, rows and the first of their record numbers."""
    return [
        list(row)
        for row in found.with_columns(numbers.alias("number"))
        .filter(pl.col(COLUMN).is_not_null())
        .group_by(COLUMN, VALUE)
        .agg(pl.len(), pl.col("number").min())
        .sort("number", COLUMN, VALUE)
        .iter_rows()
    ]
