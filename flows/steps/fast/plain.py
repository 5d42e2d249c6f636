"""Plain rows: records that are clean beyond doubt, typed from their bytes by the fast path.

Most rows of most deliveries are. Of such a row no cell is ever made a text of its own, so it costs
a fraction of what judging costs. Whatever is written in another way than most is left to `judge`,
which says the same of a plain row.
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
"""Where more than one row in so many is not plain, all are better judged together."""


@dataclass(frozen=True, slots=True, eq=False)
class PlainRows:
    """The plain rows of a chunk."""

    rows: NDArray[np.bool_]
    """Which of the records they are."""
    frame: pl.DataFrame
    """Columns as SQL stores them; a double in millionths, with its digits behind the point."""


def read_plain(
    table: Table,
    names: Sequence[str | None],
    delivered: Delivered,
    writing: Writing,
    *,
    tenant: int | None,
) -> PlainRows | None:
    """The plain rows of a chunk; None: it has few, or its feed writes in a way of its own.

    `names` says which field each delivered column is.
    """
    usual = Writing() == writing and all(
        field.kind in _KINDS and field.name in names for field in table.delivered
    )
    if not usual:
        return None
    frame, rows = typed_records(table, names, delivered)
    plain = np.ones(frame.height, np.bool_)
    if tenant is not None and table.tenant:
        plain &= (frame[table.tenant] == tenant).to_numpy()
    for passed in _passes(table, frame):
        plain &= passed.to_numpy()
    if plain.sum() * _MOST_LEFT < len(rows):
        return None
    if not plain.all():
        frame = frame.filter(pl.Series(plain))
        rows[np.flatnonzero(rows)[~plain]] = False
    return PlainRows(rows, frame)


def _passes(table: Table, frame: pl.DataFrame) -> list[pl.Series]:
    """By rule of the record: which rows pass."""
    rules = (rule.passes.alias(str(number)) for number, rule in enumerate(row_rules(table)))
    return frame.select(rules).get_columns()
