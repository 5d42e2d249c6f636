"""Lines of a file that become no record."""

from typing import NamedTuple, Protocol, SupportsInt


class SkippedLines(NamedTuple):
    """Such lines: comments, or those of a table whose cells make no record."""

    lines: int = 0
    first: int = 0

    def with_more(self, later: "SkippedLines") -> "SkippedLines":
        """These and those behind them."""
        return SkippedLines(self.lines + later.lines, self.first or later.first)


NO_LINES = SkippedLines()


class LineNumbers(Protocol):
    """Numbers of lines in their order."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> SupportsInt: ...


def of_lines(numbers: LineNumbers) -> SkippedLines:
    return SkippedLines(len(numbers), int(numbers[0]) if len(numbers) else 0)
