"""What breaks add to totals, now and as the previous run left them (`COUNTED` of `money`)."""

from collections.abc import Iterator
from decimal import Decimal

import polars as pl

from flows.steps.breaks.carried_states import BEFORE, is_aside
from flows.steps.breaks.lifecycle import REMEMBERED
from flows.steps.breaks.money import (
    BASIS,
    COUNTED,
    COUNTED_BEYOND,
    COUNTED_BY,
    OF_DEBT,
    ROOM,
    basis,
    has_amount,
    is_amount_field,
)
from flows.steps.frames.beyond import exact_sum, number_of, parted
from flows.steps.frames.light import light
from flows.steps.frames.parts import PartedRows, held_rows
from schemas.amounts import BEYOND, EXACT
from schemas.breaks import BREAKS, Money
from schemas.frame_types import AMOUNT
from schemas.life import RESOLVED
from schemas.tables import EXTRACTS

COUNTS = tuple(name + when for name in (BASIS, COUNTED, COUNTED_BEYOND) for when in ("", BEFORE))
_FIRST = {name: table.amounts[0] for name, table in EXTRACTS.items() if table.amounts}
_RANK = {code: rank for rank, code in enumerate(BREAKS)}
_ADDED = (COUNTED, COUNTED_BEYOND)
_UNIT = ("__of_debt", "__pool", "record", "tenant", "key", "currency", BASIS, "__field")
"""Breaks with equal values in these columns are about the same amount."""
_DEBT = ("__pool", "tenant", "__debt", "currency", BASIS)
"""A break about a debt and the breaks about its payments have equal values in these columns."""


def counts(carried: PartedRows) -> pl.DataFrame:
    """What each carried break adds to totals now, and what it added before (COUNTS).

    Breaks that are set aside are a pool of their own, so that they take no money from open breaks.
    """
    now = _of_unresolved(carried)
    was = _of_unresolved(_before(carried)).select(pl.all().name.suffix(BEFORE))
    # A resolved break adds nothing now: what it added before is shown instead.
    there = pl.col(BASIS).is_not_null()
    now_or_before = (
        pl.when(there).then(name).otherwise(name + BEFORE).alias(name) for name in (BASIS, *_ADDED)
    )
    return light(now.hstack(was).with_columns(now_or_before).select(COUNTS))


def counted_alone(left: pl.DataFrame) -> pl.DataFrame:
    """Breaks as a run left them, with what each adds to totals; resolved breaks add nothing.

    Decisions do not change that: only a run can resolve a break or set it aside.
    """
    return left.hstack(_of_unresolved(held_rows(left))).with_columns(basis())


def additions(rows: PartedRows, pool: pl.Expr) -> pl.DataFrame:
    """What each break adds to totals: BASIS, COUNTED and its BEYOND, in the order of the breaks.

    `rows` (`id` and COUNTED_BY) must be all breaks of a point in time. Breaks with equal `pool` are
    counted among themselves and take no money from other pools. Breaks are read part by part; only
    those that are about the same amount or debt as another break are held together.
    """
    alone, groups = [], []
    asked = ["id", *COUNTED_BY, *(one for one in pool.meta.root_names() if one not in COUNTED_BY)]
    for part in rows.read(asked):
        breaks = _with_basis(part, pool)
        amounts = pl.col("amount").alias(COUNTED), pl.col(f"amount{BEYOND}").alias(COUNTED_BEYOND)
        alone.append(light(breaks.select(BASIS, *amounts)))
        groups.append(_groups(breaks))
    added, placed = pl.concat(alone, rechunk=True), _placed(pl.concat(groups, rechunk=True))
    if placed["__at"].null_count() == added.height:
        return light(added)
    some = rows.hstack(placed).filter(pl.col("__at").is_not_null())
    breaks = pl.concat(_with_basis(part, pool) for part in some.read([*asked, *placed.columns]))
    together = _beyond_payments(_once(breaks))
    return light(
        added.with_columns(added[name].scatter(together["__at"], together[name]) for name in _ADDED)
    )


def _of_unresolved(rows: PartedRows) -> pl.DataFrame:
    """What each unresolved break adds; null for resolved ones."""
    there = ~pl.col("state").is_in(RESOLVED)
    added = additions(rows.filter(there), is_aside())
    # Unresolved breaks are in the order of all breaks.
    at = rows.select("state").select(pl.when(there).then(there.cum_sum() - 1)).to_series()
    return added if added.height == at.len() else added[at]


def _before(carried: PartedRows) -> PartedRows:
    """All breaks as they were before; breaks that did not exist then have no state."""
    asked = {name.removesuffix(BEFORE): name for name in REMEMBERED}

    def read(names: list[str]) -> Iterator[pl.DataFrame]:
        was = {asked.get(name, name): name for name in names}
        for part in carried.read([*was]):
            yield part.select(pl.col(name).alias(alias) for name, alias in was.items())

    return PartedRows(carried.names, read)


def _with_basis(breaks: pl.DataFrame, pool: pl.Expr) -> pl.DataFrame:
    """Breaks with BASIS and the columns that group and order them."""
    of_key = pl.col("key").str.extract(r"^(-?[0-9]+)").cast(pl.Int64, strict=False)
    whole = pl.col("record").replace_strict(_FIRST, default="", return_dtype=pl.String)
    own = pl.when(is_amount_field()).then("field").otherwise(whole)
    difference = pl.col(BASIS) == Money.DIFFERENCE
    return breaks.with_columns(basis(), pl.col("code").is_in(OF_DEBT).alias("__of_debt")).select(
        pl.all().exclude("code", "debt", "note"),
        pool.alias("__pool"),
        pl.when(difference).then(own).otherwise(pl.lit("")).alias("__field"),
        pl.when("__of_debt").then(of_key).otherwise("debt").alias("__debt"),
        pl.col("code").replace_strict(_RANK, return_dtype=pl.Int32).alias("__rank"),
    )


def _groups(breaks: pl.DataFrame) -> pl.DataFrame:
    """Hashes of each break's amount (`unit`) and of its debt, which is null if it has none."""
    of_debt = pl.col("__of_debt") & has_amount()
    debt = pl.lit(breaks.select(_DEBT).hash_rows())
    return breaks.select(
        pl.lit(breaks.select(_UNIT).hash_rows()).alias("unit"),
        pl.when(of_debt | (~pl.col("__of_debt") & pl.col("__debt").is_not_null()))
        .then(debt)
        .alias("debt"),
        of_debt.alias("of_debt"),
    )


def _placed(groups: pl.DataFrame) -> pl.DataFrame:
    """The row number (`__at`) of each break whose share depends on another; null for the rest."""
    debts = groups.filter("of_debt")["debt"].implode()
    several = pl.col("unit").is_duplicated()
    of_one_debt = pl.col("debt").is_duplicated() & pl.col("debt").is_in(debts)
    return groups.select(
        pl.when(several | of_one_debt).then(pl.int_range(pl.len())).alias("__at"),
        several.alias("__several"),
    )


def _once(breaks: pl.DataFrame) -> pl.DataFrame:
    """Breaks with COUNTED, so that breaks about the same amount count it once.

    In order, the first break with an amount adds all of it, and a later one adds only its excess
    over those before it.
    """
    order = (~has_amount(), "__rank", "side", "field", "id")
    several = breaks.filter("__several").sort(*order, nulls_last=True)
    texts = pl.col(f"amount{BEYOND}").is_not_null().any().over(_UNIT)
    exact = _once_exactly(several.filter(texts))
    before = pl.col("amount").abs().cum_max().shift(1).over(_UNIT)
    more = pl.max_horizontal(pl.lit(0).cast(AMOUNT), pl.col("amount").abs() - before)
    first = pl.when(before.is_null() | pl.col("amount").is_null()).then("amount")
    added = several.filter(~texts).select(
        "__at",
        first.otherwise(more).alias(COUNTED),
        pl.lit(None, pl.String).alias(COUNTED_BEYOND),
    )
    both = breaks.join(pl.concat([added, exact]), on="__at", how="left", maintain_order="left")
    own = {COUNTED: "amount", COUNTED_BEYOND: f"amount{BEYOND}"}
    return both.with_columns(
        pl.when("__several").then(name).otherwise(amount).alias(name)
        for name, amount in own.items()
    )


def _once_exactly(several: pl.DataFrame) -> pl.DataFrame:
    """As `_once` does for breaks about one amount, where some amounts are texts."""
    largest: dict[tuple[object, ...], Decimal] = {}
    added: list[tuple[int, Decimal | None, str | None]] = []
    names = ("__at", "amount", f"amount{BEYOND}", *_UNIT)
    for at, held, text, *group in several.select(names).iter_rows():
        unit = tuple(group)
        first = unit not in largest
        before = largest.setdefault(unit, Decimal(0))
        number = number_of(text) if held is None else held
        if first or (held is None and text is None):
            added.append((at, held, text))
        elif number is None:
            added.append((at, Decimal(0), None))
        else:
            more = parted(COUNTED, [max(EXACT.subtract(number.copy_abs(), before), Decimal(0))])
            added.append((at, more[0][0], more[1][0]))
        largest[unit] = max(before, Decimal(0) if number is None else number.copy_abs())
    schema = {"__at": several.schema["__at"], COUNTED: AMOUNT, COUNTED_BEYOND: pl.String()}
    return pl.DataFrame(added, schema, orient="row")


def _beyond_payments(counted: pl.DataFrame) -> pl.DataFrame:
    """Reduce breaks about a debt to their excess over the breaks about its payments.

    Breaks about one debt count in order: a later one adds only its excess over the earlier ones.
    """
    of_debt = pl.col("__of_debt") & has_amount()
    debts = counted.filter(of_debt)
    payments = counted.filter(~pl.col("__of_debt"), pl.col("__debt").is_not_null())
    in_order = ("__rank", "record", "key", "field", "side", "id")
    debts = debts.sort(in_order, nulls_last=True)
    left = _left(debts, payments) if _fit(counted) else _left_exactly(debts, payments)
    return pl.concat([counted.filter(~of_debt).select("__at", *_ADDED), left])


def _fit(counted: pl.DataFrame) -> bool:
    """Whether all amounts, and even their sum, fit an exact column."""
    if counted[f"amount{BEYOND}"].null_count() < counted.height:
        return False
    return bool((counted["amount"].abs() < ROOM // counted.height).all())


def _left(debts: pl.DataFrame, payments: pl.DataFrame) -> pl.DataFrame:
    """What breaks about debts add, for amounts that fit."""
    paid = payments.group_by(_DEBT).agg(pl.col(COUNTED).sum().alias("__paid"))
    zero = pl.lit(0).cast(AMOUNT)
    earlier = pl.col("amount").abs().cum_max().shift(1).over(_DEBT)
    before = pl.max_horizontal(zero, "__paid", earlier)
    return debts.join(paid, on=_DEBT, how="left", nulls_equal=True, maintain_order="left").select(
        "__at",
        pl.max_horizontal(zero, pl.col("amount").abs() - before).alias(COUNTED),
        pl.lit(None, pl.String).alias(COUNTED_BEYOND),
    )


def _left_exactly(debts: pl.DataFrame, payments: pl.DataFrame) -> pl.DataFrame:
    """What breaks about debts add, for any amounts, including texts."""
    by_debt = payments.group_by(_DEBT).agg(pl.col(_ADDED))
    both = debts.drop(_ADDED).join(
        by_debt, on=_DEBT, how="left", nulls_equal=True, maintain_order="left"
    )
    largest: dict[tuple[object, ...], Decimal] = {}
    left: dict[int, Decimal] = {}
    names = ("__at", "amount", f"amount{BEYOND}", *_ADDED, *_DEBT)
    for at, held, text, amounts, texts, *group in both.select(names).iter_rows():
        amount = number_of(text) if held is None else held
        if amount is None:
            continue
        before = largest.setdefault(tuple(group), exact_sum(amounts or (), texts or ()))
        left[at] = max(EXACT.subtract(amount.copy_abs(), before), Decimal(0))
        largest[tuple(group)] = max(before, amount.copy_abs())
    at = pl.Series("__at", list(left), debts.schema["__at"])
    as_they_are = debts.filter(~pl.col("__at").is_in(at.implode())).select("__at", *_ADDED)
    exact = parted(COUNTED, left.values())
    return pl.concat([as_they_are, pl.DataFrame([at, *exact])])
