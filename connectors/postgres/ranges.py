"""Ranges: consecutive records of one extract, which are applied together.

Conditions are SQL over a range's parameters; `s` is its staged table.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive records of one extract."""

    batch_id: int
    extract_id: int
    first: int
    last: int

    def halves(self) -> tuple["Range", "Range"]:
        """The range in two."""
        middle = (self.first + self.last) // 2
        return replace(self, last=middle), replace(self, first=middle + 1)

    def parameters(self) -> dict[str, int]:
        """The range as statement parameters."""
        return {
            "batch": self.batch_id,
            "extract": self.extract_id,
            "first": self.first,
            "last": self.last,
        }


def in_range(alias: str) -> str:
    """Rows of the range."""
    return (
        f"{alias}.extract_id = %(extract)s AND {alias}.record_number BETWEEN %(first)s AND %(last)s"
    )


def ready() -> str:
    """Clean rows of the range that have no outcome."""
    return f"{in_range('s')} AND s.error_data IS NULL AND {untold('s')}"


def untold(alias: str) -> str:
    """Rows of the range without an outcome."""
    return f"""NOT EXISTS (SELECT 1 FROM outcome o WHERE {in_range("o")}
        AND o.record_number = {alias}.record_number)"""


def absent() -> str:
    """Rows that are not in `present`: the target does not know them."""
    return "NOT EXISTS (SELECT 1 FROM present p WHERE p.record_number = s.record_number)"
