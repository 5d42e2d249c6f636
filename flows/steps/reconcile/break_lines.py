"""The breaks of a report: their figures, and the lines of those present, set aside or outgrown."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from flows.steps.breaks.acceptance import (
    acceptance,
    accepted_terms,
    both_values,
    name_of,
    outgrown,
)
from flows.steps.breaks.ageing import AgeingLine, ageing
from flows.steps.breaks.carried_states import BEFORE, RULES, is_aside, is_open, is_unseen
from flows.steps.breaks.changed_into import accepted_among
from flows.steps.breaks.counted import COUNTS
from flows.steps.breaks.make import LINES
from flows.steps.breaks.money import BASIS, largest_first
from flows.steps.frames.beyond import number_of, parted
from flows.steps.frames.light import light, without
from flows.steps.frames.parts import PartedRows
from flows.steps.reconcile.report import AgainLine, AsideLine, OutgrownLine
from flows.steps.reconcile.reported_breaks import MONEY, SCHEMA, Breaks
from flows.steps.reconcile.roll_forward import RollForward, roll_forward
from schemas.amounts import BEYOND
from schemas.breaks import BREAKS, Severity
from schemas.counting import agree, quantity
from schemas.life import RESOLVED, BreakState

RANK = {Severity.HIGH: 0, Severity.MEDIUM: 1, Severity.LOW: 2}


def reported(carried: PartedRows, names: Mapping[str, str]) -> Breaks:
    """The breaks that are not resolved, most severe first, then the largest.

    `names` are those of currencies.
    """
    order = _order(carried)
    parts: dict[str, list[pl.Series]] = {name: [] for name in SCHEMA}
    for part in carried:
        for column in _lines(without(part, _RESOLVED), names):
            parts[column.name].append(column)
    # Column by column, so that there are never two copies of all columns.
    columns = (pl.concat(parts.pop(name)).gather(order) for name in SCHEMA)
    return Breaks(pl.concat([light(one.to_frame()) for one in columns], how="horizontal"))


_RESOLVED = pl.col("state").is_in(RESOLVED)


def _order(carried: PartedRows) -> pl.Series:
    """The row numbers of unresolved breaks in the order of reports."""
    by = ("code", "record", "key", "field", "id")
    there = carried.select("state", "severity", "amount", "amount" + BEYOND, BASIS, *by)
    rank = pl.col("severity").replace_strict({key.value: rank for key, rank in RANK.items()})
    order = pl.arg_sort_by(rank, *largest_first(), *by, nulls_last=True)
    return without(there, _RESOLVED).select(order).to_series()


def _lines(there: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """Breaks in the form of reports (`SCHEMA`)."""
    texts = ("field", "side", "currency", "cause", "owner", "accepted_by", "accepted_reason")
    return there.with_columns(
        _by_code({code: one.group.value for code, one in BREAKS.items()}).alias("group"),
        _by_code({code: one.action for code, one in BREAKS.items()}).alias("action"),
        acceptance(there, names).alias("acceptance"),
        pl.col(texts).cast(pl.String).fill_null(""),
        *(column for name in MONEY for column in _amounts(there, name)),
    ).select(
        pl.concat_str(
            (pl.when(pl.col(of) != "").then(of) for of in ("aside_because", "acceptance", "note")),
            separator="; ",
            ignore_nulls=True,
        ).alias("note"),
        *(pl.col(name).cast(of) for name, of in SCHEMA.items() if name != "note"),
    )


def _by_code(by_code: Mapping[str, str]) -> pl.Expr:
    return pl.col("code").replace_strict(by_code, return_dtype=pl.String)


def _amounts(there: pl.DataFrame, name: str) -> list[pl.Series]:
    """An amount, and the canonical texts of those that no exact column holds."""
    text = name + BEYOND
    written = there[text].drop_nulls().unique()
    held, spelled = parted(name, map(number_of, written))
    known = pl.DataFrame([written, held, spelled.alias("spelled")])
    found = there.select(text).join(known, on=text, how="left", maintain_order="left")
    return [there[name].zip_with(there[text].is_null(), found[name]), found["spelled"].alias(text)]


def aside_lines(there: pl.DataFrame) -> tuple[AsideLine, ...]:
    """Breaks that are set aside, counted by reason, largest count first."""
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


def outgrown_lines(there: pl.DataFrame, names: Mapping[str, str]) -> tuple[OutgrownLine, ...]:
    """Breaks that have changed since they were accepted, the largest first.

    `names` are those of currencies.
    """
    ordered = there.with_columns(name_of(), *both_values(names)).sort(
        *largest_first(), "what", "id", nulls_last=True
    )
    listed = ordered.select("id", "what", "accepted_as", "is_now").head(LINES)
    return tuple(OutgrownLine(*row) for row in listed.iter_rows())


def replaced_lines(replaced: pl.DataFrame) -> tuple[OutgrownLine, ...]:
    """The lines of accepted breaks that have `changed_into` others."""
    listed = replaced.select("id", "what", "was", "is_now").head(LINES)
    return tuple(OutgrownLine(*row) for row in listed.iter_rows())


def accepted_again(
    carried: PartedRows, signed: pl.DataFrame | None, names: Mapping[str, str]
) -> pl.DataFrame:
    """Accepted breaks whose terms differ from those when the last report was approved.

    `names` are those of currencies, with which the terms in `signed` are written too.
    """
    if signed is None or signed.is_empty():
        return pl.DataFrame()
    seen = carried.filter(pl.col("seen")).whole()
    accepted = seen.with_columns(name_of(), accepted_terms(names).alias("accepted_as"))
    return accepted.join(signed, on="id").filter(pl.col("signed_as") != pl.col("accepted_as"))


def again_lines(again: pl.DataFrame) -> tuple[AgainLine, ...]:
    """The lines of breaks that `accepted_again` found, the largest first."""
    if again.is_empty():
        return ()
    ordered = again.sort(*largest_first(), "what", "id", nulls_last=True)
    listed = ordered.select("id", "what", "signed_as", "accepted_as").head(LINES)
    return tuple(AgainLine(*row) for row in listed.iter_rows())


_ASKED = (
    *("state", "code", "currency", "age_days", "seen", "aside_by", "aside_because", "accepted_by"),
    *(f"state{BEFORE}", f"currency{BEFORE}", *COUNTS),
)


@dataclass(frozen=True, slots=True)
class BreakFigures:
    open: int
    accepted: int
    outgrown: int
    """Accepted breaks that have changed since, or have changed into others."""
    aside: tuple[AsideLine, ...]
    not_looked_at: tuple[str, ...]
    """Breaks that lack a source and are not accepted, in the reader's words."""
    ageing: tuple[AgeingLine, ...]
    roll_forward: tuple[RollForward, ...]
    accepted_forward: tuple[RollForward, ...]
    aside_forward: tuple[RollForward, ...]
    accepted_unseen: tuple[str, ...] = ()
    """The same for accepted breaks."""
    oldest: int = 0
    """Age of the oldest break in days."""


def break_figures(carried: PartedRows, others: pl.DataFrame) -> BreakFigures:
    """The figures of breaks from `carry_forward.explained`; only a few columns are read.

    `others` is the result of `changed_into`.
    """
    breaks = carried.select(*_ASKED)
    there = without(breaks, pl.col("state").is_in(RESOLVED))
    return BreakFigures(
        open=int(there.select(is_open().sum()).item()),
        accepted=int((there["state"] == BreakState.ACCEPTED).sum()),
        outgrown=int(there.select(outgrown().sum()).item()) + accepted_among(others).height,
        aside=aside_lines(there),
        not_looked_at=tuple(_not_looked_at(there.filter(is_unseen()))),
        ageing=ageing(there),
        roll_forward=roll_forward(breaks),
        accepted_forward=roll_forward(breaks, "accepted"),
        aside_forward=roll_forward(breaks, "aside"),
        accepted_unseen=tuple(
            _not_looked_at(there.filter(is_unseen(accepted=True)), "accepted break")
        ),
        oldest=int(there.select(pl.col("age_days").max().fill_null(0)).item()),
    )


def _not_looked_at(unseen: pl.DataFrame, called: str = "break") -> Iterator[str]:
    for one in aside_lines(unseen):
        was = agree(one.breaks, "was", "were")
        yield f"{quantity(one.breaks, called)} of runs before {was} not looked at: {one.because}"
