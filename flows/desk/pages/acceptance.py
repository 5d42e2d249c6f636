"""Rules of acceptance: one person proposes, another approves, and either may withdraw."""

from datetime import date
from decimal import Decimal

from starlette.responses import Response

from connectors.currencies import read_currencies
from connectors.errors import DecisionRefused
from connectors.postgres.runs.acceptance_rules import RuleState, RuleTerms
from connectors.postgres.runs.reconciliations import latest_runs
from flows.desk.formats import day, read_day, read_number, typed
from flows.desk.forms import (
    FormIncomplete,
    read_tenant,
    read_whole,
    reason_of,
    refuse_nameless,
    taken,
)
from flows.desk.seen import only_seen, run_by
from flows.desk.visit import Visit
from flows.stages.reconcile.acceptance_rules import (
    NO_RULE,
    approve_rule,
    list_rules,
    propose_rule,
    withdraw_rule,
)
from flows.stages.reconcile.as_of import today
from schemas.accounts import MAY_DECIDE, MAY_SIGN
from schemas.breaks import BREAKS
from schemas.life import Choice, Role
from schemas.tables import EXTRACTS

ADDRESS = "/acceptance"


def decide(visit: Visit) -> Response:
    """Propose, approve or withdraw a rule; a refusal keeps what was typed."""
    return taken(visit, lambda: _decide(visit), show)


def _decide(visit: Visit) -> str:
    what, reason = visit.typed("what"), visit.typed("reason")
    refuse_nameless(visit)
    if what == "propose":
        with visit.place.database.connect() as connection:
            run = run_by(connection, _number(visit, "run"))
        propose_rule(visit.place, run.id, _terms(visit), visit.by)
        return ADDRESS
    number = _number(visit, "rule")
    if what == "approve":
        approve_rule(visit.place, number, by=visit.by, reason=reason or "approved")
    elif what == "withdraw":
        withdraw_rule(visit.place, number, by=visit.by, reason=reason_of(visit))
    else:
        raise FormIncomplete("Say whether the rule is approved or withdrawn.")
    return ADDRESS


def _terms(visit: Visit) -> RuleTerms:
    until = read_day(visit.show, visit.typed("until"))
    if until is None:
        example = day(visit.show, date(2026, 12, 31))
        raise DecisionRefused("{until} is no day, as {example}.", example=example)
    return RuleTerms(
        "",
        visit.typed("code"),
        _number(visit, "currency"),
        _amount(visit, "each"),
        _amount(visit, "total"),
        until,
        visit.typed("reason"),
        visit.typed("record") or None,
        _number(visit, "tenant") if visit.typed("tenant") else None,
    )


def _number(visit: Visit, name: str) -> int:
    found = (read_tenant if name == "tenant" else read_whole)(visit.typed(name))
    if found is None:
        raise FormIncomplete(f"{visit.typed(name)!r} is no number of the {name}.")
    return found


def _amount(visit: Visit, name: str) -> Decimal:
    found = read_number(visit.show, visit.typed(name))
    if found is None:
        raise DecisionRefused(
            "{typed!r} is no amount, as {example}.",
            typed=visit.typed(name), example=typed(visit.show, Decimal("12.50")),
        )  # fmt: skip
    return found


def show(visit: Visit) -> Response:
    """Every rule, with the people responsible for it."""
    with visit.place.database.connect() as connection:
        runs = only_seen(connection, latest_runs(connection))
    now = today(visit.place.settings.time_zone)
    rules = list_rules(visit.place)
    return visit.page(
        "acceptance.html.jinja",
        rules=[(one, one.state(now)) for one in rules],
        no_rule=NO_RULE,
        states=RuleState,
        runs=runs,
        names=read_currencies(visit.place.settings.currencies),
        codes=BREAKS.values(),
        records=EXTRACTS.values(),
        may_propose=bool(runs) and visit.may(*MAY_DECIDE[Choice.PROPOSE]),
        may_approve=visit.may(*MAY_SIGN[Role.APPROVED]),
        may_withdraw=visit.may(*MAY_DECIDE[Choice.REOPEN]),
    )
