"""Lines of a file that become no record."""

from typing import NamedTuple


class SkippedLines(NamedTuple):
    """A count of such lines and the number of the first: comments, or lines without a value."""

    lines: int = 0
    first: int = 0

    def with_more(self, later: "SkippedLines") -> "SkippedLines":
        return SkippedLines(self.lines + later.lines, self.first or later.first)


NO_LINES = SkippedLines()
