"""A batch: its files, the outcome of every row, and what was done with it."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from starlette.responses import Response

from connectors.postgres.auditing.audit import TrailEntry
from connectors.postgres.auditing.trail_search import TrailSearch, search_trail
from connectors.postgres.batches.ledger import ENDED, RUN_BEGAN, TAKEN_BACK, Batch, State
from connectors.postgres.batches.overview import BatchSummary, list_overview
from connectors.postgres.jobs import jobs_of_batch
from connectors.postgres.push.decisions import count_unsettled
from connectors.postgres.push.gate import held_text, why_held
from connectors.postgres.trail import read_detail
from flows.desk.forms import FormIncomplete, reason_of, taken
from flows.desk.jobs import order, refuse_unless_operator
from flows.desk.pages.files import report_files
from flows.desk.pages.jobs import TITLES, about_job
from flows.desk.seen import batch_of, named_batch, shows_text
from flows.desk.visit import Visit
from flows.report.next_step import next_in_words, next_step, repaired_text
from flows.report.text import (
    PLANNED,
    VERDICTS,
    Figure,
    differences,
    end_states,
    figure_label,
    figures,
    refusal,
    verdict_of,
)
from flows.stages.check import held_event, seen_before
from flows.stages.sequence import refuse_unless_held
from flows.steps.batch_report import BatchReport, Chain
from schemas.derived.views import SEND_ERRORS
from schemas.jobs import MAY_ORDER, JobKind

FLOW_RUN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The form of a flow run's id; nothing else becomes part of an address."""
EVENTS, FILES, REASONS, FIGURES, JOBS = 50, 200, 50, 60, 10
"""The most of each that a page lists; the report and the trail have all."""

UNSENT = ("unsent", "sending")
DECISIONS = (JobKind.RELEASE, JobKind.DISCARD)


def decide(visit: Visit) -> Response:
    """Order a release or a discard; a refusal keeps what was typed."""
    batch = named_batch(visit)
    return taken(visit, lambda: f"/jobs/{_ordered(visit, batch)}", show)


def _ordered(visit: Visit, batch: Batch) -> int:
    refuse_unless_operator(visit)
    if visit.typed("what") not in DECISIONS:
        raise FormIncomplete("Say whether the batch is released or discarded.")
    refuse_unless_held(visit.place, batch.id)
    with visit.place.database.connect() as connection:
        held = held_event(connection, batch.id)
    # The job checks only the event, because it takes the batch itself.
    if visit.typed("seen") != _held_as(batch, held):
        raise seen_before(batch)
    kind = JobKind(visit.typed("what"))
    return order(visit, kind, batch=batch.id, reason=reason_of(visit), held=held)


def _held_as(batch: Batch, held: int) -> str:
    """What a decision is bound to: who last had the batch, and the event that says it is held."""
    return f"{batch.lease_epoch} {held}"


def show(visit: Visit) -> Response:
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
        (line,) = list_overview(connection, 1, only=batch.id)
        why = why_held(connection, visit.place.settings.home)
        report = visit.desk.kept.batch_report(visit.place, connection, batch, line)
        files = report_files(visit, connection, batch.id)
        events = [*search_trail(connection, TrailSearch(batch=batch.id), EVENTS + 1)]
        jobs = jobs_of_batch(connection, batch.id, JOBS)
        held = held_event(connection, batch.id)
        unsettled = count_unsettled(connection, batch.id)
    undecided = sum(line.at_service.get(state, 0) for state in SEND_ERRORS)
    return visit.page(
        "batch.html.jinja",
        may_decide=batch.state is State.HELD and visit.may(*MAY_ORDER),
        held_as=_held_as(batch, held),
        work=_work(visit, line, line.errors - undecided),
        jobs=[(one, about_job(one)) for one in jobs],
        batch=batch,
        line=line,
        report=report,
        files=files,
        flow_runs=_flow_runs(events),
        prefect_ui=visit.desk.settings.prefect_ui,
        meaning=verdict_of(report).meaning if report else "",
        held_remedy=(verdict_of(report) if report else VERDICTS["held"]).remedy,
        untied=VERDICTS["does_not_tie"].remedy,
        titles=TITLES,
        planned=PLANNED,
        repaired=repaired_text(line),
        words=next_in_words(line),
        command=next_step(line, held=why is not None),
        push_held=held_text(why) if why and line.at_service else "",
        unsettled={state for _, state in unsettled},
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
    """The work that an operator can order for a batch in its present state."""
    state = State(line.state)
    if not visit.may(*MAY_ORDER) or state in (*TAKEN_BACK, State.HELD):
        return []
    asked = {
        JobKind.RERUN: state not in ENDED,
        JobKind.PUSH: any(line.at_service.get(one) for one in UNSENT),
        JobKind.CORRECT: rejects + line.to_deliver > 0 and state in ENDED,
        JobKind.UNDO: True,
    }
    return [kind for kind, sensible in asked.items() if sensible]


def _flow_runs(events: Sequence[TrailEntry]) -> dict[str, str]:
    """The Prefect runs that reported themselves in these events: id -> name."""
    begun = (read_detail(one.detail) for one in events if one.what == RUN_BEGAN)
    runs = {str(one.get("run")): str(one.get("name") or one.get("run")) for one in begun}
    return {number: name for number, name in runs.items() if FLOW_RUN.fullmatch(number)}


def _chain(report: BatchReport, chain: Chain) -> dict[str, Any]:
    """A record kind as the page shows it: the rows read, and the end states that add up to them."""
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
