"""What carried breaks add to totals, now and as the run before left them (`COUNTED` of `money`)."""

import polars as pl

from flows.steps.breaks.carried_states import BEFORE, is_aside
from flows.steps.breaks.frame import BREAK_SCHEMA
from flows.steps.breaks.money import (
    BASIS,
    COUNTED,
    COUNTED_BEYOND,
    COUNTED_BY,
    basis,
    with_counted,
)
from flows.steps.frames.light import light, looked_up, without
from schemas.life import RESOLVED

COUNTS = tuple(name + when for name in (BASIS, COUNTED, COUNTED_BEYOND) for when in ("", BEFORE))
"""The columns of `with_counts`."""


def with_counts(carried: pl.DataFrame) -> pl.DataFrame:
    """Carried breaks with what they add to totals now, and what they added before (COUNTS).

    Of them `id`, `state`, COUNTED_BY and what is remembered of these is looked at: they are all
    that there are, now and before. What is set aside is counted by itself: it takes no money from
    a break that is open.
    """
    before = [
        pl.col(name + BEFORE if name + BEFORE in carried.columns else name).alias(name)
        for name in ("id", "state", *COUNTED_BY)
    ]
    # As the ledger has them: of breaks that read alike in all that counts the first one does.
    was = _added(carried.filter(pl.col(f"state{BEFORE}").is_not_null()).select(before).sort("id"))
    now = _added(carried.select("id", "state", *COUNTED_BY))
    # Those that count now are in the order of all.
    there = ~pl.col("state").is_in(RESOLVED)
    at = carried.select(pl.when(there).then(there.cum_sum() - 1)).to_series()
    both = looked_up(
        carried.with_columns(now.select(COUNTED, COUNTED_BEYOND)[at]),
        was.select("id", pl.col(BASIS, COUNTED, COUNTED_BEYOND).name.suffix(BEFORE)),
    )
    return light(both).with_columns(
        basis(),
        *(
            pl.when(there).then(name).otherwise(name + BEFORE).alias(name)
            for name in (COUNTED, COUNTED_BEYOND)
        ),
    )


def _added(breaks: pl.DataFrame) -> pl.DataFrame:
    counted = with_counted(without(breaks, pl.col("state").is_in(RESOLVED)), is_aside())
    return counted.select("id", BASIS, COUNTED, COUNTED_BEYOND)


def counted_alone(left: pl.DataFrame) -> pl.DataFrame:
    """Breaks as a run left them, with what each adds to totals; those resolved add nothing.

    No decision changes that: none resolves a break, or sets one aside, which only a run can do.
    """
    there = left.filter(~pl.col("state").is_in(RESOLVED)).select("id", "state", *BREAK_SCHEMA)
    counted = with_counted(there, is_aside()).select("id", COUNTED, COUNTED_BEYOND)
    return left.join(counted, on="id", how="left", maintain_order="left").with_columns(basis())
