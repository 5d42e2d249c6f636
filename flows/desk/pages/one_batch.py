"""A batch: its files, what became of every row, and what was done with it."""

from decimal import Decimal
from typing import Any

from starlette.responses import Response

from connectors.postgres.overview import list_overview
from connectors.postgres.push.gate import held_text, why_held
from connectors.postgres.trail_search import TrailSearch, search_trail
from flows.desk.batches import batch_of, shows_text
from flows.desk.visit import Visit
from flows.report.next_step import next_in_words, next_step, told_repaired
from flows.report.text import (
    VERDICTS,
    Figure,
    differences,
    end_states,
    figure_label,
    figures,
    record_title,
    refusal,
)
from flows.steps.batch_report import BatchReport, Chain
from schemas.derived.views import SEND_ERRORS

EVENTS, FILES, REASONS, FIGURES = 50, 200, 50, 60
"""How many of each a page lists; the report and the trail have all."""


def show(visit: Visit) -> Response:
    """All that is known of one batch."""
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
        (line,) = list_overview(connection, 1, only=batch.id)
        why = why_held(connection, visit.place.settings.home)
        report = visit.desk.kept.batch_report(visit.place, connection, batch, line)
        events = [*search_trail(connection, TrailSearch(batch=batch.id), EVENTS + 1)]
    undecided = sum(line.at_service.get(state, 0) for state in SEND_ERRORS)
    return visit.page(
        "batch.html.jinja",
        batch=batch,
        line=line,
        report=report,
        meaning=VERDICTS[report.verdict].meaning if report and report.verdict in VERDICTS else "",
        repaired=told_repaired(line),
        words=next_in_words(line),
        command=next_step(line, held=why is not None),
        push_held=held_text(why) if why and line.at_service else "",
        undecided=undecided,
        rejects=line.errors - undecided,
        chains=[_chain(report, one) for one in report.chains] if report else [],
        pushed=[(one, _chain(report, one.chain)) for one in report.pushed] if report else [],
        refusal=refusal,
        title=record_title,
        with_text=shows_text(visit),
        events=events[:EVENTS],
        more_events=len(events) > EVENTS,
        most_files=FILES,
        most_reasons=REASONS,
    )


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
