"""Every witness that was made, kept in RECON_HOME, and how many of them each place was given.

What a place was not given yet waits here, in order: nothing is skipped, and a place that is named
later is given all of them.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from connectors.errors import WitnessPlaceFailed
from connectors.files.atomic import file_alone, private_folder, write_file
from connectors.witness.places import FilePlace, WitnessPlace, place_at
from schemas.guards.witness import Witness, WitnessLine, read_witness

WAIT_SECONDS = 20.0
ROUND_SECONDS = 10.0
"""After so long a place is given no more in this round: what is left is given in the next one."""


class Journal:
    """The witnesses of a RECON_HOME."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "witness"
        self._path, self._given = self._folder / "witnesses.jsonl", self._folder / "given.json"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from making or giving witnesses of this home meanwhile."""
        private_folder(self._folder)
        with file_alone(self._folder / ".lock", WAIT_SECONDS, "Giving witnesses"):
            yield

    def lines(self) -> list[WitnessLine]:
        """All of its lines; none where no witness was made."""
        return FilePlace(self._path).read() if self._path.exists() else []

    def witnesses(self, after: int = 0) -> list[Witness]:
        """Those behind a number; raises WitnessPlaceFailed for a line that is none."""
        found: list[Witness] = []
        for number, line in enumerate(self.lines()[after:], after + 1):
            one = read_witness(line.text)
            if one is None or one.number != number:
                raise WitnessPlaceFailed(f"{self._path}, {line.name}: is not witness {number}")
            found.append(one)
        return found

    def last(self) -> Witness | None:
        """The last one; None: none was made. The others are not looked at, however many."""
        made = self.witnesses(max(0, len(self.lines()) - 1))
        return made[-1] if made else None

    def add(self, witness: Witness) -> None:
        """Keep a witness before it is given to anybody."""
        FilePlace(self._path).give(witness, begun=witness.number > 1)

    def given(self, address: str) -> int:
        """How many witnesses a place was given."""
        return self._counts().get(_name(address), 0)

    def give(self, addresses: Sequence[str]) -> dict[str, str]:
        """Give each place what it lacks; of places that have not all of it, why."""
        failed = dict[str, str]()
        last = self.last()
        number = last.number if last else 0
        for address in addresses:
            place = place_at(address)
            try:
                left = self._give_one(place, address)
            except WitnessPlaceFailed as error:
                left = str(error)
            if left:
                failed[place.name] = f"{left}; {number - self.given(address)} wait for it"
        return failed

    def _give_one(self, place: WitnessPlace, address: str) -> str:
        end = time.monotonic() + ROUND_SECONDS
        counted = self.given(address) or _there(place, self.witnesses())
        if counted > self.given(address):
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
            told = json.loads(self._given.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise WitnessPlaceFailed(
                f"{self._given} cannot be read. Remove it: all places are given everything again"
            ) from error
        return {str(name): int(count) for name, count in told.items()}


def _there(place: WitnessPlace, made: Sequence[Witness]) -> int:
    """How many witnesses a place has that this home never counted: another home gave them."""
    try:
        lines = place.read() or []
    except WitnessPlaceFailed:
        return 0  # There is nothing yet, or giving says what is wrong.
    number = 0
    for line, one in zip(lines, made, strict=False):
        if line.text != one.line:
            break
        number += 1
    return number


def _name(address: str) -> str:
    """What a place is counted under: an address may hold a secret."""
    return hashlib.sha256(address.encode()).hexdigest()
