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


def with_counts(carried: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Carried breaks with what they add to totals now, and what they added before (`COUNTED`).

    What is set aside is counted by itself: it takes no money from a break that is open.
    """
    resolved = pl.col("state").is_in(RESOLVED)
    there = [
        without(breaks, resolved).select(
            "id", "state", *(name for name in COUNTED_BY), pl.lit(when).alias("when")
        )
        for breaks, when in ((carried, ""), (before, BEFORE))
        if breaks.height or not when
    ]
    counted = with_counted(pl.concat(there), pl.concat_str("when", is_aside().cast(pl.String)))
    now, was = (without(counted, pl.col("when") != when) for when in ("", BEFORE))
    was = was.select("id", pl.col(BASIS, COUNTED, COUNTED_BEYOND).name.suffix(BEFORE))
    # Those that count now are in the order of all.
    there_now = ~resolved
    at = carried.select(pl.when(there_now).then(there_now.cum_sum() - 1)).to_series()
    both = looked_up(carried.with_columns(now.select(COUNTED, COUNTED_BEYOND)[at]), was)
    return light(both).with_columns(
        basis(),
        *(
            pl.when(resolved).then(name + BEFORE).otherwise(name).alias(name)
            for name in (COUNTED, COUNTED_BEYOND)
        ),
    )


def counted_alone(left: pl.DataFrame) -> pl.DataFrame:
    """Breaks as a run left them, with what each adds to totals; those resolved add nothing.

    No decision changes that: none resolves a break, or sets one aside, which only a run can do.
    """
    there = left.filter(~pl.col("state").is_in(RESOLVED)).select("id", "state", *BREAK_SCHEMA)
    counted = with_counted(there, is_aside()).select("id", COUNTED, COUNTED_BEYOND)
    return left.join(counted, on="id", how="left", maintain_order="left").with_columns(basis())
