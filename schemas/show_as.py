"""How an account wants dates, numbers and negatives shown; what is kept and signed has one form.

These are names rather than formats: an account's choices are kept as the words of one text.
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
        """The strftime format."""
        return {"iso": "%Y-%m-%d", "dots": "%d.%m.%Y", "slashes": "%d/%m/%Y"}.get(self, "%m/%d/%Y")


class Numbers(StrEnum):
    """The separators between groups of digits and before the decimals."""

    BLANK_POINT = "blank-point"
    COMMA_POINT = "comma-point"
    POINT_COMMA = "point-comma"
    BLANK_COMMA = "blank-comma"
    APOSTROPHE_POINT = "apostrophe-point"

    @property
    def marks(self) -> tuple[str, str]:
        """The two separators."""
        named = {"blank": NO_BREAK, "comma": ",", "point": ".", "apostrophe": "'"}
        group, point = self.split("-")
        return named[group], named[point]


class Negatives(StrEnum):
    """How a negative number is marked."""

    MINUS = "minus"
    BRACKETS = "brackets"
    TRAILING = "trailing"


@dataclass(frozen=True, slots=True)
class ShowAs:
    """One choice of each kind; the defaults are what everybody sees who has chosen nothing."""

    dates: Dates = Dates.ISO
    numbers: Numbers = Numbers.BLANK_POINT
    negatives: Negatives = Negatives.MINUS

    @property
    def words(self) -> str:
        """The choices as they are stored."""
        return " ".join(astuple(self))

    @classmethod
    def read(cls, words: str | None) -> "ShowAs":
        """Read stored choices; None gives the default."""
        if not words:
            return cls()
        dates, numbers, negatives = words.split()
        return cls(Dates(dates), Numbers(numbers), Negatives(negatives))


AS_EVER = ShowAs()
"""The default, for accounts without a choice and where there are no accounts."""
PATTERN = " ".join(f"({'|'.join(kind)})" for kind in (Dates, Numbers, Negatives))
"""The texts that may be stored, as a pattern that PostgreSQL reads."""
