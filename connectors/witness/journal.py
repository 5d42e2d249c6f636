"""Every witness made, kept in RECON_HOME, and how many of them each place was given.

Witnesses not given yet wait here in order: none is skipped, and a place that is named later is
given all of them.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from connectors.errors import WitnessPlaceFailed
from connectors.files.disk.atomic import file_alone, private_folder, write_file
from connectors.witness.places import FilePlace, WitnessPlace, place_at
from schemas.guards.witness import Witness, WitnessLine, read_witness

WAIT_SECONDS = 20.0
ROUND_SECONDS = 10.0
"""After this long a place is given no more in this round; the rest follows in the next."""


class Journal:
    """The witnesses of a RECON_HOME."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "witness"
        self._path, self._given = self._folder / "witnesses.jsonl", self._folder / "given.json"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from making or giving witnesses of this home meanwhile.

        A last line cut off by a crash is completed or removed first: it was given to nobody.
        """
        private_folder(self._folder)
        with file_alone(self._folder / ".lock", WAIT_SECONDS, "Giving witnesses"):
            if self._path.exists():
                FilePlace(self._path).fix_last_line()
            yield

    def lines(self) -> list[WitnessLine]:
        """All lines; empty if no witness was made."""
        return FilePlace(self._path).read() if self._path.exists() else []

    def witnesses(self, after: int = 0) -> list[Witness]:
        """Witnesses after a number; raises WitnessPlaceFailed for a line that is none."""
        found: list[Witness] = []
        for number, line in enumerate(self.lines()[after:], after + 1):
            one = read_witness(line.text)
            if one is None or one.number != number:
                raise WitnessPlaceFailed(
                    f"{self._path}, {line.name}: is not witness {number}. Keep {self._folder} "
                    "under another name: the next witness goes on from what a place has"
                )
            found.append(one)
        return found

    def last(self) -> Witness | None:
        """The last witness, or None; earlier ones are not looked at, however many there are."""
        made = self.witnesses(max(0, len(self.lines()) - 1))
        return made[-1] if made else None

    @property
    def begun(self) -> bool:
        """Whether this home has made witnesses, even if they were removed since."""
        return self._given.exists() or bool(self.lines())

    def lost(self) -> int:
        """How many were given away, if none of them is here any more; else 0."""
        return 0 if self.lines() else max(self._counts().values(), default=0)

    def add(self, witness: Witness) -> None:
        """Keep a witness before it is given to anybody."""
        FilePlace(self._path).give(witness, begun=witness.number > 1)

    def give(self, addresses: Sequence[str]) -> dict[str, str]:
        """Give each place what it lacks; returns the reason for each place that lacks some."""
        failed = dict[str, str]()
        last = self.last()
        number = last.number if last else 0
        for address in addresses:
            place = place_at(address)
            try:
                left = self._give_one(place, address, number)
            except WitnessPlaceFailed as error:
                left = str(error)
            if left:
                waiting = max(0, number - self._counts().get(_name(address), 0))
                failed[place.name] = f"{left}; {waiting} wait for it"
        return failed

    def _give_one(self, place: WitnessPlace, address: str, last: int) -> str:
        end = time.monotonic() + ROUND_SECONDS
        counted = self._counts().get(_name(address), 0)
        if not 0 < counted <= last:
            # Another home gave there, or the count is of other witnesses: ask the place itself.
            noted, counted = counted, _there(place, self.witnesses(), begun=counted > 0)
            if counted != noted:
                self._count(address, counted)
        for one in self.witnesses(counted):
            if time.monotonic() > end:
                return f"{place.name} is slow"
            place.give(one, begun=one.number > 1 and counted > 0)
            self._count(address, one.number)
        return ""

    def _count(self, address: str, number: int) -> None:
        counts = self._counts() | {_name(address): number}
        write_file(self._given, json.dumps(counts, indent=1).encode())

    def _counts(self) -> dict[str, int]:
        try:
            counts = json.loads(self._given.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError):
            counts = None
        if not isinstance(counts, dict) or any(type(count) is not int for count in counts.values()):
            raise WitnessPlaceFailed(
                f"{self._given} cannot be read. Remove it: all places are given what they lack, "
                "and webhooks everything again"
            )
        return counts


def _there(place: WitnessPlace, made: Sequence[Witness], *, begun: bool) -> int:
    """How many of these witnesses a place has; if `begun`, it has to be readable."""
    try:
        lines = place.read() or []
    except WitnessPlaceFailed:
        if begun:
            raise
        return 0  # There is nothing yet, or giving will report the problem.
    number = 0
    for line, one in zip(lines, made, strict=False):
        if line.text != one.line:
            break
        number += 1
    return number


def _name(address: str) -> str:
    """The name a place is counted under, hashed because an address may hold a secret."""
    return hashlib.sha256(address.encode()).hexdigest()
