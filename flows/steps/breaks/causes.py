"""Cause groups: breaks that read as one cause, so that two thousand of them are one line.

A break may fit several causes. What its values say (a factor, a swap, one difference, one rate)
comes before where it was found (a file, a batch, an hour); of several, the cause of most breaks is
taken, and of equals the first of `VALUE_CAUSES`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from flows.steps.breaks.conversions import conversions
from flows.steps.breaks.make import LINES, joined, money
from flows.steps.breaks.match_breaks import line_key
from flows.steps.breaks.money import BASIS, COUNTED, COUNTED_BEYOND, counted, with_counted
from flows.steps.breaks.patterns import (
    CAUSE_SCHEMA,
    candidates,
    differences,
    exact_amounts,
    factors,
    field_name,
    shifts,
    swapped,
    title,
    transposed,
    twins,
)
from flows.steps.frames.beyond import exact_sum
from schemas.breaks import Money
from schemas.kinds import WORD
from schemas.own_tables import TIMES
from schemas.tables import EXTRACTS

FEWEST = {
    "twins": 2,
    "swapped": 1,
    "factor": 1,
    "converted": 3,
    "transposed": 1,
    "difference": 2,
    "shift": 2,
    "named": 2,
    "value": 2,
    "file": 3,
    "batch": 3,
    "hour": 3,
}
"""Rule -> how many breaks make a group; one is enough where the values alone are telling."""
VALUE_CAUSES = (
    "twins",
    "swapped",
    "factor",
    "converted",
    "transposed",
    "difference",
    "shift",
    "named",
    "value",
)
PLACE_CAUSES = ("file", "batch", "hour")


@dataclass(frozen=True, slots=True)
class CauseLine:
    """Breaks that read as one cause."""

    id: str
    title: str
    breaks: int
    amounts: Mapping[str, Decimal]
    """Differences by currency, as they are counted."""
    gross: Mapping[str, Decimal]
    """Gross money by currency, as it is counted."""
    first: str
    """Id of its first break."""
    counts: Mapping[str, int]
    """How many of its breaks have which currency; empty: those that have none."""


@dataclass(frozen=True)
class Causes:
    """The cause of each break that has one, and the groups."""

    of: pl.DataFrame
    """`id` of the break and `cause`."""
    lines: tuple[CauseLine, ...]
    """The largest first."""


def find_causes(
    breaks: pl.DataFrame,
    rates: pl.DataFrame | None = None,
    moments: pl.DataFrame | None = None,
) -> Causes:
    """Group breaks as `frame.gather` gives them, with what they add to totals where it is known.

    `rates` are currency rates, to tell amounts that were converted; `moments` (record, key, at)
    says when records happened, to tell breaks of one hour.
    """
    if COUNTED not in breaks.columns:
        breaks = with_counted(breaks)
    amounts = exact_amounts(breaks)
    by_value = [
        twins(breaks),
        swapped(amounts),
        factors(amounts),
        conversions(amounts, rates),
        transposed(amounts),
        differences(amounts),
        *shifts(breaks),
        _named(breaks),
        _values(breaks),
    ]
    chosen = _chosen(by_value, VALUE_CAUSES)
    rest = breaks.join(chosen, on="id", how="anti", maintain_order="left")
    placed = _chosen(_places(rest, moments), PLACE_CAUSES)
    groups = pl.concat([chosen, placed])
    names = groups.select("rule", "about", "title").unique(["rule", "about"], maintain_order=True)
    named = names.with_columns(
        pl.Series("cause", [_name(rule, about) for rule, about, _ in names.iter_rows()], pl.String)
    )
    of = groups.join(named.drop("title"), on=["rule", "about"]).select("id", "cause", "title")
    return Causes(of.select("id", "cause"), _lines(breaks, of))


def moments(breaks: pl.DataFrame, extract: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """When the delivered records of some breaks happened: record, key and at."""
    schema = {"record": pl.String(), "key": pl.String(), "at": pl.Datetime("us")}
    parts = [pl.DataFrame(schema=schema)]
    for record, frame in extract.items():
        table = EXTRACTS[record]
        if table.version is None or table.by_name[table.version].kind not in TIMES:
            continue  # A number tells which is the newer one, and no moment.
        places = (
            breaks.filter(pl.col("record") == record)
            .select(pl.col("file").cast(WORD), "line")
            .unique()
        )
        rows = frame.join(places, on=["file", "line"], how="semi")
        at = pl.col(table.version).dt.replace_time_zone(None).alias("at")
        parts.append(rows.select(pl.lit(record).alias("record"), line_key(table, rows), at))
    return pl.concat(parts).unique(["record", "key"], keep="first", maintain_order=True)


def _name(rule: str, about: str) -> str:
    """The same group has the same id in every run."""
    return "C" + hashlib.sha256(f"{rule}\x1f{about}".encode()).hexdigest()[:8]


def _chosen(proposed: list[pl.DataFrame], order: tuple[str, ...]) -> pl.DataFrame:
    """One cause per break; groups that others left too few breaks are given up."""
    fewest = pl.col("rule").replace_strict(FEWEST, return_dtype=pl.UInt32)
    rank = pl.col("rule").replace_strict(
        {rule: place for place, rule in enumerate(order)}, return_dtype=pl.UInt32
    )
    group = ["rule", "about"]
    every = (
        pl.concat([pl.DataFrame(schema=CAUSE_SCHEMA), *proposed])
        .with_columns(pl.len().over(group).alias("size"))
        .filter(pl.col("size") >= fewest)
    )
    best = every.sort(["id", pl.col("size"), rank, "about"], descending=[False, True, False, False])
    taken = best.unique("id", keep="first", maintain_order=True)
    left = taken.with_columns(pl.len().over(group).alias("size")).filter(pl.col("size") >= fewest)
    return left.select(list(CAUSE_SCHEMA))


def _named(breaks: pl.DataFrame) -> pl.DataFrame:
    """One thing that all breaks of a code name: the rate, the payment, the debt."""
    # Of a rejected row it quotes the amount: its file is more telling than what two have in common.
    told = breaks.filter(pl.col("note") != "", pl.col("code") != "REJECTED")
    return candidates(
        told,
        "named",
        joined(pl.col("code"), field_name(), pl.col("note")),
        pl.concat_str(title(), pl.lit(": "), pl.col("note")),
    )


def _values(breaks: pl.DataFrame) -> pl.DataFrame:
    """One value found everywhere for one other."""
    told = breaks.filter(
        pl.col("field") != "",
        ~pl.col("code").is_in(["AMOUNT", "INSTANT"]),
        pl.col("expected").is_not_null() & pl.col("found").is_not_null(),
    )
    return candidates(
        told,
        "value",
        joined(pl.col("code"), field_name(), pl.col("expected"), pl.col("found"), by="\x1f"),
        pl.format("{}: {} is {} everywhere", title(), "expected", "found"),
    )


def _places(breaks: pl.DataFrame, moments: pl.DataFrame | None) -> list[pl.DataFrame]:
    """One code in one file, in one batch, or in one hour."""
    about = joined(pl.col("code"), pl.col("record"))
    groups = [
        candidates(
            breaks.filter(pl.col(column).is_not_null()),
            rule,
            joined(about, pl.col(column)),
            pl.format("{} in {} {}", title(), pl.lit(rule), column),
        )
        for rule, column in (("file", "file"), ("batch", "batch_id"))
    ]
    if moments is not None:
        hours = breaks.join(
            moments.unique(["record", "key"]), on=["record", "key"], maintain_order="left"
        ).with_columns(pl.col("at").dt.truncate("1h").dt.to_string("%Y-%m-%d %H:00").alias("hour"))
        groups.append(
            candidates(
                hours,
                "hour",
                joined(about, pl.col("hour")),
                pl.format("{} in the hour of {}", title(), "hour"),
            )
        )
    return groups


def _lines(breaks: pl.DataFrame, of: pl.DataFrame) -> tuple[CauseLine, ...]:
    grouped = (
        breaks.join(of, on="id", how="inner", maintain_order="left")
        .group_by("cause", "currency", BASIS, maintain_order=True)
        .agg(
            pl.col("title").first(),
            pl.len().alias("breaks"),
            *counted(breaks),
            pl.col("id").first(),
        )
    )
    causes = (
        grouped.group_by("cause", maintain_order=True)
        .agg(
            pl.col("title", "id").first(),
            pl.col("breaks").sum(),
            pl.struct("currency", "breaks", BASIS, COUNTED, COUNTED_BEYOND).alias("amounts"),
        )
        .sort(pl.col("breaks"), "cause", descending=[True, False])
        .head(LINES)
    )
    return tuple(
        CauseLine(
            id=row["cause"],
            title=row["title"],
            breaks=row["breaks"],
            amounts=_amounts(row["amounts"], Money.DIFFERENCE),
            gross=_amounts(row["amounts"], Money.GROSS),
            first=row["id"],
            counts=_counts(row["amounts"]),
        )
        for row in causes.iter_rows(named=True)
    )


def _counts(parts: list[dict[str, Any]]) -> dict[str, int]:
    """How many breaks of a cause have which currency."""
    found: dict[str, int] = {}
    for part in sorted(parts, key=lambda part: part["currency"] or 0):
        key = "" if part["currency"] is None else str(part["currency"])
        found[key] = found.get(key, 0) + part["breaks"]
    return found


def _amounts(parts: list[dict[str, Any]], basis: Money) -> dict[str, Decimal]:
    """What the breaks of a cause add to the totals of one kind of money, by currency."""
    return {
        "" if part["currency"] is None else str(part["currency"]): money(
            exact_sum(part[COUNTED], part[COUNTED_BEYOND])
        )
        for part in sorted(parts, key=lambda part: part["currency"] or 0)
        if part[BASIS] == basis
        and (part[COUNTED_BEYOND] or any(amount is not None for amount in part[COUNTED]))
    }
