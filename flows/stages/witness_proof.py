"""The audit trail compared with its witnesses: what was changed, and what could not be checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg

from connectors.errors import ReconError
from connectors.postgres.auditing.audit import last_link, links_at
from connectors.witness.journal import Journal
from connectors.witness.places import place_at
from flows.stages.witness import UNSET
from flows.stages.workspace import Workspace
from schemas.counting import agree, quantity
from schemas.guards.witness import (
    SoundWitness,
    Witness,
    WitnessLine,
    disagreements,
    sound_witnesses,
    trail_faults,
)

HOME = "RECON_HOME"
NOT_SET = (
    "nobody witnesses this trail: whoever owns the database could have rewritten all of it. "
    "RECON_AUDIT_WITNESS names places that it cannot reach"
)
NOT_READ = (
    "no place can be read back, so this is held against the copy in RECON_HOME alone, and nothing "
    "here shows whether an older copy was put in its place. Name a file or object store as well, "
    "or hold it against what the webhook has kept: `recon audit verify --witness COPY`"
)


@dataclass(frozen=True, slots=True)
class WitnessProof:
    """The result of comparing a trail with its witnesses."""

    witnesses: int = 0
    """The number of different witnesses that hold."""
    last: Witness | None = None
    faults: tuple[str, ...] = ()
    """Witnesses that do not hold, with place and line."""
    unchecked: tuple[str, ...] = ()
    """What was to be given or checked but could not be."""
    notes: tuple[str, ...] = ()
    """What no witness can prove."""

    @property
    def holds(self) -> bool:
        """Whether everything that was set could be checked and holds."""
        return not self.faults and not self.unchecked


def check_witnesses(
    workspace: Workspace, connection: psycopg.Connection, places: Sequence[str] = ()
) -> WitnessProof:
    """Compare the trail with its witnesses; `places` are read instead of those that are set.

    Witnesses that wait for a place that is set are offered to it once more first.
    """
    from connectors.witness.keys import fingerprint, is_signed, public_key  # noqa: PLC0415

    audit, journal = workspace.settings.audit, Journal(workspace.settings.home)
    addresses = tuple(places) or audit.witness
    unchecked: list[str] = []
    if not addresses:
        if not journal.begun:
            return WitnessProof(notes=(NOT_SET,))
        unchecked.append(UNSET)
    try:
        key = public_key(audit)
    except ReconError as error:
        key = None
        unchecked.append(f"no signature could be checked. {str(error).rstrip('.')}")
    waiting = {} if places else _give(journal, addresses, unchecked)
    # Others may give at the same time: witnesses made before this have to be in each place, and
    # those in a place have to be here afterwards.
    made = 0 if places else len(journal.lines())
    found, notes = _read(addresses, unchecked)
    faults: list[str] = []
    if not places:
        found |= _home(journal, faults, unchecked, notes)
    length, trail = last_link(connection), links_at(connection, {1}).get(1)
    name = fingerprint(key) if key else None
    seen: list[SoundWitness] = []
    ends: dict[str, int] = {}
    for place, lines in found.items():
        one: SoundWitness | str | None = None
        for one in sound_witnesses(
            lines, name, lambda one: key is not None and is_signed(key, one), trail
        ):
            if isinstance(one, str):
                faults.append(one)
            else:
                seen.append(one)
        # A bad last line is reported already, and whether others followed is not known.
        if not isinstance(one, str):
            ends[place] = one.witness.number if one else 0
    last = max((one.witness for one in seen), key=lambda one: one.number, default=None)
    positions = {one.witness.position for one in seen}
    faults += disagreements(seen)
    faults += trail_faults(seen, links_at(connection, positions), length)
    cut, unknown = _ends(ends, last.number if last else 0, made, waiting)
    faults += cut
    unchecked += unknown
    if last is None:
        unchecked.append("there is no witness that holds: nothing was checked against any")
    elif length > last.position:
        behind = length - last.position
        notes.append(
            f"{quantity(behind, 'event')} after the last witness {agree(behind, 'is', 'are')} "
            f"proven by {agree(behind, 'its', 'their')} chain alone"
        )
    different = len({one.witness.number for one in seen})
    not_checked = (*unchecked, *waiting.values())
    return WitnessProof(different, last, tuple(faults), not_checked, tuple(notes))


def _give(journal: Journal, addresses: Sequence[str], unchecked: list[str]) -> dict[str, str]:
    """Give waiting witnesses again; returns why, for each place that did not get all."""
    if not journal.lines():
        return {}
    try:
        with journal.alone():
            return journal.give(addresses)
    except (ReconError, OSError) as error:
        unchecked.append(f"what waits could not be given: {error}")
        return {}


def _read(
    addresses: Sequence[str], unchecked: list[str]
) -> tuple[dict[str, list[WitnessLine]], list[str]]:
    """The readable lines of each place, and the names of places that can never be read."""
    found: dict[str, list[WitnessLine]] = {}
    notes = []
    for address in addresses:
        place = place_at(address)
        try:
            lines = place.read()
        except ReconError as error:
            unchecked.append(str(error))
            continue
        if lines is None:
            notes.append(
                f"{place.name} is a webhook, which cannot be read back: ask whoever keeps it"
            )
        else:
            found[place.name] = lines
    if len(notes) == len(addresses):
        notes.append(NOT_READ)
    return found, notes


def _home(
    journal: Journal, faults: list[str], unchecked: list[str], notes: list[str]
) -> dict[str, list[WitnessLine]]:
    """This home's own witnesses; none if another home makes them."""
    lines = journal.lines()
    if lines:
        return {HOME: lines}
    try:
        lost = journal.lost()
    except ReconError as error:
        unchecked.append(str(error))
        return {}
    if lost:
        faults.append(f"{HOME}: has no witness, and gave {lost} away: lines were removed")
    else:
        notes.append("this RECON_HOME made no witness: the one that did knows what a place lacks")
    return {}


def _ends(
    ends: Mapping[str, int], last: int, made: int, waiting: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Places that end before the last witness: those that lost some, and those that may have.

    Only the home that gives to a place knows what it must contain. A home that has the last witness
    is that home; it had `made` witnesses before the places were read.
    """
    cut: list[str] = []
    unknown: list[str] = []
    ours = ends.get(HOME) == last
    for place, number in ends.items():
        short = f"{place}: ends with witness {number}"
        if place == HOME and number < last:
            cut.append(
                f"{short}, and a place has witness {last}: this RECON_HOME is an older one, or "
                "lines were removed there. `recon audit witness` goes on from what the place has"
            )
        elif ours and number < made and place not in waiting:
            cut.append(f"{short}, and {last} were made: lines were removed")
        elif not ours and number < last and place not in waiting:
            unknown.append(
                f"{short}, and there is witness {last}: it is an earlier copy, was not given the "
                "rest yet, or lines were removed. The home that gives there tells which"
            )
    return cut, unknown
