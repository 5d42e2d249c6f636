"""What a rerun changed: rows of the batches it touched, by record kind and state."""

from collections.abc import Iterator, Mapping

from flows.report.markdown import cell
from flows.report.spelling import digits
from flows.steps.batch_report import STATES

Counts = Mapping[str, Mapping[str, int]]
"""Record kind -> state -> rows."""

NO_CHANGE = {"Batch": "none", "Record": "", "State": "", "Before": "", "After": "", "Change": ""}
"""A table without a line has no columns either; the UI takes those from the first line."""


def changes_table(
    before: Mapping[int, Counts], after: Mapping[int, Counts]
) -> list[dict[str, str]]:
    """One line per batch, record kind and state that has or had rows."""
    return list(_lines(before, after)) or [NO_CHANGE]


def _lines(before: Mapping[int, Counts], after: Mapping[int, Counts]) -> Iterator[dict[str, str]]:
    for batch in sorted({*before, *after}):
        old, new = before.get(batch, {}), after.get(batch, {})
        for record in sorted({*old, *new}):
            was, now = old.get(record, {}), new.get(record, {})
            for state in sorted({*was, *now}, key=_place):
                rows, rows_now = was.get(state, 0), now.get(state, 0)
                yield {
                    "Batch": str(batch),
                    "Record": cell(record),
                    "State": cell(state),
                    "Before": digits(rows),
                    "After": digits(rows_now),
                    "Change": digits(rows_now - rows, signed=True),
                }


def _place(state: str) -> tuple[int, str]:
    return (STATES.index(state) if state in STATES else len(STATES), state)
