"""Breaks that are gone because a break of another code says the same field differs otherwise.

The code is part of what a break is: where an amount that differed has another currency now, its
break is gone and there is a new one. Nothing was resolved, and an acceptance covers none of it.
"""

from collections.abc import Mapping

import polars as pl

from flows.steps.breaks.acceptance import name_of, values
from flows.steps.breaks.carried_states import BEFORE
from flows.steps.frames.light import as_texts
from flows.steps.frames.parts import PartedRows
from schemas.life import RESOLVED, BreakState

CHANGED_INTO = "CHANGED_INTO"
"""Stands in place of the state of such a break where a run counts what became of it."""
_FIELD = ("record", "tenant", "key", "field")
_CAME = (BreakState.NEW, BreakState.REOPENED)
_NONE = pl.DataFrame(
    schema=dict.fromkeys(("id", f"state{BEFORE}", "what", "was", "is_now"), pl.String())
)


def changed_into(carried: PartedRows, names: Mapping[str, str]) -> pl.DataFrame:
    """Of the breaks that are gone those whose field has another one that came in this run.

    Columns `id`, `state_before`, `what`, `was` and `is_now`, in the order of `what`.
    `names` are those of currencies.
    """
    has_field = pl.col("field") != ""
    gone = carried.filter(pl.col("state").is_in(RESOLVED) & has_field)
    ids = as_texts(gone.select("id", *_FIELD))
    if ids.is_empty():
        return _NONE
    came = carried.filter(pl.col("state").is_in(_CAME) & has_field)
    there = as_texts(came.select("id", *_FIELD))
    pairs = ids.join(there, on=_FIELD, nulls_equal=True, suffix="_new")
    if pairs.is_empty():
        return _NONE
    was = _those(gone, pairs["id"]).select(
        "id", f"state{BEFORE}", name_of(), values(names=names).alias("was")
    )
    now = _those(came, pairs["id_new"]).select(
        pl.col("id").alias("id_new"),
        pl.format("changed into {}: {}", "code", values(names=names)).alias("now"),
    )
    told = pairs.join(now, on="id_new").group_by("id").agg(pl.col("now").sort().str.join("; "))
    return was.join(told.rename({"now": "is_now"}), on="id").sort("what", "id")


def accepted_among(others: pl.DataFrame) -> pl.DataFrame:
    """Those of `changed_into` that were accepted."""
    return others.filter(pl.col(f"state{BEFORE}") == BreakState.ACCEPTED)


def with_changed(breaks: pl.DataFrame, ids: pl.Series, others: pl.DataFrame) -> pl.DataFrame:
    """Breaks, whose ids these are, with CHANGED_INTO for the state of those that `changed_into`."""
    changed = ids.is_in(others["id"].implode())
    state = pl.when(changed).then(pl.lit(CHANGED_INTO)).otherwise(pl.col("state").cast(pl.String))
    return breaks.with_columns(state.alias("state"))


def _those(rows: PartedRows, ids: pl.Series) -> pl.DataFrame:
    return as_texts(rows.filter(pl.col("id").is_in(ids.unique().implode())).whole())
