"""What page one compares a run with: the last signed run of its scope, and scopes around it.

It shows differences in how figures are made and in acceptances, and open breaks that only the
report of another scope shows.
"""

from collections.abc import Iterator, Mapping
from datetime import date

import polars as pl
import psycopg

from connectors.errors import SignatureRefused
from connectors.postgres.accounts import sees_part
from connectors.postgres.runs.reconciliations import Reconciliation, latest_run, scope_hash
from connectors.postgres.runs.signatures import last_approved, signatures_of
from flows.stages.reconcile.breaks import breaks_left_by, breaks_now
from flows.stages.reconcile.held_against import Base, baseline, of_same_records
from flows.stages.reconcile.kept_signatures import lost_signatures
from flows.stages.reconcile.method import Method, method_of, setting_changes
from flows.stages.reconcile.profile_changes import profile_changes
from flows.stages.reconcile.report_files import read_totals
from flows.stages.reconcile.scope import Scope
from flows.stages.workspace import Workspace
from flows.steps.breaks.acceptance import accepted_terms
from flows.steps.breaks.carried_states import RULES, is_aside, is_open
from flows.steps.reconcile.changes import accepted_by, rule_changes
from flows.steps.reconcile.report import AsideLine, Changes, RuleChange
from schemas.counting import quantity
from schemas.life import BreakState, Role


def changes_since(
    workspace: Workspace, connection: psycopg.Connection, scope: Scope, own: str, now: Method
) -> Changes:
    """Differences from the last signed run of a scope, or from its first run if none is signed.

    `own` is the scope the run is saved under; for a restatement it differs from `scope`.
    """
    notes = (*_around(connection, scope, own), *lost_signatures(workspace, connection, own))
    base = baseline(connection, scope.text)
    if base is None:
        return Changes(since="", notes=notes)
    return _method_changes(workspace, connection, base, now, notes)


def to_accept(
    workspace: Workspace,
    connection: psycopg.Connection,
    run: Reconciliation,
    breaks: pl.DataFrame | None = None,
) -> Changes:
    """What approving a report accepts with it: changes in how its figures are made.

    They are relative to what is signed by now, which may be more than when the report was written;
    for an approved report, to what was signed by then. An account that sees only a part of what is
    signed, or of the batches, accepts what page one says, whose author sees everything. `breaks`
    are the run's, if they have been read already.
    """
    approved = signatures_of(connection, run.id).get(Role.APPROVED)
    base = baseline(connection, run.scope, run.id, approved.event_id if approved else None)
    if sees_part(connection):
        on_page = changes_on_page(workspace, run)
        # The scope's first run is the last resort in their view, but perhaps not on page one.
        if on_page.accept or (on_page.since and not (base and base.approved)):
            return on_page
    if base is None:
        return Changes(since="")
    now = method_of(workspace, connection, run)
    breaks = breaks_left_by(connection, run) if breaks is None else breaks
    by_rules = breaks.filter(is_aside() & (pl.col("aside_by") == RULES))
    aside = [AsideLine(str(state), "", by_rules=True, breaks=len(frame))
             for (state,), frame in by_rules.group_by("state")]  # fmt: skip
    changes = _method_changes(workspace, connection, base, now, aside=tuple(aside))
    return accepted_by(changes, now.rules_hash)


def changes_on_page(workspace: Workspace, run: Reconciliation) -> Changes:
    """The changes on page one of a run; none if an earlier version wrote it.

    None either if the totals are not as written, since nobody can sign such a report, or if they
    are not valid totals at all.
    """
    try:
        changes = read_totals(workspace, run).get("changes") or {}
        rules, profiles, settings = (
            tuple(RuleChange(**one) for one in changes.get(name, ()))
            for name in ("rules", "profiles", "settings")
        )
        return Changes(
            since=str(changes.get("since", "")),
            signed=bool(changes.get("signed")),
            accept=str(changes.get("accept") or ""),
            rules_before=str(changes.get("rules_before", "")),
            rules=rules,
            profiles=profiles,
            settings=settings,
            aside=tuple(AsideLine(**one) for one in changes.get("aside", ())),
        )
    except (SignatureRefused, ValueError, TypeError, AttributeError):
        return Changes(since="")


def signed_acceptances(
    connection: psycopg.Connection, scope: str, until: date, names: Mapping[str, str]
) -> pl.DataFrame:
    """The breaks that the last approved report of a scope shows as accepted, with their terms.

    Only runs as of `until` or earlier count, as for the line on who signed last. Breaks are as that
    run left them, because nobody has signed for decisions since. `names` are those of currencies.
    """
    base = last_approved(connection, scope_hash(scope), until)
    if base is None:
        return pl.DataFrame(schema={"id": pl.String(), "signed_as": pl.String()})
    accepted = breaks_left_by(connection, base).filter(pl.col("state") == BreakState.ACCEPTED)
    return accepted.select("id", accepted_terms(names).alias("signed_as"))


def _method_changes(
    workspace: Workspace,
    connection: psycopg.Connection,
    base: Base,
    now: Method,
    notes: tuple[str, ...] = (),
    aside: tuple[AsideLine, ...] = (),
) -> Changes:
    before = method_of(workspace, connection, base.run)
    known = before.rules_text is not None and now.rules_text is not None
    if not known:
        same = "the same" if before.rules_hash == now.rules_hash else "another"
        notes = (
            *notes,
            f"The rules of {base.text} are not kept: their hash is {before.rules_hash}, and it is "
            f"{same} now.",
        )
    return Changes(
        since=base.text,
        signed=base.signed,
        rules_before=before.rules_hash,
        rules=rule_changes(before.rules_text or "", now.rules_text or "") if known else (),
        profiles=tuple(profile_changes(connection, base, before, now)),
        settings=tuple(setting_changes(before, now)),
        notes=notes,
        aside=aside,
    )


def _around(connection: psycopg.Connection, scope: Scope, own: str) -> Iterator[str]:
    """Scopes with open breaks that runs of this one may not see and do not carry forward.

    These are the restated scope, wider scopes and overlapping ones; a narrower scope has nothing
    else.
    """
    restated = latest_run(connection, scope.text) if own != scope.text else None
    around = [("The restated scope", restated)] if restated else []
    for run, wider in of_same_records(connection, scope):
        around.append(("A wider scope" if wider else "An overlapping scope", run))
    for which, run in around:
        left = breaks_now(connection, run).filter(is_open()).height
        if left:
            yield (
                f"{which} has {quantity(left, 'open break')}, not "
                f"carried here (recon breaks list --run {run.id}): reconciliation {run.id} as of "
                f"{run.as_of}, {run.scope}"
            )
