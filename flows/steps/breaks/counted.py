"""What carried breaks add to totals, now and as the run before left them (`COUNTED` of `money`)."""

import polars as pl

from flows.steps.breaks.carried_states import BEFORE, is_aside
from flows.steps.breaks.frame import BREAK_SCHEMA, IDENTITY
from flows.steps.breaks.lifecycle import REMEMBERED
from flows.steps.breaks.money import (
    BASIS,
    COUNTED,
    COUNTED_BEYOND,
    COUNTED_BY,
    basis,
    with_counted,
)
from flows.steps.frames.light import light, looked_up
from flows.steps.frames.parts import PartedRows
from schemas.life import RESOLVED

COUNTS = tuple(name + when for name in (BASIS, COUNTED, COUNTED_BEYOND) for when in ("", BEFORE))
"""The columns of `counts`."""


def counts(carried: PartedRows) -> pl.DataFrame:
    """What each of all carried breaks adds to totals now, and what it added before (COUNTS).

    What is set aside is counted by itself: it takes no money from a break that is open. What counts
    now and what counted before are there one after the other.
    """
    was = _added(_before(carried))
    there = ~pl.col("state").is_in(RESOLVED)
    now = _added(carried.filter(there).select("id", "state", *COUNTED_BY))
    # Those that count now are in the order of all.
    every = carried.select("id", "state")
    at = every.select(pl.when(there).then(there.cum_sum() - 1)).to_series()
    both = looked_up(
        every.hstack(now.select(COUNTED, COUNTED_BEYOND)[at]),
        was.select("id", pl.col(BASIS, COUNTED, COUNTED_BEYOND).name.suffix(BEFORE)),
    )
    money = pl.concat(part.select(basis()) for part in carried.read([*COUNTED_BY]))
    # What is resolved adds nothing now: of it is told what it added.
    told = (
        pl.when(there).then(name).otherwise(name + BEFORE).alias(name)
        for name in (COUNTED, COUNTED_BEYOND)
    )
    return light(both.hstack(money).with_columns(told).select(COUNTS))


def _before(carried: PartedRows) -> pl.DataFrame:
    """Breaks that were there before, in the order of the ledger, as far as they counted."""
    resolved = pl.col(f"state{BEFORE}").is_in(RESOLVED)
    names = {name: name.removesuffix(BEFORE) for name in REMEMBERED}
    return carried.filter(~resolved).select("id", *IDENTITY, *names).rename(names).sort("id")


def _added(breaks: pl.DataFrame) -> pl.DataFrame:
    return with_counted(breaks, is_aside()).select("id", BASIS, COUNTED, COUNTED_BEYOND)


def counted_alone(left: pl.DataFrame) -> pl.DataFrame:
    """Breaks as a run left them, with what each adds to totals; those resolved add nothing.

    No decision changes that: none resolves a break, or sets one aside, which only a run can do.
    """
    there = left.filter(~pl.col("state").is_in(RESOLVED)).select("id", "state", *BREAK_SCHEMA)
    counted = with_counted(there, is_aside()).select("id", COUNTED, COUNTED_BEYOND)
    return left.join(counted, on="id", how="left", maintain_order="left").with_columns(basis())
