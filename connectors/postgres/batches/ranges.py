"""Ranges: records that are applied together, of one extract or all of several small ones.

The functions give SQL conditions on a range's parameters; `s` is its staged table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Within = Callable[[str], str]
"""Gives SQL for whether rows of a table alias are within a range, such as `views.of_batch`."""


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive records of one extract."""

    batch_id: int
    extract_id: int
    first: int
    last: int

    def halves(self) -> tuple["Range", "Range"]:
        middle = (self.first + self.last) // 2
        return replace(self, last=middle), replace(self, first=middle + 1)

    def within(self, alias: str) -> str:
        """SQL for whether rows of a table belong to these records."""
        return (
            f"{alias}.extract_id = %(extract)s "
            f"AND {alias}.record_number BETWEEN %(first)s AND %(last)s"
        )

    def parameters(self) -> Mapping[str, Any]:
        return {
            "batch": self.batch_id,
            "extract": self.extract_id,
            "first": self.first,
            "last": self.last,
        }


@dataclass(frozen=True, slots=True)
class WholeExtracts:
    """All records of several extracts of a batch."""

    batch_id: int
    extracts: tuple[int, ...]

    def within(self, alias: str) -> str:
        """SQL for whether rows belong to these records; block range indexes need its BETWEEN."""
        return (
            f"{alias}.extract_id BETWEEN %(low)s AND %(high)s "
            f"AND {alias}.extract_id = ANY(%(extracts)s)"
        )

    def parameters(self) -> Mapping[str, Any]:
        return {
            "batch": self.batch_id,
            "extracts": list(self.extracts),
            "low": min(self.extracts),
            "high": max(self.extracts),
        }


AppliedTogether: TypeAlias = Range | WholeExtracts


def ready(within: Within) -> str:
    """SQL for clean rows within these records that have no outcome."""
    return f"{within('s')} AND s.error_data IS NULL AND {without_outcome(within, 's')}"


def without_outcome(within: Within, alias: str) -> str:
    """SQL for rows without an outcome."""
    return f"""NOT EXISTS (SELECT 1 FROM outcome o WHERE {within("o")}
        AND {same("o", alias)})"""


def absent() -> str:
    """SQL for rows that are not in `present`, since the target does not know them."""
    return f"NOT EXISTS (SELECT 1 FROM present p WHERE {same('p', 's')})"


def same(one: str, other: str) -> str:
    """SQL for whether rows of two tables belong to the same record of a batch."""
    return f"{one}.extract_id = {other}.extract_id AND {one}.record_number = {other}.record_number"
