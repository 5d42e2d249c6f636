"""The board of batches: the state of each, and what somebody has to do next."""

from starlette.responses import Response

from connectors.postgres.batches.ledger import State
from connectors.postgres.batches.overview import list_overview
from connectors.postgres.push.gate import held_text, why_held
from flows.desk.forms import read_whole
from flows.desk.visit import Visit
from flows.report.next_step import next_in_words, next_step, repaired_text

ON_A_PAGE = 50


def show(visit: Visit) -> Response:
    """The batches that the visitor may see, the latest first."""
    state, before = visit.asked.get("state", ""), visit.asked.get("before", "")
    lines, why = [], None
    if wrong := _wrong(state, before):
        visit = visit.refusing(wrong)
    else:
        with visit.place.database.connect() as connection:
            why = why_held(connection, visit.place.settings.home)
            lines = list_overview(
                connection,
                ON_A_PAGE + 1,
                state=State(state) if state else None,
                before=read_whole(before),
            )
    return visit.page(
        "batches.html.jinja",
        state=state,
        states=[*State],
        push_held=held_text(why) if why else "",
        lines=[
            (one, repaired_text(one), next_in_words(one), next_step(one, held=why is not None))
            for one in lines[:ON_A_PAGE]
        ],
        before=before,
        more=lines[ON_A_PAGE - 1].id if len(lines) > ON_A_PAGE else None,
    )


def _wrong(state: str, before: str) -> str:
    if state and state not in [*State]:
        return f"There is no state {state!r} of a batch. Choose one of the list."
    if before and read_whole(before) is None:
        return f"{before!r} is no number of a batch."
    return ""
