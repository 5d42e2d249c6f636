"""Resolve: what operators decide about sends that nobody else can settle, with who and why."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from connectors.errors import BatchStateError, BatchUnknown
from connectors.postgres import ledger
from connectors.postgres.evidence import BEFORE, answers_detail
from connectors.postgres.lease import hold_batch
from connectors.postgres.ledger import Extract, State
from connectors.postgres.push.sends import (
    Selection,
    SendDecision,
    SendState,
    Sent,
    decide,
    list_sends,
)
from connectors.recovery import reach
from flows.stages.finish import finish
from flows.stages.rows.locate import Spot, places, show_command
from flows.stages.sequence import Ended, refuse_if_taken_back
from flows.stages.workspace import Workspace
from flows.steps.batch_report import BatchReport
from schemas.counting import quantity
from schemas.operations import PUSHES

ROW = re.compile(r"(.+?):(?:(line|record):)?([0-9]{1,18})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChosenSends:
    """Which rows are meant, as people say it: all that is given has to hold."""

    rows: tuple[str, ...] = ()
    """`FILE:line:LINE` or `FILE:record:NUMBER` each: a delivered file, and a row of it."""
    operation: str | None = None
    states: tuple[str, ...] = ()
    places: tuple[tuple[int, int], ...] | None = None
    """Extract and record number of each, where no text names them."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a decision changed."""

    ended: Ended
    rows: int
    detail: dict[str, Any]
    """As the audit trail keeps it."""


def resolve(
    workspace: Workspace,
    batch_id: int,
    chosen: ChosenSends,
    decision: SendDecision,
    *,
    by: str | None,
    reason: str,
    expected: int | None = None,
) -> Resolved:
    """Settle rows and report the batch anew; nothing is sent here.

    `confirm`: the service has it as sent. `resend`: it has not, so the next push sends it, under
    the push key it had. `abandon`: it is not to be sent. Raises BatchStateError where no row is
    chosen, so that a mistyped choice is never taken for done, nor where they are
    not as many as `expected`: something else was looked at.
    """
    with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
        refuse_if_taken_back(connection, batch_id)
        selection = _selection(connection, batch_id, chosen)
        with lease.transaction():
            before = answers_detail(connection, batch_id, BEFORE)
            detail = decide(connection, selection, decision)
            if not detail["rows"]:
                raise BatchStateError(
                    f"No row of batch {batch_id} that is chosen can be settled by "
                    f"{decision.value}; nothing was changed. `recon sends {batch_id}` lists them."
                )
            if expected not in (None, detail["rows"]):
                raise BatchStateError(
                    f"{quantity(detail['rows'], 'row')} of batch {batch_id} would be settled, and "
                    f"{expected} were looked at: some have moved since. Look again; nothing was "
                    "changed."
                )
            ledger.add_event(
                connection,
                "resolve",
                batch_id=batch_id,
                by=by,
                reason=reason,
                detail=detail | before,
            )
            lease.set_state(State.MERGED)
        reach("resolved")
        report: BatchReport = finish(workspace, lease)
        ended = Ended(ledger.find_batch(connection, batch_id), report, new=False)
        return Resolved(ended, detail["rows"], detail)


def sends_of(workspace: Workspace, batch_id: int, chosen: ChosenSends) -> Iterator[Sent]:
    """The chosen sends of a batch with file, line and what was sent; secrets are masked."""
    with workspace.database.connect() as connection:
        ledger.find_batch(connection, batch_id)
        yield from list_sends(connection, _selection(connection, batch_id, chosen))


def _selection(connection: psycopg.Connection, batch_id: int, chosen: ChosenSends) -> Selection:
    known = sorted(operation.name for operation in PUSHES.values())
    if chosen.operation is not None and chosen.operation not in known:
        raise BatchUnknown(
            f"There is no operation {chosen.operation!r} to push to. Known: {', '.join(known)}."
        )
    unknown = sorted(set(chosen.states) - set(SendState))
    if unknown:
        raise BatchUnknown(f"{unknown[0]!r} is no state of a send: {', '.join(SendState)}.")
    if chosen.places is not None:
        return Selection(batch_id, chosen.operation, chosen.states, chosen.places)
    files = ledger.list_extracts(connection, batch_id)
    rows = tuple(
        place for row in chosen.rows for place in _places(connection, files, batch_id, row)
    )
    return Selection(batch_id, chosen.operation, chosen.states, rows if chosen.rows else None)


def _places(
    connection: psycopg.Connection, files: Sequence[Extract], batch_id: int, row: str
) -> Iterator[tuple[int, int]]:
    """The rows that a text names; a bare number is never guessed to be a line or a record."""
    name, word, number = found.groups() if (found := ROW.fullmatch(row)) else (row, None, None)
    extracts = [one for one in files if one.name == name]
    if not extracts or number is None:
        names = ", ".join(one.name for one in files[:10])
        raise BatchUnknown(
            f"{row!r} is no FILE:line:LINE or FILE:record:NUMBER of batch {batch_id}. "
            f"Its files: {names or 'none'}."
        )
    if word is None:
        raise BatchUnknown(
            f"{row!r} may be a line of {name} or the number of a record, which is another row. "
            f"Write {name}:line:{number} or {name}:record:{number}; nothing was changed."
        )
    spot = Spot(line=int(number)) if word == "line" else Spot(record=int(number))
    chosen = [place for one in extracts for place in places(connection, one, spot)]
    if not chosen:
        raise BatchUnknown(
            f"{row!r} is in no row of batch {batch_id}; nothing was changed. "
            f"`{show_command(batch_id, name, spot)}` says what is there."
        )
    yield from chosen
