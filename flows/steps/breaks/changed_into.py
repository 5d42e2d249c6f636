"""Breaks that are gone because another break says the same field, or the same row, otherwise.

The code is part of what a break is: where an amount that differed has another currency now, its
break is gone and there is a new one. Nothing was resolved, and an acceptance covers none of it. The
other one holds the same two sources against each other, and was not there before.

So is the key, which has its place behind it where several rows have a break with one key: that of a
row is another one once it is no longer alone, and once it is alone again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from flows.steps.breaks.acceptance import name_of, values
from flows.steps.breaks.carried_states import BEFORE
from flows.steps.breaks.frame import without_number
from flows.steps.breaks.lifecycle import REPLACED
from flows.steps.frames.light import as_texts
from flows.steps.frames.parts import PartedRows
from schemas.breaks import BREAKS
from schemas.life import RESOLVED, BreakState

_FIELD = ("record", "tenant", "key", "field")
_COMPARED = "_compared"
_SAME = (*_FIELD, _COMPARED)
"""What a break and the one that it has changed into have in common."""
_ROW = ("code", "record", "tenant", "own", "field", "side", "batch_id", "file", "line")
"""Likewise of two breaks of one row, which have different keys."""
_ABOUT = ("id", "first_seen", "key", *(name for name in _ROW if name != "own"))
_SOURCES = {code: of.compared.value for code, of in BREAKS.items()}
_NONE = pl.DataFrame(
    schema=dict.fromkeys(("id", f"state{BEFORE}", "what", "was", "is_now"), pl.String())
)


class Replacements(NamedTuple):
    """Breaks that are gone (`id`) beside those that say now what is wrong there (`id_new`)."""

    of_field: pl.DataFrame
    of_row: pl.DataFrame

    @property
    def whole(self) -> pl.DataFrame:
        return pl.concat(self).unique(maintain_order=True)

    @property
    def ids(self) -> pl.Series:
        """Ids of those that are gone."""
        return self.whole["id"].unique()


def replacements(gone: pl.DataFrame, carried: pl.DataFrame) -> Replacements:
    """Breaks not found again whose field or row has one that came, of some breaks of this run.

    Of those that are gone it is asked what they are `about`.
    """
    return _paired(gone, about(carried.filter(_came())))


def known_as_long(of_row: pl.DataFrame, gone: pl.DataFrame, carried: pl.DataFrame) -> pl.DataFrame:
    """Some breaks of this run, of which those of a row under another key were seen when it was.

    `of_row` and `gone` as for `replacements`.
    """
    seen = of_row.join(gone.select("id", __seen="first_seen"), on="id")
    first = seen.group_by(id="id_new").agg(pl.col("__seen").min())
    joined = carried.join(first, on="id", how="left", maintain_order="left")
    return joined.with_columns(first_seen=pl.min_horizontal("first_seen", "__seen")).drop("__seen")


def with_replaced(changed: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """What became of breaks that were not found again (CHANGED), as `Replacements.ids` has them.

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
    ids = about(gone.select(*_ABOUT))
    if ids.is_empty():
        return _NONE
    came = carried.filter(_came())
    # Nearly all may have come: they are paired part by part.
    both = pl.concat(_paired(ids, about(part)).whole for part in came.read([*_ABOUT]))
    was = _those(gone, both["id"]).select("id", f"state{BEFORE}", name_of(), was=values(names))
    now = _those(came, both["id_new"]).select(
        id_new="id", is_now=pl.format("changed into {}: {}", "code", values(names))
    )
    texts = both.join(now, on="id_new").group_by("id").agg(pl.col("is_now").sort().str.join("; "))
    return was.join(texts, on="id").sort("what", "id")


def accepted_among(others: pl.DataFrame) -> pl.DataFrame:
    """Those of `changed_into` that were accepted before."""
    return others.filter(pl.col(f"state{BEFORE}") == BreakState.ACCEPTED)


def _came() -> pl.Expr:
    """Whether the run before had no such break."""
    before = pl.col(f"state{BEFORE}")
    return before.is_null() | before.is_in(RESOLVED)


def about(rows: pl.DataFrame) -> pl.DataFrame:
    """Breaks by their ids, with what they are about and which sources differ in it."""
    sources = pl.col("code").replace_strict(_SOURCES, default=None, return_dtype=pl.String)
    texts = as_texts(rows.select(_ABOUT))
    own = without_number(pl.col("key")).alias("own")
    return texts.with_columns(sources.alias(_COMPARED), own)


def _paired(gone: pl.DataFrame, came: pl.DataFrame) -> Replacements:
    return Replacements(
        _same(gone, came, _SAME, pl.col("field") != ""),
        _same(gone, came, _ROW, pl.col("line").is_not_null()),
    )


def _same(
    gone: pl.DataFrame, came: pl.DataFrame, same: Sequence[str], where: pl.Expr
) -> pl.DataFrame:
    some, others = (rows.filter(where).select("id", *same) for rows in (gone, came))
    joined = some.join(others, on=same, nulls_equal=True, suffix="_new")
    return joined.select("id", "id_new")


def _those(rows: PartedRows, ids: pl.Series) -> pl.DataFrame:
    return as_texts(rows.filter(pl.col("id").is_in(ids.unique().implode())).whole())
