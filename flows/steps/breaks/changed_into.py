"""Breaks that are gone because another break now reports the same field or the same row.

The code is part of a break's identity: if an amount that differed has another currency now, its
break is gone and there is a new one. Nothing was resolved, and an acceptance does not cover the new
break. The new break compares the same two sources and was not there before.

The key is part of the identity too. If several rows have a break with one key, the place of each
row is appended, so the key of a row changes once it is no longer alone, and once it is alone again.
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
"""Columns that a break and the break it has changed into have in common."""
_ROW = ("code", "record", "tenant", "own", "field", "side", "batch_id", "file", "line")
"""Likewise for two breaks of one row with different keys."""
_ABOUT = ("id", "first_seen", "key", *(name for name in _ROW if name != "own"))
_SOURCES = {code: of.compared.value for code, of in BREAKS.items()}
_NONE = pl.DataFrame(
    schema=dict.fromkeys(("id", f"state{BEFORE}", "what", "was", "is_now"), pl.String())
)


class Replacements(NamedTuple):
    """Breaks that are gone (`id`) beside those that replace them (`id_new`)."""

    of_field: pl.DataFrame
    of_row: pl.DataFrame

    @property
    def whole(self) -> pl.DataFrame:
        return pl.concat(self).unique(maintain_order=True)

    @property
    def ids(self) -> pl.Series:
        """Ids of the breaks that are gone."""
        return self.whole["id"].unique()


def replacements(gone: pl.DataFrame, carried: pl.DataFrame) -> Replacements:
    """Pair breaks that are gone with new ones of the same field or row among `carried`.

    `gone` is a frame as returned by `about`; `carried` may be a part of the breaks of this run.
    """
    return _paired(gone, about(carried.filter(_came())))


def known_as_long(of_row: pl.DataFrame, gone: pl.DataFrame, carried: pl.DataFrame) -> pl.DataFrame:
    """Breaks of this run, where those that replace another of the same row keep its `first_seen`.

    `of_row` and `gone` as in `replacements`.
    """
    seen = of_row.join(gone.select("id", __seen="first_seen"), on="id")
    first = seen.group_by(id="id_new").agg(pl.col("__seen").min())
    joined = carried.join(first, on="id", how="left", maintain_order="left")
    return joined.with_columns(first_seen=pl.min_horizontal("first_seen", "__seen")).drop("__seen")


def with_replaced(changed: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """Mark the breaks of `changed` (CHANGED) that are among `Replacements.ids` as REPLACED.

    A break that is set aside is left as it is: this run could not find it at all.
    """
    other = pl.col("side").is_not_null() & pl.col("id").is_in(ids.implode())
    side = pl.when(other).then(pl.lit(REPLACED)).otherwise("side")
    return changed.with_columns(side.alias("side"))


def changed_into(carried: PartedRows, names: Mapping[str, str]) -> pl.DataFrame:
    """Breaks that have changed into others, with the values of both.

    Columns `id`, `state_before`, `what`, `was` and `is_now`, sorted by `what`. `names` are those
    of currencies.
    """
    gone = carried.filter(pl.col("state") == BreakState.CHANGED_INTO)
    ids = about(gone.select(*_ABOUT))
    if ids.is_empty():
        return _NONE
    came = carried.filter(_came())
    # Nearly all breaks may be new, so they are paired part by part.
    both = pl.concat(_paired(ids, about(part)).whole for part in came.read([*_ABOUT]))
    was = _those(gone, both["id"]).select("id", f"state{BEFORE}", name_of(), was=values(names))
    now = _those(came, both["id_new"]).select(
        id_new="id", is_now=pl.format("changed into {}: {}", "code", values(names))
    )
    texts = both.join(now, on="id_new").group_by("id").agg(pl.col("is_now").sort().str.join("; "))
    return was.join(texts, on="id").sort("what", "id")


def accepted_among(others: pl.DataFrame) -> pl.DataFrame:
    """The breaks of `changed_into` that were accepted before."""
    return others.filter(pl.col(f"state{BEFORE}") == BreakState.ACCEPTED)


def _came() -> pl.Expr:
    """Whether the previous run had no such break."""
    before = pl.col(f"state{BEFORE}")
    return before.is_null() | before.is_in(RESOLVED)


def about(rows: pl.DataFrame) -> pl.DataFrame:
    """Breaks by id, with what they are about and which sources they compare."""
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
