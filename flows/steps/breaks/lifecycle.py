"""The life of breaks from run to run: state, acceptance, owner, and what became of those gone."""

from datetime import date

import polars as pl

from flows.steps.breaks.acceptance import BOUND, SEEN, holds
from flows.steps.breaks.carried_states import BEFORE, is_aside
from flows.steps.breaks.frame import BREAK_SCHEMA, IDENTITY
from flows.steps.breaks.money import COUNTED_BY
from flows.steps.frames.light import light, looked_up
from schemas.frame_types import Dtype, frame_schema
from schemas.ledger import DECISION
from schemas.life import (
    ASIDE,
    BESIDE,
    RESOLVED,
    SIDES,
    STILL_THERE,
    BreakState,
    Choice,
    Standing,
)

LOOKED: dict[str, Dtype] = {
    "looked_rules": pl.String(),
    "looked_as_of": pl.Date(),
    "aside_by": pl.String(),
    "aside_because": pl.String(),
}
"""By which rules and as of which day a break was found last, and why it is set aside, if it is."""
NEITHER = "-"
"""In place of the letter of a side: the break is gone, and neither side changed."""
CHANGED: dict[str, Dtype] = {
    "id": pl.String(),
    "side": pl.String(),
    "state": pl.String(),
    "aside_by": pl.String(),
    "aside_because": pl.String(),
}
"""What is known of breaks that were not found again: the side that changed, or why nobody knows."""

CARRIED: dict[str, Dtype] = {
    "id": pl.String(),
    "state": pl.String(),
    "first_seen": pl.Date(),
    "accepted_until": pl.Date(),
    "accepted_by": pl.String(),
    "accepted_reason": pl.String(),
    "owner": pl.String(),
    "due": pl.Date(),
    **SEEN,
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

_TERMS = {f"seen_{name}": f"was_{name}" for name in BOUND} | {"up_to": "limit"}
"""The terms of an acceptance, and how they are called until it is known whether it holds."""


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
    assert breaks["id"].is_unique().all(), "breaks come from `gather`, each told once"
    standings = _standings(before, decisions, as_of)
    remembered = [name.removesuffix(BEFORE) for name in REMEMBERED]
    past = looked_up(before.select("id", *remembered, "first_seen"), standings)
    past = past.select(*_remembered(), *_terms())
    found = looked_up(breaks, past).with_columns(_standing_now_seen())
    gone = before.filter(~pl.col("state").is_in(RESOLVED)).join(
        breaks.select("id"), on="id", how="anti", maintain_order="left"
    )
    gone = gone.join(standings, on="id", how="left", maintain_order="left")
    sides = (
        pl.concat([pl.DataFrame(schema=CHANGED), changed], how="diagonal")
        .unique("id", keep="first")
        .select(
            "id",
            pl.col("side").alias("changed_side"),
            pl.when(pl.col("side").is_null())
            .then(pl.col("state").fill_null(BreakState.NOT_LOOKED_AT.value))
            .alias("aside"),
            pl.col("aside_by").alias("now_by"),
            pl.col("aside_because").alias("now_because"),
        )
    )
    found = found.with_columns(
        pl.lit(rules, pl.String).alias("looked_rules"),
        pl.lit(as_of, pl.Date).alias("looked_as_of"),
    )
    gone = (
        gone.join(sides, on="id", how="left", maintain_order="left")
        .with_columns(_remembered()[1:])
        .with_columns(_gone_state())
    )
    together = found.with_columns(_found_state())
    if gone.height:
        together = pl.concat([together, gone], how="diagonal")
    else:
        there = together.schema
        together = together.with_columns(
            pl.lit(None, dtype).alias(name)
            for name, dtype in gone.schema.items()
            if name not in there
        )
    return light(together.select(_life(as_of) + _extra(breaks)))


def standing_now(before: pl.DataFrame, decisions: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """Breaks as a run left them, with what was decided since taken in: CARRIED and `claimed`.

    `claimed` is the side on which a break is said to be resolved; the next run looks whether it is.
    Each break is judged by itself. Columns of `before` beyond CARRIED are kept.
    """
    after = {
        Standing.ACCEPTED: BreakState.ACCEPTED,
        Standing.LAPSED: BreakState.EXPIRED,
        Standing.REOPENED: BreakState.REOPENED,
    }
    state = pl.col("standing").replace_strict(after, default=None, return_dtype=pl.String)
    return (
        before.join(
            _standings(before, decisions, as_of), on="id", how="left", maintain_order="left"
        )
        # What a run did not look at it did not look at, whatever is decided about it.
        .with_columns(
            pl.when(is_aside()).then("state").otherwise(pl.coalesce(state, "state")).alias("state")
        )
        .with_columns(_terms_kept())
        .select(
            *CARRIED,
            pl.col("standing").str.strip_prefix("resolved_").alias("claimed"),
            *(name for name in before.columns if name not in CARRIED),
        )
        .with_columns(
            pl.when(pl.col("claimed").is_in(list(SIDES))).then("claimed").alias("claimed")
        )
    )


def nothing_before() -> pl.DataFrame:
    """What the first run of a scope starts from."""
    return pl.DataFrame(schema=CARRIED)


def _standings(before: pl.DataFrame, decisions: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """By id: `standing`, the terms of an acceptance, the owner and when, decisions taken in."""
    latest = decisions.sort("id").with_columns(pl.col("until").str.to_date())
    last = _last(
        latest.filter(~pl.col("what").is_in(BESIDE)).rename({"up_to": "ceiling"}),
        "what", "by", "reason", "until", "ceiling",
    )  # fmt: skip
    sides = _last(latest.filter(~pl.col("what").is_in(BESIDE)), "side")
    assigned = latest.filter(pl.col("what") == Choice.ASSIGN)
    owners = _last(assigned.rename({"until": "due"}), "owner", "due")
    told = (
        before.select(
            "id",
            "state",
            "accepted_until",
            "accepted_by",
            "accepted_reason",
            "owner",
            "due",
            *SEEN,
            *BOUND,
        )
        .pipe(looked_up, last)
        .pipe(looked_up, sides)
        .pipe(looked_up, owners, suffix="_decided")
    )
    # The comparison alone can bring back what is resolved, so nothing decided about it counts.
    heard = pl.col("what").is_not_null() & ~pl.col("state").is_in(RESOLVED)
    accepts = heard & (pl.col("what") == Choice.ACCEPT)
    until = pl.when(accepts).then("until").otherwise("accepted_until")
    # What is set aside keeps its acceptance, for the day it is looked at again.
    keeps = (pl.col("state") == BreakState.ACCEPTED) | (
        pl.col("state").is_in(ASIDE) & pl.col("accepted_by").is_not_null()
    )
    accepted = accepts | (~heard & keeps)
    claimed = pl.concat_str(pl.lit("resolved_"), pl.col("side").fill_null("source"))
    # Decided on the run before, so what it left is what was seen; likewise where an acceptance of
    # an earlier version does not say.
    kept = pl.col("seen").fill_null(value=False) & ~accepts
    was = [
        pl.when(kept).then(f"seen_{name}").otherwise(name).alias(_TERMS[f"seen_{name}"])
        for name in BOUND
    ]
    # One that was found to be other than accepted stays so until somebody decides.
    still_other = ~heard & (pl.col("state") == BreakState.REOPENED) & kept
    standings = told.select(
        "id",
        pl.when(accepted & (until >= as_of))
        .then(pl.lit(Standing.ACCEPTED.value))
        .when(accepted)
        .then(pl.lit(Standing.LAPSED.value))
        .when(heard & (pl.col("what") == Choice.REOPEN))
        .then(pl.lit(Standing.REOPENED.value))
        .when(heard)
        .then(claimed)
        .when(still_other)
        .then(pl.lit(Standing.CHANGED.value))
        .alias("standing"),
        *was,
        pl.when(accepts)
        .then(pl.col("ceiling").cast(SEEN["up_to"]))
        .otherwise("up_to")
        .alias("limit"),
        until.alias("until"),
        pl.when(accepts).then("by").otherwise("accepted_by").alias("by"),
        pl.when(accepts).then("reason").otherwise("accepted_reason").alias("reason"),
        pl.coalesce("owner_decided", "owner").alias("owned"),
        # A new owner brings a day of their own, or none.
        pl.when(pl.col("owner_decided").is_null())
        .then("due")
        .otherwise("due_decided")
        .alias("due_then"),
    )
    return light(standings)


def _last(decisions: pl.DataFrame, *names: str) -> pl.DataFrame:
    return decisions.group_by(pl.col("break_id").alias("id")).agg(pl.col(names).last())


def _remembered() -> list[pl.Expr]:
    return [pl.col("id")] + [pl.col(name.removesuffix(BEFORE)).alias(name) for name in REMEMBERED]


def _terms() -> list[str]:
    return [
        "first_seen",
        "standing",
        "until",
        "by",
        "reason",
        "owned",
        "due_then",
        *_TERMS.values(),
    ]


def _standing_now_seen() -> pl.Expr:
    """An acceptance that a break has outgrown does not cover it."""
    other = (pl.col("standing") == Standing.ACCEPTED) & ~holds("was_", "limit")
    return (
        pl.when(other).then(pl.lit(Standing.CHANGED.value)).otherwise("standing").alias("standing")
    )


def _found_state() -> pl.Expr:
    # Null is a value here: a break without a past, or one nobody has decided about.
    key = pl.concat_str(pl.col(f"state{BEFORE}", "standing").fill_null("-"), separator=" ")
    known = {
        f"{state.value if state else '-'} {standing.value if standing else '-'}": after.value
        for (state, standing), after in STILL_THERE.items()
    }
    return key.replace_strict(known, return_dtype=pl.String).alias("state")


def _gone_state() -> pl.Expr:
    claimed = pl.col("standing").str.strip_prefix("resolved_")
    side = (
        pl.when(claimed.is_in(list(SIDES)))
        .then(claimed)
        .when(pl.col("changed_side") == "E")
        .then(pl.lit("source"))
        .otherwise(pl.lit("service"))
    )
    resolved = side.replace_strict(SIDES, return_dtype=pl.String)
    # Nobody resolved it, whatever was claimed.
    neither = pl.when(pl.col("changed_side") == NEITHER).then(
        pl.lit(BreakState.RESOLVED_NEITHER.value)
    )
    return pl.coalesce("aside", neither, resolved).alias("state")


def _life(as_of: date) -> list[pl.Expr]:
    return [
        pl.col("id", "state"),
        pl.col("first_seen").fill_null(as_of),
        *_terms_kept(),
        pl.col("looked_rules", "looked_as_of"),
        *(
            pl.when(pl.col("state").is_in(ASIDE)).then(now).alias(name)
            for name, now in (("aside_by", "now_by"), ("aside_because", "now_because"))
        ),
        pl.col(list(BREAK_SCHEMA)),
        pl.col(list(REMEMBERED)),
    ]


def _terms_kept() -> list[pl.Expr]:
    """The terms of an acceptance stay with a break while it holds, and where it stopped to."""
    kept = pl.col("state").is_in([BreakState.ACCEPTED, BreakState.EXPIRED]) | (
        (pl.col("state") == BreakState.REOPENED)
        & (pl.col("standing") == Standing.CHANGED).fill_null(value=False)
    )
    kept |= pl.col("state").is_in(ASIDE) & (pl.col("standing") == Standing.ACCEPTED).fill_null(
        value=False
    )
    return [
        pl.when(kept).then(kept).alias("seen"),
        *(pl.when(kept).then(was).alias(seen) for seen, was in _TERMS.items()),
        pl.when(kept).then("until").alias("accepted_until"),
        pl.when(kept).then("by").alias("accepted_by"),
        pl.when(kept).then("reason").alias("accepted_reason"),
        pl.col("owned").alias("owner"),
        pl.col("due_then").alias("due"),
    ]


def _extra(breaks: pl.DataFrame) -> list[pl.Expr]:
    known = {*CARRIED, *REMEMBERED}
    return [pl.col(name) for name in breaks.columns if name not in known]
