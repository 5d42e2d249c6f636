"""What a run is held against: the last approved report of its scope, or else the nearest to it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import psycopg

from connectors.postgres.batches import ledger
from connectors.postgres.runs.reconciliations import (
    Reconciliation,
    first_run,
    latest_runs,
    scope_hash,
)
from connectors.postgres.runs.signatures import last_approved, last_approved_runs
from flows.stages.reconcile.scope import Scope
from schemas.life import RESTATED


@dataclass(frozen=True, slots=True)
class Base:
    """A run that another one is held against."""

    run: Reconciliation
    approved: bool
    own: bool
    """Whether it is of the same scope."""

    @property
    def signed(self) -> bool:
        """Whether two people stand for it as a report of this scope."""
        return self.approved and self.own

    @property
    def text(self) -> str:
        if not self.approved:
            which = "the first of this scope, none being signed"
        elif self.own:
            which = "the last one approved"
        else:
            which = f"the last one approved of {self.run.scope}, none of this scope being signed"
        return f"reconciliation {self.run.id} as of {self.run.as_of}, {which}"


def baseline(
    connection: psycopg.Connection,
    scope: str,
    before: int | None = None,
    signed_before: int | None = None,
) -> Base | None:
    """What the next run of a scope, or the one of this number, is held against.

    The last approved run of the scope. Where none was approved, the last approved one of another
    scope that has records of this one: a scope that nobody signed for yet is no way around what
    was signed. Else the first run of the scope, because nobody signed for what became of it since.

    A run that is approved was held against what was `signed_before` that event, and not against
    itself or what came later.
    """
    scope = scope.split(RESTATED, maxsplit=1)[0]
    own = last_approved(connection, scope_hash(scope), before=before, signed_before=signed_before)
    if own is not None:
        return Base(own, approved=True, own=True)
    asked = Scope.read(scope)
    if asked is not None:
        # Of any number: what was signed since that run is signed.
        runs = last_approved_runs(connection, signed_before)
        asked = replace(asked, kept=scope)
        others = [run for run, _ in of_same_records(connection, asked, runs)]
        if others:
            return Base(max(others, key=lambda run: run.id), approved=True, own=False)
    first = first_run(connection, scope, before)
    return None if first is None else Base(first, approved=False, own=True)


def of_same_records(
    connection: psycopg.Connection, scope: Scope, runs: list[Reconciliation] | None = None
) -> Iterator[tuple[Reconciliation, bool]]:
    """Runs of other scopes that records of this one belong to, and whether that scope is wider.

    Of each scope the last run, where none are given. A narrower scope is not among them, for all
    that it is about is looked at here; neither is a restatement.
    """
    mine = _with_feeds(connection, scope)
    for run in latest_runs(connection) if runs is None else runs:
        other = Scope.read(run.scope)
        if other is None or run.scope == scope.text:
            continue
        wider, its = other.covers(mine), _with_feeds(connection, other)
        if wider or (mine.overlaps(its) and not scope.covers(its)):
            yield run, wider


def _with_feeds(connection: psycopg.Connection, scope: Scope) -> Scope:
    """The scope with the feeds its batches are of, which scopes of these feeds cover."""
    if scope.feeds or not scope.batches:
        return scope
    feeds = {ledger.find_batch(connection, number).feed for number in scope.batches}
    return replace(scope, feeds=tuple(sorted(feeds)))
