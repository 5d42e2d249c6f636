"""Records with holes: a null anywhere is judged or left alone, and never stops a run."""

from collections.abc import Callable
from datetime import date
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.steps.breaks.causes import find_causes
from flows.steps.breaks.frame import gather
from flows.steps.breaks.severity import severities
from flows.steps.frames.parts import held, held_rows
from flows.steps.reconcile import self_test as planted
from flows.steps.reconcile.batches import reconcile_batches
from flows.steps.reconcile.debt_ranges import reconcile_all_debts
from flows.steps.reconcile.plans import reconcile_plans
from flows.steps.reconcile.rates import reconcile_rates
from flows.steps.rules.rules import Budget, Direction, Plans, Rates, Rules
from tests.examples import examples
from tests.governance.runs import with_counted
from tests.reconcile.records import new

AS_OF = date(2026, 3, 4)
RULES = Rules(
    rates=Rates(daily=True, direction=Direction.FROM_TO),
    plans=Plans(early_days=5),
    budget=Budget(count=0),
)


def everything(
    payments: pl.DataFrame,
    rates: pl.DataFrame,
    details: pl.DataFrame,
    invoices: pl.DataFrame,
    sent: pl.DataFrame,
    listed: pl.DataFrame,
) -> pl.DataFrame:
    """All joins over all frames, with their annexes; the breaks with their ids."""
    plans = reconcile_plans(details, payments, RULES, AS_OF)
    debts = reconcile_all_debts((held(payments),), plans, (held(invoices),), RULES)
    rated = reconcile_rates((held(payments),), rates, RULES, AS_OF)
    batches = reconcile_batches(sent, listed)
    found = [debts.every_break(), plans.breaks, rated.breaks, batches.breaks]
    breaks = gather(found)
    assert breaks.height == sum(frame.height for frame in found)
    assert severities(new(breaks), RULES, AS_OF).null_count() == 0
    causes = find_causes(held_rows(with_counted(breaks)), rates)
    assert causes.of["id"].is_unique().all()
    assert sum(line.breaks for line in causes.lines) == causes.of["cause"].count()
    return breaks


FRAMES: list[Callable[[], pl.DataFrame]] = [
    planted._payments,
    planted._rates,
    planted._details,
    planted._invoices,
    lambda: planted._batches()[0],
    lambda: planted._batches()[1],
]


@pytest.mark.long
@settings(max_examples=examples(60, 6), deadline=None, derandomize=True)
@given(st.data())
def test_nulls_anywhere(data: Any) -> None:
    frames = []
    for make in FRAMES:
        frame = make()
        holes = data.draw(st.sets(st.sampled_from(frame.columns), max_size=3))
        every = data.draw(st.integers(1, 5))
        gone = pl.int_range(pl.len()) % every == 0
        frames.append(
            frame.with_columns(
                pl.when(gone).then(None).otherwise(pl.col(name)).alias(name) for name in holes
            )
        )
    everything(*frames)


def test_nothing_at_all() -> None:
    assert everything(*(make().clear() for make in FRAMES)).is_empty()


@pytest.mark.long
def test_frames_of_many_pieces() -> None:
    """Frames that were put together of pieces, some of them empty, give the same breaks."""
    whole = [make() for make in FRAMES]
    pieces = [
        pl.concat([frame[:1], frame.clear(), frame[1:3], frame[3:]], rechunk=False)
        for frame in whole
    ]
    assert everything(*pieces).equals(everything(*whole))
