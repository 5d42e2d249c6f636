"""The breaks of a report as one frame; renderings turn the rows they show into lines."""

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
    """Class of the break (`schemas.breaks.BreakClass`)."""
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
    """Kind of the amount: difference, gross, not readable or none (`schemas.breaks.Money`)."""
    counted: Decimal | None
    """The part of the amount in totals; another break of the record may count it already."""
    currency: str
    file: str | None
    line: int | None
    batch_id: int | None
    state: str
    """A state that is not resolved; resolved breaks are in the roll-forward."""
    first_seen: date
    age_days: int
    age_business_days: int
    cause: str
    """Id of the cause group, or empty."""
    action: str
    owner: str
    note: str
    """Why the break is set aside, its acceptance (by, until, reason) and the note of the check."""
    accepted_by: str = ""
    """Who accepted the break, also if the acceptance has run out or the break has changed."""
    accepted_until: date | None = None
    """The last day of the acceptance."""
    accepted_reason: str = ""


MONEY = ("delta", "amount", "counted")
"""Amounts of a break; an amount that no exact column holds has its text beside it (`BEYOND`)."""
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
"""Types of the columns that are not plain strings."""
SCHEMA: dict[str, Dtype] = {
    **{field.name: _TYPES.get(field.name, pl.String()) for field in fields(BreakLine)},
    **{name + BEYOND: pl.String() for name in MONEY},
}
"""A column for each attribute of a line, and the texts beside amounts."""


@dataclass(frozen=True, slots=True, eq=False)
class Breaks(Sequence[BreakLine]):
    """Breaks in the order of the report; there may be millions, and a page shows a few."""

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
        """The breaks that have one of these values in a column."""
        # Members of a StrEnum are strings too, but polars gives them a type of their own.
        return Breaks(self.frame.filter(pl.col(column).is_in([*map(str, values)])))

    def counts(self, column: str) -> Counter[str]:
        """The number of breaks by their value in a column, in the order of the breaks."""
        found = self.frame.group_by(column, maintain_order=True).len()
        return Counter(dict(found.iter_rows()))
