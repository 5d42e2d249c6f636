"""What the signer of a report has not opened of it at the desk.

This prevents no signature: the signer is told before, and the signature tells the auditor.
"""

from dataclasses import dataclass
from decimal import Decimal

import polars as pl
import psycopg

from connectors.postgres.runs.reconciliations import Reconciliation
from connectors.postgres.runs.signatures import looked_at
from flows.stages.reconcile.rules import rules_of
from flows.stages.workspace import Workspace
from flows.steps.breaks.money import largest_first
from flows.steps.breaks.severity import is_about
from flows.steps.rules.rules import Rules
from schemas.life import RESOLVED, BreakState, Look

NAMED = 10
"""The number of breaks that are named, largest first; the others are counted."""


@dataclass(frozen=True, slots=True)
class NotOpened:
    """What an account has not opened of a run although it might have."""

    at_least: Decimal
    """The amount, in its currency, from which the rules give a break high severity."""
    of: int
    """Unresolved breaks of such an amount."""
    breaks: int
    """The number of those that were not opened."""
    largest: tuple[str, ...]
    """Ids of the largest of these."""
    accepted: int
    """Breaks accepted by others, if their list was not opened; else 0."""
    report: bool
    """Whether no form of the report was opened."""

    @property
    def anything(self) -> bool:
        return bool(self.breaks or self.accepted or self.report)

    @property
    def figures(self) -> dict[str, object]:
        """The figures for the trail."""
        return {
            "breaks": self.breaks,
            "of": self.of,
            "at_least": format(self.at_least, "f"),
            "accepted_by_others": self.accepted,
            "report": self.report,
        }


def not_opened(
    place: Workspace,
    connection: psycopg.Connection,
    run: Reconciliation,
    account: str,
    breaks: pl.DataFrame,
) -> NotOpened:
    """What an account has not opened of a run; `breaks` are those of `breaks_now`."""
    seen = looked_at(connection, account, run.id)
    limit = (rules_of(place, connection, run.rules_hash) or Rules()).severities.high_amount
    large = breaks.filter(is_about(limit), ~pl.col("state").is_in(RESOLVED))
    unseen = large.filter(~pl.col("id").is_in(seen))
    others = (pl.col("state") == BreakState.ACCEPTED) & pl.col("accepted_by").ne_missing(account)
    named = unseen.sort(*largest_first(), "id", nulls_last=True)
    return NotOpened(
        at_least=limit,
        of=large.height,
        breaks=unseen.height,
        largest=tuple(named["id"].head(NAMED)),
        accepted=0 if Look.ACCEPTED in seen else breaks.filter(others).height,
        report=Look.REPORT not in seen,
    )
