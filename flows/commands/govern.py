"""Signatures and the audit trail: `recon sign` and `recon audit`."""

import re
import sys
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from flows.commands.console import (
    COUNT,
    LISTED,
    MOST,
    older_message,
    out,
    print_json,
    print_table,
    workspace,
)
from flows.commands.deliver import Json
from schemas.accounts import SELF_DECLARED
from schemas.counting import agree, quantity
from schemas.life import Role

if TYPE_CHECKING:
    from flows.stages.reconcile.sign import Signed
    from flows.stages.witness_proof import WitnessProof

sign_command = App(name="sign", help="Sign a report: one person prepares it, another approves it.")
audit_command = App(name="audit", help="Show the audit trail, and prove that nobody changed it.")


HASH = 64
"""Characters of a sha256."""


Run = Annotated[
    int | None,
    Parameter(
        help="Number of the reconciliation; default: the latest, if one scope was reconciled.",
        validator=LISTED,
    ),
]


def whole_hash(_type: object, text: str | None) -> None:
    """A validator of a hash in the trail, which has to be complete to match a link."""
    if text is not None and re.fullmatch(f"[0-9a-f]{{{HASH}}}", text) is None:
        raise ValueError(
            f"Must be the whole hash, {HASH} signs of 0-9 and a-f, as this command prints it."
        )


@sign_command.command(name="prepare")
def prepare_command(
    run: Run = None,
    *,
    comment: Annotated[str, Parameter(help="Comment for readers of the report.")] = "",
    by: Annotated[
        str | None, Parameter(help="Name of the signer; default: the user of this process.")
    ] = None,
    json: Json = False,
) -> int:
    """Sign a report as its preparer; its files must be as they were written.

    A report that cannot be approved yet can still be prepared; the output says what prevents
    approval.

    Example: `recon sign prepare 7 --by "A. Meyer" --comment "month end"`
    """
    from flows.stages.reconcile.sign import prepare

    with workspace("sign prepare") as place:
        return _signed(prepare(place, run, by=by, comment=comment), Role.PREPARED, as_json=json)


@sign_command.command(name="approve")
def approve_command(
    run: Run = None,
    *,
    comment: Annotated[str, Parameter(help="Comment for readers of the report.")] = "",
    by: Annotated[
        str | None, Parameter(help="Name of the signer; default: the user of this process.")
    ] = None,
    accept_changes: Annotated[
        str | None,
        Parameter(
            help="Accept the changes to how figures are made: their hash, as page one shows it."
        ),
    ] = None,
    accept_restated: Annotated[
        date | None,
        Parameter(help="Accept a restatement: its day, YYYY-MM-DD, as page one shows it."),
    ] = None,
    json: Json = False,
) -> int:
    """Approve a report that somebody else prepared; every open break must be accepted first.

    Example: `recon sign approve 7 --by "B. Osei"`

    If rules, feed profiles, settings or the version of recon changed since the report that was
    signed last, page one lists the changes, and the approver accepts them all by naming their hash.
    If the report restates an earlier day, the approver names that day.

    Exit code 0: approved; 1: open breaks, changes or a restatement wait for a decision; 2: refused.
    """
    from flows.stages.reconcile.sign import approve

    with workspace("sign approve") as place:
        signed = approve(
            place, run, by=by, comment=comment,
            accept_changes=accept_changes, accept_restated=accept_restated,
        )  # fmt: skip
        return _signed(signed, Role.APPROVED, as_json=json)


@audit_command.command(name="verify")
def verify_command(
    *,
    noted: Annotated[
        str | None,
        Parameter(
            help="Hash noted earlier, which must still be in the chain.", validator=whole_hash
        ),
    ] = None,
    witness: Annotated[
        tuple[str, ...],
        Parameter(
            help="Place to read witnesses from, instead of RECON_AUDIT_WITNESS; may be repeated."
        ),
    ] = (),
    json: Json = False,
) -> int:
    """Prove that no event, decision, signature or run was changed, removed or slipped in.

    The chain is compared with the witnesses of RECON_AUDIT_WITNESS, which the owner of the database
    cannot rewrite. If none is set, note the printed hash outside this system.

    Example: `recon audit verify --noted 5f0e...`

    Exit code 0: the chain holds, and so does every witness that is set; 1: the output names
    the first broken link, or else all that differs from the events; each witness that does not
    hold; and what could not be given or checked.
    """
    from connectors.addresses import witness_places
    from connectors.postgres.auditing.audit import verify
    from flows.stages.witness_proof import check_witnesses

    places = witness_places("--witness", witness)
    with workspace("audit verify", guarded=False) as place, place.database.connect() as connection:
        proof = verify(connection, noted)
        witnessed = check_witnesses(place, connection, places)
    events = quantity(proof.events, "event")
    exit_code = int(proof.broken is not None or not witnessed.holds)
    if json:
        print_json(
            {
                "events": proof.events,
                "head": proof.head,
                "broken": proof.broken,
                "unchecked": proof.unchecked,
                "witnesses": asdict(witnessed) | {"holds": witnessed.holds},
            }
        )
        return exit_code
    if proof.broken:
        out().print(f"The audit trail does not hold: {proof.broken}.")
        before = f"{events} before it {agree(proof.events, 'holds', 'hold')}"
        out().print(f"{before}; the last has the hash {proof.head}")
    else:
        out().print(f"The audit trail holds: {events}, none changed or missing.")
        out().print(f"Hash of the last one: {proof.head}")
    for one in proof.unchecked:
        out().print(f"Not checked: {one}.")
    _print_witnesses(witnessed)
    return exit_code


@audit_command.command(name="key")
def key_command(*, json: Json = False) -> int:
    """Make the key that witnesses are signed with, and print its public key.

    It is kept at RECON_AUDIT_KEY (default: audit-key.pem in RECON_HOME), readable by its owner
    alone. An existing key is used and never overwritten.

    Example: `recon audit key > for-the-auditor.pem`
    """
    from connectors.settings import read_settings
    from connectors.witness.keys import fingerprint, make_key, public_text

    audit = read_settings().audit
    key = make_key(audit)
    if json:
        facts = {"key": str(audit.key), "fingerprint": fingerprint(key)}
        print_json(facts | {"public_key": public_text(key)})
    else:
        out().print(public_text(key), end="")
        sys.stderr.write(f"The private key is {audit.key}; fingerprint {fingerprint(key)}\n")
    return 0


@audit_command.command(name="witness")
def witness_command(*, json: Json = False) -> int:
    """Sign the head of the audit trail and send it to the places of RECON_AUDIT_WITNESS.

    This happens by itself after each signature, decision, reconciliation and batch; the command
    also sends what waits for a place that could not be reached.

    Example: `recon audit witness`

    Exit code 0: every place has every witness; 1: one waits, and its place is named.
    """
    from connectors.errors import SettingsError
    from flows.stages.witness import sign_head

    with workspace("audit witness") as place, place.database.connect() as connection:
        if not place.settings.audit.witness:
            raise SettingsError(
                "No place is set to give witnesses to. Set RECON_AUDIT_WITNESS to a file, a folder "
                "of an object store or a webhook that the database's owner cannot write."
            )
        signed = sign_head(place, connection)
    if json:
        print_json(
            {
                "witness": asdict(signed.witness) if signed.witness else None,
                "new": signed.new,
                "waiting": signed.waiting,
            }
        )
        return int(bool(signed.waiting))
    if signed.witness is None:
        out().print("The audit trail has no event yet: there is nothing to witness.")
    else:
        out().print(
            f"Witness {signed.witness.number}{'' if signed.new else ' (as before)'}: link "
            f"{signed.witness.position} has the hash {signed.witness.hash}"
        )
    for one in signed.waiting:
        out().print(f"Not given: {one}")
    return int(bool(signed.waiting))


def _print_witnesses(proof: "WitnessProof") -> None:
    if proof.last is not None:
        count = quantity(proof.witnesses, "witness")
        verdict = "The trail is what was witnessed" if proof.holds else "Not all of it holds"
        out().print(
            f"{verdict}: {count}, the last of link {proof.last.position} at {proof.last.time}"
        )
    for title, lines in (
        ("Does not hold", proof.faults),
        ("Could not be checked", proof.unchecked),
        ("Note", proof.notes),
    ):
        for line in lines:
            out().print(f"{title}: {line}")


@audit_command.command(name="list")
def events_command(
    *,
    most: Annotated[
        int, Parameter(name=MOST, help="How many events to list.", validator=COUNT)
    ] = 20,
    what: Annotated[
        str | None, Parameter(help="Only events whose name contains this text.")
    ] = None,
    batch: Annotated[
        int | None, Parameter(help="Only events about this batch.", validator=LISTED)
    ] = None,
    json: Json = False,
) -> int:
    """List the latest events: who did what, when and why.

    Example: `recon audit list --batch 12 --what report --most 50`
    """
    from connectors.postgres.auditing.audit import list_events
    from connectors.postgres.batches.ledger import find_batch

    with workspace("audit list") as place, place.database.connect() as connection:
        found = list_events(connection, most + 1, what=what, batch=batch)
        if batch is not None and not found:
            find_batch(connection, batch)
    entries, older = found[:most], len(found) > most
    if json:
        print_json({"events": [asdict(one) for one in entries], "older": older})
        return 0
    print_table(
        ("Link", "When (UTC)", "What", "Batch", "By", "Logged in", "Account", "Reason", "Detail"),
        [
            (one.position, f"{one.at:%Y-%m-%d %H:%M:%S}", one.what, one.batch_id, one.by,
             one.person, one.account, one.reason, _detail(one.detail))
            for one in entries
        ],
        right=("Link", "Batch"),
    )  # fmt: skip
    if older:
        out().print(older_message(most))
    return 0


def _signed(signed: "Signed", role: Role, *, as_json: bool) -> int:
    signature = signed.signatures[role]
    if as_json:
        print_json(
            {
                "reconciliation": signed.run.id,
                "verdict": signed.run.verdict,
                "report_hash": signed.run.report_hash,
                "signatures": {
                    name.value: {
                        "by": one.by,
                        "at": one.at,
                        "comment": one.comment,
                        "accepted_changes": one.accepted_changes,
                        "account": one.person,
                    }
                    for name, one in signed.signatures.items()
                },
                "approval": signed.approval,
                "cannot_be_approved": signed.waits,
            }
        )
        return 0
    from flows.report.reconciled.verdicts import word_of

    out().print(
        f"The report of reconciliation {signed.run.id} ({signed.run.scope}, as of "
        f"{signed.run.as_of}, {word_of(signed.run.verdict)}) is {role.value} by {signature.by}; "
        f"its hash is {signed.run.report_hash}"
    )
    if signature.person is None:
        approval = f"{signed.approval}: " if signed.approval else ""
        out().print(
            f"{approval}{signature.by} is {SELF_DECLARED}; nobody was logged in (`recon login`)."
        )
    if signed.waits:
        out().print(f"It cannot be approved as it stands. {signed.waits}")
    return 0


def _detail(text: str | None) -> str:
    """An event's detail; hashes are shortened, which is enough to find them."""
    from connectors.postgres.trail import read_detail

    facts = {name: str(value) for name, value in read_detail(text).items() if value is not None}
    if not facts:
        # An earlier version accepted any text.
        return text if text not in (None, "{}") else ""
    return ", ".join(
        f"{name} {value[:12] + '...' if len(value) == HASH else value}"
        for name, value in facts.items()
    )
