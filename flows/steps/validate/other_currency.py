"""Amounts whose cells name another currency than that of their record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from flows.steps.validate.field_errors import OfField, Rows, of_field
from schemas.field import Table


@dataclass(frozen=True, slots=True)
class NamedCurrencies:
    """What cells name, and what the currencies of records are called."""

    codes: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The codes of a currency by its number; one that is not here is not known by any."""
    cells: Mapping[str, Sequence[pl.Series]] = field(default_factory=dict)
    """By amount: the code that each of its cells names, of each row, or null."""

    def differing(self, ids: pl.Series) -> Iterator[tuple[str, int, str, Rows]]:
        """Amount, currency of the record, the other one that its cell names, and these rows.

        A row is given once of an amount, with what the first of its cells says that differs.
        `ids` are the currencies of the rows, null where a row has none.
        """
        for name, cells in self.cells.items():
            is_given = np.zeros(len(ids), np.bool_)
            for found in cells:
                pairs = pl.DataFrame([ids.rename("id"), found.rename("code")])
                for number, code in pairs.drop_nulls().unique(maintain_order=True).iter_rows():
                    if number in self.codes and code not in self.codes[number]:
                        here = ((ids == number) & (found == code)).fill_null(value=False)
                        rows = np.flatnonzero(here.to_numpy() & ~is_given)
                        is_given[rows] = True
                        yield name, number, code, rows


NOT_NAMED = NamedCurrencies()


def currency_errors(
    table: Table, typed: pl.DataFrame, cells: pl.DataFrame, named: NamedCurrencies
) -> dict[str, list[OfField]]:
    """By amount: the reasons against rows whose cells name another currency than their record's.

    A row without an amount has none of them: its cell has a reason of its own, or says nothing.
    """
    if not named.cells:
        return {}
    assert table.currency is not None
    found: dict[str, list[OfField]] = {}
    for name, number, code, differing in named.differing(typed[table.currency]):
        rows = differing[typed[name].is_not_null().to_numpy()[differing]]
        found.setdefault(name, []).append(
            of_field(
                table,
                table.by_name[name],
                "OtherCurrency",
                rows,
                cells[name].gather(rows),
                found=code,
                of_record=f"{' or '.join(named.codes[number])} ({table.currency} {number})",
            )
        )
    return found
