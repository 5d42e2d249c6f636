"""Breaks between two runs: their present state, and people's decisions about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import polars as pl
import psycopg

from connectors.currencies import read_currencies
from connectors.errors import BreakUnknown, DecisionRefused
from connectors.postgres.accounts import acting, sees_breaks
from connectors.postgres.runs import reconciliations
from connectors.postgres.runs.breaks import (
    Decision,
    accepted_on,
    add_decisions,
    breaks_before,
    breaks_of,
    decisions_since,
)
from connectors.postgres.runs.reconciliations import Reconciliation, keep_scope
from flows.report.spelling import neutral
from flows.stages.reconcile.as_of import run_meant
from flows.stages.reconcile.decision_rules import (
    NAMED,
    Looked,
    refuse_ceiling,
    refuse_if_decided,
    refuse_if_followed,
    refuse_if_other,
    refuse_terms,
    refuse_unseen,
)
from flows.stages.witness import witness_trail
from flows.stages.workspace import Workspace
from flows.steps.breaks.acceptance import BOUND, SEEN, both_values, holds, name_of, outgrown
from flows.steps.breaks.carried_states import is_open
from flows.steps.breaks.counted import counted_alone
from flows.steps.breaks.lifecycle import current_breaks, nothing_before
from flows.steps.breaks.money import COUNTED, Sums, amount_size, largest_first, sum_money
from flows.steps.breaks.saved import from_saved, with_causes, with_seen
from schemas.breaks import BREAKS, Severity
from schemas.counting import first_of
from schemas.life import ASIDE, OPEN, RESOLVED, UNRESOLVED, BreakState, Choice
from schemas.tables import EXTRACTS

_THEN = "then_"
"""Prefix of a break's values at the time it was accepted again."""
_ANY = 2**63 - 1
"""Higher than any decision's number."""
GRAVEST = {one.value: place for place, one in enumerate(Severity)}
"""Severity -> its rank."""
STATES = {"open": OPEN, "aside": ASIDE, "resolved": RESOLVED}
"""Words for groups of states: requiring action, not looked at or waived, gone."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A choice of breaks: by id, or all that match every given filter."""

    ids: Sequence[str] = ()
    code: str | None = None
    state: str | None = None
    """The present state; or a word of `STATES`, such as `open`."""
    record: str | None = None
    tenant: int | None = None
    currency: int | None = None
    cause: str | None = None
    """Cause group of the run's report."""

    @property
    def filtered(self) -> bool:
        """Whether any filter is given besides ids."""
        return replace(self, ids=()) != Chosen()


@dataclass(frozen=True, slots=True)
class Decided:
    run: Reconciliation
    decision: Decision
    ids: tuple[str, ...]
    money: dict[str, Sums]
    """CurrenciesId as text -> the breaks' money in totals, differences and gross apart."""
    elsewhere: int
    """Breaks whose money is counted with another break of the same record."""
    event_id: int
    """The event of the decision in the trail."""

    @property
    def amounts(self) -> dict[str, Decimal]:
        """The differences by currency, without currencies that have none."""
        return {key: of.difference for key, of in self.money.items() if of.difference}

    @property
    def unreadable(self) -> int:
        """Breaks whose amount cannot be read, so that it is in no sum."""
        return sum(of.unreadable for of in self.money.values())

    @property
    def gross(self) -> dict[str, Decimal]:
        """The gross money by currency, without currencies that have none."""
        return {key: of.gross for key, of in self.money.items() if of.gross}


def breaks_left(
    connection: psycopg.Connection, scope: str, previous: Reconciliation | None, ids: pl.Series
) -> pl.DataFrame:
    """What the next run of a scope starts from, CARRIED, for breaks with these ids."""
    if previous is None:
        return nothing_before()
    whose = reconciliations.scope_hash(scope)
    before = from_saved(breaks_before(connection, whose, previous.id, ids))
    # Breaks of an earlier version lack the terms they were found by: their run's terms apply.
    before = before.with_columns(
        pl.col("looked_rules").fill_null(pl.lit(previous.rules_hash)),
        pl.col("looked_as_of").fill_null(pl.lit(previous.as_of)),
    )
    unknown = before.filter((pl.col("state") == BreakState.ACCEPTED) & pl.col("seen").is_null())
    if unknown.is_empty():
        return before
    accepted = unknown["id"].to_list()
    seen = accepted_on(connection, whose, previous.decided_through, accepted)
    return with_seen(before, from_saved(seen))


def breaks_left_by(
    connection: psycopg.Connection, run: Reconciliation, ids: Sequence[str] | None = None
) -> pl.DataFrame:
    """Breaks as a run left them, with their `cause` and what each adds to totals (`COUNTED`).

    They never change. With `ids`, only those, counted as if there were no others.
    """
    return counted_alone(with_causes(breaks_of(connection, run.id, ids)))


def breaks_now(
    connection: psycopg.Connection,
    run: Reconciliation,
    ids: Sequence[str] | None = None,
    left: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The breaks of a run with the decisions since, and what each adds to totals.

    See `lifecycle.current_breaks` and `counted.counted_alone`. `ids` limits the breaks. `left` is
    an earlier result of `breaks_left_by` for the same breaks; its additional columns are kept.
    """
    decisions = decisions_since(connection, run.scope_hash, run.decided_through, ids)
    ours = decisions.filter(pl.col("reconciliation_id") == run.id)
    before = breaks_left_by(connection, run, ids) if left is None else left
    return current_breaks(before, ours, run.as_of)


def taken_back(
    connection: psycopg.Connection, run: Reconciliation, breaks: pl.DataFrame
) -> pl.DataFrame:
    """The breaks that a run shows as accepted and that were reopened since, by id.

    With the break's name (`what`), the run (`on`), `by` whom and why (`reason`). What a break
    became on a later run says nothing about this run's day, but its being reopened does. A break
    that the person shown in the run accepted again, with the values the run shows, is left out;
    anybody else's acceptance only appears in the later run's report. `breaks` are those of
    `breaks_now`.
    """
    accepted = breaks.filter(pl.col("state") == BreakState.ACCEPTED).select("id", name_of())
    since = decisions_since(
        connection, run.scope_hash, run.decided_through, [*accepted["id"]]
    ).select("what", "by", "reason", "up_to", id="break_id", on="reconciliation_id", number="id")
    reopened = _last_of(since, Choice.REOPEN)
    found = accepted.join(reopened.select("id", "on", "by", "reason"), on="id").sort("id")
    left = from_saved(breaks_of(connection, run.id, [*found["id"]]))
    again = _last_of(since, Choice.ACCEPT).join(
        left.select("id", "accepted_by", "code", "record", "field", *BOUND), on="id"
    )
    then = accepted_on(connection, run.scope_hash, _ANY, [*again["id"]])
    at = from_saved(then).select("id", pl.col(BOUND).name.prefix(_THEN))
    covered = (
        again.join(reopened.select("id", before="number"), on="id")
        .filter(pl.col("number") > pl.col("before"), pl.col("by") == pl.col("accepted_by"))
        .join(_last_of(since, Choice.PROPOSE), on="id", how="anti")
        .join(at, on="id")
        .with_columns(pl.col("up_to").cast(SEEN["up_to"]))
        .filter(holds(_THEN, "up_to"))
    )
    return found.join(covered, on="id", how="anti", maintain_order="left")


def list_breaks(
    workspace: Workspace, number: int | None, chosen: Chosen
) -> tuple[Reconciliation, pl.DataFrame]:
    """The chosen breaks of a run (default: the latest), the largest first.

    With `outgrown` for breaks that differ from what was accepted; `accepted_as` and `is_now` tell
    both.
    """
    with workspace.database.connect() as connection:
        run = reconciliations.find_run(connection, number)
        found = _fitting(_seen(connection, run, breaks_now(connection, run)), chosen)
    if chosen.ids:
        if unknown := _not_among(found, chosen.ids):
            raise BreakUnknown(
                f"Reconciliation {run.id} has no such break, or it does not fit the filter: "
                f"{unknown}. `recon breaks list` shows what there is."
            )
        found = found.filter(pl.col("id").is_in(list(chosen.ids)))
    found = found.with_columns(
        outgrown(), *both_values(read_currencies(workspace.settings.currencies))
    )
    by = (*largest_first(), *map(pl.col, ("code", "record", "key", "field", "id")))
    return run, found.sort(*by, nulls_last=True)


def what_is_open(breaks: pl.DataFrame, severity: pl.Series, currencies: Mapping[str, str]) -> str:
    """Open breaks: how many of each severity and code, and the gravest by name.

    Sorted by severity, then by amount. `currencies` are the names of currencies.
    """
    left = breaks.with_columns(severity.alias("severity")).filter(is_open())
    ordered = left.with_columns(
        pl.col("severity").replace_strict(GRAVEST, return_dtype=pl.Int8).alias("__rank"),
        name_of(), outgrown(), *both_values(currencies),
    ).sort(
        "__rank", *largest_first(), pl.col("outgrown").not_(), "what", "id", nulls_last=True
    )  # fmt: skip
    counts = []
    for (of,), rows in ordered.group_by("severity", maintain_order=True):
        codes = rows.group_by("code").len().sort("len", "code", descending=[True, False])
        by_code = ", ".join(f"{code} {number}" for code, number in codes.iter_rows())
        counts.append(f"{rows.height} {of} ({by_code})")
    names = ordered.select(
        pl.when("outgrown")
        .then(pl.format("{}, accepted as {}, and now {}", "what", "accepted_as", "is_now"))
        .otherwise("what")
    )
    gravest = first_of(names.to_series().to_list(), NAMED, neutral, by="; ")
    return f"{', '.join(counts)}. Gravest first: {gravest}"


def decide_breaks(
    workspace: Workspace,
    number: int | None,
    chosen: Chosen,
    decision: Decision,
    seen: Looked | None = None,
) -> Decided:
    """Take one decision for all chosen breaks, or for none; raises DecisionRefused.

    `seen` is what the person deciding looked at. If it has changed, the decision is refused; the
    money reported with `seen` is that of these breaks as if there were no others.
    """
    with workspace.database.connect() as connection:
        run = run_meant(connection, number)
        with keep_scope(connection, run):
            refuse_if_followed(connection, run)
            refuse_terms(run, decision)
            breaks = breaks_now(connection, run, (chosen.ids or None) if seen else None)
            if seen is not None:
                refuse_if_decided(connection, run, seen)
            breaks = _seen(connection, run, breaks)
            meant = meant_by(breaks, run, chosen, decision.what)
            if seen is not None:
                refuse_if_other(meant, seen)
            if decision.what in (Choice.ACCEPT, Choice.PROPOSE):
                refuse_ceiling(meant, decision)
                if number is None:
                    named = read_currencies(workspace.settings.currencies)
                    refuse_unseen(connection, run, meant, named, by_id=bool(chosen.ids))
            event = add_decisions(connection, run.id, meant["id"].to_list(), decision)
        witness_trail(workspace, connection)
    ids = tuple(meant["id"])
    return Decided(run, decision, ids, sum_money(meant), counted_elsewhere(meant), event)


def counted_elsewhere(breaks: pl.DataFrame) -> int:
    """How many breaks have their money counted with another break of the same record."""
    return breaks.filter(amount_size() != 0, pl.col(COUNTED) == 0).height


def meant_by(
    breaks: pl.DataFrame, run: Reconciliation, chosen: Chosen, what: Choice
) -> pl.DataFrame:
    """The breaks of a run that a decision is for; raises DecisionRefused."""
    if not chosen.ids and not chosen.filtered:
        raise DecisionRefused("Name the breaks: ids, or {a_filter}. {the_list} has both.")
    fitting = _fitting(breaks, chosen)
    possible = can_be_decided(what, by_id=bool(chosen.ids))
    if not chosen.ids:
        meant = fitting.filter(possible)
        if meant.is_empty():
            raise DecisionRefused(
                "Reconciliation {this} has no break that fits and that one can {do}. "
                "{the_list} shows what there is.",
                this=run.id, do=what.value,
            )  # fmt: skip
        return meant
    if unknown := _not_among(fitting, chosen.ids):
        raise DecisionRefused(
            "Reconciliation {this} has no such break, or it does not fit the filter: {lines}. "
            "Nothing was decided.",
            this=run.id, lines=unknown,
        )  # fmt: skip
    meant = fitting.filter(pl.col("id").is_in(list(chosen.ids)))
    impossible = meant.filter(~possible)
    if impossible.height:
        lines = [f"{one} is {state}" for one, state in impossible.select("id", "state").iter_rows()]
        raise DecisionRefused(
            "One cannot {do} these: {lines}. Nothing was decided.",
            do=what.value, lines=first_of(lines, NAMED),
        )  # fmt: skip
    return meant


def can_be_decided(what: Choice, *, by_id: bool) -> pl.Expr:
    """Breaks for which a decision makes a difference; fewer for a filter than for ids."""
    state, claimed = pl.col("state"), pl.col("claimed")
    match what:
        case Choice.REOPEN:
            kept = state.is_in(ASIDE) & pl.col("accepted_by").is_not_null()
            return (state == BreakState.ACCEPTED) | kept | claimed.is_not_null()
        case Choice.ACCEPT | Choice.PROPOSE if not by_id:
            # A filter only means open breaks; acceptances are prolonged one by one.
            return state.is_in(OPEN)
        case _:
            return state.is_in(UNRESOLVED)


def _seen(
    connection: psycopg.Connection, run: Reconciliation, breaks: pl.DataFrame
) -> pl.DataFrame:
    """The breaks that the acting account may see, also when the connection reads more."""
    if sees_breaks(connection, run.id):
        return breaks
    person = acting(connection)
    return breaks.filter(pl.col("tenant").is_in(person.tenants if person else ()))


def _not_among(breaks: pl.DataFrame, ids: Sequence[str]) -> str:
    """The ids that none of the breaks has, as text."""
    return first_of(sorted({*ids} - {*breaks["id"]}), NAMED)


def _fitting(breaks: pl.DataFrame, chosen: Chosen) -> pl.DataFrame:
    """The breaks that match every filter; raises BreakUnknown for an unknown code or kind."""
    for what, value, known, of in (
        ("break code", chosen.code, BREAKS, "code"),
        ("record kind", chosen.record, sorted(EXTRACTS), "record"),
    ):
        if value is not None and value not in {*known, *breaks[of]}:  # Breaks may have old codes.
            raise BreakUnknown(f"There is no {what} {value!r}. Known: {', '.join(known)}.")
    wanted: list[pl.Expr] = [
        pl.col(name) == value
        for name in ("code", "record", "tenant", "currency", "cause")
        if (value := getattr(chosen, name)) is not None
    ]
    if chosen.state is not None:
        wanted.append(in_state(chosen.state))
    return breaks.filter(*wanted) if wanted else breaks


def _last_of(decisions: pl.DataFrame, what: Choice) -> pl.DataFrame:
    return decisions.filter(pl.col("what") == what).unique("id", keep="last", maintain_order=True)


def in_state(name: str) -> pl.Expr:
    """Which breaks are in a state, or in one of a group: `open`, `aside`, `resolved`."""
    if name in STATES:
        return pl.col("state").is_in(STATES[name])
    if name.upper() not in BreakState.__members__:
        known = ", ".join([*STATES, *BreakState])
        raise DecisionRefused(
            "There is no state {state!r}. Known: {known}.", state=name, known=known
        )
    return pl.col("state") == name.upper()
