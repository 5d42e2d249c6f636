"""Facts about all rows of a side, gathered while its rows arrive in parts."""

import polars as pl

from flows.steps.reconcile.countable import add_up, most_added, no_numbers, unfit
from flows.steps.reconcile.second_keys import second_key_parts
from schemas.field import Table


class Arrived:
    """The rows of one side of a record kind that have arrived so far."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._sums = dict.fromkeys(table.amounts, 0.0)
        self._second_keys: list[pl.Series] = []
        self.unfit = 0
        """Rows with an amount that no exact column holds."""
        self.no_numbers = 0
        """Amounts that cannot be added at all."""

    def add(self, rows: pl.DataFrame) -> None:
        self.unfit += unfit(self._table, rows)
        self.no_numbers += no_numbers(self._table, rows)
        for name in self._sums:
            self._sums[name] += most_added(rows, name)
        if parts := second_key_parts(self._table):
            self._second_keys.append(rows.select(parts).hash_rows())

    @property
    def in_parts(self) -> bool:
        """Whether the side need never be looked at as a whole.

        That is so if its amounts can be added up, even with those of other such sides, and no two
        of its records can share a second key, which ranges would separate.
        """
        hashes = pl.concat([pl.Series([], dtype=pl.UInt64()), *self._second_keys])
        return all(map(add_up, self._sums.values())) and hashes.n_unique() == hashes.len()
