"""Breaks a run could not find because it looked at less than the run that found them.

A break counts as resolved only if this run would have found it. To find out, the sources are judged
once more by the rules that last found the break, as of the later of the two days. A break found
that way, but not by this run's rules, is WAIVED_BY_RULE if a tolerance or limit lets it pass, else
NOT_LOOKED_AT. A break whose source, batch or day is missing from the run is NOT_LOOKED_AT too.
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
"""Codes that are checked even without the record kind that the rest of their class needs."""
_AHEAD = ("CHANGED_AFTER_SIGNOFF", "PLAN_CURRENCY", "PLAN_EARLY", "PLAN_MIXED_CCY")
"""Codes that are also checked on records after the day: signed records, future plan details."""
_LETTERS = {"E": "extract", "D": "database", "A": "answers of the service", "G": "listing"}


NEWEST: dict[str, pl.DataType] = {"record": pl.String(), "key": pl.String(), "batch_id": pl.Int32()}
"""The batch that delivered a record, by the key that breaks name the record by."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Breaks that were not found again, and the facts to classify them by."""

    breaks: pl.DataFrame
    """As CARRIED."""
    newest: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=NEWEST))
    """Record, key and batch_id of every extract row that counts."""
    batches: Collection[int] = ()
    """The batches of this run."""
    found_then: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """Ids found by other known rules on the same sources, by the hash of the rules.

    They decide only about breaks that the same rules found last.
    """
    later: pl.DataFrame | None = None
    """Record and key of the records left out because they are dated after the day of the run."""
    doubted: pl.Series | None = None
    """Ids of breaks that depend on an extract whose kept content cannot be proven."""
    sides: pl.DataFrame | None = None
    """Which side changed, where more is known than `resolved_sides` can tell."""
    taken_back: Mapping[int, str] = field(default_factory=dict)
    """What became of batches that are no longer in the run, in words."""
    again: pl.Series = field(default_factory=lambda: pl.Series([], dtype=pl.String()))
    """Ids of breaks of such batches about records that a batch of the run has delivered again."""


def resolved_sides(gone: pl.DataFrame, newest: pl.DataFrame) -> pl.DataFrame:
    """Which side changed (`id`, `side`): E if another batch brought the record, else D.

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
    """Breaks with `own`, the key of the record they are about; null if they are about several.

    The numbers that tell rows with one key apart are cut off. A key in `known` (record and key of
    records) is kept whole, even if it ends like such a number.
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
    """The rules, by hash, and the latest day of each by which to reconcile the sources again."""
    terms = gone.select("looked_rules", pl.col("looked_as_of").clip(lower_bound=as_of)).drop_nulls()
    latest = terms.group_by("looked_rules").agg(pl.col("looked_as_of").max()).sort("looked_rules")
    return [(of, day) for of, day in latest.iter_rows() if of != rules or day > as_of]


def set_aside(
    gone: Gone, *, sources: Sources, rules: Rules, as_of: date, tolerated: pl.DataFrame
) -> pl.DataFrame:
    """Tell what became of breaks that were not found again, as CHANGED.

    `tolerated` are the differences that this run's rules tolerated.
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
    # A break settled by a signature since is settled, wherever its record is now.
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
    """Ids of the breaks that the rules which last found them still find."""
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
    """Ids of the breaks about the given records (`record` and `key`)."""
    if records is None:
        return gone["id"].clear()
    own = records.rename({"key": "own"})
    return with_own(gone, records).join(own, on=["record", "own"], how="semi")["id"]


def _limits(rules: Rules) -> list[str]:
    """Codes that depend on a limit which these rules set."""
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
    """The source of a break that this run lacks, in words; null if it had all of them."""
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
        # A batch takes its records with it, so this is why they are missing.
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
