"""Lines of a file that become no record."""

from typing import NamedTuple, Protocol, SupportsInt


class Valueless(NamedTuple):
    """Such lines: none of their cells that make a record holds a value."""

    lines: int = 0
    first: int = 0
    """The first of them."""

    def with_more(self, later: "Valueless") -> "Valueless":
        """These and those behind them."""
        return Valueless(self.lines + later.lines, self.first or later.first)


NO_LINES = Valueless()


class LineNumbers(Protocol):
    """Numbers of lines in their order."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> SupportsInt: ...


def of_lines(numbers: LineNumbers) -> Valueless:
    """The lines of these numbers."""
    return Valueless(len(numbers), int(numbers[0]) if len(numbers) else 0)
