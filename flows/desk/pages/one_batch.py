"""A batch: its files, what became of every row, and what was done with it."""

import re
from collections.abc import Sequence
from decimal import Decimal
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from connectors.errors import AccountRefused
from connectors.postgres.audit import TrailEntry
from connectors.postgres.command_rights import may_run
from connectors.postgres.jobs import jobs_of_batch
from connectors.postgres.ledger import ENDED, RUN_BEGAN, Batch, State
from connectors.postgres.overview import BatchSummary, list_overview
from connectors.postgres.push.gate import held_text, why_held
from connectors.postgres.push.send_page import UNSETTLED
from connectors.postgres.trail import said_by
from connectors.postgres.trail_search import TrailSearch, search_trail
from flows.desk.forms import FormIncomplete, reason_of, refuse_nameless, taken
from flows.desk.jobs import order
from flows.desk.pages.files import report_files
from flows.desk.pages.jobs import told
from flows.desk.seen import batch_of, shows_text
from flows.desk.visit import Visit
from flows.report.next_step import next_in_words, next_step, told_repaired
from flows.report.text import (
    VERDICTS,
    Figure,
    differences,
    end_states,
    figure_label,
    figures,
    refusal,
)
from flows.stages.decide import DECISIONS, held_as, refuse_unless_seen
from flows.steps.batch_report import BatchReport, Chain
from schemas.accounts import AccountRole
from schemas.derived.views import SEND_ERRORS
from schemas.jobs import MAY_ORDER, JobKind

FLOW_RUN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The form of its id; nothing else becomes part of an address."""
EVENTS, FILES, REASONS, FIGURES, JOBS = 50, 200, 50, 60, 10
"""How many of each a page lists; the report and the trail have all."""


UNSENT = ("unsent", "sending")


TAKES = "discard"
"""The command that takes what either does; `recon release` goes on with the rows as well."""


def decide(visit: Visit) -> Response:
    """Release or discard it; whatever is refused keeps what was typed."""
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
    return taken(visit, lambda: _decide(visit, batch), show)


def _decide(visit: Visit, batch: Batch) -> str:
    if not visit.may(AccountRole.OPERATOR):
        raise AccountRefused(
            "Releasing and discarding batches takes the role operator. Ask one, or an "
            "administrator for the role. Nothing was changed."
        )
    what = visit.typed("what")
    if what not in DECISIONS:
        raise FormIncomplete("Say whether the batch is released or discarded.")
    seen, reason = visit.typed("seen"), reason_of(visit)
    with visit.place.database.connect() as connection:
        may_take = may_run(connection, TAKES)
    refuse_unless_seen(visit.place, batch.id, seen)
    if not may_take:
        number = order(visit, JobKind(what), batch=batch.id, reason=reason, seen=seen)
        return f"/jobs/{number}"
    refuse_nameless(visit)
    DECISIONS[JobKind(what)](visit.place, batch.id, by=visit.by, reason=reason)
    return f"/batches/{batch.id}"


def show(visit: Visit, *, said: str = "", status: HTTPStatus = HTTPStatus.OK) -> Response:
    """All that is known of one batch."""
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
        (line,) = list_overview(connection, 1, only=batch.id)
        why = why_held(connection, visit.place.settings.home)
        report = visit.desk.kept.batch_report(visit.place, connection, batch, line)
        files = report_files(visit, connection, batch.id)
        events = [*search_trail(connection, TrailSearch(batch=batch.id), EVENTS + 1)]
        jobs = jobs_of_batch(connection, batch.id, JOBS)
        may_take, seen = may_run(connection, TAKES), held_as(connection, batch)
    undecided = sum(line.at_service.get(state, 0) for state in SEND_ERRORS)
    return visit.page(
        "batch.html.jinja",
        status,
        said=said,
        may_decide=batch.state is State.HELD and visit.may(AccountRole.OPERATOR),
        # Else a job does it, and goes on.
        may_take=may_take,
        held_as=seen,
        work=_work(visit, line, line.errors - undecided),
        jobs=[(one, told(one)) for one in jobs],
        batch=batch,
        line=line,
        report=report,
        files=files,
        flow_runs=_flow_runs(events),
        prefect_ui=visit.desk.settings.prefect_ui,
        meaning=VERDICTS[report.verdict].meaning if report and report.verdict in VERDICTS else "",
        repaired=told_repaired(line),
        words=next_in_words(line),
        command=next_step(line, held=why is not None),
        push_held=held_text(why) if why and line.at_service else "",
        undecided=undecided,
        unsettled=UNSETTLED,
        rejects=line.errors - undecided,
        chains=[_chain(report, one) for one in report.chains] if report else [],
        pushed=[(one, _chain(report, one.chain)) for one in report.pushed] if report else [],
        refusal=refusal,
        with_text=shows_text(visit),
        events=events[:EVENTS],
        more_events=len(events) > EVENTS,
        most_files=FILES,
        most_reasons=REASONS,
    )


def _work(visit: Visit, line: BatchSummary, rejects: int) -> list[JobKind]:
    """What an operator can ask for about a batch as it is."""
    state = State(line.state)
    if not visit.may(*MAY_ORDER) or state in (State.UNDONE, State.DISCARDED, State.HELD):
        return []
    asked = {
        JobKind.RERUN: state not in ENDED,
        JobKind.PUSH: any(line.at_service.get(one) for one in UNSENT),
        JobKind.CORRECT: rejects > 0 and state in ENDED,
        JobKind.UNDO: True,
    }
    return [kind for kind, sensible in asked.items() if sensible]


def _flow_runs(events: Sequence[TrailEntry]) -> dict[str, str]:
    """The runs of Prefect that told of themselves in these events, by id, with their names."""
    told = (said_by(one.detail) for one in events if one.what == RUN_BEGAN)
    runs = {str(one.get("run")): str(one.get("name") or one.get("run")) for one in told}
    return {number: name for number, name in runs.items() if FLOW_RUN.fullmatch(number)}


def _chain(report: BatchReport, chain: Chain) -> dict[str, Any]:
    """A record kind as the page shows it: what was read, and the end states that make it."""
    states = end_states(chain)
    every = figures(chain)
    return {
        "title": chain.title,
        "ties": chain.ties,
        "read": chain.lines[0].totals.rows if chain.lines else 0,
        "states": {name: totals.rows for name, totals in states.items()},
        "lines": [
            (one.stage, one.totals.rows, one.explained, differences(report, chain, one.residual))
            for one in chain.lines
        ],
        "figures": [
            (figure_label(report, figure), *_row(chain, figure, list(states)))
            for figure in every[:FIGURES]
        ],
        "more_figures": max(0, len(every) - FIGURES),
        "unreadable": report.unreadable(chain),
    }


def _row(chain: Chain, figure: Figure, states: list[str]) -> list[int | Decimal]:
    read = [figure.of(chain.lines[0].totals)] if chain.lines else []
    return [*read, *(figure.of(chain.states[state]) for state in states)]
