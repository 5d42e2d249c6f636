"""Exact sums of both sides of one record kind, by what became of the records.

The sides are added up from their own frames and the explanation from the statuses, so a residual of
zero between them is a proof and not a repetition.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from flows.steps.breaks.make import money
from flows.steps.frames.beyond import exact_sum, sums_beyond, unreadable_of
from flows.steps.frames.statuses import EXPECTED, FOUND, number
from flows.steps.totals import NO_CURRENCY, Totals, add
from schemas.amounts import UNREADABLE
from schemas.field import INTEGERS, Table
from schemas.frame_types import AMOUNT

_SAFE = Decimal(10) ** 19
"""Sums below this fit an exact decimal column."""


class Cell(NamedTuple):
    tenant: int | None
    currency: str


class Group(NamedTuple):
    """Records with the same outcome."""

    status: str
    rule: str
    state: str
    answer: str


Sums = Mapping[Cell, Totals]


@dataclass(frozen=True)
class Sides:
    """The sums of one record kind: both sides by themselves, and by what became of the records."""

    table: Table
    delivered: Sums
    counted: Sums
    """The sums of the target, from its own frame."""
    expected: Mapping[Group, Sums]
    found: Mapping[Group, Sums]

    def explained(self, cell: Cell, of: Callable[[Group], bool]) -> Totals:
        """By how much the target exceeds the extracts in a cell, for the groups that `of` picks."""
        return added(self.found, cell, of) - added(self.expected, cell, of)

    def of_currency(self, currency: str) -> "Sides":
        """The same in one currency, over all tenants."""

        def only(sums: Sums) -> Sums:
            kept = (totals for cell, totals in sums.items() if cell.currency == currency)
            return {Cell(None, currency): add(kept)}

        return Sides(
            self.table,
            only(self.delivered),
            only(self.counted),
            {group: only(sums) for group, sums in self.expected.items()},
            {group: only(sums) for group, sums in self.found.items()},
        )

    @property
    def cells(self) -> list[Cell]:
        """Every tenant and currency of either side, in order."""
        groups = (*self.expected.values(), *self.found.values())
        every = {cell for sums in (self.delivered, self.counted, *groups) for cell in sums}
        return sorted(
            every, key=lambda one: (one.tenant is not None, one.tenant or 0, _number(one.currency))
        )

    @property
    def currencies(self) -> list[str]:
        """Every currency, those without one first."""
        return sorted({cell.currency for cell in self.cells}, key=_number)


def added(groups: Mapping[Group, Sums], cell: Cell, of: Callable[[Group], bool]) -> Totals:
    """The sum of the chosen groups of records in a cell."""
    return add(sums[cell] for group, sums in groups.items() if of(group) and cell in sums)


def _number(currency: str) -> tuple[int, int]:
    return (len(currency) > 0, int(currency or 0))


def add_up(
    table: Table, extract: pl.DataFrame, target: pl.DataFrame, statuses: pl.DataFrame
) -> Sides:
    """Add up both sides and the statuses of `records.match`, whose first lines are the extract's.

    `target` is the frame the extract was matched with: the database, or the listing.
    """
    cell = [number(table.tenant, "tenant"), number(table.currency, "currency")]
    own = {name: name for name in table.amounts}
    sides = [
        {Cell(*key): totals for key, totals in _totals(table, frame.lazy(), cell, own).items()}
        for frame in (extract, target)
    ]
    found = [pl.col(f"{name}_found").alias(name) for name in Cell._fields]
    return Sides(
        table,
        sides[0],
        sides[1],
        _by_group(table, statuses.lazy().head(extract.height), map(pl.col, Cell._fields), EXPECTED),
        _by_group(table, statuses.lazy().filter("in_target"), found, FOUND),
    )


def together(parts: Sequence[Sides]) -> Sides:
    if len(parts) == 1:
        return parts[0]
    return Sides(
        parts[0].table,
        _added(part.delivered for part in parts),
        _added(part.counted for part in parts),
        _groups(part.expected for part in parts),
        _groups(part.found for part in parts),
    )


def _groups(parts: Iterable[Mapping[Group, Sums]]) -> dict[Group, Sums]:
    found: dict[Group, list[Sums]] = {}
    for part in parts:
        for group, sums in part.items():
            found.setdefault(group, []).append(sums)
    return {group: _added(sums) for group, sums in found.items()}


def _added(parts: Iterable[Sums]) -> dict[Cell, Totals]:
    found: dict[Cell, Totals] = {}
    for part in parts:
        for cell, totals in part.items():
            found[cell] = found[cell] + totals if cell in found else totals
    return {cell: _plain(totals) for cell, totals in found.items()}


def _plain(totals: Totals) -> Totals:
    """The same without trailing zeros, like the sums of a single part."""
    amounts = {
        currency: {name: money(amount) for name, amount in sums.items()}
        for currency, sums in totals.amounts.items()
    }
    return replace(totals, amounts=amounts)


def _by_group(
    table: Table, lines: pl.LazyFrame, cell: Iterable[pl.Expr], side: str
) -> dict[Group, dict[Cell, Totals]]:
    by = [*map(pl.col, Group._fields), *cell]
    amounts = {name: name + side for name in table.amounts}
    groups: dict[Group, dict[Cell, Totals]] = {}
    for key, totals in _totals(table, lines, by, amounts).items():
        group = Group(*(part or "" for part in key[:4]))
        groups.setdefault(group, {})[Cell(*key[4:])] = totals
    return groups


def totals_by(table: Table, rows: pl.LazyFrame, by: list[pl.Expr]) -> dict[tuple[Any, ...], Totals]:
    """Totals of records grouped by columns, the last of which is the currency."""
    return _totals(table, rows, by, {name: name for name in table.amounts})


def _totals(
    table: Table, rows: pl.LazyFrame, by: list[pl.Expr], amounts: Mapping[str, str]
) -> dict[tuple[Any, ...], Totals]:
    """Totals of groups of rows; the last column of `by` is the currency."""
    whole = _too_large(rows, list(amounts.values()))
    sums = [pl.col(name).sum() for name in amounts.values() if name not in whole]
    for name in whole:
        # Too large for one column, so integers and fractions are added separately.
        integers = pl.col(name).cast(pl.Int128)
        sums += [
            integers.sum().alias(name),
            (pl.col(name) - integers.cast(AMOUNT)).sum().alias(f"{name}_rest"),
        ]
    unread = [name + UNREADABLE for name in unreadable_of(rows, amounts.values())]
    sums += [pl.col(name).count() for name in unread]
    found = (
        rows.group_by(by).agg(pl.len().alias("__rows"), _hash_total(table).alias("__keys"), *sums)
    ).collect(engine="streaming")
    beyond = sums_beyond(rows, by, amounts)
    result: dict[tuple[Any, ...], Totals] = {}
    for row in found.iter_rows(named=True):
        values = list(row.values())[: len(by)]
        more = beyond.get(tuple(values), {})
        currency = NO_CURRENCY if values[-1] is None else str(values[-1])
        money_of = {
            name: money(
                exact_sum((Decimal(row[column] or 0), row.get(f"{column}_rest"), more.get(name)))
            )
            for name, column in amounts.items()
        }
        totals = Totals(
            row["__rows"],
            row["__keys"] or 0,
            {currency: money_of} if money_of else {},
            {
                name: row[column + UNREADABLE]
                for name, column in amounts.items()
                if row.get(column + UNREADABLE)
            },
        )
        result[*values[:-1], currency] = totals
    return result


def _too_large(rows: pl.LazyFrame, names: list[str]) -> list[str]:
    """The amounts whose sum over all rows might not fit an exact decimal column."""
    if not names:
        return []
    bounds = rows.select(
        pl.len().alias("__rows"),
        *(pl.max_horizontal(pl.col(n).max(), -pl.col(n).min()).alias(n) for n in names),
    ).collect()
    largest = bounds.row(0, named=True)
    return [name for name in names if (largest[name] or 0) * largest["__rows"] >= _SAFE]


def _hash_total(table: Table) -> pl.Expr:
    """The sum of the first key field if it is an integer, else of all integers of the identity."""
    first = table.identity[0]
    names = [name for name in table.identity if table.by_name[name].kind in INTEGERS]
    if table.key and table.by_name[first].kind in INTEGERS:
        names = [first]
    sums = [pl.col(name).cast(pl.Int128).sum() for name in names]
    return pl.sum_horizontal(sums) if sums else pl.lit(0, pl.Int128).sum()
