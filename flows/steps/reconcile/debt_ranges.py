"""J8 and J9 over all debts, range by range, each debt with everything that belongs to it.

Nearly every payment may have a debt of its own, so debts may take as much memory as payments.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial

import polars as pl

from flows.steps.breaks.frame import no_breaks
from flows.steps.breaks.make import (
    NOWHERE,
    Annex,
    as_day,
    day_paid,
    left_of,
    number_duplicates,
    together,
)
from flows.steps.frames.light import without
from flows.steps.frames.parts import Keep, Load, columns_of, held, names_of, whole
from flows.steps.frames.ranges import Ranges, even_ranges
from flows.steps.reconcile.allotment import PlanAnnex
from flows.steps.reconcile.debts import (
    OWED,
    DebtLine,
    count_lines,
    debt_lines,
    listed_debts,
    reconcile_debts,
    roll_up,
    rolled_together,
)
from flows.steps.reconcile.documents import Coverage, cover, reconcile_documents
from flows.steps.reconcile.own import EVERY, Own
from flows.steps.rules.rules import Rules
from schemas.amounts import BEYOND

_MOST = 64
"""Most ranges of debts."""
_AT_ONCE = 250_000
"""Fewest rows that are split together, because nearly every frame has rows of each range."""
_SAMPLED = 1_000
"""Debts sampled from each part of the payments to determine the ranges."""


def reconcile_all_debts(
    payments: Sequence[Load],
    planned: PlanAnnex,
    invoices: Sequence[Load],
    rules: Rules,
    places: Mapping[str, pl.DataFrame] = NOWHERE,
    keep: Keep = held,
    own: Own = EVERY,
    as_of: date = date.max,
) -> Annex[DebtLine]:
    """Reconcile every debt by its payments, plan and invoice files; report those of the scope.

    A payment after the day does not count yet, even if it was delivered as of an earlier day. There
    are as many ranges as payments have parts, up to `_MOST`; `keep` puts the rows of each aside.
    """
    asks = planned.planned if "plans" in rules.references else PlanAnnex().planned
    aside: list[Load] = []
    covered: list[Coverage] = []
    listed: list[pl.DataFrame] = []
    lines = 0
    for rolled, asked, files in _ranges(payments, asks, invoices, keep, as_of):
        coverage = cover(rolled, files)
        of_debts = [reconcile_debts(rolled, asked, rules)] if "plans" in rules.references else []
        others = []
        if "documents" in rules.references:
            of_debts.append(coverage.none)
            others = coverage.breaks
            covered.append(replace(coverage, none=no_breaks()))
        of_scope = (own.of_debts(rolled), own.of_debts(asked), own.of_debts(coverage.counts))
        listed.append(listed_debts(*of_scope, own.breaks(together([*of_debts, *others]))))
        # All breaks of a debt are in its range; two files with one key may be in two ranges.
        aside.append(keep(own.breaks(number_duplicates(of_debts))))
        lines += count_lines(*of_scope)
    found = own.breaks(reconcile_documents(covered, places)) if covered else together([])
    return Annex(found, aside, debt_lines(listed), left_of(lines))


def _ranges(
    payments: Sequence[Load],
    planned: pl.DataFrame,
    invoices: Sequence[Load],
    keep: Keep,
    as_of: date,
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]]:
    """Yield rolled up payments, planned amounts and invoice files, range by range."""
    of_debt = _by_debt(payments) if _add_up(payments) else None
    if of_debt is None:
        yield roll_up(_paid(whole(payments), as_of)), planned, whole(invoices)
        return
    rolled = (roll_up(_paid(columns_of(load, OWED), as_of)) for load in payments)
    files = (load() for load in invoices)
    sides = (
        _aside(of_debt, rolled, rolled_together, keep),
        _aside(of_debt, (planned,), pl.concat, held),
        _aside(replace(of_debt, column="DebtsId"), files, pl.concat, keep),
    )
    for owed, asked, invoiced in zip(*sides, strict=True):
        yield owed(), asked(), invoiced()


def _paid(payments: pl.DataFrame, as_of: date) -> pl.DataFrame:
    return without(payments, day_paid() > as_day(as_of))


def _add_up(payments: Sequence[Load]) -> bool:
    """Whether payments come in parts whose exact sums can be added up to the sum of all."""
    texts = {"PaidAmount" + BEYOND, "DiscountAmount" + BEYOND}
    return len(payments) > 1 and all(texts.isdisjoint(names_of(load)) for load in payments)


def _by_debt(payments: Sequence[Load]) -> Ranges:
    numbers = []
    for load in payments:
        debts = columns_of(load, ("DebtsId",))["DebtsId"].drop_nulls().sort()
        numbers.append(debts.gather_every(max(1, debts.len() // _SAMPLED)))
    return even_ranges("debt", pl.concat(numbers), min(len(payments), _MOST))


def _aside(
    ranges: Ranges,
    frames: Iterable[pl.DataFrame],
    join: Callable[[Sequence[pl.DataFrame]], pl.DataFrame],
    keep: Keep,
) -> Sequence[Load]:
    """Put frames aside by range; return what loads each range and joins its pieces."""
    pieces: list[list[Load]] = [[] for _ in range(len(ranges))]
    nothing: pl.DataFrame | None = None
    for frame in _together(frames):
        nothing = frame.clear()
        for number, some in ranges.split(frame):
            pieces[number].append(keep(some))
    assert nothing is not None
    return [
        partial(lambda loads: join([load() for load in loads]), loads) if loads else held(nothing)
        for loads in pieces
    ]


def _together(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    waiting, rows = list[pl.DataFrame](), 0
    for frame in frames:
        waiting.append(frame)
        rows += frame.height
        if rows >= _AT_ONCE:
            yield pl.concat(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pl.concat(waiting)
