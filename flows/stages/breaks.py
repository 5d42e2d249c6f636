"""Breaks between two runs: as they stand now, and what people decide about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import polars as pl
import psycopg

from connectors import reconciliations
from connectors.breaks import Decision, add_decisions, breaks_of, decisions_since
from connectors.errors import DecisionRefused
from connectors.reconciliations import Reconciliation, keep_scope
from flows.stages.workspace import Workspace
from flows.steps.reconcile.life import from_saved, is_open, standing_now
from flows.steps.reconcile.roll_forward import exact_sum
from schemas.life import OPEN, SIDES, UNRESOLVED, BreakState, Choice

NAMED = 5
"""Breaks a refusal names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which breaks are meant: by id, or all that fit every filter given."""

    ids: Sequence[str] = ()
    code: str | None = None
    state: str | None = None
    """As it stands now; `open` for every state that asks for action."""
    record: str | None = None
    tenant: int | None = None
    currency: int | None = None

    @property
    def filtered(self) -> bool:
        """Whether anything but ids is given."""
        return replace(self, ids=()) != Chosen()


@dataclass(frozen=True, slots=True)
class Decided:
    """What a decision was taken for."""

    run: Reconciliation
    decision: Decision
    ids: tuple[str, ...]
    amounts: dict[str, Decimal]
    """Currency -> money the breaks are about."""


def breaks_now(connection: psycopg.Connection, run: Reconciliation) -> pl.DataFrame:
    """The breaks of a run with what was decided on it since; see `life.standing_now`."""
    decisions = decisions_since(connection, run.scope_hash, run.decided_through)
    ours = decisions.filter(pl.col("reconciliation_id") == run.id)
    return standing_now(from_saved(breaks_of(connection, run.id)), ours, run.as_of)


def list_breaks(
    workspace: Workspace, number: int | None, chosen: Chosen
) -> tuple[Reconciliation, pl.DataFrame]:
    """The chosen breaks of a run (default: the latest), largest amounts first."""
    with workspace.database.connect() as connection:
        run = reconciliations.find_run(connection, number)
        found = _fitting(breaks_now(connection, run), chosen)
    if chosen.ids:
        found = found.filter(pl.col("id").is_in(list(chosen.ids)))
    return run, found.sort(
        pl.col("amount").abs(), "code", "record", "key", "field", "id",
        descending=[True, *[False] * 5], nulls_last=True,
    )  # fmt: skip


def decide_breaks(
    workspace: Workspace, number: int | None, chosen: Chosen, decision: Decision
) -> Decided:
    """Take one decision for all chosen breaks, or for none; raises DecisionRefused."""
    with workspace.database.connect() as connection, connection.transaction():
        run = reconciliations.find_run(connection, number)
        keep_scope(connection, run)
        _refuse_if_followed(connection, run)
        _refuse_terms(run, decision)
        breaks = breaks_now(connection, run)
        meant = _meant(breaks, run, chosen, decision)
        add_decisions(connection, run.id, meant["id"].to_list(), decision)
    sums = meant.group_by(pl.col("currency").cast(pl.String).fill_null("")).agg("amount")
    ordered = sorted(sums.iter_rows(), key=lambda one: (len(one[0]), one[0]))
    amounts = {currency: exact_sum(values) for currency, values in ordered}
    return Decided(run, decision, tuple(meant["id"]), amounts)


def _refuse_if_followed(connection: psycopg.Connection, run: Reconciliation) -> None:
    last = reconciliations.latest_run(connection, run.scope)
    if last is not None and last.id != run.id:
        raise DecisionRefused(
            f"Reconciliation {run.id} was followed by {last.id}. "
            f"Decide on the breaks of that one: --run {last.id}."
        )


def _refuse_terms(run: Reconciliation, decision: Decision) -> None:
    if not decision.reason.strip():
        raise DecisionRefused("A decision needs a reason: --reason TEXT.")
    if decision.by is not None and not decision.by.strip():
        raise DecisionRefused("--by is empty. Name who decides, or leave it out.")
    match decision.what:
        case Choice.ACCEPT if decision.until is None:
            raise DecisionRefused("An acceptance needs its last day: --until YYYY-MM-DD.")
        case Choice.ACCEPT if decision.until is not None and decision.until < run.as_of:
            raise DecisionRefused(
                f"--until {decision.until} has passed: reconciliation {run.id} is as of "
                f"{run.as_of}. Name a day from then on."
            )
        case Choice.RESOLVE if decision.side not in SIDES:
            raise DecisionRefused(f"--at must be one of: {', '.join(SIDES)}.")
        case Choice.ASSIGN if not (decision.owner or "").strip():
            raise DecisionRefused("An assignment needs an owner: --owner NAME.")


def _meant(
    breaks: pl.DataFrame, run: Reconciliation, chosen: Chosen, decision: Decision
) -> pl.DataFrame:
    if not chosen.ids and not chosen.filtered:
        raise DecisionRefused(
            "Name the breaks: ids, or a filter such as --code AMOUNT. `recon breaks list` has both."
        )
    fitting = _fitting(breaks, chosen)
    possible = _possible(decision, by_id=bool(chosen.ids))
    if not chosen.ids:
        meant = fitting.filter(possible)
        if meant.is_empty():
            raise DecisionRefused(
                f"Reconciliation {run.id} has no break that fits and that one can "
                f"{decision.what.value}. `recon breaks list` shows what there is."
            )
        return meant
    unknown = sorted({*chosen.ids} - {*fitting["id"]})
    if unknown:
        raise DecisionRefused(
            f"Reconciliation {run.id} has no such break, or it does not fit the filter: "
            f"{_named(unknown)}. Nothing was decided."
        )
    meant = fitting.filter(pl.col("id").is_in(list(chosen.ids)))
    impossible = meant.filter(~possible)
    if impossible.height:
        lines = [f"{one} is {state}" for one, state in impossible.select("id", "state").iter_rows()]
        raise DecisionRefused(
            f"One cannot {decision.what.value} these: {_named(lines)}. Nothing was decided."
        )
    return meant


def _possible(decision: Decision, *, by_id: bool) -> pl.Expr:
    """For which breaks a decision makes a difference."""
    state, claimed = pl.col("state"), pl.col("claimed")
    match decision.what:
        case Choice.REOPEN:
            return (state == BreakState.ACCEPTED) | claimed.is_not_null()
        case Choice.ACCEPT if not by_id:
            # A filter means what is open; an acceptance is prolonged one by one.
            return state.is_in(OPEN)
        case _:
            return state.is_in(UNRESOLVED)


def _fitting(breaks: pl.DataFrame, chosen: Chosen) -> pl.DataFrame:
    wanted: list[pl.Expr] = [
        pl.col(name) == value
        for name, value in (
            ("code", chosen.code),
            ("record", chosen.record),
            ("tenant", chosen.tenant),
            ("currency", chosen.currency),
        )
        if value is not None
    ]
    if chosen.state is not None:
        name = chosen.state.upper()
        if name not in BreakState.__members__:
            known = ", ".join(BreakState)
            raise DecisionRefused(f"There is no state {chosen.state!r}. Known: {known}.")
        wanted.append(is_open() if chosen.state == "open" else pl.col("state") == name)
    return breaks.filter(*wanted) if wanted else breaks


def _named(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return ", ".join(texts[:NAMED]) + more
