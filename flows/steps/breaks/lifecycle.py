"""The lifecycle of breaks from run to run: state, acceptance, owner, and the fate of those gone.

A run takes every break through the same steps, each a function below:

    _decided            the last decision gives a break its terms and an `effect`, a Standing
    _found              breaks of this run: (state before, effect) -> state, by `STILL_THERE`
    _gone               the others of the run before: (effect, changed side) -> state, by `_GONE`
    _keep_acceptances   the terms of an acceptance stay while it covers a break or has just ended
"""

from collections.abc import Mapping
from datetime import date

import polars as pl

from flows.steps.breaks.acceptance import BOUND, SEEN, holds
from flows.steps.breaks.carried_states import BEFORE, is_aside
from flows.steps.breaks.frame import BREAK_SCHEMA, IDENTITY
from flows.steps.breaks.money import COUNTED_BY
from flows.steps.frames.light import light, looked_up
from schemas.frame_types import Dtype, frame_schema
from schemas.ledger import DECISION
from schemas.life import NO_CHANGE, RESOLVED, STILL_THERE, BreakState, Choice, Standing

_WHY: dict[str, Dtype] = {"aside_by": pl.String(), "aside_because": pl.String()}
LOOKED: dict[str, Dtype] = {"looked_rules": pl.String(), "looked_as_of": pl.Date(), **_WHY}
"""Rules and day by which a break was last found, and why it is set aside, if it is."""
NEITHER = "-"
"""Stands for the letter of a side: the break is gone, and neither side changed."""
REPLACED = ">"
"""Stands for the letter of a side: another break now reports the same field or row."""
CHANGED: dict[str, Dtype] = {**dict.fromkeys(("id", "side", "state"), pl.String()), **_WHY}
"""Columns of breaks that were not found again: the side that changed, or why it is unknown."""

CARRIED: dict[str, Dtype] = {
    "id": pl.String(),
    "state": pl.String(),
    "first_seen": pl.Date(),
    **SEEN,
    "accepted_until": pl.Date(),
    "accepted_by": pl.String(),
    "accepted_reason": pl.String(),
    "owner": pl.String(),
    "due": pl.Date(),
    **LOOKED,
    **BREAK_SCHEMA,
}
"""What a run leaves of every break for the next run of the scope."""

DECISIONS: dict[str, Dtype] = frame_schema(DECISION)
"""Decisions since that run, as in the ledger; a higher id was decided later."""

REMEMBERED: dict[str, Dtype] = {
    f"{name}{BEFORE}": CARRIED[name] for name in ("state", *COUNTED_BY) if name not in IDENTITY
}
"""What the previous run left of a break: its state, and the columns its share of totals is from."""

_ACCEPTANCE = [*SEEN, "accepted_until", "accepted_by", "accepted_reason"]
_DECIDED, _OF_RUN = "_decided", "_of_run"
"""Suffixes of values of the last decision, and of this run's values for a break that is gone."""
_CLAIMS = {"source": Standing.RESOLVED_SOURCE, "service": Standing.RESOLVED_SERVICE}
"""Side on which somebody says that a break is resolved -> standing of that decision."""
_GONE: tuple[tuple[str, Mapping[str, BreakState]], ...] = (
    # Whatever somebody claimed.
    (f"side{_OF_RUN}", {NEITHER: BreakState.RESOLVED_NEITHER, REPLACED: BreakState.CHANGED_INTO}),
    ("effect", {_CLAIMS["source"]: BreakState.RESOLVED_SOURCE}),
    ("effect", {_CLAIMS["service"]: BreakState.RESOLVED_SERVICE}),
    (f"side{_OF_RUN}", {"E": BreakState.RESOLVED_SOURCE}),
)
"""Where a break that is gone was resolved: the first rule that applies, else the service."""
_LISTED: Mapping[str, BreakState] = {
    Standing.ACCEPTED: BreakState.ACCEPTED,
    Standing.LAPSED: BreakState.EXPIRED,
    Standing.REOPENED: BreakState.REOPENED,
}
"""The state in which a break is listed after a decision, until the next run."""


def carry(
    breaks: pl.DataFrame,
    before: pl.DataFrame,
    decisions: pl.DataFrame,
    changed: pl.DataFrame,
    as_of: date,
    rules: str | None = None,
) -> pl.DataFrame:
    """Every break of this run and every one gone since, with its state: CARRIED and REMEMBERED.

    `breaks` come from `frame.gather`, `before` is CARRIED, `decisions` DECISIONS. For breaks that
    are gone, `changed` has `id` and `side`, the letter of the source that changed; `side` is null
    if this run could not find the break, with the other columns of CHANGED if more is known.
    `rules` is the hash of the rules of this run. Further columns of `breaks` are kept. One line per
    id, in the order of `breaks`, then those gone. Each break is carried independently, so breaks
    can be carried in parts.
    """
    assert breaks["id"].is_unique().all(), "breaks come from `gather`, each id once"
    past = _decided(before, decisions, as_of).with_columns(
        pl.col(name.removesuffix(BEFORE)).alias(name) for name in REMEMBERED
    )
    found, gone = _found(breaks, past, as_of, rules), _gone(past, breaks, changed)
    carried = pl.concat([found, gone], how="diagonal") if gone.height else found
    known = [*CARRIED, *REMEMBERED]
    further = [name for name in breaks.columns if name not in known]
    return light(carried.with_columns(_keep_acceptances()).select(*known, *further))


def current_breaks(before: pl.DataFrame, decisions: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """Breaks as a run left them, with the decisions since: CARRIED and `claimed`.

    `claimed` is the side on which a break is said to be resolved; the next run checks the claim.
    Each break is handled independently. Columns of `before` beyond CARRIED are kept.
    """
    # A decision does not change that the run did not look at a break.
    listed = pl.when(~is_aside()).then(_mapped("effect", _LISTED))
    claimed = _mapped("effect", {effect: side for side, effect in _CLAIMS.items()})
    return (
        _decided(before, decisions, as_of)
        .with_columns(pl.coalesce(listed, "state").alias("state"), claimed.alias("claimed"))
        .with_columns(_keep_acceptances())
        .select(*CARRIED, "claimed", *(name for name in before.columns if name not in CARRIED))
    )


def nothing_before() -> pl.DataFrame:
    """The empty CARRIED frame that the first run of a scope starts from."""
    return pl.DataFrame(schema=CARRIED)


def _decided(before: pl.DataFrame, decisions: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """Breaks with acceptance, owner and due day as decided since, and the `effect` of that."""
    in_order = decisions.sort("id").with_columns(pl.col("until").str.to_date())
    about_state = in_order.filter(~pl.col("what").is_in(NO_CHANGE))
    assigned = in_order.filter(pl.col("what") == Choice.ASSIGN).rename({"until": "due"})
    last = _last(about_state, "what", "by", "reason", "until", "up_to", "side")
    given = looked_up(looked_up(before, last), _last(assigned, "owner", "due"))
    # Only the comparison can bring back a resolved break, so decisions about one do not count.
    new = pl.when(~pl.col("state").is_in(RESOLVED)).then(f"what{_DECIDED}")
    # A break that is set aside keeps its acceptance for the day it is looked at again.
    state, held = pl.col("state"), is_aside() & pl.col("accepted_by").is_not_null()
    kept = pl.when((state == BreakState.ACCEPTED) | held).then(pl.lit(Choice.ACCEPT.value))
    given = given.with_columns(
        newly_accepted=(new == Choice.ACCEPT).fill_null(value=False),
        choice=pl.coalesce(new, kept),
        # A break that differs from what was accepted stays so until somebody decides.
        differed=new.is_null() & (state == BreakState.REOPENED) & pl.col("seen"),
    )
    return light(given.with_columns(_decided_terms()).with_columns(_effect(as_of).alias("effect")))


def _last(decisions: pl.DataFrame, *names: str) -> pl.DataFrame:
    by_break = decisions.group_by(pl.col("break_id").alias("id"))
    return by_break.agg(pl.col(names).last().name.suffix(_DECIDED))


def _decided_terms() -> list[pl.Expr]:
    """The terms of a new acceptance, else the old ones; a new owner replaces the due day, too."""
    new = pl.when("newly_accepted")
    # A decision is taken on the previous run, so the values it left are those that were seen. The
    # same is assumed of an acceptance from an earlier version, which did not record them.
    bound_before = pl.col("seen").fill_null(value=False) & ~pl.col("newly_accepted")
    ceiling = pl.col(f"up_to{_DECIDED}").cast(SEEN["up_to"])
    return [
        *(pl.when(bound_before).then(f"seen_{name}").otherwise(name).alias(f"seen_{name}")
          for name in BOUND),
        new.then(ceiling).otherwise("up_to").alias("up_to"),
        *(new.then(f"{name}{_DECIDED}").otherwise(f"accepted_{name}").alias(f"accepted_{name}")
          for name in ("until", "by", "reason")),
        pl.coalesce(f"owner{_DECIDED}", "owner").alias("owner"),
        pl.when(pl.col(f"owner{_DECIDED}").is_null()).then("due").otherwise(f"due{_DECIDED}")
        .alias("due"),
    ]  # fmt: skip


def _effect(as_of: date) -> pl.Expr:
    """The Standing of decisions on the day of a run; null if nothing is decided."""
    choice = pl.col("choice")
    side = pl.col(f"side{_DECIDED}").fill_null("source")
    return (
        pl.when((choice == Choice.ACCEPT) & (pl.col("accepted_until") >= as_of))
        .then(pl.lit(Standing.ACCEPTED.value))
        .when(choice == Choice.ACCEPT)
        .then(pl.lit(Standing.LAPSED.value))
        .when(choice == Choice.REOPEN)
        .then(pl.lit(Standing.REOPENED.value))
        .when(choice == Choice.RESOLVE)
        .then(side.replace_strict(_CLAIMS, default=None, return_dtype=pl.String))
        .when("differed")
        .then(pl.lit(Standing.CHANGED.value))
    )


def _found(
    breaks: pl.DataFrame, past: pl.DataFrame, as_of: date, rules: str | None
) -> pl.DataFrame:
    """Breaks of this run with their past and their state."""
    terms = ("first_seen", "effect", *_ACCEPTANCE, "owner", "due")
    found = looked_up(breaks, past.select("id", *REMEMBERED, *terms))
    # An acceptance that a break has outgrown does not cover it.
    outgrown = (pl.col("effect") == Standing.ACCEPTED) & ~holds("seen_", "up_to")
    effect = pl.when(outgrown).then(pl.lit(Standing.CHANGED.value)).otherwise("effect")
    # Null is a value here: a break without a past, or without a decision.
    key = pl.concat_str(pl.col(f"state{BEFORE}", "effect").fill_null("-"), separator=" ")
    transitions = {
        f"{state or '-'} {effect or '-'}": after.value
        for (state, effect), after in STILL_THERE.items()
    }
    # An acceptance from an earlier version has no amounts: it is bound to those of this run.
    bound = pl.when(pl.col("effect") == Standing.ACCEPTED).then("amounts")
    return found.with_columns(effect.alias("effect")).with_columns(
        key.replace_strict(transitions, return_dtype=pl.String).alias("state"),
        pl.coalesce("seen_amounts", bound).alias("seen_amounts"),
        pl.col("first_seen").fill_null(as_of),
        pl.lit(rules, pl.String).alias("looked_rules"),
        pl.lit(as_of, pl.Date).alias("looked_as_of"),
        pl.lit(None, pl.String).alias("aside_by"),
        pl.lit(None, pl.String).alias("aside_because"),
    )


def _gone(past: pl.DataFrame, breaks: pl.DataFrame, changed: pl.DataFrame) -> pl.DataFrame:
    """Unresolved breaks that are not found again, as resolved or as set aside with the reason."""
    outcome = pl.concat([pl.DataFrame(schema=CHANGED), changed], how="diagonal").unique(
        "id", keep="first"
    )
    state = pl.col("state").fill_null(BreakState.NOT_LOOKED_AT.value)
    outcome = outcome.with_columns(pl.when(pl.col("side").is_null()).then(state).alias("state"))
    outcome = outcome.select("id", pl.exclude("id").name.suffix(_OF_RUN))
    resolved = (_mapped(column, states) for column, states in _GONE)
    in_service = pl.lit(BreakState.RESOLVED_SERVICE.value)
    return (
        past.filter(~pl.col("state").is_in(RESOLVED))
        .join(breaks.select("id"), on="id", how="anti", maintain_order="left")
        .join(outcome, on="id", how="left", maintain_order="left")
        .with_columns(pl.coalesce(f"state{_OF_RUN}", *resolved, in_service).alias("state"))
        .with_columns(
            pl.when(is_aside()).then(f"{name}{_OF_RUN}").alias(name)
            for name in ("aside_by", "aside_because")
        )
    )


def _keep_acceptances() -> list[pl.Expr]:
    """Keep the terms of an acceptance while it covers a break, has lapsed or is outgrown."""
    state, effect = pl.col("state"), pl.col("effect")
    kept = (
        state.is_in([BreakState.ACCEPTED, BreakState.EXPIRED])
        | ((state == BreakState.REOPENED) & (effect == Standing.CHANGED))
        | (is_aside() & (effect == Standing.ACCEPTED))
    )
    terms = pl.col([name for name in _ACCEPTANCE if name != "seen"])
    return [pl.when(kept).then(pl.lit(value=True)).alias("seen"), pl.when(kept).then(terms)]


def _mapped(column: str, states: Mapping[str, str]) -> pl.Expr:
    """The state that a table maps a column's value to; null if it has no entry."""
    return pl.col(column).replace_strict(dict(states), default=None, return_dtype=pl.String)
