"""The next step for a batch or a row, the same for lists, pages and messages."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from connectors.postgres.batches.attempts import REJECTED, REPAIRED, WAITING, Later
from connectors.postgres.batches.ledger import ENDED, TAKEN_BACK, State
from connectors.postgres.batches.overview import BatchSummary
from flows.steps.batch_report import PUSH_LEFT, BatchReport
from schemas.counting import agree, quantity
from schemas.derived.views import SEND_ERRORS
from schemas.reasons import remedies


class Left(NamedTuple):
    """What is left to do of a batch."""

    rejected: int = 0
    """Number of rows that are rejected or in conflict."""
    files: int = 0
    """Number of files that were refused and not taken since."""
    at_service: Mapping[str, int] = {}
    """State at the service -> number of rows."""


def next_step(line: BatchSummary, *, held: bool = False) -> str:
    """What to do about a batch in a list; empty if nothing is left to do.

    `held` says that nothing is pushed before somebody states where to continue.
    """
    left = _left(line)
    match line.state:
        case State.HELD:
            return decisions(line.id)
        case State.FAILED:
            return f"read the report; recon rerun {line.id} recounts"
        case State.COMPLETE | State.COMPLETE_WITH_ERRORS:
            return commands(line.id, left, corrects=line.corrects, held=held)
        case State.MERGED if any(line.at_service.get(state) for state in PUSH_LEFT):
            return commands(line.id, left, corrects=line.corrects, held=held)
        case state if state not in ENDED:
            return f"recon rerun {line.id}"
    return ""


def decisions(batch_id: int) -> str:
    return f"recon release {batch_id} --reason ..., or recon discard {batch_id} --reason ..."


def next_in_words(line: BatchSummary) -> str:
    """As `next_step`, for people without a terminal."""
    match line.state:
        case State.HELD:
            return "Release or discard it"
        case State.FAILED:
            return "Read its report, then run it again"
        case State.CHECKED:
            return "The run that has it applies its clean rows; if none has it, run it again"
        case State.COMPLETE | State.COMPLETE_WITH_ERRORS | State.MERGED:
            if words := _in_words(_left(line)):
                return words
    return "" if line.state in ENDED else "It is being worked on, or was stopped: run it again"


def _left(line: BatchSummary) -> Left:
    undecided = sum(line.at_service.get(state, 0) for state in SEND_ERRORS)
    return Left(line.errors - undecided, line.to_deliver, line.at_service)


def _in_words(left: Left) -> str:
    waiting = sum(left.at_service.get(state, 0) for state in PUSH_LEFT)
    undecided = sum(left.at_service.get(state, 0) for state in SEND_ERRORS)
    steps = (
        waiting and f"push {quantity(waiting, 'row')}",
        undecided and f"settle {quantity(undecided, 'row')} at the service",
        left.rejected and f"correct {quantity(left.rejected, 'reject')}",
        left.files
        and f"upload {quantity(left.files, 'refused file')}, put right, under "
        f"{agree(left.files, 'its name', 'their names')}",
    )
    text = "; ".join(step for step in steps if step)
    return text[:1].upper() + text[1:]


def repaired_text(line: BatchSummary) -> str:
    """Say that all errors a batch ended with are repaired, although its state stays the same."""
    rejects = sum(line.repaired.values())
    if not rejects:
        return ""
    *others, last = map(str, line.repaired)
    by = f"{', '.join(others)} and {last}" if others else last
    what = "its reject" if rejects == 1 else f"all {quantity(rejects, 'reject')}"
    return f"{what} repaired by {agree(len(line.repaired), 'batch', 'batches')} {by}"


def left_of(report: BatchReport) -> Left:
    at_service: Counter[str] = Counter()
    for one in report.pushed:
        at_service.update({state: totals.rows for state, totals in one.states.items()})
    undecided = sum(one.undecided for one in report.pushed)
    return Left(report.errors - report.again - undecided, report.to_deliver, at_service)


def commands(batch_id: int, left: Left, *, corrects: int | None = None, held: bool = False) -> str:
    """The commands that settle what is left, in the order that saves work; empty if nothing is.

    A refused file of corrections is imported as a correction of the batch that it was for.
    """
    steps = []
    if any(left.at_service.get(state) for state in PUSH_LEFT):
        first = "recon restored --unsent ..., then " if held else ""
        steps.append(f"{first}recon push {batch_id}")
    undecided = [state for state in reversed(SEND_ERRORS) if left.at_service.get(state)]
    if undecided:
        states = " ".join(f"--state {state}" for state in undecided)
        steps.append(f"recon sends {batch_id} {states}, then recon resolve")
    if left.rejected:
        steps.append(f"recon rejects {batch_id} --out FOLDER")
    if left.files:
        files = agree(left.files, "FILE", "FILE...")
        steps.append(f"recon import {files} --corrects {corrects or batch_id}")
    return "; ".join(steps)


_LATER = {
    REPAIRED: "Nothing: batch {batch} has its repair.",
    REJECTED: "Correct it in batch {batch}, where it was delivered again and is in error.",
    WAITING: "Wait for batch {batch}, which has its repair and has not come to its end.",
}


def next_of_row(
    errors: Iterable[Mapping[str, Any]], state: State, later: Later | None
) -> list[str]:
    """What to do about the errors of a row, given as in ErrorData; empty if nothing.

    `state` is that of its batch, `later` what became of the row in another batch.
    """
    steps = remedies(str(error["ErrorCode"]) for error in errors)
    if not steps:
        return []
    if state in TAKEN_BACK:
        return [f"Import its file again: of a batch that was {state} no row is corrected."]
    return [_LATER[later.state].format(batch=later.batch_id)] if later else steps
