"""The witness of the audit trail: a signed statement about its head, and checks against it.

A witness is one line of JSON that says which link was the last one at a time, signed with a key
that the database does not have. Witnesses are numbered, and each names the hash of the one before
it, so that none can be left out or inserted.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple

from schemas.guards.trail_functions import GENESIS

HEADING = "recon audit witness 1"
"""First line of the signed text: nothing else that the key might sign begins like this."""
_FORMS = dict.fromkeys(
    ("hash", "trail", "key", "previous", "signature"), re.compile("[0-9a-f]*")
) | {"time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)}
"""Forms of its texts, strict so that each witness has exactly one spelling, on one line."""
_WHOLE_NUMBERS = range(1, 2**63)
_TWO_HOMES = "more than one home signed with this key, or one went on from a backup"


@dataclass(frozen=True, slots=True)
class Witness:
    number: int
    """From 1, without gaps."""
    position: int
    """Position of the last link of the trail."""
    hash: str
    """Hash of that link."""
    time: str
    """When it was signed, in UTC: `2026-01-31T10:00:00.000000Z`."""
    trail: str
    """The hash of the trail's first link, which identifies the trail."""
    key: str
    """Fingerprint of the key: SHA-256, in hex, of the public key in DER."""
    previous: str
    """Hash of the witness before; 64 zeros for the first."""
    signature: str = ""
    """Ed25519 over `signed_text`, in hex."""

    @property
    def signed_text(self) -> str:
        """The text to sign: a heading, then a line for each field: its name, a blank, its value."""
        values = asdict(self)
        del values["signature"]
        return f"{HEADING}\n" + "".join(f"{name} {value}\n" for name, value in values.items())

    @property
    def sha256(self) -> str:
        """The hash of the signed text, by which the next witness names this one."""
        return hashlib.sha256(self.signed_text.encode()).hexdigest()

    @property
    def line(self) -> str:
        """The witness as it is published, without a line end."""
        return json.dumps(asdict(self))


def read_witness(line: str) -> Witness | None:
    """Parse a line; None if it is no witness."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    kinds = {one.name: one.type for one in fields(Witness)}
    if not isinstance(values, dict) or values.keys() != kinds.keys():
        return None
    if any(type(values[name]) is not kind for name, kind in kinds.items()):
        return None
    if not all(form.fullmatch(values[name]) for name, form in _FORMS.items()):
        return None
    if not all(values[name] in _WHOLE_NUMBERS for name in ("number", "position")):
        return None
    return Witness(**values) if Witness(**values).line == line else None


class WitnessLine(NamedTuple):
    """One line of a place that keeps witnesses."""

    place: str
    name: str
    """`line 3`, or the name of an object."""
    text: str


class SoundWitness(NamedTuple):
    """A witness that is valid by itself, and where it is."""

    line: WitnessLine
    witness: Witness

    @property
    def where(self) -> str:
        """Place and line, as faults name them."""
        return f"{self.line.place}, {self.line.name}"


def sound_witnesses(
    lines: Iterable[WitnessLine],
    key: str | None,
    is_signed: Callable[[Witness], bool],
    trail: str | None,
    after: Witness | None = None,
) -> Iterator[SoundWitness | str]:
    """Witnesses of one place that are valid by themselves and as a chain, and the faults between.

    `key` is the fingerprint of the only key that counts, None if there is none to check with;
    `trail` is the hash of the database's first link, None if it has no event; `after` is the
    witness that the first line must follow, None if the chain begins there.
    """
    last = after
    known: dict[int, SoundWitness] = {}
    for line in lines:
        where, one = f"{line.place}, {line.name}", read_witness(line.text)
        if one is None:
            yield f"{where}: is no witness, or was changed since it was written"
            continue
        if key is not None and one.key != key:
            yield f"{where}: is signed with another key, {one.key}; the key to check with is {key}"
            continue
        if key is not None and not is_signed(one):
            yield f"{where}: its signature is not for what it says"
            continue
        if (other := known.get(one.number)) is not None:
            if other.witness == one:
                yield f"{where}: witness {one.number} is there already: it was given once more"
            else:
                yield (
                    f"{where}: is another witness {one.number} than {other.line.name}: {_TWO_HOMES}"
                )
            continue
        expected = last.number + 1 if last else 1
        if one.number != expected:
            yield f"{where}: is witness {one.number}, and witness {expected} belongs there"
        elif one.previous != (last.sha256 if last else GENESIS):
            yield f"{where}: witness {one.number} does not follow the one before it"
        elif last is not None and one.position <= last.position:
            yield f"{where}: goes back from link {last.position} to link {one.position}"
        if one.trail != trail:
            yield (
                f"{where}: is about another trail, whose first link is {one.trail[:16]}...: this "
                "is another database, or its first link was rewritten"
            )
        known[one.number] = SoundWitness(line, one)
        yield known[one.number]
        last = one


def disagreements(seen: Sequence[SoundWitness]) -> Iterator[str]:
    """Witnesses of the same number that differ; the one seen later is reported."""
    first: dict[int, SoundWitness] = {}
    for one in seen:
        other = first.setdefault(one.witness.number, one)
        if other.witness != one.witness:
            yield (
                f"{one.where}: witness {one.witness.number} is another one than {other.where} has: "
                f"{_TWO_HOMES}"
            )


def trail_faults(
    seen: Sequence[SoundWitness], links: Mapping[int, str], length: int
) -> Iterator[str]:
    """Where the trail differs from what was witnessed; `links` are its hashes by position.

    Only the first differing link is reported, since all after it differ as well.
    """
    held = 0
    for one in sorted(seen, key=lambda one: (one.witness.position, one.witness.number)):
        position = one.witness.position
        if position > length:
            yield (
                f"the trail ends at link {length}, and link {position} was witnessed at "
                f"{one.witness.time} ({one.where}): it was cut off, or the database is an older one"
            )
            return
        found = links.get(position)
        if found != one.witness.hash:
            between = f"; link {held} holds, so it was rewritten behind that" if held else ""
            yield (
                f"link {position} is not what was witnessed at {one.witness.time} ({one.where}): "
                f"its hash was {one.witness.hash} and is {found}{between}"
            )
            return
        held = position
