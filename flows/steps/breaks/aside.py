"""Breaks a run could not find because it looked less far than the run that found them.

A break counts as resolved only where this run would have found it. Whether it would have is tried:
the sources are judged once more by the rules by which the break was found last, and as of the later
of the two days. What is found so, and not by the rules of this run, is WAIVED_BY_RULE where a
tolerance or limit lets it pass, else NOT_LOOKED_AT. What lacks its source, its batch or its day is
NOT_LOOKED_AT too.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

import polars as pl

from flows.steps.breaks.carried_states import RULES, SOURCE
from flows.steps.breaks.frame import without_number
from flows.steps.breaks.lifecycle import CHANGED, NEITHER
from flows.steps.breaks.make import about_one_record
from flows.steps.frames.sources import Sources
from flows.steps.rules.canonical import rules_hash
from flows.steps.rules.rules import Rules
from schemas.breaks import BREAKS
from schemas.field import Table
from schemas.life import BreakState
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA

_ALONE = ("RATE_MISSING", "DISCOUNT_GT_PAID", "DEBT_MIXED_CCY")
"""Codes that are looked for without the record kind that others of their class need."""
_AHEAD = ("CHANGED_AFTER_SIGNOFF", "PLAN_CURRENCY", "PLAN_EARLY", "PLAN_MIXED_CCY")
"""Codes that are looked for on records after the day, too: what was signed, plan details to come.
"""
_LETTERS = {"E": "extract", "D": "database", "A": "answers of the service", "G": "listing"}


NEWEST: dict[str, pl.DataType] = {"record": pl.String(), "key": pl.String(), "batch_id": pl.Int32()}
"""Which batch brought a record, by the key breaks name it by."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Breaks that were not found again, and what is known of them."""

    breaks: pl.DataFrame
    """As CARRIED."""
    newest: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=NEWEST))
    """Record, key and batch_id of every extract row that counts."""
    batches: Collection[int] = ()
    """Those that this run is about."""
    found_then: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """Ids found by other rules (hash -> ids) on the same sources; unknown rules are not in it. What
    some rules find says nothing of a break that was found by others."""
    later: pl.DataFrame | None = None
    """Record and key of the records that stand apart, dated after the day of the run."""
    doubted: pl.Series | None = None
    """Ids of breaks that hang on an extract whose kept content cannot be proven."""
    sides: pl.DataFrame | None = None
    """Which side changed, where more is known of that than `resolved_sides` tells."""
    taken_back: Mapping[int, str] = field(default_factory=dict)
    """What became of batches that are no longer in the run."""
    again: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.String()))
    """Ids of breaks of such batches that are about what a batch of the run has delivered again."""


def resolved_sides(gone: pl.DataFrame, newest: pl.DataFrame) -> pl.DataFrame:
    """Which side changed (`id`, `side`): E where another batch brought the record, D elsewhere.

    A newer one, or an older one that counts again. `gone` are CARRIED breaks that were not found
    again; `newest` has record, key and batch_id of every extract row that counts.
    """
    of_record = newest.group_by("record", own="key").agg(pl.col("batch_id").max().alias("newest"))
    other = pl.col("newest") != pl.col("batch_id").fill_null(-1)
    side = pl.when(other).then(pl.lit("E")).otherwise(pl.lit("D"))
    return (
        with_own(gone, newest)
        .select("id", "record", "own", "batch_id")
        .join(of_record, on=["record", "own"], how="left", maintain_order="left")
        .select("id", side.alias("side"))
    )


def with_own(breaks: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Breaks with `own`, the key of the record they are about; null: they are about several.

    Rows that share a key are numbered; `known` has record and key of records: a key that ends like
    a number of ours is whole as it is.
    """
    there = known.select("record", "key").unique().with_columns(__whole=True)
    number = without_number(pl.col("key"))
    return (
        breaks.join(there, on=["record", "key"], how="left", maintain_order="left")
        .with_columns(pl.when("__whole").then("key").otherwise(number).alias("own"))
        .with_columns(pl.when(about_one_record()).then("own").alias("own"))
        .drop("__whole")
    )


def other_terms(gone: pl.DataFrame, rules: str, as_of: date) -> list[tuple[str, date]]:
    """By which rules and as of which day to judge once more: the latest day of each rules' hash."""
    terms = gone.select("looked_rules", pl.col("looked_as_of").clip(lower_bound=as_of)).drop_nulls()
    latest = terms.group_by("looked_rules").agg(pl.col("looked_as_of").max()).sort("looked_rules")
    return [(of, day) for of, day in latest.iter_rows() if of != rules or day > as_of]


def set_aside(
    gone: Gone, *, sources: Sources, rules: Rules, as_of: date, tolerated: pl.DataFrame
) -> pl.DataFrame:
    """What became of breaks that were not found again, as CHANGED.

    `tolerated` are the differences this run let pass.
    """
    newest, own_rules = gone.newest, rules_hash(rules)
    sides = resolved_sides(gone.breaks, newest) if gone.sides is None else gone.sides
    known = gone.breaks.join(sides.rename({"side": "changed"}), on="id", maintain_order="left")
    known = with_own(known, newest)
    passed = tolerated.select("record", "tenant", "field", "tolerance", own="key")
    on = ["record", "tenant", "own", "field"]
    known = known.join(
        passed.unique(on), on=on, how="left", nulls_equal=True, maintain_order="left"
    )
    there = newest.select("record", own="key", there=True).unique()
    known = known.join(there, on=["record", "own"], how="left", maintain_order="left")
    known = known.with_columns(pl.col("there").fill_null(value=False))
    other_rules = pl.col("looked_rules").is_not_null() & (pl.col("looked_rules") != own_rules)
    later = _about_records(gone.breaks, gone.later)
    # A record with a date on each side of the day is looked at, unless it is apart now.
    apart = pl.col("own").is_null() | (pl.col("looked_as_of") > as_of).fill_null(value=True)
    after = ((pl.col("date") > as_of) & apart) | pl.col("id").is_in(later.implode())
    # What is signed since is settled, wherever its record is now.
    after &= ~pl.col("code").is_in(_AHEAD) & pl.col("changed").ne_missing(NEITHER)
    unsure = pl.Series([], dtype=pl.String) if gone.doubted is None else gone.doubted
    still = pl.col("id").is_in(_found_then(gone).implode())
    unknown = other_rules & ~pl.col("looked_rules").is_in(list(gone.found_then))
    within = pl.col("code").is_in(_limits(rules))
    waived = other_rules & still & (pl.col("tolerance").is_not_null() | within)
    by_rules = other_rules & (still | unknown)
    waiver = pl.col("tolerance").fill_null("its limit is wider")
    because = (
        pl.when(waived)
        .then(pl.format("the rules let it pass: {}", waiver))
        .when(other_rules & still)
        .then(pl.lit("the rules leave it out, or no longer ask for it"))
        .when(unknown)
        .then(pl.lit("the rules by which it was found are not known any more"))
        .when(still)
        .then(pl.format("found as of {}, a later day than that of this run", "looked_as_of"))
        .when(after)
        .then(pl.lit("dated after the day of this run"))
        .when(pl.col("id").is_in(unsure.implode()))
        .then(pl.lit("an extract it hangs on is not kept as it was delivered"))
        .otherwise(_missing(sources, gone))
    )
    aside = known.with_columns(because.alias("aside_because"))
    is_aside = pl.col("aside_because").is_not_null()
    return aside.select(
        "id",
        pl.when(~is_aside).then("changed").alias("side"),
        pl.when(waived)
        .then(pl.lit(BreakState.WAIVED_BY_RULE.value))
        .when(is_aside)
        .then(pl.lit(BreakState.NOT_LOOKED_AT.value))
        .alias("state"),
        pl.when(by_rules).then(pl.lit(RULES)).when(is_aside).then(pl.lit(SOURCE)).alias("aside_by"),
        "aside_because",
    ).select(list(CHANGED))


def _found_then(gone: Gone) -> pl.Series:
    """Ids of the breaks that are found by those rules by which each was found last."""
    schema = {"looked_rules": pl.String(), "id": pl.String()}
    found = (
        pl.Series("id", list(ids), pl.String)
        .to_frame()
        .select(pl.lit(of).alias("looked_rules"), "id")
        for of, ids in gone.found_then.items()
    )
    pairs = pl.concat([pl.DataFrame(schema=schema), *found])
    return gone.breaks.join(pairs, on=list(schema), how="semi")["id"]


def _about_records(gone: pl.DataFrame, records: pl.DataFrame | None) -> pl.Series:
    """Ids of the breaks about some records (`record` and `key`)."""
    if records is None:
        return gone["id"].clear()
    own = records.rename({"key": "own"})
    return with_own(gone, records).join(own, on=["record", "own"], how="semi")["id"]


def _limits(rules: Rules) -> list[str]:
    """Codes that a limit of the rules decides about, where there still is a limit."""
    limits: dict[str, object] = {}
    if "rates" in rules.references:
        limits |= {
            "RATE_STALE": rules.rates.stale_days,
            "RATE_JUMP": rules.rates.jump_percent,
            **dict.fromkeys(("RATE_INVERSE", "RATE_TRIANGLE"), rules.rates.inverse_tolerance),
        }
    if "plans" in rules.references:
        limits |= {
            "PLAN_EARLY": rules.plans.early_days,
            "PLAN_LATE": rules.plans.late_days,
            **dict.fromkeys(("PLAN_UNDER", "DEBT_UNDER"), rules.plans.under or None),
            **dict.fromkeys(("PLAN_OVER", "DEBT_OVER"), rules.plans.over or None),
        }
    budget = rules.budget
    limits["TOLERANCE_BUDGET"] = budget.count if budget.count is not None else budget.amount
    return [code for code, limit in limits.items() if limit is not None]


def _missing(sources: Sources, gone: Gone) -> pl.Expr:
    """Which source of a break this run did not have; null where it had all of them."""
    sides = (sources.extract, sources.database, sources.answers, sources.listings)
    kinds = {*sources.extract, *sources.database, *sources.listings}
    titles = {name: table.title.lower() for name, table in EXTRACTS.items()}
    title = pl.col("record").replace_strict(titles, default="record", return_dtype=pl.String)
    lacking = {
        code: needs
        for code, of in BREAKS.items()
        if (needs := of.of_class.needs) and code not in _ALONE and not _has(sources, needs)
    }
    words = {
        code: f"nothing to hold it against: no {_what(needs)} in this run"
        for code, needs in lacking.items()
    }
    needed = pl.col("code").replace_strict(words, default=None, return_dtype=pl.String)
    kindless = (pl.col("record") != "") & ~pl.col("record").is_in(list(kinds))
    elsewhere = pl.col("batch_id").is_not_null() & ~pl.col("batch_id").is_in(list(gone.batches))
    away = elsewhere & ~pl.col("there") & ~pl.col("id").is_in(gone.again.implode())
    became = pl.col("batch_id").replace_strict(
        dict(gone.taken_back), default=None, return_dtype=pl.String
    )
    return pl.coalesce(
        # It takes its records with it, so this is why they are not there.
        pl.when(away).then(pl.format("batch {} was {}", "batch_id", became)),
        pl.when(kindless).then(pl.format("no {} in this run", title)),
        *(
            pl.when((pl.col("side") == letter) & ~pl.col("record").is_in(list(frames))).then(
                pl.format(f"no {what} of {{}} in this run", title)
            )
            for (letter, what), frames in zip(_LETTERS.items(), sides, strict=True)
        ),
        pl.when(away).then(pl.format("batch {} is not part of this run", "batch_id")),
        needed,
    )


def _has(sources: Sources, table: Table) -> bool:
    if table is INSERT_BATCH_DATA:
        return table.name in sources.listings
    return any(table.name in of for of in (sources.extract, sources.database, sources.around))


def _what(table: Table) -> str:
    title = table.title.lower()
    return f"listing of {title}" if table is INSERT_BATCH_DATA else title
