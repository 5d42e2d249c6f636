"""What page one holds a run against: the last signed run of its scope, and wider scopes.

Rules, feed profiles and acceptances that are other than they were, and open breaks that only the
report of a wider scope shows.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import polars as pl
import psycopg

from connectors import ledger
from connectors.ledger import Batch
from connectors.reconciliations import Reconciliation, latest_runs, scope_hash
from connectors.signatures import last_approved, signatures_of
from flows.report.reconciliation import Changes, RuleChange
from flows.stages.breaks import breaks_now
from flows.stages.kept_signatures import lost_signatures
from flows.stages.rules import text_of
from flows.stages.setting_changes import setting_changes
from flows.stages.sign import RESTATED, baseline
from flows.stages.truths import Gathered, Scope
from flows.stages.workspace import Workspace
from flows.steps.reconcile.acceptance import accepted_terms
from flows.steps.reconcile.life import is_open
from flows.steps.reconcile.rule_changes import rule_changes
from schemas.counting import quantity
from schemas.life import BreakState, Role


def changes_since(
    workspace: Workspace,
    connection: psycopg.Connection,
    scope: Scope,
    own: str,
    rules: str,
    gathered: Gathered,
) -> Changes:
    """What is other than in the last signed run of a scope; its first run where none is signed.

    `own` is the scope as the run is saved under: that of a restatement is another than `scope`.
    """
    notes = [*_wider(connection, scope, own), *lost_signatures(workspace, connection, own)]
    base = baseline(connection, scope.text)
    if base is None:
        return Changes(since="", notes=tuple(notes))
    signed = bool(signatures_of(connection, base.id).get(Role.APPROVED))
    which = "the last one approved" if signed else "the first of this scope, none being signed"
    since = f"reconciliation {base.id} as of {base.as_of}, {which}"
    before = text_of(workspace, connection, base.rules_hash)
    if before is None:
        same = base.rules_hash == hashlib.sha256(rules.encode()).hexdigest()
        notes.append(
            f"The rules of {since} are not kept: their hash is {base.rules_hash}, and "
            f"{'it is the same now' if same else 'it is another now'}."
        )
    return Changes(
        since=since,
        rules_before=base.rules_hash,
        rules=() if before is None else rule_changes(before, rules),
        profiles=tuple(_profile_changes(connection, base, gathered)),
        version_before=base.version or "",
        settings=tuple(setting_changes(workspace, base)),
        notes=tuple(notes),
    )


def signed_acceptances(connection: psycopg.Connection, scope: str) -> pl.DataFrame:
    """The breaks that were accepted when the last report of a scope was approved, and as what."""
    base = last_approved(connection, scope_hash(scope))
    if base is None:
        return pl.DataFrame(schema={"id": pl.String(), "signed_as": pl.String()})
    accepted = breaks_now(connection, base).filter(pl.col("state") == BreakState.ACCEPTED)
    return accepted.select("id", accepted_terms().alias("signed_as"))


def _profile_changes(
    connection: psycopg.Connection, base: Reconciliation, gathered: Gathered
) -> Iterator[RuleChange]:
    """How the feeds of the run's batches were read otherwise than before, each change once.

    Held against one another are the batches of a feed in their order, from the last one before the
    base on: what was changed and changed back in between has been used.
    """
    feeds: dict[str, list[Batch]] = {}
    for batch in ledger.batches_of(connection, gathered.batches):
        feeds.setdefault(batch.feed, []).append(batch)
    for feed, batches in sorted(feeds.items()):
        before = [one for one in batches if one.opened_at <= base.opened_at]
        for former, later in pairwise([*before[-1:], *batches[len(before) :]]):
            then, now = _profile(former), _profile(later)
            for key in sorted(then.keys() | now.keys()):
                if then.get(key) != now.get(key):
                    name = f"{feed}, from batch {later.id} on: {key}"
                    yield RuleChange(name, then.get(key, ""), now.get(key, ""))


def _profile(batch: Batch) -> dict[str, str]:
    """What a batch was read by, key by key; of a secret it says only that there is one."""
    values = json.loads(batch.profile)
    constants = values.pop("constants", None) or {}
    keys = values | {f"constants {name}": text for name, text in constants.items()}
    return {key: _told(value) for key, value in keys.items() if value is not None}


def _told(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _wider(connection: psycopg.Connection, scope: Scope, own: str) -> Iterator[str]:
    """The wider scopes that have open breaks: runs of this one carry none of them forward."""
    mine = _with_feeds(connection, scope)
    for run in latest_runs(connection):
        other = Scope.read(run.scope)
        if run.scope == own or RESTATED in run.scope or other is None or not other.covers(mine):
            continue
        left = breaks_now(connection, run).filter(is_open()).height
        if left:
            yield (
                f"A wider scope has {quantity(left, 'open break')}, not "
                f"carried here (recon breaks list --run {run.id}): reconciliation {run.id} as of "
                f"{run.as_of}, {run.scope}"
            )


def _with_feeds(connection: psycopg.Connection, scope: Scope) -> Scope:
    """The scope with the feeds its batches are of, which scopes of these feeds cover."""
    if scope.feeds or not scope.batches:
        return scope
    feeds = {ledger.find_batch(connection, number).feed for number in scope.batches}
    return replace(scope, feeds=tuple(sorted(feeds)))
