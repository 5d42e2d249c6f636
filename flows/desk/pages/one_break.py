"""A break: what it is and what to do, its amount, and the decisions about it."""

from collections.abc import Mapping

from starlette.responses import Response

from connectors.currencies import read_currencies
from connectors.postgres.accounts import visible_batches
from connectors.postgres.runs.signatures import look_at
from flows.desk.seen import run_of, shows_text
from flows.desk.visit import Visit
from flows.report.reconciled.words import GLOSSARY, SOURCES, STATES, WHY_GONE
from flows.report.spelling import record_title
from flows.stages.reconcile.behind_break import amount_of, find_break, look_behind
from schemas.accounts import MAY_DECIDE
from schemas.breaks import Money
from schemas.life import DONE, Choice

MEANS = {
    Money.DIFFERENCE: "by how much the sides differ",
    Money.GROSS: "the money of the record; nothing is known to be missing",
    Money.UNREADABLE: GLOSSARY[Money.UNREADABLE],
    Money.NONE: "it is about no money",
}
"""The meaning of a break's amount, for people."""
STATE_MEANS: Mapping[str, str] = {**STATES, **WHY_GONE}


def show(visit: Visit) -> Response:
    names = read_currencies(visit.place.settings.currencies)
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
        found = find_break(connection, run, visit.path["id"], names)
        behind = look_behind(visit.place, connection, found.facts, with_text=shows_text(visit))
        look_at(connection, run.id, found.facts["id"])
        facts = found.facts
        batches = visible_batches(connection, {facts["batch_id"]} - {None})
    return visit.page(
        "break.html.jinja",
        run=run,
        found=found,
        facts=facts,
        batches=batches,
        behind=behind,
        names=names,
        title=record_title(facts["record"]),
        state_means=STATE_MEANS.get(facts["state"], ""),
        side=SOURCES.get(facts["side"], ""),
        amount=amount_of(facts, "amount"),
        delta=amount_of(facts, "delta"),
        amount_means=MEANS[Money(facts["basis"])],
        offered=[one for one in visit.decisions() if one in found.possible],
        done=DONE,
        may_undo=visit.may(*MAY_DECIDE[Choice.REOPEN]),
    )
