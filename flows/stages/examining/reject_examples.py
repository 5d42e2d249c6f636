"""The rejects of a file for people: the first ones, and reasons that only later ones have."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from flows.stages.examining.verdicts import Reject
from schemas.counting import grouped, quantity


class _Fault(NamedTuple):
    """A fault of a line, reported once for all its records."""

    line: int
    field: str
    code: str
    message: str


@dataclass(slots=True)
class RejectExamples:
    """The rejects to list: with all their faults until `most` of them had a new fault.

    Of later rejects only the reasons are kept that none of these has.
    """

    most: int
    rows: int = 0
    """The number of rejects whose faults are listed."""
    faults: dict[_Fault, list[int]] = field(default_factory=dict)
    """For each fault its first record number, and how many records have it."""
    behind: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """By field and code, for later rejects: the first one's line, and how many there are."""
    _differing: int = 0

    @classmethod
    def of(cls, rejects: Iterable[Reject], most: int) -> "RejectExamples":
        found = cls(most)
        for reject in rejects:
            found.add(reject)
        return found

    def add(self, reject: Reject) -> None:
        """Add the next reject."""
        faults = [
            _Fault(reject.line, one["FieldName"], one["ErrorCode"], one["Message"])
            for one in reject.errors
        ]
        differs = any(one not in self.faults for one in faults)
        if differs and self._differing == self.most:
            for one in faults:
                self.behind.setdefault((one.field, one.code), [one.line, 0])[1] += 1
            return
        self._differing += differs
        self.rows += 1
        for one in faults:
            self.faults.setdefault(one, [reject.record_number, 0])[1] += 1

    def lines(self) -> Iterator[tuple[str, str]]:
        """The place of each fault with its code, and its message."""
        for one, (first, count) in self.faults.items():
            several = f"{quantity(count, 'record', grouped)} from {first} on"
            records = several if count > 1 else f"record {first}"
            yield f"line {one.line}, {records}: {one.code}", one.message

    def also(self) -> Iterator[str]:
        """The reasons of later rejects that no listed fault has."""
        for (name, code), (line, count) in self._unseen().items():
            of = f" of {name}" if name else ""
            yield f"{code}{of} in {quantity(count, 'row', grouped)}, the first on line {line}"

    def codes(self) -> Iterator[str]:
        yield from (one.code for one in self.faults)
        yield from (code for _, code in self._unseen())

    def _unseen(self) -> dict[tuple[str, str], list[int]]:
        seen = {(one.field, one.code) for one in self.faults}
        return {of: found for of, found in self.behind.items() if of not in seen}
