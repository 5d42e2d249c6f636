"""Roll-forward: from the breaks a run found open to those it leaves open, in count and amount.

Opening and closing are counted from the states, every line between them from what happened to each
break; the residual is what the lines do not explain. Never a sum across currencies.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Context, Decimal, Inexact
from typing import NamedTuple

import polars as pl

from flows.report.reconciliation import ProofLine, RollForward
from flows.steps.reconcile.life import BEFORE
from schemas.life import OPEN, BreakState

_EXACT = Context(prec=200, traps=[Inexact])
"""Wide enough for any sum of break amounts; a digit lost would raise."""
OPENING, CLOSING = "opening", "closing"

_STEPS = {
    "open": {
        "new": "+ new",
        "reopened": "+ reopened: back after a resolution or an acceptance",
        "expired": "+ expired: the acceptance has run out",
        "resolved_source": "- resolved at source",
        "resolved_service": "- resolved at service",
        "accepted": "- accepted",
        "changed": "+/- amounts that changed while open",
    },
    "accepted": {
        "accepted": "+ accepted",
        "expired": "- expired: the acceptance has run out",
        "reopened": "- reopened: by decision, or other than it was accepted",
        "resolved_source": "- resolved at source",
        "resolved_service": "- resolved at service",
        "changed": "+/- amounts that changed while accepted",
    },
}
"""Lines between opening and closing of each pool, in order."""


class _Alike(NamedTuple):
    """Breaks to which the same has happened."""

    before: str | None
    state: str
    currency_before: str
    currency: str
    rows: int
    amount_before: Decimal
    amount: Decimal


def roll_forward(carried: pl.DataFrame) -> tuple[RollForward, ...]:
    """Open breaks, per currency: opening + new + reopened + expired - resolved - accepted."""
    return _forward(carried, "open")


def accepted_forward(carried: pl.DataFrame) -> tuple[RollForward, ...]:
    """Accepted breaks, per currency: opening + accepted - expired - reopened - resolved."""
    return _forward(carried, "accepted")


def exact_sum(amounts: Iterable[Decimal | None]) -> Decimal:
    """The sum of amounts to the last digit; no amount is none of it."""
    total = Decimal(0)
    for amount in amounts:
        total = total if amount is None else _EXACT.add(total, amount)
    return total


def _forward(carried: pl.DataFrame, pool: str) -> tuple[RollForward, ...]:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    amounts: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for one in _seen(carried):
        for line, currency, sign, amount in _movements(one, pool):
            counts[currency, line] += sign * one.rows
            moved = amount if sign > 0 else amount.copy_negate()
            amounts[currency, line] = _EXACT.add(amounts[currency, line], moved)
    currencies = sorted({currency for currency, _ in counts}, key=lambda text: (len(text), text))
    return tuple(_lines(currency, pool, counts, amounts) for currency in currencies)


def _movements(one: _Alike, pool: str) -> Iterator[tuple[str, str, int, Decimal]]:
    """What breaks add to the lines of a pool: line, currency, sign and amount."""
    was, now = _pool(one.before) == pool, _pool(one.state) == pool
    if was:
        yield OPENING, one.currency_before, 1, one.amount_before
    if now:
        yield CLOSING, one.currency, 1, one.amount
    if was and _pool(one.state):
        # It is still there with another amount, whether it stays in the pool or leaves it.
        yield "changed", one.currency_before, -1, one.amount_before
        yield "changed", one.currency, 1, one.amount
    if was and not now:
        yield _left(one, pool), one.currency, -1, one.amount
    if now and not was:
        yield _entered(one), one.currency, 1, one.amount


def _left(one: _Alike, pool: str) -> str:
    match one.state:
        case BreakState.RESOLVED_SOURCE | BreakState.RESOLVED_SERVICE | BreakState.ACCEPTED:
            return one.state.lower()
        case BreakState.EXPIRED:
            return "expired"
        case _:
            assert pool == "accepted", one
            return "reopened"


def _entered(one: _Alike) -> str:
    if one.state == BreakState.ACCEPTED:
        return "accepted"
    if one.before is None:
        return "new"
    return "expired" if one.state == BreakState.EXPIRED else "reopened"


def _pool(state: str | None) -> str:
    if state == BreakState.ACCEPTED:
        return "accepted"
    return "open" if state in OPEN else ""


def _lines(
    currency: str,
    pool: str,
    counts: dict[tuple[str, str], int],
    amounts: dict[tuple[str, str], Decimal],
) -> RollForward:
    def line(name: str, text: str, *, total: bool = False) -> ProofLine:
        return ProofLine(text, counts[currency, name], amounts[currency, name], total)

    steps = [line(name, text) for name, text in _STEPS[pool].items()]
    opening = line(OPENING, f"{OPENING}: {pool} after the run before", total=True)
    closing = line(CLOSING, f"{CLOSING}: {pool} after this run", total=True)
    before_closing = [opening, *steps]
    return RollForward(
        currency=currency,
        lines=(*before_closing, closing),
        residual_rows=closing.rows - sum(one.rows for one in before_closing),
        residual=_EXACT.subtract(closing.amount, exact_sum(one.amount for one in before_closing)),
    )


def _seen(carried: pl.DataFrame) -> Iterator[_Alike]:
    currencies = [f"currency{BEFORE}", "currency"]
    amounts = [f"amount{BEFORE}", "amount"]
    groups = carried.group_by(
        f"state{BEFORE}", "state", pl.col(currencies).cast(pl.String).fill_null("")
    ).agg(pl.len(), pl.col(amounts).fill_null(0))
    for before, state, currency_before, currency, rows, were, are in groups.iter_rows():
        yield _Alike(
            before, state, currency_before, currency, rows, exact_sum(were), exact_sum(are)
        )
