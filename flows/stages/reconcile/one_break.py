"""One break with all that is known of it: what it says now, what it was, and who decided what."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl
import psycopg

from connectors.errors import BreakUnknown
from connectors.postgres.break_history import (
    PastDecision,
    PastState,
    breaks_of_record,
    decisions_about,
    states_of,
)
from connectors.postgres.reconciliations import Reconciliation, latest_run
from flows.stages.reconcile.breaks import breaks_now, can_be_decided
from flows.steps.breaks.acceptance import both_values, outgrown
from flows.steps.frames.beyond import number_of
from schemas.amounts import BEYOND
from schemas.breaks import BREAKS, BreakCode
from schemas.life import Choice

ID = "[0-9a-f]{16}"
"""What an id of a break looks like."""
OTHERS = 50
"""Other breaks of the same record that are looked up."""


@dataclass(frozen=True, slots=True)
class OneBreak:
    """A break of a run as it stands now."""

    run: Reconciliation
    facts: Mapping[str, Any]
    """The columns of `breaks_now`, with `outgrown`, `accepted_as` and `is_now`."""
    code: BreakCode
    followed_by: Reconciliation | None
    """The run of the scope that decisions are taken on, where it is a later one."""
    possible: frozenset[Choice]
    """What a decision could change about it."""
    decisions: Sequence[PastDecision]
    """Of all runs of the scope, the last one first."""
    states: Sequence[PastState]
    others: Sequence[Mapping[str, Any]]
    """Other breaks of the same record in the same run."""

    @property
    def undoes(self) -> PastDecision | None:
        """The acceptance that reopening would take back."""
        if Choice.REOPEN not in self.possible:
            return None
        taken = (one for one in self.decisions if one.what in (Choice.ACCEPT, Choice.REOPEN))
        last = next(taken, None)
        return last if last and last.what is Choice.ACCEPT else None


def find_break(
    connection: psycopg.Connection, run: Reconciliation, break_id: str, names: Mapping[str, str]
) -> OneBreak:
    """A break of a run by its id, its currencies by their `names`; raises BreakUnknown."""
    unknown = BreakUnknown(
        f"Reconciliation {run.id} has no break {break_id}. Its page lists those that it has."
    )
    if not re.fullmatch(ID, break_id):
        raise unknown
    ids = [break_id, *breaks_of_record(connection, run.id, break_id, OTHERS)]
    standing = breaks_now(connection, run, ids).with_columns(outgrown(), *both_values(names))
    facts = {str(row["id"]): row for row in standing.iter_rows(named=True)}
    if break_id not in facts:
        raise unknown
    own = facts.pop(break_id)
    last = latest_run(connection, run.scope)
    followed = last if last and last.id != run.id else None
    this = standing.filter(pl.col("id") == break_id).select(
        can_be_decided(one, by_id=True).alias(one) for one in Choice
    )
    possible = () if followed else (Choice(one.name) for one in this if one.item())
    return OneBreak(
        run,
        own,
        BREAKS[own["code"]],
        followed,
        frozenset(possible),
        decisions_about(connection, run.scope_hash, [break_id]),
        states_of(connection, run.scope_hash, break_id, run.id),
        list(facts.values()),
    )


def amount_of(facts: Mapping[str, Any], name: str) -> Decimal | str | None:
    """An amount of a break, whichever of its two columns has it; one that is no number as text."""
    text = facts[name + BEYOND]
    return facts[name] if text is None else (number_of(text) or str(text))
