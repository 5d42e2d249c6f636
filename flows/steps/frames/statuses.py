"""Statuses: the frame that says what became of every record, one line each."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from flows.steps.frames.beyond import beyond_of, unreadable_of
from flows.steps.frames.sources import DELIVERED, record_schema
from schemas.amounts import BEYOND, UNREADABLE
from schemas.breaks import Status
from schemas.field import Table
from schemas.frame_types import AMOUNT, WORD, Dtype
from schemas.kinds import identity_columns

STATUS = pl.Enum(Status)
"""A status, stored in one byte."""
EXPECTED, FOUND = "_expected", "_found"
"""Suffixes of an amount field's two columns in a frame of statuses."""
PARTNER = "partner"


@dataclass(frozen=True, slots=True)
class Lines:
    """What became of records; the target's values are looked up only when asked for.

    A million lines with the target's values are a large frame, and few of them are ever shown.
    """

    frame: pl.DataFrame
    """As `line_schema`."""
    target: pl.DataFrame
    """`found_columns` of the target's records, which PARTNER numbers."""
    own: int | None = None
    """How many records of `target` the target has; the rest are only listed. None means all."""

    # Both frames have texts beside amounts that no exact column holds, where there are any.

    def __getitem__(self, rows: pl.Series) -> pl.DataFrame:
        """Some lines with the target's values of each."""
        return self._with_target(self.frame[rows])

    def whole(self) -> pl.DataFrame:
        return self._with_target(self.frame)

    def _with_target(self, lines: pl.DataFrame) -> pl.DataFrame:
        found = self.target[lines[PARTNER]]
        there = lines[PARTNER].is_not_null()
        if self.own is not None:
            there &= (lines[PARTNER] < self.own).fill_null(value=False)
        there = there.alias("in_target")
        return lines.drop(PARTNER).hstack([*found, there])


def in_state(states: Iterable[str]) -> pl.Expr:
    """Whether a row of an extract ended in one of these states; rows of other sides never do."""
    return pl.col("state").cast(pl.String).is_in([*states]).fill_null(value=False)


def line_schema(table: Table) -> dict[str, Dtype]:
    """Columns of `Lines`: PARTNER is the row number of the target's record, null if there is none.

    `rule` is the exclusion's id; `date` the record's business date; `state` and `answer` are the
    end state of the extract row and of its send.
    """
    schema = record_schema(table)
    return {
        **{name: schema[name] for name in identity_columns(table)},
        "tenant": pl.Int32(),
        "status": STATUS,
        "rule": WORD,
        "currency": pl.Int32(),
        **{name + EXPECTED: AMOUNT for name in table.amounts},
        "date": pl.Date(),
        "answer": WORD,
        PARTNER: pl.UInt32(),
        **DELIVERED,
    }


def found_columns(table: Table, target: pl.DataFrame) -> pl.DataFrame:
    """The columns that lines show of the target's records: tenant, currency and amounts."""
    cell = number(table.tenant, "tenant_found"), number(table.currency, "currency_found")
    found = target.with_columns(*cell)
    return found.select("tenant_found", "currency_found", *amounts_as(table, target, FOUND))


def amounts_as(table: Table, frame: pl.DataFrame, side: str) -> list[pl.Expr]:
    """The amounts of records, with the texts beside them, under the names lines use for a side."""
    texts = {
        BEYOND: beyond_of(frame, table.amounts),
        UNREADABLE: unreadable_of(frame, table.amounts),
    }
    return [
        pl.col(name + end).alias(name + side + end)
        for end, names in ({"": table.amounts} | texts).items()
        for name in names
    ]


def number(name: str | None, alias: str) -> pl.Expr:
    """A column of whole numbers under another name; nulls if `name` is None."""
    return (pl.col(name) if name else pl.lit(None)).cast(pl.Int32).alias(alias)
