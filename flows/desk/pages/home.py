"""The first page: each scope with its verdict, open money and trend, and what waits for you."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import psycopg
from markupsafe import Markup
from starlette.responses import Response

from connectors.currencies import read_currencies
from connectors.postgres.runs.acceptance_rules import AcceptanceRule, RuleState, list_rules
from connectors.postgres.runs.reconciliations import Reconciliation, latest_runs, runs_of
from connectors.postgres.runs.signatures import Signature, approval_of, signatures_of
from flows.desk.filters import NONE, BreakSearch
from flows.desk.formats import number as in_figures
from flows.desk.review import Figures, Review
from flows.desk.seen import only_seen
from flows.desk.templates import currency
from flows.desk.trend import RUNS, TrendPoint, open_breaks, open_money
from flows.desk.visit import Visit
from flows.stages.reconcile.as_of import today
from schemas.accounts import MAY_DECIDE, MAY_SIGN
from schemas.counting import agree, quantity
from schemas.life import Choice, Role
from schemas.show_as import ShowAs

DRAWN, CURRENCIES = 12, 3
"""Scopes with money and trend, those with the latest runs; and the most currencies of a trend."""


@dataclass(frozen=True, slots=True)
class _Scope:
    run: Reconciliation
    signatures: dict[Role, Signature]
    review: Review
    may_approve: bool
    """Whether it is prepared, and the visitor can be the one who approves it."""

    @property
    def approval(self) -> str | None:
        return approval_of(self.signatures)

    @property
    def money(self) -> list[Figures]:
        """The open money, by currency."""
        return [one for one in self.review.figures if one.pool == "open"]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Something that the visitor can do."""

    what: str
    """What it is about, as the text of its link."""
    path: str
    text: str


def show(visit: Visit) -> Response:
    place, kept = visit.place, visit.desk.kept
    names = read_currencies(place.settings.currencies)
    trends: dict[int, list[Markup]] = {}
    with place.database.connect() as connection:
        scopes = [
            _scope(visit, connection, run)
            for run in reversed(only_seen(connection, latest_runs(connection)))
        ]
        for one in scopes[:DRAWN]:
            runs = runs_of(connection, one.run.scope, one.run.id, RUNS)
            points = [kept.trend_point(place, run) for run in runs]
            trends[one.run.id] = _pictures(visit.show, [of for of in points if of], one, names)
        rules = list_rules(connection)
    return visit.page(
        "home.html.jinja",
        scopes=scopes,
        drawn=scopes[:DRAWN],
        trends=trends,
        waiting=[
            *(waits for one in scopes for waits in _waiting(visit, one)),
            *_rules_waiting(visit, rules),
        ],
        names=names,
    )


def _scope(visit: Visit, connection: psycopg.Connection, run: Reconciliation) -> _Scope:
    kept, person = visit.desk.kept, visit.person
    signatures = signatures_of(connection, run.id)
    review = kept.review(visit.place, connection, run)
    may = (
        [*signatures] == [Role.PREPARED]
        and not review.waits
        and visit.may(*MAY_SIGN[Role.APPROVED])
        and not (person and kept.why_interested(connection, run, person.name))
    )
    return _Scope(run, signatures, review, may)


def _pictures(
    show: ShowAs, points: list[TrendPoint], one: _Scope, names: dict[str, str]
) -> list[Markup]:
    """The pictures of a scope's trend; a single run has none."""
    if len(points) < 2:
        return []
    keys = {of.currency: "" if of.currency == NONE else of.currency for of in one.money}
    largest = {
        of: max(point.money.get(key, Decimal(0)).copy_abs() for point in points)
        for of, key in keys.items()
    }
    most = sorted((of for of in keys if largest[of]), key=largest.__getitem__, reverse=True)
    return [
        open_breaks(show, points, one.run.id),
        *(
            open_money(show, points, one.run.id, keys[of], currency(of, names))
            for of in most[:CURRENCIES]
        ),
    ]


def _waiting(visit: Visit, one: _Scope) -> Iterator[_Waiting]:
    """What the visitor can do about the last run of a scope; the database has the last word."""
    number, spell = one.run.id, partial(in_figures, visit.show)
    named = f"Run {number}"
    prepared, person = one.signatures.get(Role.PREPARED), visit.person
    sign = f"/runs/{number}/sign"
    if not one.signatures and not one.review.waits and visit.may(*MAY_SIGN[Role.PREPARED]):
        yield _Waiting(named, sign, "Nothing is open: it can be prepared.")
    elif prepared and one.may_approve:
        yield _Waiting(named, sign, f"Prepared by {prepared.by}: it can be approved.")
    if person and (breaks := one.review.owners.get(person.name)):
        text = f"{quantity(breaks, 'open break', spell)} {agree(breaks, 'is', 'are')}"
        yield _Waiting(named, _open(number, owner=person.name), f"{text} assigned to you.")
    for by, breaks in one.review.proposals.items():
        if visit.may(*MAY_DECIDE[Choice.ACCEPT]) and (person is None or by != person.name):
            count = quantity(breaks, "acceptance", spell)
            text = f"{count} proposed by {by}: somebody else has to accept."
            yield _Waiting(named, _open(number, proposed_by=by), text)


def _rules_waiting(visit: Visit, rules: Sequence[AcceptanceRule]) -> Iterator[_Waiting]:
    """Rules of acceptance that somebody else has proposed."""
    if not visit.may(*MAY_SIGN[Role.APPROVED]):
        return
    now = today(visit.place.settings.time_zone)
    for one in rules:
        by = one.proposed.by
        if one.state(now) is RuleState.PROPOSED and (not visit.person or by != visit.person.name):
            text = f"Proposed by {by}: somebody else approves or withdraws it."
            yield _Waiting(f"Rule {one.number} of acceptance", "/acceptance", text)


def _open(number: int, **typed: str) -> str:
    return f"/runs/{number}/breaks?{BreakSearch(typed).query(state='open')}"
