"""The fast path: records that are clean beyond doubt, typed from their bytes.

This is true of most rows of most deliveries. None of their cells becomes a string object, so they
cost a fraction of validation. Rows in any less common form are left to `validate_rows`, which would
give the same result for a row of the fast path.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flows.steps.fast.typed import TypedRecords
from schemas.field import Table
from schemas.row_rules import row_rules

_MOST_LEFT = 2
"""If more than one row in this many cannot take the fast path, all are validated together."""


@dataclass(frozen=True, slots=True, eq=False)
class FastRows:
    rows: NDArray[np.bool_]
    """Which of the records took the fast path."""
    frame: pl.DataFrame
    """Columns as SQL stores them; doubles in millionths, with their number of decimals."""


def only_clean(table: Table, read: TypedRecords, *, tenant: int | None) -> FastRows | None:
    """The rows read from a chunk that are clean and take the fast path; None if they are few."""
    frame, rows, clean = read.frame, read.rows, read.sound
    if tenant is not None and table.tenant:
        clean &= (frame[table.tenant] == tenant).fill_null(value=True).to_numpy()
    for passed in _passes(table, frame):
        clean &= passed.to_numpy()
    if clean.sum() * _MOST_LEFT < len(rows):
        return None
    if not clean.all():
        frame = frame.filter(pl.Series(clean))
        rows[np.flatnonzero(rows)[~clean]] = False
    return FastRows(rows, frame)


def _passes(table: Table, frame: pl.DataFrame) -> list[pl.Series]:
    rules = (rule.passes.alias(str(number)) for number, rule in enumerate(row_rules(table)))
    return frame.select(rules).get_columns()
