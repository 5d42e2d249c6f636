"""Resolve: operators' decisions about sends that nothing else can settle, with who and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from connectors.errors import BatchStateError
from connectors.postgres.accounts import OF_OTHERS, visible_batches
from connectors.postgres.auditing.batch_hashes import answers_detail
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import Lease, hold_batch
from connectors.postgres.batches.ledger import State
from connectors.postgres.push.decisions import (
    decide,
    decided_by,
    followers,
    settled_by,
    table_of,
)
from connectors.postgres.push.earlier import NUMBER
from connectors.postgres.push.sends import SendDecision
from connectors.postgres.resume import resumed
from connectors.postgres.trail import add_event
from connectors.recovery import reach
from flows.stages.chosen_sends import ChosenSends, selection_of
from flows.stages.finish import finish
from flows.stages.sequence import Ended, refuse_if_taken_back
from flows.stages.way_on import goes_on_by
from flows.stages.workspace import Workspace
from flows.steps.batch_report import BatchReport
from schemas.counting import first_of, grouped, quantity
from schemas.guards.batch_states import RESOLVE
from schemas.guards.ledger_digests import BEFORE

MOST_NAMED = 5
"""The most rows that a refusal names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Resolved:
    ended: Ended
    rows: int
    detail: dict[str, Any]
    """The entry in the audit trail, and the batches that follow, as far as they may be named."""


def next_text(batch_id: int, detail: Mapping[str, Any]) -> str:
    """What the next push does with rows that were decided about; empty if nothing."""
    sentences = [_sent_text(batch_id, detail)]
    sentences += [
        f"Rows of batch {other} ended as these had; `recon push {other}` lets them end as these do."
        for other in detail.get("followed_by", ())
    ]
    if detail.get("followed_by_others"):
        sentences.append(
            f"Rows of {OF_OTHERS} ended as these had; the next push of that lets them end as these "
            "do."
        )
    return " ".join(filter(None, sentences))


def _sent_text(batch_id: int, detail: Mapping[str, Any]) -> str:
    if detail["decision"] != SendDecision.RESEND:
        return ""
    rows, overwritten = detail["rows"], detail.get("overwritten", 0)
    sends = f"`recon push {batch_id}` sends them"
    if not overwritten:
        return f"{sends}."
    later = "a later batch has written the same record since"
    if overwritten == rows:
        return f"None is sent: {later}, and the next push makes them superseded."
    return f"{sends}, but for {grouped(overwritten)}: {later}, and they end as superseded."


def refuse_if_not_settled(connection: psycopg.Connection, batch_id: int, operation: str) -> None:
    """Raise BatchStateError if no row of an operation can be settled."""
    refuse_if_taken_back(connection, batch_id)
    table_of(operation, batch_id)


def why_not_settled(connection: psycopg.Connection, batch_id: int, operation: str) -> str:
    """Why no row of an operation can be settled; empty if nothing prevents it."""
    try:
        refuse_if_not_settled(connection, batch_id, operation)
    except BatchStateError as error:
        return str(error)
    return ""


def resolve(
    workspace: Workspace,
    batch_id: int,
    chosen: ChosenSends,
    decision: SendDecision,
    *,
    by: str | None,
    reason: str,
    expected: int | None = None,
    run: str | None = None,
) -> Resolved:
    """Settle rows and report the batch again; this sends nothing.

    `confirm`: the service has the row as sent. `resend`: it has not, so the next push sends it,
    under its former push key. `abandon`: it is not to be sent. Any decision may be replaced until
    the service answers. Raises BatchStateError if no row is chosen, or if a named row is not
    settled, so that a mistyped choice is never taken for done; also if the rows are not as many as
    `expected`, because then something else was looked at. The same Prefect `run`, which may be
    retried, decides only once.
    """
    tried: dict[int, dict[str, Any]] = {}

    def attempt() -> Resolved:
        with workspace.database.connect() as connection, hold_batch(connection, batch_id) as lease:
            # A decision may be committed although the answer to its COMMIT was lost.
            detail = decided_by(connection, batch_id, tried, run)
            if detail is None:
                refuse_if_taken_back(connection, batch_id)
                detail = _decide(
                    lease, chosen, decision, expected, tried, run, by=by, reason=reason
                )
            followed = _followed_by(connection, batch_id, detail[NUMBER])
            with goes_on_by(f"recon rerun {batch_id}"):
                reach("resolved")
                report: BatchReport = finish(workspace, lease)
            ended = Ended(ledger.find_batch(connection, batch_id), report, new=False)
            return Resolved(ended, detail["rows"], detail | followed)

    return resumed(workspace.database, attempt)


def _decide(
    lease: Lease,
    chosen: ChosenSends,
    decision: SendDecision,
    expected: int | None,
    tried: dict[int, dict[str, Any]],
    run: str | None,
    *,
    by: str | None,
    reason: str,
) -> dict[str, Any]:
    """Settle the rows; the attempt is noted in `tried` by its event before the commit."""
    batch_id = lease.batch_id
    selection = selection_of(lease.connection, batch_id, chosen)
    with lease.transaction() as connection:
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
                f"{expected} were looked at: some have moved since, or cannot be settled by "
                f"{decision.value}. Look again; nothing was changed."
            )
        if left := [*_left(connection, batch_id, chosen, decision, detail[NUMBER])]:
            raise BatchStateError(
                f"Of batch {batch_id}, {first_of(left, MOST_NAMED)} cannot be settled by "
                f"{decision.value}, or is none of those chosen; nothing was changed. "
                f"`recon sends {batch_id}` says what became of each row."
            )
        event = add_event(
            connection,
            RESOLVE,
            batch_id=batch_id,
            by=by,
            reason=reason,
            detail=detail | before | ({"run": run} if run else {}),
        )
        tried[event] = detail
        lease.set_state(State.MERGED)
    return detail


def _followed_by(connection: psycopg.Connection, batch_id: int, number: int) -> dict[str, Any]:
    """The batches with rows that are to end like those of a decision, and whether others exist."""
    found = followers(connection, batch_id, number)
    visible = visible_batches(connection, found)
    others = {"followed_by_others": True} if len(visible) < len(found) else {}
    return {"followed_by": sorted(visible), **others}


def _left(
    connection: psycopg.Connection,
    batch_id: int,
    chosen: ChosenSends,
    decision: SendDecision,
    number: int,
) -> Iterator[str]:
    """Rows named one by one that are not in the state that a decision gives."""
    for row in chosen.rows:
        selection = selection_of(connection, batch_id, ChosenSends((row,)))
        if not settled_by(connection, selection, decision, number):
            yield row
