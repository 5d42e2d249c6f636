"""Sign-off: two people sign a report, each signature bound to the very files that were written.

The report's hash is made from the hashes of its files. It is computed again from the files whenever
somebody signs, and whenever a later run builds on what was signed.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import date

import polars as pl
import psycopg

from connectors.errors import DecisionsMissing, SignatureRefused
from connectors.files.incoming.columnar import parquet_rows
from connectors.postgres.accounts import acting, who
from connectors.postgres.runs.reconciliations import (
    Reconciliation,
    find_run,
    keep_scope,
    latest_run,
    latest_runs,
    scope_hash,
)
from connectors.postgres.runs.signatures import (
    NewSignature,
    Signature,
    add_signature,
    approval_of,
    last_approved,
    signatures_of,
)
from connectors.process import user_name, whoami
from flows.report.spelling import shortened, shortened_pair
from flows.stages.reconcile.altered_run import refuse_altered
from flows.stages.reconcile.before_approval import waits_in_full
from flows.stages.reconcile.breaks import breaks_now
from flows.stages.reconcile.kept_signatures import keep_signatures
from flows.stages.reconcile.not_opened import not_opened
from flows.stages.reconcile.report_files import RECORDS, check_files, listed_files
from flows.stages.reconcile.saved_report import refuse_other_scope
from flows.stages.reconcile.since_signed import changes_on_page, to_accept
from flows.stages.witness import witness_trail
from flows.stages.workspace import Workspace
from flows.steps.reconcile.changes import HASH, method_rows
from flows.steps.reconcile.report import Changes, SignatureLine, SignOff
from flows.steps.reconcile.signed import unpack_records
from schemas.accounts import SELF_DECLARED
from schemas.counting import agree, quantity
from schemas.life import RESTATED, UNSEEN, Role

HELD_AGAINST = (
    "This report was approved, and the next one is held against it: bring the folder back as it "
    "was written, from a backup, then run this again."
)
"""What to do about files that are no longer those of a report."""
LISTED, VALUE = 10, 60
"""Changes that a refusal lists, and characters of each value; page one has all."""
SHORTEST = 8
"""The fewest characters by which a hash may be named."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A run after its report was signed."""

    run: Reconciliation
    signatures: dict[Role, Signature]
    waits: str | None = None
    """For a prepared report: what prevents its approval, and what to do."""

    @property
    def approval(self) -> str | None:
        """APPROVED, or APPROVED_SELF_DECLARED if no login stands behind a name."""
        return approval_of(self.signatures)


def prepare(workspace: Workspace, number: int | None, *, by: str | None, comment: str) -> Signed:
    """Sign a report as its preparer; raises SignatureRefused.

    A report that cannot be approved can still be prepared; `Signed.waits` says why.
    """
    return _sign(workspace, number, Role.PREPARED, by, comment)


def approve(
    workspace: Workspace,
    number: int | None,
    *,
    by: str | None,
    comment: str,
    accept_changes: str | None = None,
    accept_restated: date | None = None,
) -> Signed:
    """Approve a prepared report, as another person and with every open break accepted.

    If its figures are made differently from those signed last (rules, feed profiles, settings,
    version), `accept_changes` names the hash of these changes from page one, or its beginning,
    which accepts them. A restatement is accepted by naming its day in `accept_restated`.
    """
    return _sign(workspace, number, Role.APPROVED, by, comment, accept_changes, accept_restated)


def signed_sources(
    workspace: Workspace, connection: psycopg.Connection, scope: str, until: date | None = None
) -> dict[str, pl.DataFrame]:
    """P: the records of the last approved run of a scope, by kind; empty if none was approved.

    Only runs as of `until` or earlier count. Raises SignatureRefused if the run's files are not
    those that were signed.
    """
    run = last_approved(connection, scope_hash(scope), until)
    if run is None:
        return {}
    # Additional files in the folder do no harm here: only the records are read.
    folder = check_files(workspace, connection, run, HELD_AGAINST, alone=False)
    if RECORDS not in listed_files(folder, run):
        raise SignatureRefused(
            f"Reconciliation {run.id} was signed without {RECORDS}, so nothing can be held "
            f"against it. {folder} has the files it was signed with."
        )
    return unpack_records(parquet_rows([folder / RECORDS]).collect())


def last_sign_off(
    connection: psycopg.Connection, scope: str, until: date | None = None
) -> SignOff | None:
    """Who signed the last approved report of a scope, or else its last report.

    Only runs as of `until` or earlier count. `changed_since` is 0 here; the run that compares sets
    it.
    """
    run = last_approved(connection, scope_hash(scope), until)
    run = run or latest_run(connection, scope, until)
    if run is None:
        return None
    signatures = signatures_of(connection, run.id)
    prepared, approved = (signatures.get(role) for role in Role)
    return SignOff(
        run=run.id,
        as_of=run.as_of,
        prepared_by=_by(prepared) if prepared else None,
        approved_by=_by(approved) if approved else None,
        comment="; ".join(one.comment for one in (prepared, approved) if one and one.comment),
        report_hash=run.report_hash,
        chain_hash=run.chain_hash,
        changed_since=0,
        signatures=tuple(_line(signatures[role]) for role in Role if role in signatures),
    )


def _only_scope(connection: psycopg.Connection) -> Reconciliation:
    """The latest run if no number is given and there is only one scope."""
    latest = latest_runs(connection)
    if len(latest) > 1:
        runs = ", ".join(f"{run.id} ({shortened(run.scope, 60)})" for run in latest[-LISTED:])
        raise SignatureRefused(
            f"{len(latest)} scopes have a reconciliation, the latest of each: {runs}. Name the one "
            "you sign by its number."
        )
    return find_run(connection)


def _line(signature: Signature) -> SignatureLine:
    return SignatureLine(
        role=signature.role.value,
        by=_by(signature),
        account=signature.account,
        at=signature.at,
        comment=signature.comment,
        accepted_changes=signature.accepted_changes,
    )


def _by(signature: Signature) -> str:
    """The signer, and whether the name is only self-declared."""
    return signature.by if signature.person else f"{signature.by} ({SELF_DECLARED})"


def _sign(
    workspace: Workspace,
    number: int | None,
    role: Role,
    by: str | None,
    comment: str,
    accept_changes: str | None = None,
    accept_restated: date | None = None,
) -> Signed:
    name = " ".join((by if by is not None else user_name()).split())
    if not name:
        raise SignatureRefused("--by is empty. Name who signs, or leave it out.")
    with workspace.database.connect() as connection:
        person = who(connection, name)
        run = _only_scope(connection) if number is None else find_run(connection, number)
        refuse_other_scope(connection, run)
        # Before the scope is kept: hashing may take longer than a silent process may keep it.
        check_files(workspace, connection, run)
        with keep_scope(connection, run):
            refuse_altered(connection, run.scope, run)
            signatures = signatures_of(connection, run.id)
            if role in signatures:
                keep_signatures(workspace, run, signatures.values())  # They may have been lost.
                raise SignatureRefused(
                    f"The report of reconciliation {run.id} was {role.value} by "
                    f"{signatures[role].by} on {signatures[role].at:%Y-%m-%d}; a signature stays."
                )
            changes = None
            breaks = breaks_now(connection, run)
            waits = waits_in_full(workspace, connection, run, breaks)
            if role is Role.APPROVED:
                _refuse_same_person(run, signatures.get(Role.PREPARED), person)
                if waits:
                    raise DecisionsMissing(waits)
                _refuse_unnamed_day(run, accept_restated)
                changes = _accepted_changes(workspace, connection, run, accept_changes)
            signature = NewSignature(
                role=role,
                by=person,
                comment=comment.strip(),
                process=whoami(),
                said_by=by,
                accepted_changes=changes,
                not_opened=_not_opened(workspace, connection, run, breaks),
            )
            add_signature(connection, run, signature)
        witness_trail(workspace, connection)
        # Read last: a place may be slow, and somebody else signs meanwhile.
        signed = Signed(run, signatures_of(connection, run.id), waits)
    keep_signatures(workspace, run, signed.signatures.values())
    return signed


def _refuse_same_person(run: Reconciliation, prepared: Signature | None, person: str) -> None:
    if prepared is None:
        raise SignatureRefused(
            f"Nobody has prepared the report of reconciliation {run.id} yet: "
            f"recon sign prepare {run.id}."
        )
    if _same(prepared.by, person):
        raise SignatureRefused(
            f"{prepared.by} prepared the report of reconciliation {run.id}; "
            "somebody else has to approve it."
        )


def _not_opened(
    workspace: Workspace, connection: psycopg.Connection, run: Reconciliation, breaks: pl.DataFrame
) -> dict[str, object] | None:
    """What the acting account has not opened at the desk, for the trail; None without a login."""
    account = acting(connection)
    if account is None:
        return None
    return not_opened(workspace, connection, run, account.name, breaks).figures


def _refuse_unnamed_day(run: Reconciliation, named: date | None) -> None:
    """Refuse to approve a restatement unless its day is named."""
    if RESTATED not in run.scope:
        if named is not None:
            raise SignatureRefused(
                f"Reconciliation {run.id} restates nothing: leave --accept-restated out."
            )
        return
    if named is None:
        raise DecisionsMissing(
            f"Reconciliation {run.id} restates an earlier day, {run.as_of}, after a later one was "
            "reported; its first page says why. Whoever approves the report accepts that too: "
            f"recon sign approve {run.id} --accept-restated {run.as_of}"
        )
    if named != run.as_of:
        raise SignatureRefused(
            f"--accept-restated {named} is not the day of reconciliation {run.id}, which is as of "
            f"{run.as_of}. Name it as its first page does."
        )


def _accepted_changes(
    workspace: Workspace, connection: psycopg.Connection, run: Reconciliation, named: str | None
) -> str | None:
    """The hash of the changes in how figures are made, which the approver names.

    None if there are none. The hash on page one may be named as well, if those changes were
    accepted with another report since.
    """
    changes = to_accept(workspace, connection, run)
    on_page = changes_on_page(workspace, run).accept
    given = (named or "").strip().lower()
    fits = {one for one in (changes.accept, on_page) if one and one.startswith(given)}
    if given and (len(given) < SHORTEST or not fits):
        what = f"which is {changes.accept}" if changes.accept else "in which nothing changed"
        raise SignatureRefused(
            f"--accept-changes {given} is not the hash of the changes of reconciliation {run.id}, "
            f"{what}. Name it as its first page does, or leave it out where that names none."
        )
    if changes.accept and (not given or changes.accept not in fits):
        where = (
            "Its first page lists it."
            if changes.accept == on_page
            else "Its first page does not have all of that."
        )
        raise DecisionsMissing(
            f"How the figures of reconciliation {run.id} are made has changed since "
            f"{changes.since}: {_changed(run, changes)}. {where} Whoever approves the report "
            f"accepts that too: recon sign approve {run.id} "
            f"--accept-changes {changes.accept[:HASH]}"
        )
    return (changes.accept or on_page) if given else None


def _changed(run: Reconciliation, changes: Changes) -> str:
    """The changes in a sentence, the first of them in full."""
    rows = method_rows(changes, run.rules_hash)
    lines = [
        "{} {} -> {}".format(name, *shortened_pair(old, new, VALUE))
        for name, old, new in rows[:LISTED]
    ]
    if len(rows) > LISTED:
        lines.append(f"{len(rows) - LISTED} more")
    aside = sum(one.breaks for one in changes.aside)
    if aside and not changes.signed:
        lines.append(f"{quantity(aside, 'break')} {agree(aside, 'is', 'are')} set aside by rules")
    return "; ".join(lines)


def _same(one: str, other: str) -> bool:
    """Whether two names are the same person's, however they are typed."""

    def plain(name: str) -> str:
        seen = re.sub(f"[{UNSEEN}]", "", unicodedata.normalize("NFKC", name))
        return " ".join(seen.casefold().split())

    return plain(one) == plain(other)
