"""What somebody sees who decides about a held batch: why, how many rows of which reason, the first.

It is shown beside the form, so it is short, and every delivered text in it is escaped.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from flows.report.batch import BatchReport
from flows.report.markdown import cell, markdown_table, value_cell
from flows.report.text import digits, record_title

REASONS_SHOWN = 15
ROWS_SHOWN = 10


class FirstReject(NamedTuple):
    """One row with errors: its file, its line, and why, as ErrorData."""

    file: str
    line: int
    error_data: str


def decision_markdown(batch_id: int, report: BatchReport, rows: Sequence[FirstReject]) -> str:
    """The description of the form."""
    clean = report.rows - report.errors
    blocks = [
        f"## Batch {batch_id} is held",
        f"{cell(report.held_because or 'It is over its error budget', 200)}. Nothing of it is "
        "applied.",
        f"**release** applies the {digits(clean)} rows without errors, the {digits(report.errors)} "
        "others stay rejected. **reject** applies nothing and ends the batch; its files may be "
        "delivered again.",
        "### Rows by reason",
        markdown_table(("Record", "Reason", "Field", " Rows", "Next"), list(_reasons(report))),
    ]
    left = len(report.reasons) - REASONS_SHOWN
    if left > 0:
        blocks.append(f"{digits(left)} reasons more are in the artifact rejects.")
    shown = list(_rows(rows[:ROWS_SHOWN]))
    if shown:
        head = ("File", " Line", "Reason", "Field", "Value")
        blocks += ["### The first of them", markdown_table(head, shown)]
    return "\n\n".join(blocks) + "\n"


def _reasons(report: BatchReport) -> Iterator[tuple[str, ...]]:
    for line in report.reasons[:REASONS_SHOWN]:
        record = cell(record_title(report, line.record))
        yield record, cell(line.code), cell(line.field), digits(line.rows), cell(line.remedy, 160)


def _rows(rows: Sequence[FirstReject]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        error: dict[str, Any] = json.loads(row.error_data)[0]
        value = str(error["Meta"].get("value") or "")
        yield (
            cell(row.file),
            digits(row.line),
            cell(error["ErrorCode"]),
            cell(error["FieldName"] or ""),
            value_cell(value),
        )
