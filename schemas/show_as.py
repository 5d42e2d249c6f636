"""How an account wants dates, numbers and negatives written; what is kept and signed has one form.

These are names and no formats: an account has one of each kind, as words of one text.
"""

from dataclasses import astuple, dataclass
from enum import StrEnum

NO_BREAK = "\N{NARROW NO-BREAK SPACE}"


class Dates(StrEnum):
    """Order and marks of a date."""

    ISO = "iso"
    DOTS = "dots"
    SLASHES = "slashes"
    MONTH_FIRST = "month-first"

    @property
    def pattern(self) -> str:
        """As strftime takes it."""
        return {"iso": "%Y-%m-%d", "dots": "%d.%m.%Y", "slashes": "%d/%m/%Y"}.get(self, "%m/%d/%Y")


class Numbers(StrEnum):
    """What stands between groups of digits, and before the decimals."""

    BLANK_POINT = "blank-point"
    COMMA_POINT = "comma-point"
    POINT_COMMA = "point-comma"
    BLANK_COMMA = "blank-comma"
    APOSTROPHE_POINT = "apostrophe-point"

    @property
    def marks(self) -> tuple[str, str]:
        """The characters themselves."""
        named = {"blank": NO_BREAK, "comma": ",", "point": ".", "apostrophe": "'"}
        group, point = self.split("-")
        return named[group], named[point]


class Negatives(StrEnum):
    """Where it is said that a number is negative."""

    MINUS = "minus"
    BRACKETS = "brackets"
    TRAILING = "trailing"


@dataclass(frozen=True, slots=True)
class ShowAs:
    """One choice of each; by default as everybody sees it who has chosen nothing."""

    dates: Dates = Dates.ISO
    numbers: Numbers = Numbers.BLANK_POINT
    negatives: Negatives = Negatives.MINUS

    @property
    def words(self) -> str:
        """As it is kept."""
        return " ".join(astuple(self))

    @classmethod
    def read(cls, words: str | None) -> "ShowAs":
        """What was kept; nothing kept is the default."""
        if not words:
            return cls()
        dates, numbers, negatives = words.split()
        return cls(Dates(dates), Numbers(numbers), Negatives(negatives))


AS_EVER = ShowAs()
"""For everybody who has chosen nothing, and where there are no accounts."""
PATTERN = " ".join(f"({'|'.join(kind)})" for kind in (Dates, Numbers, Negatives))
"""What may be kept, as a pattern that PostgreSQL reads."""
