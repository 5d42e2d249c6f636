"""The table of batches: the state of each, and the next step."""

from collections.abc import Iterable
from datetime import tzinfo

from connectors.desk_links import DeskPage, linked
from connectors.postgres.batches.overview import BatchSummary
from flows.report.markdown import cell
from flows.report.next_step import next_step, repaired_text
from flows.report.spelling import digits
from flows.report.text import state_word

MOST = 200
"""Most batches of a table; the pages of the UI slow down with more."""
NARROW = 45
"""Most characters of a cell that the UI shows without cutting them."""
NO_BATCH = {"Batch": "none", "Next": "recon import, or put files into the inbox"}


def board_table(
    lines: Iterable[BatchSummary], zone: tzinfo, *, held: bool = False
) -> list[dict[str, str]]:
    """One line per batch, next step first; delivered text is escaped, times are in `zone`."""
    table = [
        {
            "Batch": linked(DeskPage.BATCH, line.id),
            "Next": cell(
                "; ".join(filter(None, (repaired_text(line), next_step(line, held=held)))),
                2 * NARROW,
            ),
            "State": cell(state_word(line.state)),
            "Held because": cell(line.held_because or "", 2 * NARROW),
            "Rows": digits(line.rows),
            "Errors": digits(line.errors),
            "Feed": cell(line.feed, NARROW),
            "Opened": f"{line.opened_at.astimezone(zone):%Y-%m-%d %H:%M}",
        }
        for line in lines
    ]
    return table[:MOST] or [NO_BATCH]
