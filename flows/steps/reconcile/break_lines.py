"""The breaks of a report, line by line: those that are there, set aside, or other than accepted."""

from collections.abc import Mapping

import polars as pl

from flows.steps.breaks.acceptance import (
    acceptance,
    accepted_terms,
    both_values,
    name_of,
)
from flows.steps.breaks.carried_states import RULES, is_aside
from flows.steps.breaks.make import LINES
from flows.steps.frames.beyond import largest_first, number_of, parted
from flows.steps.reconcile.report import AgainLine, AsideLine, OutgrownLine
from flows.steps.reconcile.reported_breaks import MONEY, SCHEMA, Breaks
from schemas.amounts import BEYOND
from schemas.breaks import BREAKS, Severity

RANK = {Severity.HIGH: 0, Severity.MEDIUM: 1, Severity.LOW: 2}


def reported(there: pl.DataFrame) -> Breaks:
    """Open, accepted and expired breaks: most severe first, then the largest."""
    there = there.with_columns(acceptance(there).alias("acceptance"))
    shown = {*SCHEMA, "aside_because", "acceptance", *(name + BEYOND for name in MONEY)}
    ordered = there.select(name for name in there.columns if name in shown).sort(
        pl.col("severity").replace_strict({key.value: rank for key, rank in RANK.items()}),
        largest_first(),
        "code",
        "record",
        "key",
        "field",
        "id",
        descending=[False, True, *[False] * 5],
        nulls_last=True,
    )
    return Breaks(
        ordered.with_columns(
            _by_code({code: one.group.value for code, one in BREAKS.items()}).alias("group"),
            _by_code({code: one.action for code, one in BREAKS.items()}).alias("action"),
            *(
                pl.col(name).cast(pl.String).fill_null("")
                for name in ("field", "side", "currency", "cause", "owner")
            ),
            pl.concat_str(
                [_said(name) for name in ("aside_because", "acceptance", "note")],
                separator="; ",
                ignore_nulls=True,
            ).alias("note"),
            *(column for name in MONEY for column in _amounts(ordered, name)),
        ).select(pl.col(name).cast(of) for name, of in SCHEMA.items())
    )


def _by_code(told: Mapping[str, str]) -> pl.Expr:
    return pl.col("code").replace_strict(told, return_dtype=pl.String)


def _said(name: str) -> pl.Expr:
    """What a column says; null where that is nothing."""
    return pl.when(pl.col(name) != "").then(name)


def _amounts(there: pl.DataFrame, name: str) -> list[pl.Series]:
    """An amount, and the texts of those that no exact column holds, each written one way."""
    text = name + BEYOND
    written = there[text].drop_nulls().unique()
    held, spelled = parted(name, map(number_of, written))
    known = pl.DataFrame([written, held, spelled.alias("spelled")])
    found = there.select(text).join(known, on=text, how="left", maintain_order="left")
    return [there[name].zip_with(there[text].is_null(), found[name]), found["spelled"].alias(text)]


def aside_lines(there: pl.DataFrame) -> tuple[AsideLine, ...]:
    """Breaks that are set aside by reason, the most first."""
    groups = (
        there.filter(is_aside())
        .group_by("state", "aside_because", (pl.col("aside_by") == RULES).alias("by_rules"))
        .len()
        .sort("len", "state", "aside_because", descending=[True, False, False])
    )
    return tuple(
        AsideLine(state, because or "its source is not there", bool(by_rules), rows)
        for state, because, by_rules, rows in groups.iter_rows()
    )


def outgrown_lines(there: pl.DataFrame) -> tuple[OutgrownLine, ...]:
    """Breaks that are not what was accepted any more, the largest first."""
    ordered = there.with_columns(name_of(), *both_values()).sort(
        largest_first(), "what", "id", descending=[True, False, False], nulls_last=True
    )
    told = ordered.select("id", "what", "accepted_as", "is_now").head(LINES)
    return tuple(OutgrownLine(*row) for row in told.iter_rows())


def accepted_again(there: pl.DataFrame, signed: pl.DataFrame | None) -> pl.DataFrame:
    """Breaks that were accepted as something else when the last report was approved."""
    if signed is None or signed.is_empty():
        return there.clear()
    accepted = there.filter(pl.col("seen")).with_columns(
        name_of(), accepted_terms().alias("accepted_as")
    )
    return accepted.join(signed, on="id").filter(pl.col("signed_as") != pl.col("accepted_as"))


def again_lines(again: pl.DataFrame) -> tuple[AgainLine, ...]:
    """Breaks that `accepted_again` found, the largest first."""
    if again.is_empty():
        return ()
    ordered = again.sort(
        largest_first(), "what", "id", descending=[True, False, False], nulls_last=True
    )
    told = ordered.select("id", "what", "signed_as", "accepted_as").head(LINES)
    return tuple(AgainLine(*row) for row in told.iter_rows())
