"""Deciding about breaks: which breaks, on which terms, and whether they are still as seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from urllib.parse import urlencode

import polars as pl
import psycopg
from starlette.responses import Response

from connectors.currencies import read_currencies
from connectors.errors import DecisionRefused, ReconError
from connectors.postgres.runs.breaks import Decision, decisions_since, newest_decision
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.desk.filters import BreakSearch
from flows.desk.formats import day, read_day, read_number, typed
from flows.desk.forms import LARGEST_ROW, read_whole, refused
from flows.desk.seen import run_of
from flows.desk.visit import Visit
from flows.stages.reconcile.behind_break import amount_of
from flows.stages.reconcile.breaks import (
    Chosen,
    can_be_decided,
    counted_elsewhere,
    decide_breaks,
    meant_by,
)
from flows.stages.reconcile.decision_rules import (
    Looked,
    digest_of,
    refuse_ceiling,
    refuse_if_decided,
    refuse_if_followed,
    refuse_if_other,
    refuse_terms,
)
from flows.steps.breaks.money import largest_first, sum_money
from schemas.accounts import ACTS, MAY_DECIDE
from schemas.life import DONE, SIDES, THEN, Choice

LISTED = 20
"""The most breaks that are shown; a decision about more needs a second look before it is taken."""
TERMS = ("reason", "until", "up_to", "side", "assignee", "due", "by")
"""Fields of the form; none has the name of a filter's field."""
ASKED: Mapping[Choice, tuple[str, ...]] = {
    Choice.ACCEPT: ("until", "up_to"),
    Choice.PROPOSE: ("until", "up_to"),
    Choice.REOPEN: (),
    Choice.RESOLVE: ("side",),
    Choice.ASSIGN: ("assignee", "due"),
    Choice.COMMENT: (),
}
"""The terms of each decision, in the order they are asked for."""
USUAL: Mapping[Choice, tuple[str, ...]] = {
    Choice.ACCEPT: (
        "Timing: settles in the next period",
        "Bank charges",
        "Rounding",
        "Agreed with the counterparty",
        "Known fault of the source, to be corrected there",
        "Too small to be pursued",
    ),
    Choice.REOPEN: (
        "Accepted by mistake",
        "The reason does not hold any more",
        "Still not settled",
    ),
    Choice.RESOLVE: ("Corrected by hand", "Delivered anew", "Withdrawn"),
    Choice.ASSIGN: ("Please look into it", "Yours by its cause"),
    Choice.COMMENT: (),
}
USUAL = {**USUAL, Choice.PROPOSE: USUAL[Choice.ACCEPT]}
"""Suggested reasons; any other text is as good."""
MEANS: Mapping[Choice, str] = {
    Choice.ACCEPT: "Accepts the breaks as they are, up to and including the last day; then they "
    "are open again.",
    Choice.PROPOSE: "Proposes an acceptance that takes two people: somebody else accepts the "
    "breaks with the same last day and ceiling.",
    Choice.REOPEN: "Takes back an acceptance, or a claim that a break is resolved.",
    Choice.RESOLVE: "Claims that the breaks were put right; the next run reopens those that were "
    "not.",
    Choice.ASSIGN: "Gives the breaks an owner; reports name the owner until somebody else is "
    "named.",
    Choice.COMMENT: "Comments on the breaks without changing their state.",
}


@dataclass(frozen=True, slots=True)
class _Selection:
    """A choice of breaks, from an address or a form."""

    ids: tuple[str, ...]
    all_of: BreakSearch | None
    """All that match this filter, instead of ids."""

    @classmethod
    def read(cls, visit: Visit) -> "_Selection":
        sent = visit.form if visit.sent else visit.request.query_params
        if sent.get("all") == "1":
            return cls((), BreakSearch.read(sent))
        ids = dict.fromkeys(str(one) for one in sent.getlist("break") if isinstance(one, str))
        return cls(tuple(ids), None)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The choice as fields of a form."""
        if self.all_of is None:
            return [("break", one) for one in self.ids]
        return [("all", "1"), *self.all_of.typed.items()]

    def about(self, breaks: pl.DataFrame) -> Sequence[str]:
        """Ids of the breaks in question, whatever state they are in."""
        if self.all_of is None:
            return self.ids
        stateless = {name: one for name, one in self.all_of.typed.items() if name != "state"}
        ids: list[str] = BreakSearch(stateless).fitting(breaks)["id"].to_list()
        return ids

    def allows(self, breaks: pl.DataFrame) -> Sequence[Choice]:
        """The decisions that can be taken about the chosen breaks as they are now."""
        if self.all_of is None:
            chosen = breaks.filter(pl.col("id").is_in(list(self.ids)))
            of_each = [can_be_decided(one, by_id=True).all() for one in Choice]
        else:
            chosen = self.all_of.fitting(breaks)
            of_each = [can_be_decided(one, by_id=False).any() for one in Choice]
        if chosen.is_empty():
            return ()
        allowed = chosen.select(one.alias(str(place)) for place, one in enumerate(of_each)).row(0)
        return [one for one, is_allowed in zip(Choice, allowed, strict=True) if is_allowed]

    def meant(self, breaks: pl.DataFrame, run: Reconciliation, what: Choice) -> pl.DataFrame:
        """The chosen breaks that allow this decision; raises DecisionRefused if none does."""
        if self.all_of is None:
            return meant_by(breaks, run, Chosen(self.ids), what)
        meant = self.all_of.fitting(breaks).filter(can_be_decided(what, by_id=False))
        if meant.is_empty():
            raise DecisionRefused(
                "Run {this} has no break that matches and that you can {do}. {the_list} shows "
                "what there is.",
                this=run.id, do=what.value,
            )  # fmt: skip
        return meant


def decide(visit: Visit) -> Response:
    """Show what would be decided and ask for the terms; then take the decision."""
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
        may = visit.decisions()
        selection, what, offered = _Selection.read(visit), _asked(visit), may[:0]
        try:
            refuse_if_followed(connection, run)
            allowed = selection.allows(visit.desk.kept.breaks(visit.place, connection, run))
            offered = [one for one in may if one in allowed]
            what = what or next(iter(offered or may), Choice.COMMENT)
            breaks, now = _find(visit, connection, run, selection, what)
        except DecisionRefused as error:
            return refused(visit, error).page(
                "decide_nothing.html.jinja",
                run=run,
                query=urlencode(selection.fields),
                what=what,
                offered=offered,
            )
    form = _Form(visit, run, selection, what, may, offered, breaks, now)
    step = visit.typed("step")
    if not step:
        return form.page("decide.html.jinja")
    try:
        decision = _read(visit, what)
        if step == "look":
            refuse_terms(run, decision)
            if what in (Choice.ACCEPT, Choice.PROPOSE):
                refuse_ceiling(breaks, decision)
            form.refuse_if_moved()
            return form.page("decide_look.html.jinja", decision=decision)
        return form.take(decision)
    except ReconError as error:
        return replace(form, visit=refused(visit, error)).page("decide.html.jinja")


@dataclass(frozen=True, slots=True)
class _Form:
    visit: Visit
    run: Reconciliation
    selection: _Selection
    what: Choice
    may: Sequence[Choice]
    """What the visitor may decide about breaks."""
    offered: Sequence[Choice]
    """What of that the chosen breaks allow."""
    breaks: pl.DataFrame
    """The chosen breaks, the largest first."""
    now: Looked
    """What the page with the form shows."""

    @property
    def seen(self) -> Looked:
        """What the page showed from which the form was sent."""
        return _looked(self.visit, self.now.about)

    def refuse_if_moved(self) -> None:
        """Raise DecisionsMoved, with the changes, if something changed since the form was shown."""
        with self.visit.place.database.connect() as connection:
            refuse_if_decided(connection, self.run, self.seen)
        refuse_if_other(self.breaks, self.seen)

    def take(self, decision: Decision) -> Response:
        """Take the decision, if everything is still as it was seen."""
        ids = Chosen(tuple(self.breaks["id"]))
        decided = decide_breaks(self.visit.place, self.run.id, ids, decision, self.seen)
        own = f"/runs/{self.run.id}"
        if len(decided.ids) == 1:
            return self.visit.go(f"{own}/breaks/{decided.ids[0]}")
        return self.visit.go(f"{own}/decided?event={decided.event_id}")

    def page(self, template: str, **values: object) -> Response:
        """The chosen breaks with their totals, and the form for the terms, or the terms."""
        first = self.breaks.head(LISTED)
        return self.visit.page(
            template,
            run=self.run,
            fields=self.selection.fields,
            query=urlencode(self.selection.fields),
            typed={name: self.visit.typed(name) for name in TERMS},
            what=self.what,
            may=self.may,
            offered=self.offered,
            act=ACTS[self.what],
            takes=MAY_DECIDE[self.what],
            asked=ASKED[self.what],
            means=MEANS[self.what],
            usual=USUAL[self.what],
            sides=[*SIDES],
            count=self.breaks.height,
            many=self.breaks.height > LISTED,
            rows=[row | {"money": amount_of(row, "amount")} for row in first.iter_rows(named=True)],
            money=sum_money(self.breaks),
            elsewhere=counted_elsewhere(self.breaks),
            seen=self.now,
            names=read_currencies(self.visit.place.settings.currencies),
            **values,
        )


def show_decided(visit: Visit) -> Response:
    """What was decided about several breaks at once, by its event in the trail."""
    event = read_whole(visit.asked.get("event", ""), LARGEST_ROW) or 0
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
        of_scope = decisions_since(connection, run.scope_hash, run.decided_through)
        breaks = visit.desk.kept.breaks(visit.place, connection, run)
    taken = of_scope.filter(pl.col("event_id") == event, pl.col("reconciliation_id") == run.id)
    if taken.is_empty():
        return visit.go(f"/runs/{run.id}/breaks")
    first = taken.row(0, named=True)
    decided = breaks.filter(pl.col("id").is_in(taken["break_id"].to_list()))
    return visit.page(
        "decided.html.jinja",
        run=run,
        what=first["what"],
        past=DONE[first["what"]],
        then=THEN[first["what"]],
        count=taken.height,
        reason=first["reason"],
        until=first["until"] and date.fromisoformat(first["until"]),
        money=sum_money(decided),
        elsewhere=counted_elsewhere(decided),
        names=read_currencies(visit.place.settings.currencies),
    )


def _looked(visit: Visit, about: Sequence[str]) -> Looked:
    """What the page showed from which a form was sent."""
    through = read_whole(visit.typed("through"), LARGEST_ROW) or 0
    return Looked(visit.typed("digest"), through, about)


def _asked(visit: Visit) -> Choice | None:
    """The decision asked for; None if none is named."""
    asked = visit.typed("what") or visit.asked.get("what", "")
    return Choice(asked) if asked in [*Choice] else None


def _find(
    visit: Visit,
    connection: psycopg.Connection,
    run: Reconciliation,
    selection: _Selection,
    what: Choice,
) -> tuple[pl.DataFrame, Looked]:
    """The chosen breaks, the largest first, and how they stand now."""
    # Asked first, so that a decision in between is refused rather than overlooked.
    last = newest_decision(connection, run.id, run.decided_through)
    breaks = visit.desk.kept.breaks(visit.place, connection, run)
    about = selection.about(breaks)
    try:
        meant = selection.meant(breaks, run, what)
    except DecisionRefused:
        # If a form was shown before, the cause is somebody's decision since then.
        if visit.typed("digest"):
            refuse_if_decided(connection, run, _looked(visit, about))
        raise
    through = last[0] if last else run.decided_through
    now = Looked(digest_of(meant), through, about)
    return meant.sort(*largest_first(), "id", nulls_last=True), now


def _read(visit: Visit, what: Choice) -> Decision:
    """The decision that was typed in; raises DecisionRefused if it cannot be read."""
    if not visit.accounts and not visit.typed("by"):
        raise DecisionRefused("Who decides? There are no accounts, so fill in {by}.")
    asked = ASKED[what]
    until = "due" if "due" in asked else "until"
    return Decision(
        what,
        visit.typed("reason"),
        visit.by,
        until=_day(visit, until) if until in asked else None,
        side=visit.typed("side") if "side" in asked else None,
        owner=visit.typed("assignee") if "assignee" in asked else None,
        up_to=_amount(visit) if "up_to" in asked else None,
    )


def _day(visit: Visit, name: str) -> date | None:
    text = visit.typed(name)
    found = read_day(visit.show, text)
    if text and found is None:
        raise DecisionRefused(
            f"{{{name}}}: {{text!r}} is no day. Write it as {{example}}.",
            text=text, example=day(visit.show, date(2026, 12, 31)),
        )  # fmt: skip
    return found


def _amount(visit: Visit) -> Decimal | None:
    text = visit.typed("up_to")
    found = read_number(visit.show, text)
    if text and found is None:
        raise DecisionRefused(
            "{up_to}: {text!r} is no amount. Write it as {example}.",
            text=text, example=typed(visit.show, Decimal("1250.00")),
        )  # fmt: skip
    return found
