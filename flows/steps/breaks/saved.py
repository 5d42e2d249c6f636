"""Breaks as rows of the ledger: what a run saves of each, and what the next run reads."""

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from flows.steps.breaks.acceptance import BOUND
from flows.steps.breaks.carried_states import AGES
from flows.steps.breaks.counted import COUNTS
from flows.steps.breaks.lifecycle import CARRIED, REMEMBERED
from flows.steps.frames.light import light
from flows.steps.frames.parts import PartedRows
from flows.steps.frames.time_texts import apart
from schemas.ledger import BREAK_STATE
from schemas.life import BreakState

PART = 20_000
"""Breaks that are written or read together."""
_ALWAYS = ("note",)
"""Saved even if no break has a value, so that there is at least one fact."""
_SAVED = tuple(field.name for field in BREAK_STATE)
_FACTS = [name for name in CARRIED if name not in (*_SAVED, "id")]


def parts(carried: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield carried breaks in parts; no breaks are one empty part."""
    yield from carried.iter_slices(PART) if carried.height else [carried]


def facts_of(carried: PartedRows) -> list[str]:
    """The columns to save as facts of breaks; columns without any value are left out."""
    # What a break adds to totals follows from the other breaks of the run; severity and ages follow
    # from the rules and the day.
    left_out = {*_SAVED, "id", *REMEMBERED, *COUNTS, "severity", *AGES}
    names = [name for name in carried.names if name not in left_out]
    counts = pl.concat(part.select(pl.all().count()) for part in carried.read(names)).sum()
    values = counts.row(0, named=True)
    return [name for name in names if values[name] or name in _ALWAYS]


def saved_parts(carried: Iterable[pl.DataFrame], facts: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield parts of carried breaks as rows of the ledger, without the run's number.

    They come in parts because their facts are many times as large as text. `facts` is the result of
    `facts_of` for all of the breaks.
    """
    encoded = pl.struct(facts).struct.json_encode().alias("facts")
    days = pl.col("first_seen", "accepted_until").cast(pl.String)
    names = [name for name in _SAVED if name != "reconciliation_id"]
    for part in carried:
        yield part.with_columns(encoded).with_columns(days, break_id="id").select(names)


def from_saved(saved: pl.DataFrame) -> pl.DataFrame:
    """Rows of the ledger as CARRIED."""
    return with_causes(saved).drop("cause")


def with_causes(saved: pl.DataFrame) -> pl.DataFrame:
    """Rows of the ledger as CARRIED with `cause`, null for a break without one."""
    parts = [light(_read(part)) for part in saved.iter_slices(PART)] if saved.height else []
    return light(pl.concat(parts)) if parts else _read(saved)


def _read(saved: pl.DataFrame) -> pl.DataFrame:
    days = ("first_seen", "accepted_until", "date", "looked_as_of", "due")
    dtypes = {
        name: pl.String() if name in days or dtype.is_decimal() else dtype
        for name, dtype in CARRIED.items()
        if name in _FACTS
    }
    return (
        saved.rename({"break_id": "id"})
        .with_columns(pl.col("facts").str.json_decode(pl.Struct({**dtypes, "cause": pl.String()})))
        .unnest("facts")
        .with_columns(pl.col(days).str.to_date())
        .select(*(pl.col(name).cast(dtype) for name, dtype in CARRIED.items()), "cause")
        # Earlier versions saved some amounts with a sign, and wrote one day as "1 days" and how far
        # two times are apart in seconds.
        .with_columns(pl.col("amount", "seen_amount").abs())
        .with_columns(_as_written_now(name) for name in ("note", "seen_note"))
    )


def _as_written_now(name: str) -> pl.Expr:
    """A note as this version writes it: an acceptance is bound to its words."""
    code, note = pl.col("code"), pl.col(name)
    seconds = note.str.extract(r"^(-?[0-9]+(?:\.[0-9]+)?) s later$")
    return (
        pl.when(code.is_in(["PLAN_LATE", "PLAN_EARLY"]))
        .then(note.replace("1 days", "1 day"))
        .when((code == "INSTANT") & seconds.is_not_null())
        .then(apart(seconds))
        .otherwise(note)
        .alias(name)
    )


def with_seen(before: pl.DataFrame, accepted_on: pl.DataFrame) -> pl.DataFrame:
    """Fill in the values seen by acceptances of an earlier version, which did not record them.

    `accepted_on` are the same breaks, CARRIED, as left by the runs on which they were accepted.
    """
    seen = accepted_on.select("id", pl.col(BOUND).name.prefix("seen_"), seen=True)
    unknown = (pl.col("state") == BreakState.ACCEPTED) & pl.col("seen").is_null()
    lacking = before.filter(unknown).drop([name for name in seen.columns if name != "id"])
    lacking = lacking.join(seen, on="id", maintain_order="left")
    kept = before.join(lacking, on="id", how="anti", maintain_order="left")
    return pl.concat([kept, lacking.select(before.columns)])
