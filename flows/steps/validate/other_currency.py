"""Amounts whose cells name another currency than their record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from flows.steps.validate.field_errors import OfField, Rows, of_field
from schemas.field import Table


@dataclass(frozen=True, slots=True)
class NamedCurrencies:
    """The currencies that cells name, and the codes of currencies."""

    codes: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The codes of a currency by its number; a currency not in it has no known code."""
    cells: Mapping[str, Sequence[pl.Series]] = field(default_factory=dict)
    """By amount field, a series for each of its columns with the code named in each row, or null.
    """

    def differing(self, ids: pl.Series) -> Iterator[tuple[str, int, str, Rows]]:
        """Yield amount field, currency of the record, the other code in its cell, and the rows.

        Each row is yielded once per amount field, for the first of its cells that differs. `ids`
        are the currencies of the rows, null if a row has none.
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
    """By amount field, the reasons against rows whose cells name another currency.

    A row without a readable amount gets none: its cell has a reason of its own, or is empty.
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
