"""Rows that a feed profile leaves out: kept and counted, but neither checked nor applied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from schemas.cells.unseen import as_seen
from schemas.field import Table
from schemas.reasons import NOT_SHOWN

COLUMN, VALUE = "column", "value"


class KeptBy(NamedTuple):
    """A rule that leaves rows out by their cell in a column."""

    place: int
    """Index of the column."""
    texts: Sequence[str]
    """Texts as they are seen (`as_seen`), like the cells they are compared with."""
    left_out: bool
    """Whether rows with one of the texts are left out, or rows with any other."""
    column: str
    """Name of the column as in the profile."""


@dataclass(frozen=True, slots=True)
class Exclusions:
    """By column, cells whose rows are left out, and cells without which a row is left out."""

    leave_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    keep_only: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def rules(self, names: Sequence[str]) -> list[KeptBy]:
        """The rules for a file with columns of these names."""
        places = {name.casefold(): place for place, name in enumerate(names)}
        return [
            KeptBy(places[name.strip().casefold()], _all_as_seen(texts), left_out, name)
            for of, left_out in ((self.leave_out, True), (self.keep_only, False))
            for name, texts in of.items()
        ]

    def of(self, cells: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame | None:
        """The column and cell that leave out each row, null for the others; None if no row is.

        `names` are those of the columns of `cells`.
        """
        reasons = [_reason(rule) for rule in self.rules(names)]
        if not reasons:
            return None
        found = cells.select(pl.coalesce(reasons).alias("reason")).unnest("reason")
        return found if found[COLUMN].is_not_null().any() else None


def _all_as_seen(texts: Sequence[str]) -> list[str]:
    return pl.DataFrame({VALUE: texts}).select(as_seen(pl.col(VALUE))).to_series().to_list()


def _reason(rule: KeptBy) -> pl.Expr:
    cell = as_seen(pl.col(str(rule.place)).fill_null(""))
    there = cell.is_in(list(rule.texts))
    reason = pl.struct(pl.lit(rule.column).alias(COLUMN), cell.alias(VALUE))
    return pl.when(there if rule.left_out else ~there).then(reason)


def counts(table: Table, found: pl.DataFrame, numbers: pl.Series) -> list[list[object]]:
    """Column, cell, number of rows and the first of their record numbers."""
    if table.unquotable:
        found = found.with_columns(pl.lit(NOT_SHOWN).alias(VALUE))
    counted = (
        found.with_columns(numbers.alias("number"))
        .filter(pl.col(COLUMN).is_not_null())
        .group_by(COLUMN, VALUE)
        .agg(pl.len(), pl.col("number").min())
        .sort("number", COLUMN, VALUE)
    )
    return [*map(list, counted.iter_rows())]
