"""Lines of a file that become no record."""

from typing import NamedTuple


class Valueless(NamedTuple):
    """Such lines: none of their cells that make a record holds a value."""

    lines: int = 0
    first: int = 0
    """The first of them."""

    def with_more(self, later: "Valueless") -> "Valueless":
        """These and those behind them."""
        return Valueless(self.lines + later.lines, self.first or later.first)


NO_LINES = Valueless()
