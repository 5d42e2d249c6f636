"""The summary for deciding about a held batch: why it is held, rows by reason, the first rows.

It is shown beside the form, so it is short, and every delivered text in it is escaped.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from flows.report.markdown import cell, value_cell
from flows.report.spelling import digits, record_title
from flows.steps.batch_report import STATES, BatchReport
from schemas.counting import agree, quantity
from schemas.derived.views import ERRORS

REASONS_SHOWN = 15
ROWS_SHOWN = 10


class FirstReject(NamedTuple):
    """One row with errors: its file, line and record number, and its ErrorData."""

    file: str
    line: int
    record_number: int
    error_data: str


def decision_markdown(batch_id: int, report: BatchReport, rows: Sequence[FirstReject]) -> str:
    waiting = _rows_in(report, "pending")
    blocks = [
        f"## Batch {batch_id} is held",
        f"{cell(report.held_because or 'It is over its error budget', 200)}. Nothing is "
        "applied yet.",
        f"**release** applies {digits(waiting)} of the {quantity(report.rows, 'row', digits)} "
        f"read; {', '.join(_not_applied(report))}. **discard** applies nothing and ends the "
        "batch; its files may be delivered again.",
        "### Rows by reason",
        *_reasons(report),
    ]
    left = len(report.reasons) - REASONS_SHOWN
    if left > 0:
        more = f"{quantity(left, 'more reason', digits)} {agree(left, 'is', 'are')}"
        blocks.append(f"{more} in the artifact rejects.")
    if rows:
        show = f"`recon row {batch_id} FILE --line LINE` shows the delivered text of a row."
        blocks += ["### The first rows", *_rows(rows[:ROWS_SHOWN]), show]
    return "\n\n".join(blocks) + "\n"


def _not_applied(report: BatchReport) -> Iterator[str]:
    """Yield what a release does not apply, errors first."""
    yield f"{digits(report.errors)} {agree(report.errors, 'is', 'are')} in error"
    for state in STATES:
        rows = _rows_in(report, state)
        if rows and state not in (*ERRORS, "pending"):
            yield f"{digits(rows)} {agree(rows, 'is', 'are')} {state}"


def _rows_in(report: BatchReport, state: str) -> int:
    return sum(one.states[state].rows for one in report.chains if state in one.states)


# Paragraphs instead of tables: the form is narrow, and a table would hide its last columns.
def _reasons(report: BatchReport) -> Iterator[str]:
    most_first = sorted(report.reasons, key=lambda line: -line.rows)
    for line in most_first[:REASONS_SHOWN]:
        rows = quantity(line.rows, "row", digits)
        what = _joined(cell(line.code), cell(line.field), cell(record_title(line.record)))
        yield f"**{rows}**: {what}. {cell(line.remedy, 160)}"


def _rows(rows: Sequence[FirstReject]) -> Iterator[str]:
    for row in rows:
        error: dict[str, Any] = json.loads(row.error_data)[0]
        value = str(error["Meta"].get("value") or "")
        what = _joined(
            cell(error["ErrorCode"]), cell(error["FieldName"] or ""), value and value_cell(value)
        )
        yield f"{cell(row.file)}, line {row.line}, record {row.record_number}: {what}"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
