"""What a run has to show: money by state and currency, causes, and whether it can be signed.

Every figure is about breaks that `filters.BreakSearch` can find, so that pages can link to them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import polars as pl
import psycopg

from connectors.errors import SignatureRefused
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.desk.filters import NONE
from flows.stages.reconcile.before_approval import what_waits
from flows.stages.reconcile.breaks import STATES
from flows.stages.reconcile.report_files import READ_BY_PEOPLE, read_totals
from flows.stages.workspace import Workspace
from flows.steps.breaks.carried_states import is_open
from flows.steps.breaks.cause_groups import MOST_MONEY, CauseGroup, cause_groups
from flows.steps.breaks.money import Sums, currency_text, sums_by
from flows.steps.frames.beyond import exact_sum
from schemas.life import BreakState

POOLS = {
    "open": STATES["open"],
    "accepted": (BreakState.ACCEPTED,),
    "aside": STATES["aside"],
    "resolved": STATES["resolved"],
}
"""Groups of states, by the filter's words; money of different groups is never added up."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Breaks of one currency in one of POOLS."""

    currency: str
    """CurrenciesId, or NONE."""
    pool: str
    breaks: int
    sums: Sums
    kinds: frozenset[str]
    """The kinds of money among them; a kind that does not occur is not even shown as zero."""


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """What the files of a run say besides its breaks."""

    causes: Mapping[str, str] = field(default_factory=dict)
    """Titles by id."""
    inputs: tuple[Mapping[str, Any], ...] = ()
    because: tuple[str, ...] = ()
    unexplained: Mapping[str, Decimal] = field(default_factory=dict)
    """By currency, or NONE: absolute amounts over all record kinds and fields."""
    files: tuple[str, ...] = ()
    """The files of READ_BY_PEOPLE that exist."""


@dataclass(frozen=True, slots=True)
class Review:
    figures: tuple[Figures, ...]
    states: Mapping[str, int]
    """State -> number of breaks."""
    codes: Mapping[str, int]
    """Code -> number of open breaks."""
    owners: Mapping[str, int]
    """Owner -> number of open breaks."""
    proposals: Mapping[str, int]
    """Person -> number of open breaks whose proposed acceptance somebody else has to confirm."""
    causes: tuple[CauseGroup, ...]
    """The first causes of open breaks; the list of breaks has all."""
    more_causes: int
    oldest: int | None
    """The age in days of the oldest open break, as in lists; None if none is open."""
    waits: str | None
    """What prevents its approval; None if nothing does."""
    facts: ReportFacts

    def count(self, pool: str) -> int:
        """How many breaks are in one of POOLS."""
        return sum(self.states.get(one, 0) for one in POOLS[pool])


def review_of(
    place: Workspace, connection: psycopg.Connection, run: Reconciliation, breaks: pl.DataFrame
) -> Review:
    """Review a run; `breaks` are its present breaks."""
    left = breaks.filter(is_open())
    causes = cause_groups(left)
    return Review(
        figures=figures_of(breaks),
        states=_counts(breaks, "state"),
        codes=_counts(left, "code"),
        owners=_counts(left, "owner"),
        proposals=_counts(left, "proposed_by"),
        causes=tuple(causes[:MOST_MONEY]),
        more_causes=len(causes[MOST_MONEY:]),
        oldest=left.select(pl.col("age_days").max()).item(),
        waits=what_waits(connection, run, breaks),
        facts=facts_of(place, run),
    )


def figures_of(breaks: pl.DataFrame) -> tuple[Figures, ...]:
    """The figures of breaks, by currency and by POOLS."""
    of = {state.value: pool for pool, states in POOLS.items() for state in states}
    pool = pl.col("state").replace_strict(of, return_dtype=pl.String)
    found: dict[tuple[str, str], tuple[int, Sums, frozenset[str]]] = {}
    for (currency, which), basis, rows, sums in sums_by(breaks, currency_text(), pool):
        counted, before, kinds = found.get((currency, which), (0, Sums(), frozenset()))
        found[currency, which] = counted + rows, before.plus(sums), kinds | {basis}
    order = [*POOLS]
    return tuple(
        Figures(currency or NONE, which, *found[currency, which])
        for currency, which in sorted(
            found, key=lambda one: (len(one[0]), one[0], order.index(one[1]))
        )
    )


def _counts(breaks: pl.DataFrame, name: str) -> dict[str, int]:
    there = breaks.filter(pl.col(name).is_not_null())
    return dict(there.group_by(name).len().sort(name).iter_rows())


def facts_of(place: Workspace, run: Reconciliation) -> ReportFacts:
    """Facts from a run's totals; none if they cannot be read or were changed."""
    folder = place.settings.reports / run.folder
    try:
        totals = read_totals(place, run)
        return ReportFacts(
            causes={str(one["id"]): str(one["title"]) for one in totals.get("causes", ())},
            inputs=tuple(totals["cover"].get("inputs", ())),
            because=tuple(map(str, totals["cover"].get("because", ()))),
            unexplained=unexplained_of(totals.get("proofs", ())),
            files=tuple(name for name in READ_BY_PEOPLE if (folder / name).is_file()),
        )
    except (SignatureRefused, ValueError, TypeError, KeyError, ArithmeticError, AttributeError):
        return ReportFacts()


def unexplained_of(proofs: Iterable[Mapping[str, Any]]) -> dict[str, Decimal]:
    """What proofs leave unexplained, by currency or NONE, from the files of a run."""
    amounts: dict[str, list[Decimal]] = {}
    for one in proofs:
        size = Decimal(one["unexplained"]).copy_abs()
        amounts.setdefault(str(one["currency"]) or NONE, []).append(size)
    return {currency: exact_sum(every) for currency, every in amounts.items()}
