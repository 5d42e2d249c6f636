"""Breaks that are gone because a break of another code says the same field differs otherwise.

The code is part of what a break is: where an amount that differed has another currency now, its
break is gone and there is a new one. Nothing was resolved, and an acceptance covers none of it.
"""

from collections.abc import Mapping

import polars as pl

from flows.steps.breaks.acceptance import name_of, values
from flows.steps.breaks.carried_states import BEFORE
from flows.steps.breaks.lifecycle import REPLACED
from flows.steps.frames.light import as_texts
from flows.steps.frames.parts import PartedRows
from schemas.life import BreakState

_FIELD = ("record", "tenant", "key", "field")
_CAME = (BreakState.NEW, BreakState.REOPENED)
_NONE = pl.DataFrame(
    schema=dict.fromkeys(("id", f"state{BEFORE}", "what", "was", "is_now"), pl.String())
)


def replaced(gone: pl.DataFrame, carried: pl.DataFrame) -> pl.Series:
    """Ids of breaks not found again whose field has one that came, of some breaks of this run."""
    came = as_texts(carried.filter(_came()).select(_FIELD))
    of_field = as_texts(gone.filter(_has_field()).select("id", *_FIELD))
    return of_field.join(came, on=_FIELD, how="semi", nulls_equal=True)["id"]


def with_replaced(changed: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """What became of breaks that were not found again (CHANGED), as `replaced` has found.

    One that is set aside this run could not find, so it has become nothing.
    """
    other = pl.col("side").is_not_null() & pl.col("id").is_in(ids.implode())
    side = pl.when(other).then(pl.lit(REPLACED)).otherwise("side")
    return changed.with_columns(side.alias("side"))


def changed_into(carried: PartedRows, names: Mapping[str, str]) -> pl.DataFrame:
    """Breaks that have changed into others, with what these say.

    Columns `id`, `state_before`, `what`, `was` and `is_now`, in the order of `what`.
    `names` are those of currencies.
    """
    gone = carried.filter(pl.col("state") == BreakState.CHANGED_INTO)
    ids = as_texts(gone.select("id", *_FIELD))
    if ids.is_empty():
        return _NONE
    came = carried.filter(_came())
    there = as_texts(came.select("id", *_FIELD))
    pairs = ids.join(there, on=_FIELD, nulls_equal=True, suffix="_new")
    was = _those(gone, pairs["id"]).select(
        "id", f"state{BEFORE}", name_of(), values(names).alias("was")
    )
    now = _those(came, pairs["id_new"]).select(
        pl.col("id").alias("id_new"),
        pl.format("changed into {}: {}", "code", values(names)).alias("now"),
    )
    told = pairs.join(now, on="id_new").group_by("id").agg(pl.col("now").sort().str.join("; "))
    return was.join(told.rename({"now": "is_now"}), on="id").sort("what", "id")


def accepted_among(others: pl.DataFrame) -> pl.DataFrame:
    """Those of `changed_into` that were accepted."""
    return others.filter(pl.col(f"state{BEFORE}") == BreakState.ACCEPTED)


def _came() -> pl.Expr:
    return pl.col("state").is_in(_CAME) & _has_field()


def _has_field() -> pl.Expr:
    return pl.col("field") != ""


def _those(rows: PartedRows, ids: pl.Series) -> pl.DataFrame:
    return as_texts(rows.filter(pl.col("id").is_in(ids.unique().implode())).whole())
