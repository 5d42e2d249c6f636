"""The witness of the audit trail: its head is signed and given away after each decision.

A failure here never fails a decision: what cannot be given away waits, and a warning says so.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import psycopg

from connectors.errors import ReconError, WitnessPlaceFailed
from connectors.postgres.auditing.audit import last_link, links_at
from connectors.witness.journal import Journal
from connectors.witness.places import place_at
from flows.stages.workspace import Workspace
from schemas.guards.trail_functions import GENESIS
from schemas.guards.witness import SoundWitness, Witness, WitnessLine, read_witness, sound_witnesses

log = logging.getLogger("recon.witness")

UNSET = (
    "RECON_AUDIT_WITNESS is not set, and this RECON_HOME has made witnesses: set it as it was, or "
    "keep RECON_HOME/witness under another name if nobody is to witness the trail any more"
)


@dataclass(frozen=True, slots=True)
class Witnessed:
    witness: Witness | None
    """The last witness; None if the trail has no event yet."""
    new: bool
    waiting: tuple[str, ...]
    """Why, for each place that was not given everything."""


def witness_trail(workspace: Workspace, connection: psycopg.Connection) -> None:
    """Sign the head of the trail and give it away, if places are set; never raises for that.

    Call it once the event is committed. A failure is a warning, which verifying repeats.
    """
    try:
        if not workspace.settings.audit.witness:
            _refuse_unset(workspace)
            return
        signed = sign_head(workspace, connection)
    except (ReconError, OSError, psycopg.Error) as error:
        log.warning("The audit trail was not witnessed: %s", str(error) or type(error).__name__)
        return
    for one in signed.waiting:
        log.warning("A witness of the audit trail waits: %s. It is tried again next time", one)


@contextmanager
def witnessed(workspace: Workspace, connection: psycopg.Connection) -> Iterator[None]:
    """A transaction whose events get a witness of their own once it is committed."""
    with connection.transaction():
        yield
    witness_trail(workspace, connection)


@contextmanager
def witnessed_either_way(workspace: Workspace, connection: psycopg.Connection) -> Iterator[None]:
    """Statements without a transaction: the event of a refusal is kept too, and gets a witness."""
    try:
        yield
    finally:
        witness_trail(workspace, connection)


def _refuse_unset(workspace: Workspace) -> None:
    """Raise WitnessPlaceFailed if no place is set where witnesses were made before."""
    if Journal(workspace.settings.home).begun:
        raise WitnessPlaceFailed(UNSET)


def sign_head(workspace: Workspace, connection: psycopg.Connection) -> Witnessed:
    """Sign the last link if it is unsigned, give each place what it lacks; raises ReconError."""
    settings = workspace.settings
    journal = Journal(settings.home)
    with journal.alone():
        _adopt(workspace, journal)
        last = journal.last()
        new = _next(workspace, connection, last)
        if new is not None:
            journal.add(new)
        failed = journal.give(settings.audit.witness)
    return Witnessed(new or last, new is not None, tuple(failed.values()))


def _next(
    workspace: Workspace, connection: psycopg.Connection, last: Witness | None
) -> Witness | None:
    """Sign the head; None if there is no event or `last` is of it. Refuses another trail."""
    from connectors.witness.keys import fingerprint, private_key  # noqa: PLC0415

    position = last_link(connection)
    links = links_at(connection, {1, position, last.position if last else 1}) if position else {}
    if last is not None and (links.get(1), links.get(last.position)) != (last.trail, last.hash):
        raise WitnessPlaceFailed(
            f"the trail is not the one that was witnessed until link {last.position} at "
            f"{last.time}. It was rewritten or cut off, or the database is another or an older "
            "one: `recon audit verify` says where. Nothing is signed for it"
        )
    if not position or (last is not None and last.position == position):
        return None
    key = private_key(workspace.settings.audit)
    unsigned = Witness(
        number=last.number + 1 if last else 1,
        position=position,
        hash=links[position],
        time=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        trail=links[1],
        key=fingerprint(key.public_key()),
        previous=last.sha256 if last else GENESIS,
    )
    return replace(unsigned, signature=key.sign(unsigned.signed_text.encode()).hex())


def _adopt(workspace: Workspace, journal: Journal) -> None:
    """Continue from a place that has more witnesses than RECON_HOME: a new or a restored home.

    Refused if this key's witnesses go further than what can be continued: numbers would repeat.
    """
    last = journal.last()
    number = last.number if last else 0
    chain: list[SoundWitness] = []
    beyond: list[tuple[SoundWitness, str]] = []
    faults: list[str] = []
    for address in workspace.settings.audit.witness:
        place = place_at(address)
        try:
            lines = place.read() if place.beyond(number) else None
        except WitnessPlaceFailed:
            continue  # Giving to the place will report what is wrong.
        if not lines:
            continue
        ours = _ours(workspace, lines)
        known, made = [one.witness for one in ours], journal.witnesses()
        if any(one.number <= number and one != made[one.number - 1] for one in known):
            continue  # Another home gives to this place; giving will report that.
        following, others, reasons = _following(ours, last)
        if following and len(ours) < len(lines):
            reasons.append(f"{place.name} has lines that are no witnesses of this key")
        chain = max(chain, following, key=len)
        beyond += [(one, reasons[0]) for one in others]
        faults += reasons
    number = chain[-1].witness.number if chain else number
    for one, fault in beyond:
        if one.witness.number > number:
            raise WitnessPlaceFailed(
                f"{one.where}: is witness {one.witness.number} of this key, and RECON_HOME cannot "
                f"go on from it: {fault}. Nothing is signed. Put back what is missing there, "
                "or a newer RECON_HOME/witness; where both are lost, keep what there is as "
                "evidence, RECON_HOME/witness under another name, and set new places"
            )
    for one in chain:
        journal.add(one.witness)
    for fault in faults:
        log.warning("Witnesses go on from number %s. What does not hold there: %s", number, fault)


def _following(
    signed: Sequence[SoundWitness], last: Witness | None
) -> tuple[list[SoundWitness], list[SoundWitness], list[str]]:
    """What follows `last` without a fault, what comes after the first fault, and the faults."""
    new = [one for one in signed if not last or one.witness.number > last.number]
    trail = last.trail if last else new[0].witness.trail if new else None
    following: list[SoundWitness] = []
    others: list[SoundWitness] = []
    faults: list[str] = []
    for one in sound_witnesses([one.line for one in new], None, lambda _: True, trail, last):
        if isinstance(one, str):
            faults.append(one)
        else:
            (others if faults else following).append(one)
    return following, others, faults


def _ours(workspace: Workspace, lines: Sequence[WitnessLine]) -> list[SoundWitness]:
    """The lines that this key signed."""
    from connectors.witness.keys import fingerprint, is_signed, private_key  # noqa: PLC0415

    key = private_key(workspace.settings.audit).public_key()
    read = [(line, read_witness(line.text)) for line in lines]
    return [
        SoundWitness(line, one)
        for line, one in read
        if one and one.key == fingerprint(key) and is_signed(key, one)
    ]
