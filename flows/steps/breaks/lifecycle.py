"""The lifecycle of breaks from run to run: state, acceptance, owner, and what became of those gone.

A run takes every break through the same steps, each of them a function below:

    _decided            the last decision gives a break its terms, and an `effect`: a Standing
    _found              breaks of this run: (state before, effect) -> state, by `STILL_THERE`
    _gone               the others of the run before: (effect, changed side) -> state, by `_GONE`
    _keep_acceptances   an acceptance stays with a break while it covers it, and where it stopped to
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
"""By which rules and as of which day a break was found last, and why it is set aside, if it is."""
NEITHER = "-"
"""In place of the letter of a side: the break is gone, and neither side changed."""
REPLACED = ">"
"""Likewise: another break says now how the same field differs."""
CHANGED: dict[str, Dtype] = {**dict.fromkeys(("id", "side", "state"), pl.String()), **_WHY}
"""What is known of breaks that were not found again: the side that changed, or why nobody knows."""

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
"""What a run leaves of every break, and the next run of the scope starts from."""

DECISIONS: dict[str, Dtype] = frame_schema(DECISION)
"""What was decided since that run, as the ledger has it; a higher id was decided later."""

REMEMBERED: dict[str, Dtype] = {
    f"{name}{BEFORE}": CARRIED[name] for name in ("state", *COUNTED_BY) if name not in IDENTITY
}
"""What the run before left of a break: its state, and what it added to totals by."""

_ACCEPTANCE = [*SEEN, "accepted_until", "accepted_by", "accepted_reason"]
_DECIDED, _OF_RUN = "_decided", "_of_run"
"""Suffixes: as the last decision has it, and as this run says of a break that is gone."""
_CLAIMS = {"source": Standing.RESOLVED_SOURCE, "service": Standing.RESOLVED_SERVICE}
"""What it amounts to that a break is said to be resolved on a side."""
_GONE: tuple[tuple[str, Mapping[str, BreakState]], ...] = (
    # Whatever was claimed.
    (f"side{_OF_RUN}", {NEITHER: BreakState.RESOLVED_NEITHER, REPLACED: BreakState.CHANGED_INTO}),
    ("effect", {_CLAIMS["source"]: BreakState.RESOLVED_SOURCE}),
    ("effect", {_CLAIMS["service"]: BreakState.RESOLVED_SERVICE}),
    (f"side{_OF_RUN}", {"E": BreakState.RESOLVED_SOURCE}),
)
"""Where a break that is gone was resolved, by the first that applies; else in the service."""
_LISTED: Mapping[str, BreakState] = {
    Standing.ACCEPTED: BreakState.ACCEPTED,
    Standing.LAPSED: BreakState.EXPIRED,
    Standing.REOPENED: BreakState.REOPENED,
}
"""The state that a break is listed with once it is decided about, until the next run looks."""


def carry(
    breaks: pl.DataFrame,
    before: pl.DataFrame,
    decisions: pl.DataFrame,
    changed: pl.DataFrame,
    as_of: date,
    rules: str | None = None,
) -> pl.DataFrame:
    """Every break of this run and every one gone since, with its state: CARRIED and REMEMBERED.

    `breaks` as `frame.gather` gives them, `before` as `CARRIED`, `decisions` as `DECISIONS`;
    `changed` names the side that changed for breaks that are gone (`id`, and `side` as a letter of
    a truth source; null where this run could not find them, with the other columns of CHANGED if
    more is known). `rules` is the hash of the rules of this run. Columns of `breaks` beyond its
    schema are kept. One line per id, in the order of `breaks`, then those gone. Each break is
    carried by itself: some at a time are carried as all of them are.
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
    """Breaks as a run left them, with what was decided since: CARRIED and `claimed`.

    `claimed` is the side on which a break is said to be resolved; the next run looks whether it is.
    Each break is decided about by itself. Columns of `before` beyond CARRIED are kept.
    """
    # What a run did not look at it did not look at, whatever is decided about it.
    listed = pl.when(~is_aside()).then(_mapped("effect", _LISTED))
    claimed = _mapped("effect", {effect: side for side, effect in _CLAIMS.items()})
    return (
        _decided(before, decisions, as_of)
        .with_columns(pl.coalesce(listed, "state").alias("state"), claimed.alias("claimed"))
        .with_columns(_keep_acceptances())
        .select(*CARRIED, "claimed", *(name for name in before.columns if name not in CARRIED))
    )


def nothing_before() -> pl.DataFrame:
    """What the first run of a scope starts from."""
    return pl.DataFrame(schema=CARRIED)


def _decided(before: pl.DataFrame, decisions: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """Breaks with acceptance, owner and due day as decided since, and the `effect` of it."""
    in_order = decisions.sort("id").with_columns(pl.col("until").str.to_date())
    about_state = in_order.filter(~pl.col("what").is_in(NO_CHANGE))
    assigned = in_order.filter(pl.col("what") == Choice.ASSIGN).rename({"until": "due"})
    last = _last(about_state, "what", "by", "reason", "until", "up_to", "side")
    given = looked_up(looked_up(before, last), _last(assigned, "owner", "due"))
    # The comparison alone can bring back what is resolved, so nothing decided about it counts.
    new = pl.when(~pl.col("state").is_in(RESOLVED)).then(f"what{_DECIDED}")
    # What is set aside keeps its acceptance, for the day it is looked at again.
    state, held = pl.col("state"), is_aside() & pl.col("accepted_by").is_not_null()
    kept = pl.when((state == BreakState.ACCEPTED) | held).then(pl.lit(Choice.ACCEPT.value))
    given = given.with_columns(
        newly_accepted=(new == Choice.ACCEPT).fill_null(value=False),
        choice=pl.coalesce(new, kept),
        # One that was found to be other than accepted stays so until somebody decides.
        differed=new.is_null() & (state == BreakState.REOPENED) & pl.col("seen"),
    )
    return light(given.with_columns(_decided_terms()).with_columns(_effect(as_of).alias("effect")))


def _last(decisions: pl.DataFrame, *names: str) -> pl.DataFrame:
    by_break = decisions.group_by(pl.col("break_id").alias("id"))
    return by_break.agg(pl.col(names).last().name.suffix(_DECIDED))


def _decided_terms() -> list[pl.Expr]:
    """The terms of a new acceptance, or those there were; an owner comes with a day, or none."""
    new = pl.when("newly_accepted")
    # Decided on the run before, so what it left is what was seen; likewise where an acceptance of
    # an earlier version does not say.
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
    """What decisions amount to on the day of a run; null: nothing is decided."""
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
    # Null is a value here: a break without a past, or one nobody has decided about.
    key = pl.concat_str(pl.col(f"state{BEFORE}", "effect").fill_null("-"), separator=" ")
    transitions = {
        f"{state or '-'} {effect or '-'}": after.value
        for (state, effect), after in STILL_THERE.items()
    }
    # What an earlier version left says nothing of them: from now on they are as they are here.
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
    """Breaks that were there and are not found again: resolved, or set aside and why."""
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
    """The terms of an acceptance stay with a break while it holds, and where it stopped to."""
    state, effect = pl.col("state"), pl.col("effect")
    kept = (
        state.is_in([BreakState.ACCEPTED, BreakState.EXPIRED])
        | ((state == BreakState.REOPENED) & (effect == Standing.CHANGED))
        | (is_aside() & (effect == Standing.ACCEPTED))
    )
    terms = pl.col([name for name in _ACCEPTANCE if name != "seen"])
    return [pl.when(kept).then(pl.lit(value=True)).alias("seen"), pl.when(kept).then(terms)]


def _mapped(column: str, states: Mapping[str, str]) -> pl.Expr:
    """The state that a table has for a value of a column; null: none."""
    return pl.col(column).replace_strict(dict(states), default=None, return_dtype=pl.String)
