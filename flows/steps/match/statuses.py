"""The outcome of a comparison: one status per row, one line per differing column."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.breaks import Status


@dataclass(frozen=True, slots=True)
class ColumnResult:
    name: str
    left_type: str
    right_type: str
    compared: int
    different: int
    """Cells that differ by more than the tolerance."""
    tolerated: int
    largest: str | None = None
    """The largest exact difference that is not tolerated, right minus left."""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class SideResult:
    name: str
    kind: str
    rows: int
    broken: int
    only_columns: tuple[str, ...]
    notes: tuple[str, ...] = ()
    sha256: str = ""
    """Hash of the file; empty for a folder of files and for anything else."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything a comparison found; every rendering reads this value."""

    left: SideResult
    right: SideResult
    key: tuple[str, ...]
    ignored: tuple[str, ...]
    tolerances: Mapping[str, str]
    statuses: Mapping[Status, int]
    """How many rows have each status: all rows of the left side, and those only the right has."""
    columns: tuple[ColumnResult, ...]
    pairs: int
    repeated: tuple[int, int] = (0, 0)
    """Rows of the left and of the right side whose key is not unique."""
    keyless: tuple[int, int] = (0, 0)
    method: str = ""
    """How the sides were compared, where there is a choice."""
    shown: tuple[Mapping[str, object], ...] = field(default=())
    """The largest differences of each kind, as lines of differences.csv."""
    differences: int = 0

    @property
    def agrees(self) -> bool:
        """Whether both sides are the same within the tolerances, columns included."""
        quiet = {Status.MATCHED_EXACT, Status.MATCHED_TOLERANCE}
        return (
            all(not count or status in quiet for status, count in self.statuses.items())
            and not (self.left.broken or self.right.broken)
            and not (self.left.only_columns or self.right.only_columns)
        )
