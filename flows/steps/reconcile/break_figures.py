"""What the breaks of a run come to: how many in which state, their ages and roll-forwards."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from flows.steps.breaks.acceptance import outgrown
from flows.steps.breaks.ageing import AgeingLine, ageing
from flows.steps.breaks.carried_states import BEFORE, is_open, is_unseen
from flows.steps.breaks.changed_into import accepted_among
from flows.steps.breaks.counted import COUNTS
from flows.steps.frames.light import without
from flows.steps.frames.parts import PartedRows
from flows.steps.reconcile.break_lines import aside_lines
from flows.steps.reconcile.report import AsideLine
from flows.steps.reconcile.roll_forward import RollForward, roll_forward
from schemas.counting import agree, quantity
from schemas.life import RESOLVED, BreakState

_ASKED = (
    *("state", "code", "currency", "age_days", "seen", "aside_by", "aside_because", "accepted_by"),
    *(f"state{BEFORE}", f"currency{BEFORE}", *COUNTS),
)


@dataclass(frozen=True, slots=True)
class BreakFigures:
    open: int
    accepted: int
    outgrown: int
    """Accepted ones that are other than what was accepted, or have changed into others."""
    aside: tuple[AsideLine, ...]
    not_looked_at: tuple[str, ...]
    """Breaks of which a source is not there, and that nobody accepted, in the reader's words."""
    ageing: tuple[AgeingLine, ...]
    roll_forward: tuple[RollForward, ...]
    accepted_forward: tuple[RollForward, ...]
    aside_forward: tuple[RollForward, ...]
    accepted_unseen: tuple[str, ...] = ()
    """The same of accepted ones."""
    oldest: int = 0
    """Days since the first day that any of them ages from."""


def break_figures(carried: PartedRows, others: pl.DataFrame) -> BreakFigures:
    """Of breaks as `carry_forward.explained` gives them; few of their columns are read.

    `others` are those that have `changed_into` others.
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
