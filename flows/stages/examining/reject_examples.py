"""The rejects of a file as a person reads them: the first, and what else is wrong behind those."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from flows.stages.examining.verdicts import Reject
from schemas.counting import grouped, quantity


class _Fault(NamedTuple):
    """What is said once of a line, however many of its records it is true of."""

    line: int
    field: str
    code: str
    message: str


@dataclass(slots=True)
class RejectExamples:
    """What is listed of rejects: all faults of the first `most` that have others than those before.

    Of rejects behind, only the reasons that none of these has.
    """

    most: int
    rows: int = 0
    """Rejects whose faults are listed."""
    faults: dict[_Fault, list[int]] = field(default_factory=dict)
    """With the numbers of their records: the first, and how many there are."""
    behind: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """By field and code, of the others: the line of the first, and how many there are."""
    _differing: int = 0

    @classmethod
    def of(cls, rejects: Iterable[Reject], most: int) -> "RejectExamples":
        found = cls(most)
        for reject in rejects:
            found.add(reject)
        return found

    def add(self, reject: Reject) -> None:
        """Add one more, behind those before."""
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
        """Where each fault is, with its code, and what it is."""
        for one, (first, count) in self.faults.items():
            several = f"{quantity(count, 'record', grouped)} from {first} on"
            records = several if count > 1 else f"record {first}"
            yield f"line {one.line}, {records}: {one.code}", one.message

    def also(self) -> Iterator[str]:
        """The reasons of the others that no fault listed has."""
        for (name, code), (line, count) in self._unseen().items():
            of = f" of {name}" if name else ""
            yield f"{code}{of} in {quantity(count, 'row', grouped)}, the first on line {line}"

    def codes(self) -> Iterator[str]:
        yield from (one.code for one in self.faults)
        yield from (code for _, code in self._unseen())

    def _unseen(self) -> dict[tuple[str, str], list[int]]:
        seen = {(one.field, one.code) for one in self.faults}
        return {of: found for of, found in self.behind.items() if of not in seen}
