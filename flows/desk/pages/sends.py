"""Rows of a batch that the service has not settled, with the evidence, and a decision."""

from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from connectors.errors import AccountRefused
from connectors.postgres.batches.ledger import Batch
from connectors.postgres.push.decisions import (
    DECIDABLE,
    count_decidable,
    count_unsettled,
    list_unsettled,
)
from connectors.postgres.push.sends import SendDecision, SendState
from flows.desk.forms import (
    LARGEST_ROW,
    FormIncomplete,
    read_row,
    read_whole,
    reason_of,
    refuse_nameless,
    taken,
)
from flows.desk.jobs import order
from flows.desk.seen import batch_of, named_batch, shows_text
from flows.desk.visit import Visit
from flows.stages.resolve import refuse_if_not_settled, why_not_settled
from flows.steps.secrets import HIDDEN
from schemas.accounts import takes_role
from schemas.guards.batch_states import OPERATED, RESOLVE
from schemas.jobs import MAY_ORDER, JobKind

ON_A_PAGE = 50
MEANS: Mapping[SendDecision, str] = {
    SendDecision.CONFIRM: "The service has the rows as they were sent. Nothing is sent.",
    SendDecision.RESEND: "The service does not have them. The next push sends them.",
    SendDecision.ABANDON: "Do not send them, now or later.",
}
DECISIONS = frozenset(map(str, SendDecision))
LOOK: Mapping[str, str] = {
    SendState.IN_DOUBT: "These rows were sent, and the answers were lost. Look for each at the "
    "service.",
    SendState.DIFFERS: "The service carried these rows out, and its answers show other values than "
    "were sent.",
    SendState.REFUSED: "The service refused these rows, each for the reason beside it.",
    SendState.ABANDONED: "Somebody decided that these rows are not to be sent.",
    SendState.ACKNOWLEDGED: "Somebody decided that the service has these rows. The service has not "
    "said so.",
    SendState.UNSENT: "These rows wait for the next push.",
}
"""What a state means, for the person who decides."""


def settle(visit: Visit) -> Response:
    """Have the chosen rows settled; a refusal keeps what was typed."""
    batch = named_batch(visit)
    return taken(visit, lambda: f"/jobs/{_settle(visit, batch)}", show)


def _settle(visit: Visit, batch: Batch) -> int:
    if not visit.may(*MAY_ORDER):
        raise AccountRefused(f"{takes_role(OPERATED[RESOLVE], MAY_ORDER)} Nothing was changed.")
    operation, state = visit.typed("operation"), visit.typed("state")
    what = visit.typed("what")
    if state not in (DECIDABLE[SendDecision(what)] if what in DECISIONS else ()):
        raise FormIncomplete("Say what the rows are: confirmed, to be sent again, or abandoned.")
    with visit.place.database.connect() as connection:
        refuse_if_not_settled(connection, batch.id, operation)
    reason = reason_of(visit)
    refuse_nameless(visit)
    places: list[tuple[int, int]] = []
    if visit.typed("all"):
        expected = read_whole(visit.typed(f"count_{what}"), LARGEST_ROW)
    else:
        places = [place for one in visit.form.getlist("row") if (place := read_row(str(one)))]
        expected = len(places)
        if not places:
            raise FormIncomplete("Choose rows, or all of them. Nothing was changed.")
    if expected is None:
        raise FormIncomplete("Load the page again: it does not say how many rows it showed.")
    return order(
        visit,
        JobKind.RESOLVE,
        batch=batch.id,
        decision=what,
        operation=operation,
        states=[state],
        places=places,
        expected=expected,
        reason=reason,
    )


def _chosen(counted: Collection[tuple[str, str]], operation: str, state: str) -> tuple[str, str]:
    """The operation and state asked for; else the first one in this state, or the first of all."""
    if (operation, state) in counted:
        return operation, state
    return next((one for one in counted if one[1] == state), next(iter(counted), ("", "")))


def show(visit: Visit) -> Response:
    """The rows of one operation in one state, those in doubt first."""
    asked = visit.form if visit.sent else visit.asked
    after = str(asked.get("after", ""))
    behind = read_whole(after, LARGEST_ROW) or 0
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
        counted = count_unsettled(connection, batch.id)
        chosen = _chosen(counted, str(asked.get("operation", "")), str(asked.get("state", "")))
        rows = list_unsettled(connection, batch.id, *chosen, after=behind, most=ON_A_PAGE + 1)
        why_not = why_not_settled(connection, batch.id, chosen[0]) if counted else ""
        covered = {} if why_not else count_decidable(connection, batch.id, *chosen)
    operation, state = chosen
    return visit.page(
        "sends.html.jinja",
        batch=batch,
        counted=[
            (*one, count, f"?{urlencode({'operation': one[0], 'state': one[1]})}", one == chosen)
            for one, count in counted.items()
        ],
        operation=operation,
        state=state,
        count=counted.get(chosen, 0),
        look=LOOK.get(state, ""),
        decisions=[(one, MEANS[one], of) for one, of in covered.items()],
        why_not=why_not,
        hidden=HIDDEN,
        rows=rows[:ON_A_PAGE],
        after=after if behind else "",
        more=urlencode({"operation": operation, "state": state, "after": rows[-2].at.number})
        if len(rows) > ON_A_PAGE
        else None,
        may_settle=visit.may(*MAY_ORDER) and not why_not,
        with_text=shows_text(visit),
        chosen=frozenset(str(one) for one in visit.form.getlist("row")),
    )
