"""Roll-forward: from the breaks a run found open to those it leaves open, in number and money.

Opening and closing are counted from the states, every line between them from what happened to each
break; the residual is what the lines do not explain. Differences and gross money have separate
amounts, counted as in `money`. Currencies are never added up.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from flows.steps.breaks.carried_states import BEFORE
from flows.steps.breaks.money import BASIS, Sums, counted
from flows.steps.reconcile.totals import ProofLine
from schemas.life import ASIDE, GONE, OPEN, RESOLVED, BreakState

OPENING, CLOSING = "opening", "closing"

RUN_OUT = "+ expired: the acceptance has run out"
"""Line of breaks that are open again because their acceptance, valid in the run before, ended."""
_GONE = {state.lower(): f"- {text}" for state, text in GONE.items()}
_GONE["resolved_neither"] += ": the day moved on, or it was signed since"
_STEPS = {
    "open": {
        "new": "+ new",
        "reopened": "+ reopened: back after a resolution or an acceptance, or looked at again",
        "expired": RUN_OUT,
        **_GONE,
        "accepted": "- accepted",
        "not_looked_at": "- not looked at any more",
        "waived_by_rule": "- waived by a rule",
        "changed": "+/- amounts that changed while open",
    },
    "accepted": {
        "accepted": "+ accepted",
        "expired": "- expired: the acceptance has run out",
        "reopened": "- reopened: by decision, or other than it was accepted",
        **_GONE,
        "not_looked_at": "- not looked at any more",
        "waived_by_rule": "- waived by a rule",
        "changed": "+/- amounts that changed while accepted",
    },
    "aside": {
        "not_looked_at": "+ not looked at any more",
        "waived_by_rule": "+ waived by a rule",
        "reopened": "- looked at again, and open",
        "accepted": "- looked at again, and accepted",
        **_GONE,
        "changed": "+/- amounts that changed while set aside",
    },
}
"""Lines between opening and closing of each pool, in order."""


@dataclass(frozen=True, slots=True)
class RollForward:
    """From the breaks of the previous run to those of this one, in one currency."""

    currency: str
    lines: tuple[ProofLine, ...]
    """Opening, the lines of the pool in `_STEPS`, and closing."""
    residual_rows: int
    residual: Decimal
    residual_gross: Decimal = Decimal(0)
    money: bool = True
    """Whether any of the breaks has an amount; if none has, no sums are shown."""


class _Alike(NamedTuple):
    """Breaks to which the same happened."""

    before: str | None
    state: str
    currency_before: str
    currency: str
    rows: int
    was: Sums
    now: Sums
    moneyed_before: bool
    """Whether any of them had an amount, even one that adds nothing to totals."""
    moneyed: bool


def roll_forward(carried: pl.DataFrame, pool: str = "open") -> tuple[RollForward, ...]:
    """The roll-forward of a pool per currency: opening, plus breaks that entered, less those gone.

    A break that is set aside is in that pool only; a resolved break is in no pool.
    """
    counts: dict[tuple[str, str], int] = defaultdict(int)
    amounts: dict[tuple[str, str], Sums] = defaultdict(Sums)
    alike = list(_seen(carried))
    for one in alike:
        for line, currency, sign, amount in _movements(one, pool):
            counts[currency, line] += sign * one.rows
            moved = amount if sign > 0 else amount.negative
            amounts[currency, line] = amounts[currency, line].plus(moved)
    currencies = sorted({currency for currency, _ in counts}, key=lambda text: (len(text), text))
    moneyed = {currency for one in alike for currency in _moneyed(one, pool)}
    return tuple(
        _lines(currency, pool, counts, amounts, money=currency in moneyed)
        for currency in currencies
    )


def _moneyed(one: _Alike, pool: str) -> Iterator[str]:
    """Yield the currencies in which breaks that are or were in a pool have an amount."""
    if one.moneyed_before and _pool(one.before) == pool:
        yield one.currency_before
    if one.moneyed and _pool(one.state) == pool:
        yield one.currency


def _movements(one: _Alike, pool: str) -> Iterator[tuple[str, str, int, Sums]]:
    """Yield what breaks add to the lines of a pool: line, currency, sign and amount."""
    was, now = _pool(one.before) == pool, _pool(one.state) == pool
    if was:
        yield OPENING, one.currency_before, 1, one.was
    if now:
        yield CLOSING, one.currency, 1, one.now
    if was and _pool(one.state):
        # The break still exists with another amount, whether it stays in the pool or leaves it.
        yield "changed", one.currency_before, -1, one.was
        yield "changed", one.currency, 1, one.now
    if was and not now:
        yield _left(one, pool), one.currency, -1, one.now
    if now and not was:
        yield _entered(one), one.currency, 1, one.now


def _left(one: _Alike, pool: str) -> str:
    if one.state in (*RESOLVED, *ASIDE, BreakState.ACCEPTED):
        return one.state.lower()
    assert pool in ("accepted", "aside"), one
    return "expired" if pool == "accepted" and one.state == BreakState.EXPIRED else "reopened"


def _entered(one: _Alike) -> str:
    if one.state in (BreakState.ACCEPTED, *ASIDE):
        return one.state.lower()
    if one.before is None:
        return "new"
    return "expired" if one.state == BreakState.EXPIRED else "reopened"


def _pool(state: str | None) -> str:
    if state == BreakState.ACCEPTED:
        return "accepted"
    return "open" if state in OPEN else "aside" if state in ASIDE else ""


def _lines(
    currency: str,
    pool: str,
    counts: dict[tuple[str, str], int],
    amounts: dict[tuple[str, str], Sums],
    *,
    money: bool,
) -> RollForward:
    def line(name: str, text: str, *, total: bool = False) -> ProofLine:
        sums = amounts[currency, name]
        unread = abs(sums.unreadable)
        return ProofLine(text, counts[currency, name], sums.difference, total, sums.gross, unread)

    of = "set aside" if pool == "aside" else pool
    opening = line(OPENING, f"{OPENING}: {of} after the run before", total=True)
    closing = line(CLOSING, f"{CLOSING}: {of} after this run", total=True)
    before_closing = [opening, *(line(name, text) for name, text in _STEPS[pool].items())]
    left = Sums(closing.amount, closing.gross)
    for one in before_closing:
        left = left.plus(Sums(one.amount, one.gross).negative)
    return RollForward(
        currency=currency,
        lines=(*before_closing, closing),
        residual_rows=closing.rows - sum(one.rows for one in before_closing),
        residual=left.difference,
        residual_gross=left.gross,
        money=money,
    )


def _seen(carried: pl.DataFrame) -> Iterator[_Alike]:
    currencies = [f"currency{BEFORE}", "currency"]
    kinds = [f"{BASIS}{BEFORE}", BASIS]
    groups = carried.group_by(
        f"state{BEFORE}", "state", pl.col(currencies).cast(pl.String).fill_null(""), *kinds
    ).agg(pl.len(), *counted(carried, BEFORE), *counted(carried))
    for *states, was, now, rows, were, were_beyond, are, are_beyond in groups.iter_rows():
        sums = Sums.of(was, were, were_beyond, rows), Sums.of(now, are, are_beyond, rows)
        moneyed = (
            bool(texts) or any(amount is not None for amount in held)
            for held, texts in ((were, were_beyond), (are, are_beyond))
        )
        yield _Alike._make((*states, rows, *sums, *moneyed))
