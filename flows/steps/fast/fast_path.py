"""The fast path: records that are clean beyond doubt, typed from their bytes.

Most rows of most deliveries are. Of such a row no cell is ever made a text of its own, so it costs
a fraction of what validating costs. Whatever is written in another way than most is left to
`validate_rows`, which says the same of a row of the fast path.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flows.steps.fast.typed import Delivered, typed_records
from flows.steps.validate.normalise import Writing
from schemas.cells.reading import INTEGER_BITS
from schemas.field import Kind, Table
from schemas.row_rules import row_rules

_MOMENTS = (Kind.DATETIME, Kind.DATETIME_OFFSET)
_KINDS = (*INTEGER_BITS, *_MOMENTS, Kind.DOUBLE)
_MOST_LEFT = 2
"""Where more than one row in so many cannot take it, all are better validated together."""


@dataclass(frozen=True, slots=True, eq=False)
class FastRows:
    """The rows of a chunk that take the fast path."""

    rows: NDArray[np.bool_]
    """Which of the records they are."""
    frame: pl.DataFrame
    """Columns as SQL stores them; a double in millionths, with its digits behind the point."""


def read_fast(
    table: Table,
    names: Sequence[str | None],
    delivered: Delivered,
    writing: Writing,
    *,
    tenant: int | None,
) -> FastRows | None:
    """The rows of a chunk that take the fast path.

    None: they are few, or its feed writes in a way of its own. `names` says which field each
    delivered column is.
    """
    usual = Writing() == writing and all(
        field.kind in _KINDS and field.name in names for field in table.delivered
    )
    if not usual:
        return None
    frame, rows = typed_records(table, names, delivered)
    clean = np.ones(frame.height, np.bool_)
    if tenant is not None and table.tenant:
        clean &= (frame[table.tenant] == tenant).to_numpy()
    for passed in _passes(table, frame):
        clean &= passed.to_numpy()
    if clean.sum() * _MOST_LEFT < len(rows):
        return None
    if not clean.all():
        frame = frame.filter(pl.Series(clean))
        rows[np.flatnonzero(rows)[~clean]] = False
    return FastRows(rows, frame)


def _passes(table: Table, frame: pl.DataFrame) -> list[pl.Series]:
    """By rule of the record: which rows pass."""
    rules = (rule.passes.alias(str(number)) for number, rule in enumerate(row_rules(table)))
    return frame.select(rules).get_columns()
