"""Resolve: what operators decide about sends that nobody else can settle, with who and why."""

from dataclasses import dataclass
from typing import Any

from connectors.errors import BatchStateError
from connectors.postgres import ledger
from connectors.postgres.evidence import BEFORE, answers_detail
from connectors.postgres.lease import hold_batch
from connectors.postgres.ledger import State
from connectors.postgres.push.sends import (
    SendDecision,
    decide,
)
from connectors.postgres.trail import add_event
from connectors.recovery import reach
from flows.stages.chosen_sends import ChosenSends, selection_of
from flows.stages.finish import finish
from flows.stages.sequence import Ended, refuse_if_taken_back
from flows.stages.workspace import Workspace
from flows.steps.batch_report import BatchReport
from schemas.counting import quantity


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
        selection = selection_of(connection, batch_id, chosen)
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
            add_event(
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
