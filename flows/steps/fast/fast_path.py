"""The fast path: records that are clean beyond doubt, typed from their bytes.

Most rows of most deliveries are. Of such a row no cell is ever made a text of its own, so it costs
a fraction of what validating costs. Whatever is written in another way than most is left to
`validate_rows`, which says the same of a row of the fast path.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flows.steps.fast.typed import TypedRecords
from schemas.field import Table
from schemas.row_rules import row_rules

_MOST_LEFT = 2
"""Where more than one row in so many cannot take it, all are better validated together."""


@dataclass(frozen=True, slots=True, eq=False)
class FastRows:
    rows: NDArray[np.bool_]
    """Which of the records they are."""
    frame: pl.DataFrame
    """Columns as SQL stores them; a double in millionths, with its digits behind the point."""


def only_clean(table: Table, read: TypedRecords, *, tenant: int | None) -> FastRows | None:
    """The rows of a chunk that take the fast path, of those that were read; None: they are few."""
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
