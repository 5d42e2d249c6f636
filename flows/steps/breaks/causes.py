"""Cause groups: breaks that look like one cause, so that two thousand of them become one line.

A break may fit several causes. Patterns of its values (a factor, a swap, a difference, a rate) come
before the place it was found in (a file, a batch, an hour). Among several, the cause with most
breaks is taken, and among equals the one tried first. Nearly every record may have a break, so
causes are tried one by one and only the best cause so far is kept per break.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flows.steps.breaks.cause_groups import (
    GROUPED_BY,
    MOST_MONEY,
    CauseGroup,
    most_money,
    pooled_groups,
)
from flows.steps.breaks.conversions import conversions
from flows.steps.breaks.make import LINES, about_one_record, joined, money
from flows.steps.breaks.match_breaks import line_key
from flows.steps.breaks.money import BASIS, COUNTED, COUNTED_BEYOND, counted
from flows.steps.breaks.patterns import (
    AT,
    FEWEST,
    Candidates,
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
from flows.steps.frames.parts import PartedRows, columns_of, parts_of
from schemas.breaks import OF_AMOUNTS, Money
from schemas.field import TIMES, Kind
from schemas.frame_types import WORD
from schemas.kinds import OFFSET, identity_columns
from schemas.tables import EXTRACTS

Moments = Callable[[pl.DataFrame], pl.DataFrame]
"""Looks up when the records of breaks happened: record, key and at."""
Numbers = NDArray[np.int64]
NONE = -1
_NAMED = ("code", "record", "field")
_VALUES = (*_NAMED, "expected", "found")
"""Columns that name a break, and these with its values."""


@dataclass(frozen=True, slots=True)
class CauseLine:
    id: str
    title: str
    breaks: int
    amounts: Mapping[str, Decimal]
    """Sum of differences by currency, as counted in totals."""
    gross: Mapping[str, Decimal]
    """Sum of gross money by currency, as counted in totals."""
    first: str
    """Id of its first break."""
    counts: Mapping[str, int]
    """Number of breaks by currency; the empty key is for breaks without a currency."""


@dataclass(frozen=True)
class Causes:
    """The cause of each break that has one, and the groups."""

    of: pl.DataFrame
    """`id` of each break, in their order, and its `cause`, null if it has none."""
    lines: tuple[CauseLine, ...]
    """The `LINES` causes with most breaks, most first, and any others with most money."""
    left: int = 0
    """How many more causes there are."""


def find_causes(
    breaks: PartedRows,
    rates: pl.DataFrame | None = None,
    moments: Moments | None = None,
    currencies: Mapping[str, str] | None = None,
) -> Causes:
    """Find the causes of breaks as `frame.gather` returns them, with what they add (COUNTED).

    `rates` are currency rates, to recognise converted amounts; `moments` says when records
    happened, to recognise breaks of one hour; `currencies` are the names of currencies, for titles.
    Each rule reads only the columns it needs.
    """
    ids = breaks.select("id")
    numbered = breaks.hstack(ids.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias(AT)))
    chosen = _chosen(ids.height, _by_value(numbered, rates, currencies or {}))
    left = pl.DataFrame({"left": chosen.group == NONE})
    if left["left"].any():
        rest = numbered.hstack(left).filter(pl.col("left"))
        chosen = chosen.or_else(_chosen(ids.height, _places(rest, moments)))
    # Hashed, so that the same group has the same id in every run.
    names = [
        "C" + hashlib.sha256(f"{rule}\x1f{about}".encode()).hexdigest()[:8]
        for rule, about in chosen.groups.select("rule", "about").iter_rows()
    ]
    causes = chosen.groups.select(pl.Series("cause", names, pl.String), "title")
    group = pl.Series("group", chosen.group).replace(NONE, None).cast(pl.UInt32)
    of = pl.DataFrame([causes["cause"].gather(group), group])
    lines = _lines(breaks.hstack(of), causes)
    every = of["cause"].drop_nulls().n_unique()
    return Causes(ids.hstack(of.select("cause")), lines, every - len(lines))


def _by_value(
    breaks: PartedRows, rates: pl.DataFrame | None, currencies: Mapping[str, str]
) -> Iterator[Candidates]:
    yield twins(breaks.select(AT, "code", "record", "key"))
    read = breaks.read([AT, "id", *_VALUES, "tenant", "key", "side", "currency"])
    amounts = pl.concat(map(exact_amounts, read))
    yield swapped(amounts)
    amounts = amounts.drop("tenant", "key", "side")
    yield factors(amounts)
    yield conversions(amounts, rates)
    yield transposed(amounts)
    yield differences(amounts, currencies)
    del amounts
    yield from shifts(breaks.select(AT, *_VALUES))
    yield _named(breaks.select(AT, *_NAMED, "note"))
    yield _values(breaks.select(AT, *_VALUES))


def moments(breaks: pl.DataFrame, extract: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """When the delivered records of breaks happened: record, key and at."""
    schema = {"record": pl.String(), "key": pl.String(), "at": pl.Datetime("us")}
    parts = [pl.DataFrame(schema=schema)]
    for record in extract:
        table = EXTRACTS[record]
        if table.version is None or table.by_name[table.version].kind not in TIMES:
            continue  # A version number orders records, but is not a time.
        own = breaks.filter(pl.col("record") == record)
        places = own.select(pl.col("file").cast(WORD), "line").unique()
        at, offset = pl.col(table.version).dt.replace_time_zone(None), table.version + OFFSET
        names = {
            *identity_columns(table),
            table.version,
            "file",
            "line",
            "row",
            "batch_id",
            "state",
        }
        if table.by_name[table.version].kind is Kind.DATETIME:
            names.add(offset)
            at = pl.coalesce(at - pl.duration(minutes=offset), at)
        for load in parts_of(extract, record) if places.height else ():
            rows = columns_of(load, names).join(places, on=["file", "line"], how="semi")
            parts.append(
                rows.select(pl.lit(record).alias("record"), line_key(table, rows), at.alias("at"))
            )
    return pl.concat(parts).unique(["record", "key"], keep="first", maintain_order=True)


@dataclass(frozen=True)
class _Chosen:
    """The number of each break's group, NONE if it is in no group."""

    group: Numbers
    groups: pl.DataFrame
    """`rule`, `about` and `title` of each group."""

    def or_else(self, other: "_Chosen") -> "_Chosen":
        """Fill in the other's groups for breaks that are in none."""
        moved = np.where(other.group == NONE, NONE, other.group + self.groups.height)
        group = np.where(self.group == NONE, moved, self.group)
        return _Chosen(group, pl.concat([self.groups, other.groups]))


def _chosen(breaks: int, proposed: Iterable[Candidates]) -> _Chosen:
    """Choose at most one cause per break; groups that are left with too few breaks are dropped."""
    sizes = np.zeros(breaks, np.uint32)
    group = np.full(breaks, NONE, np.int64)
    groups = [pl.DataFrame(schema=dict.fromkeys(("rule", "about", "title"), pl.String))]
    fewest: list[int] = []
    for one in proposed:
        rows = one.breaks.with_columns(one.groups["size"].gather(one.breaks["group"]))
        if rows[AT].is_duplicated().any():
            rows = rows.sort(AT, "size", "group", descending=[False, True, False])
            rows = rows.unique(AT, keep="first", maintain_order=True)
        at, size = rows[AT].to_numpy(), rows["size"].to_numpy()
        better = size > sizes[at]
        at = at[better]
        sizes[at] = size[better]
        group[at] = rows["group"].to_numpy()[better] + len(fewest)
        groups.append(one.groups.select(pl.lit(one.rule).alias("rule"), "about", "title"))
        fewest += [FEWEST[one.rule]] * one.groups.height
    left = np.bincount(group[group != NONE], minlength=len(fewest)) >= np.array(fewest, np.int64)
    # The remaining groups are renumbered.
    numbers = np.append(np.where(left, np.cumsum(left) - 1, NONE), NONE)
    return _Chosen(numbers[group], pl.concat(groups).filter(pl.Series(left, dtype=pl.Boolean)))


def _named(breaks: pl.DataFrame) -> Candidates:
    """Breaks of a code and field with the same note: the same rate, payment or debt."""
    # The note of a rejected row quotes its amount, and the row's file is the better cause.
    noted = breaks.filter(pl.col("note") != "", pl.col("code") != "REJECTED")
    return candidates(
        noted,
        "named",
        joined("code", field_name(), "note"),
        pl.concat_str(title(), pl.lit(": "), pl.col("note")),
    )


def _values(breaks: pl.DataFrame) -> Candidates:
    """Breaks in which one value always stands in place of another."""
    both = breaks.filter(
        pl.col("field") != "",
        ~pl.col("code").is_in([*OF_AMOUNTS, "INSTANT"]),
        pl.col("expected").is_not_null() & pl.col("found").is_not_null(),
    )
    return candidates(
        both,
        "value",
        joined("code", field_name(), "expected", "found", by="\x1f"),
        pl.format("{}: {} is {} everywhere", title(), "expected", "found"),
    )


def _places(breaks: PartedRows, moments: Moments | None) -> Iterator[Candidates]:
    """Breaks of one code in one file, in one batch, or in one hour."""
    about = joined("code", "record")
    for rule, column in (("file", "file"), ("batch", "batch_id")):
        yield candidates(
            breaks.filter(pl.col(column).is_not_null()).select(AT, "code", "record", column),
            rule,
            joined(about, column),
            pl.format("{} in {} {}", title(), pl.lit(rule), column),
        )
    if moments is None:
        return
    known = moments(breaks.select("record", "file", "line")).drop_nulls("at")
    known = known.unique(["record", "key"])
    hours = (
        breaks.filter(about_one_record())
        .select(AT, "code", "record", "key")
        .join(known, on=["record", "key"], maintain_order="left")
        .with_columns(pl.col("at").dt.truncate("1h").dt.to_string("%Y-%m-%d %H:00").alias("hour"))
    )
    yield candidates(
        hours,
        "hour",
        joined(about, "hour"),
        pl.format("{} in the hour of {}", title(), "hour"),
    )


def _lines(breaks: PartedRows, causes: pl.DataFrame) -> tuple[CauseLine, ...]:
    """The lines of a report; `breaks` have `cause`, `group` and `state`."""
    titles = causes["title"]
    of_money = (BASIS, COUNTED, COUNTED_BEYOND)
    explained = breaks.select("id", "cause", "group", "currency", *of_money)
    grouped = (
        explained.drop_nulls("cause")
        .group_by("cause", "currency", BASIS, maintain_order=True)
        .agg(pl.col("group", "id").first(), pl.len().alias("breaks"), *counted(explained))
    )
    lines = (
        grouped.group_by("cause", maintain_order=True)
        .agg(
            pl.col("group", "id").first(),
            pl.col("breaks").sum(),
            pl.struct("currency", "breaks", BASIS, COUNTED, COUNTED_BEYOND).alias("amounts"),
        )
        .sort(pl.col("breaks"), "cause", descending=[True, False])
    )
    if lines.height > LINES:
        kept = pl.int_range(pl.len()) < LINES
        moneyed = _of_most_money(breaks.select(*GROUPED_BY))
        lines = lines.filter(kept | pl.col("cause").is_in(moneyed))
    return tuple(
        CauseLine(
            id=row["cause"],
            title=titles[row["group"]],
            breaks=row["breaks"],
            amounts=_amounts(row["amounts"], Money.DIFFERENCE),
            gross=_amounts(row["amounts"], Money.GROSS),
            first=row["id"],
            counts=_counts(row["amounts"]),
        )
        for row in lines.iter_rows(named=True)
    )


def _of_most_money(breaks: pl.DataFrame) -> set[str]:
    """The causes with most money among open and accepted breaks, overall and in each currency."""
    kept: set[str] = set()
    for groups in pooled_groups(breaks.drop_nulls("cause")).values():
        kept.update(one.cause for one in groups[:MOST_MONEY])
        parts: dict[str, list[CauseGroup]] = {}
        for one in groups:
            for currency, share in one.shares.items():
                parts.setdefault(currency, []).append(replace(one, shares={currency: share}))
        for part in parts.values():
            kept.update(one.cause for one in most_money(part)[:MOST_MONEY])
    return kept


def _counts(parts: list[dict[str, Any]]) -> dict[str, int]:
    """The number of breaks of a cause by currency."""
    found: dict[str, int] = {}
    for part in sorted(parts, key=lambda part: part["currency"] or 0):
        key = "" if part["currency"] is None else str(part["currency"])
        found[key] = found.get(key, 0) + part["breaks"]
    return found


def _amounts(parts: list[dict[str, Any]], basis: Money) -> dict[str, Decimal]:
    """The sum of one kind of money over the breaks of a cause, by currency."""
    return {
        "" if part["currency"] is None else str(part["currency"]): money(
            exact_sum(part[COUNTED], part[COUNTED_BEYOND])
        )
        for part in sorted(parts, key=lambda part: part["currency"] or 0)
        if part[BASIS] == basis
        and (part[COUNTED_BEYOND] or any(amount is not None for amount in part[COUNTED]))
    }
