"""Breaks between two runs: as they stand now, and what people decide about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import polars as pl
import polars.selectors as cs
import psycopg

from connectors.errors import DecisionRefused
from connectors.postgres import reconciliations
from connectors.postgres.breaks import (
    Decision,
    accepted_on,
    add_decisions,
    breaks_before,
    breaks_of,
    decisions_since,
)
from connectors.postgres.reconciliations import Reconciliation, keep_scope
from flows.report.spelling import neutral
from flows.stages.witness import witness_trail
from flows.stages.workspace import Workspace
from flows.steps.breaks.acceptance import (
    BOUND,
    both_values,
    name_of,
    outgrown,
    size,
    values,
)
from flows.steps.breaks.lifecycle import BEFORE, is_open, nothing_before, standing_now, with_counts
from flows.steps.breaks.money import COUNTED, Sums, sum_money
from flows.steps.breaks.saved import causes_of, from_saved, with_seen
from flows.steps.frames.beyond import largest_first
from flows.steps.totals import plain
from schemas.breaks import Severity
from schemas.life import ASIDE, OPEN, SIDES, UNRESOLVED, BreakState, Choice

GRAVEST = {one.value: place for place, one in enumerate(Severity)}
"""Severity -> its place among them."""
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
    cause: str | None = None
    """Cause group of the run's report."""

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
    money: dict[str, Sums]
    """CurrenciesId as text -> what the breaks are in totals, differences and gross apart."""
    elsewhere: int
    """Breaks whose money is counted with another break of the same record."""

    @property
    def amounts(self) -> dict[str, Decimal]:
        """The differences by currency; a currency without any is left out."""
        return {key: of.difference for key, of in self.money.items() if of.difference}

    @property
    def unreadable(self) -> int:
        """Breaks whose amount cannot be read: it is in no sum."""
        return sum(of.unreadable for of in self.money.values())

    @property
    def gross(self) -> dict[str, Decimal]:
        """The gross money by currency, likewise."""
        return {key: of.gross for key, of in self.money.items() if of.gross}


def breaks_left(
    connection: psycopg.Connection,
    scope: str,
    previous: Reconciliation | None,
    found: pl.Series,
) -> pl.DataFrame:
    """What the next run of a scope starts from, CARRIED; `found` are the ids of its breaks."""
    if previous is None:
        return nothing_before()
    whose = reconciliations.scope_hash(scope)
    before = from_saved(breaks_before(connection, whose, previous.id, found))
    # Breaks of an earlier version do not say by which terms they were found: those of their run.
    before = before.with_columns(
        pl.col("looked_rules").fill_null(pl.lit(previous.rules_hash)),
        pl.col("looked_as_of").fill_null(pl.lit(previous.as_of)),
    )
    unknown = before.filter((pl.col("state") == BreakState.ACCEPTED) & pl.col("seen").is_null())
    if unknown.is_empty():
        return before
    ids = unknown["id"].to_list()
    seen = accepted_on(connection, whose, previous.decided_through, ids)
    return with_seen(before, from_saved(seen))


def breaks_now(
    connection: psycopg.Connection, run: Reconciliation, ids: Sequence[str] | None = None
) -> pl.DataFrame:
    """The breaks of a run with what was decided on it since, and what each adds to totals.

    See `lifecycle.standing_now` and `lifecycle.with_counts`. `ids`: these alone, and what they add
    is as if there were no others.
    """
    decisions = decisions_since(connection, run.scope_hash, run.decided_through, ids)
    ours = decisions.filter(pl.col("reconciliation_id") == run.id)
    saved = breaks_of(connection, run.id, ids)
    causes = saved.select(pl.col("break_id").alias("id"), causes_of(saved))
    left = from_saved(saved)
    standing = with_counts(standing_now(left, ours, run.as_of), left).drop(cs.ends_with(BEFORE))
    return standing.join(causes, on="id", how="left", maintain_order="left")


def list_breaks(
    workspace: Workspace, number: int | None, chosen: Chosen
) -> tuple[Reconciliation, pl.DataFrame]:
    """The chosen breaks of a run (default: the latest), largest amounts first.

    With `outgrown`: accepted once, and other now; `accepted_as` and `is_now` tell both in a line.
    """
    with workspace.database.connect() as connection:
        run = reconciliations.find_run(connection, number)
        found = _fitting(breaks_now(connection, run), chosen)
    if chosen.ids:
        found = found.filter(pl.col("id").is_in(list(chosen.ids)))
    found = found.with_columns(
        outgrown(),
        *both_values(),
    )
    return run, found.sort(
        largest_first(), "code", "record", "key", "field", "id",
        descending=[True, *[False] * 5], nulls_last=True,
    )  # fmt: skip


def what_is_open(breaks: pl.DataFrame, severity: pl.Series) -> str:
    """Open breaks: how many of each severity and code, and the gravest by name.

    The severest first, and of one severity those with the largest amounts.
    """
    left = breaks.with_columns(severity.alias("severity")).filter(is_open())
    ordered = left.with_columns(
        pl.col("severity").replace_strict(GRAVEST, return_dtype=pl.Int8).alias("__rank"),
        name_of(), outgrown(), *both_values(),
    ).sort(
        "__rank", largest_first(), "outgrown", "what", "id",
        descending=[False, True, True, False, False], nulls_last=True,
    )  # fmt: skip
    counts = []
    for (of,), rows in ordered.group_by("severity", maintain_order=True):
        codes = rows.group_by("code").len().sort("len", "code", descending=[True, False])
        told = ", ".join(f"{code} {number}" for code, number in codes.iter_rows())
        counts.append(f"{rows.height} {of} ({told})")
    names = ordered.select(
        pl.when("outgrown")
        .then(pl.format("{}, accepted as {}, and now {}", "what", "accepted_as", "is_now"))
        .otherwise("what")
    )
    named = _named([neutral(one) for one in names.to_series()], "; ")
    return f"{', '.join(counts)}. Gravest first: {named}"


def decide_breaks(
    workspace: Workspace, number: int | None, chosen: Chosen, decision: Decision
) -> Decided:
    """Take one decision for all chosen breaks, or for none; raises DecisionRefused."""
    with workspace.database.connect() as connection:
        run = reconciliations.find_run(connection, number)
        with keep_scope(connection, run):
            _refuse_if_followed(connection, run)
            _refuse_terms(run, decision)
            breaks = breaks_now(connection, run)
            meant = _meant(breaks, run, chosen, decision)
            if decision.what in (Choice.ACCEPT, Choice.PROPOSE):
                _refuse_ceiling(meant, decision)
                if number is None:
                    _refuse_unseen(connection, run, meant, by_id=bool(chosen.ids))
            add_decisions(connection, run.id, meant["id"].to_list(), decision)
        witness_trail(workspace, connection)
    elsewhere = meant.filter(largest_first() != 0, pl.col(COUNTED) == 0).height
    return Decided(run, decision, tuple(meant["id"]), sum_money(meant), elsewhere)


def _refuse_if_followed(connection: psycopg.Connection, run: Reconciliation) -> None:
    last = reconciliations.latest_run(connection, run.scope)
    if last is not None and last.id != run.id:
        raise DecisionRefused(
            f"Reconciliation {run.id} was followed by {last.id}. "
            f"Decide on the breaks of that one: --run {last.id}."
        )


def _refuse_ceiling(meant: pl.DataFrame, decision: Decision) -> None:
    """A ceiling has to be one for every break that is meant, and none may be above it already."""
    if decision.up_to is None:
        return
    sized = meant.with_columns(size().alias("size"))
    none = sized.filter(pl.col("size").is_null() | (pl.col("size") == 0))
    if none.height:
        lines = _named(none["id"])
        raise DecisionRefused(
            "--up-to is a ceiling for an amount, and these breaks have none it can be held "
            f"against: {lines}. Accept them without it, as they are. Nothing was decided."
        )
    if meant["currency"].n_unique() > 1:
        raise DecisionRefused(
            "--up-to is an amount in one currency, and these breaks are in several. Name one: "
            "--currency. Nothing was decided."
        )
    above = sized.filter(pl.col("size").abs() > decision.up_to)
    if above.height:
        told = [f"{one} is {plain(amount)}" for one, amount in above.select("id", "size").rows()]
        raise DecisionRefused(
            f"--up-to {plain(decision.up_to)} is less than what is there: {_named(told)}. "
            "Nothing was decided."
        )


def _refuse_unseen(
    connection: psycopg.Connection, run: Reconciliation, meant: pl.DataFrame, *, by_id: bool
) -> None:
    """Whoever names no run may have seen the one before: what is other since needs its number.

    So does what is new since, where a filter chose it: an id is known to whoever names it.
    """
    if run.previous_id is None:
        return
    before = from_saved(breaks_of(connection, run.previous_id))
    joined = meant.join(
        before.select("id", *BOUND, there=True),
        on="id",
        how="left",
        suffix="_then",
        maintain_order="left",
    )
    other = joined.filter(
        pl.col("there")
        & pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_then")) for name in BOUND)
    )
    then = other.select("id", *(pl.col(f"{name}_then").alias(name) for name in BOUND))
    told = zip(other["id"], then.select(values()).to_series(), other.select(values()).to_series(),
               strict=True)  # fmt: skip
    lines = [f"{one} was {was}; it is now {now}" for one, was, now in told]
    if not by_id:
        new = joined.filter(pl.col("there").is_null())
        told_new = zip(new["id"], new.select(values()).to_series(), strict=True)
        lines += [f"{one} is new, {now}" for one, now in told_new]
    if not lines:
        return
    raise DecisionRefused(
        f"Reconciliation {run.id} has other breaks than {run.previous_id} had: "
        f"{_named(lines, by='. ')}. To accept what is there now, name the run you have seen: "
        f"--run {run.id}. Nothing was decided."
    )


def _refuse_terms(run: Reconciliation, decision: Decision) -> None:
    if not decision.reason.strip():
        raise DecisionRefused("A decision needs a reason: --reason TEXT.")
    if decision.by is not None and not decision.by.strip():
        raise DecisionRefused("--by is empty. Name who decides, or leave it out.")
    match decision.what:
        case Choice.ACCEPT | Choice.PROPOSE if decision.until is None:
            raise DecisionRefused("An acceptance needs its last day: --until YYYY-MM-DD.")
        case Choice.ACCEPT | Choice.PROPOSE if (
            decision.until is not None and decision.until < run.as_of
        ):
            raise DecisionRefused(
                f"--until {decision.until} has passed: reconciliation {run.id} is as of "
                f"{run.as_of}. Name a day from then on."
            )
        case Choice.ACCEPT | Choice.PROPOSE if decision.up_to is not None and not _is_ceiling(
            decision.up_to
        ):
            raise DecisionRefused(
                "--up-to needs an amount above zero with at most 20 digits before the point and 18 "
                "behind it, as 250.00."
            )
        case Choice.RESOLVE if decision.side not in SIDES:
            raise DecisionRefused(f"--at must be one of: {', '.join(SIDES)}.")
        case Choice.ASSIGN if not (decision.owner or "").strip():
            raise DecisionRefused("An assignment needs an owner: --owner NAME.")
        case Choice.ASSIGN if decision.until is not None and decision.until < run.as_of:
            raise DecisionRefused(
                f"--due {decision.until} has passed: reconciliation {run.id} is as of "
                f"{run.as_of}. Name a day from then on."
            )


def _is_ceiling(amount: Decimal) -> bool:
    exponent = amount.as_tuple().exponent
    return amount.is_finite() and 0 < amount < 10**20 and int(exponent) >= -18


def _meant(
    breaks: pl.DataFrame, run: Reconciliation, chosen: Chosen, decision: Decision
) -> pl.DataFrame:
    if not chosen.ids and not chosen.filtered:
        raise DecisionRefused(
            "Name the breaks: ids, or a filter such as --code AMOUNT. `recon breaks list` has both."
        )
    fitting = _fitting(breaks, chosen)
    possible = can_be_decided(decision.what, by_id=bool(chosen.ids))
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


def can_be_decided(what: Choice, *, by_id: bool) -> pl.Expr:
    """For which breaks a decision makes a difference; a filter means fewer than ids do."""
    state, claimed = pl.col("state"), pl.col("claimed")
    match what:
        case Choice.REOPEN:
            kept = state.is_in(ASIDE) & pl.col("accepted_by").is_not_null()
            return (state == BreakState.ACCEPTED) | kept | claimed.is_not_null()
        case Choice.ACCEPT | Choice.PROPOSE if not by_id:
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
            ("cause", chosen.cause),
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


def _named(texts: Sequence[str] | pl.Series, by: str = ", ") -> str:
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return by.join(texts[:NAMED]) + more
