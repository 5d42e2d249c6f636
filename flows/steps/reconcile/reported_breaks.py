"""The breaks of a report: one frame, of which a rendering makes lines of what it shows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from decimal import Decimal
from typing import overload

import polars as pl

from flows.steps.frames.beyond import from_both, parted
from flows.steps.totals import plain
from schemas.amounts import BEYOND
from schemas.frame_types import AMOUNT, WORD, Dtype


@dataclass(frozen=True, slots=True)
class BreakLine:
    id: str
    group: str
    """Class of the break."""
    code: str
    severity: str
    record: str
    tenant: int | None
    key: str
    field: str
    side: str
    expected: str | None
    found: str | None
    delta: Decimal | None
    amount: Decimal | None
    basis: str
    """What the amount is: difference, gross, not readable or none (`schemas.breaks.Money`)."""
    counted: Decimal | None
    """What of it is in totals: another break of the record may have it already."""
    currency: str
    file: str | None
    line: int | None
    batch_id: int | None
    state: str
    """NEW, OPEN, REOPENED, ACCEPTED, EXPIRED; closed ones are in the roll-forward."""
    first_seen: date
    age_days: int
    age_business_days: int
    cause: str
    """Id of the cause group, or empty."""
    action: str
    owner: str
    note: str
    """Acceptance (reason, by, until) and what the judgement says."""
    accepted_by: str = ""
    """The person or the rule that accepted it, or did before it ran out or the break changed."""
    accepted_until: date | None = None
    """The last day that holds."""
    accepted_reason: str = ""


MONEY = ("delta", "amount", "counted")
"""Amounts of a break; the text of one that no exact column holds is beside it (`BEYOND`)."""
_TYPES: dict[str, Dtype] = {
    "tenant": pl.Int32(),
    "line": pl.Int64(),
    "batch_id": pl.Int32(),
    "first_seen": pl.Date(),
    "accepted_until": pl.Date(),
    "age_days": pl.Int32(),
    "age_business_days": pl.Int32(),
    **dict.fromkeys(MONEY, AMOUNT),
    **dict.fromkeys(("group", "code", "severity", "state", "basis", "action"), WORD),
    **dict.fromkeys(("record", "field", "side", "currency", "file", "owner"), WORD),
    **dict.fromkeys(("accepted_by", "accepted_reason"), WORD),
}
"""Columns that are no text of their own."""
SCHEMA: dict[str, Dtype] = {
    **{field.name: _TYPES.get(field.name, pl.String()) for field in fields(BreakLine)},
    **{name + BEYOND: pl.String() for name in MONEY},
}
"""A column for each attribute of a line, and the texts beside amounts."""


@dataclass(frozen=True, slots=True, eq=False)
class Breaks(Sequence[BreakLine]):
    """Breaks in the order of the report; there may be millions, of which a page shows a few."""

    frame: pl.DataFrame
    """Columns of SCHEMA."""

    @classmethod
    def of(cls, lines: Iterable[BreakLine]) -> "Breaks":
        rows = [asdict(one) for one in lines]
        columns = [
            pl.Series(name, [row[name] for row in rows], of)
            for name, of in SCHEMA.items()
            if name in BreakLine.__slots__ and name not in MONEY
        ]
        for name in MONEY:
            columns += parted(name, [row[name] for row in rows])
        return cls(pl.DataFrame(columns).select(*SCHEMA))

    def __len__(self) -> int:
        return self.frame.height

    def __iter__(self) -> Iterator[BreakLine]:
        for row in self.frame.iter_rows(named=True):
            for name in MONEY:
                amount = from_both(row[name], row.pop(name + BEYOND))
                row[name] = None if amount is None else Decimal(plain(amount))
            yield BreakLine(**row)

    @overload
    def __getitem__(self, place: int) -> BreakLine: ...
    @overload
    def __getitem__(self, place: slice) -> "Breaks": ...
    def __getitem__(self, place: int | slice) -> "BreakLine | Breaks":
        if isinstance(place, slice):
            return Breaks(self.frame[place])
        (line,) = Breaks(self.frame[place])
        return line

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Breaks) and self.frame.equals(other.frame)

    __hash__ = None  # type: ignore[assignment]

    def where(self, column: str, *values: str) -> "Breaks":
        """Those that have one of some values in a column."""
        # Members of an enumeration are texts too, and to polars a type of their own.
        return Breaks(self.frame.filter(pl.col(column).is_in([*map(str, values)])))

    def counts(self, column: str) -> Counter[str]:
        """How many have a value in a column, by value in their order."""
        found = self.frame.group_by(column, maintain_order=True).len()
        return Counter(dict(found.iter_rows()))
