"""The report a run is compared with: the last approved one of its scope, or the nearest to it."""

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
    """A run that another one is compared with."""

    run: Reconciliation
    approved: bool
    own: bool
    """Whether it has the same scope."""

    @property
    def signed(self) -> bool:
        """Whether two people have signed it as a report of this scope."""
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
    """The run that the next run of a scope, or the run with number `before`, is compared with.

    That is the last approved run of the scope. If none was approved, the last approved run of
    another scope with the same records: an unsigned scope is no way around what was signed. Else
    the first run of the scope, because nobody signed for what became of it since.

    An approved run was compared with what was `signed_before` that event, not with itself or with
    anything later.
    """
    scope = scope.split(RESTATED, maxsplit=1)[0]
    own = last_approved(connection, scope_hash(scope), before=before, signed_before=signed_before)
    if own is not None:
        return Base(own, approved=True, own=True)
    asked = Scope.read(scope)
    if asked is not None:
        # Runs with any number, because reports signed after that run are signed too.
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
    """Runs of other scopes that this one's records belong to, and whether that scope is wider.

    By default the last run of each scope. Narrower scopes are left out, because this one looks at
    all they are about; so are restatements.
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
    """The scope with its batches' feeds added, so that scopes of these feeds cover it."""
    if scope.feeds or not scope.batches:
        return scope
    feeds = {ledger.find_batch(connection, number).feed for number in scope.batches}
    return replace(scope, feeds=tuple(sorted(feeds)))
