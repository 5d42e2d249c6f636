"""What became of the files of an inbox, as a table for the Prefect UI."""

from collections.abc import Sequence

from flows.report.markdown import cell
from flows.stages.inbox import InboxLine

MOST = 200
"""Lines of one table; the pages of the UI slow down with more."""
NOTHING_THERE = {"File": "none", "Became": "", "Detail": ""}


def inbox_table(lines: Sequence[InboxLine]) -> list[dict[str, str]]:
    """One line per file or delivery, what wants attention first."""
    first = ("failed", "quarantined")
    order = sorted(lines, key=lambda line: line.became not in first)
    table = [
        {"File": cell(line.name), "Became": line.became, "Detail": cell(line.detail, 160)}
        for line in order[:MOST]
    ]
    return table or [NOTHING_THERE]
