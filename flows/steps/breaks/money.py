"""The money of breaks: what the amount of each is, and what it adds to a total.

One definition, from the table of codes. A difference is counted once for each record and amount
field, under the break that explains it: the first in the order of the codes. The gross money of a
record is counted once in each currency. A break about a debt adds what the breaks about the
payments of that debt do not say already. Differences and gross money are never added to each other,
nor are two currencies.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from flows.steps.frames.beyond import beside, exact_sum, number_of, parted
from flows.steps.frames.parts import Load, columns_of
from schemas.amounts import BEYOND, EXACT
from schemas.breaks import BREAKS, Money
from schemas.frame_types import AMOUNT
from schemas.tables import EXTRACTS, PAYMENT

BASIS, COUNTED = "basis", "counted"
"""Columns `with_counted` adds: the Money of the break, and what it adds to totals.

COUNTED is null where a break has no amount, and zero where another one of its record has it; an
amount that no exact column holds is beside it (`COUNTED_BEYOND`).
"""
COUNTED_BEYOND = COUNTED + BEYOND
COUNTED_BY = (
    *("code", "record", "tenant", "key", "field", "side", "currency", "amount", f"amount{BEYOND}"),
    *("note", "debt"),
)
"""What of breaks says what each adds to totals, beside `id`."""
_FIRST = {name: table.amounts[0] for name, table in EXTRACTS.items() if table.amounts}
_FIELDS = [f"{name}.{field}" for name, table in EXTRACTS.items() for field in table.amounts]
_OF_DEBT = [code for code, of in BREAKS.items() if of.debt]
_RANK = {code: rank for rank, code in enumerate(BREAKS)}
_BARE = [name for name, table in EXTRACTS.items() if not table.amounts]
"""Record kinds without money."""
_ROOM = Decimal(10) ** 20
"""What a column of amounts holds at the most."""
_DEBT = ("__pool", "tenant", "__debt", "currency", BASIS)
_ADDED = (BASIS, COUNTED, COUNTED_BEYOND)
_AMOUNT_BEYOND = f"amount{BEYOND}"


class Sums(NamedTuple):
    """Money of breaks in one currency."""

    difference: Decimal = Decimal(0)
    gross: Decimal = Decimal(0)
    unreadable: int = 0
    """Breaks whose amount cannot be read: it is in neither."""

    def plus(self, other: "Sums") -> "Sums":
        """Both, each kind of money by itself, to the last digit."""
        return Sums(
            EXACT.add(self.difference, other.difference),
            EXACT.add(self.gross, other.gross),
            self.unreadable + other.unreadable,
        )

    @property
    def negative(self) -> "Sums":
        """The same, taken away."""
        return Sums(self.difference.copy_negate(), self.gross.copy_negate(), -self.unreadable)

    @classmethod
    def of(
        cls,
        basis: str | None,
        amounts: Iterable[Decimal | None],
        beyond: Iterable[str | None],
        rows: int,
    ) -> "Sums":
        """Amounts of breaks with one kind of money, added up with the texts beside them."""
        if basis == Money.UNREADABLE:
            return cls(unreadable=rows)
        total = exact_sum(amounts, beyond)
        return cls(gross=total) if basis == Money.GROSS else cls(difference=total)


def sum_money(breaks: pl.DataFrame) -> dict[str, Sums]:
    """What breaks with COUNTED come to, by CurrenciesId as text, each kind of money by itself."""
    found: dict[str, Sums] = {}
    for (currency,), _, _, more in sums_by(breaks, currency_text()):
        found[currency] = found.get(currency, Sums()).plus(more)
    return dict(sorted(found.items(), key=lambda one: (len(one[0]), one[0])))


def sums_by(breaks: pl.DataFrame, *by: pl.Expr) -> Iterator[tuple[tuple[Any, ...], str, int, Sums]]:
    """What groups of breaks with COUNTED come to: group, kind of money, how many, and the sum.

    A group that has several kinds of money comes once with each.
    """
    money = breaks.with_columns(
        pl.when(pl.col(BASIS) != Money.NONE).then(name).alias(name)
        for name in (COUNTED, COUNTED_BEYOND)
    )
    names = [f"__by_{place}" for place in range(len(by))]
    grouped = money.with_columns(
        one.alias(name) for one, name in zip(by, names, strict=True)
    ).group_by(*names, BASIS, maintain_order=True)
    for *group, basis, told, texts, rows in grouped.agg(*counted(money), pl.len()).iter_rows():
        yield tuple(group), basis, rows, Sums.of(basis, told, texts, rows)


def counted(breaks: pl.DataFrame, suffix: str = "") -> list[pl.Expr]:
    """Of a group of these breaks what `exact_sum` adds up: amounts, and the texts beside them.

    The amounts come as one sum where so many of them cannot leave their column, and those that are
    too large for that come each by itself. Of no amount at all the sum is null.
    """
    amount = pl.col(COUNTED + suffix)
    most = _ROOM / max(breaks.height, 1)
    largest = breaks[COUNTED + suffix].abs().max() if breaks.height else None
    fits = largest is None or Decimal(str(largest)) < most
    large = amount.abs() >= most
    added = amount if fits else amount.filter(~large)
    total = pl.when(added.count() > 0).then(added.sum())
    parts = (total,) if fits else (amount.filter(large).implode(), total)
    return [
        pl.concat_list(*parts).alias(COUNTED + suffix),
        pl.col(COUNTED_BEYOND + suffix).drop_nulls(),
    ]


def currency_text() -> pl.Expr:
    """The currency of a break as reports name it; empty where it has none."""
    return pl.col("currency").cast(pl.String).fill_null("")


@cache
def basis() -> pl.Expr:
    """The Money of each break, from its code, its field and whether its amount is there."""
    of = {code: told.money.value for code, told in BREAKS.items()}
    whole = {code: (told.whole or told.money).value for code, told in BREAKS.items()}
    by_code = pl.col("code").replace_strict(of, return_dtype=pl.String)
    absent = pl.all_horizontal(pl.col(name).is_null() for name in ("amount", _AMOUNT_BEYOND))
    return (
        pl.when(absent & pl.col("record").is_in(_BARE))
        .then(pl.lit(Money.NONE.value))
        # What stands in its place is in the note; an optional amount may just not be there.
        .when(absent & (pl.col("code") == "REJECTED") & (pl.col("note") != ""))
        .then(pl.lit(Money.UNREADABLE.value))
        .when(pl.col("field").fill_null("") == "")
        .then(pl.col("code").replace_strict(whole, return_dtype=pl.String))
        .when(~_amount_field() & (by_code == Money.DIFFERENCE))
        .then(pl.lit(Money.GROSS.value))
        .otherwise(by_code)
        .alias(BASIS)
    )


def with_counted(breaks: pl.DataFrame, pool: pl.Expr | None = None) -> pl.DataFrame:
    """Breaks with BASIS, COUNTED and its BEYOND; they are all that are there at one time.

    Those that are equal in `pool` are counted by themselves: none takes money from another pool.
    """
    of_debt = pl.col("code").is_in(_OF_DEBT)
    unit = [
        of_debt.alias("__of_debt"),
        *map(pl.col, ("__pool", "record", "tenant", "key", "currency", BASIS, "__field")),
    ]
    of_key = pl.col("key").str.extract(r"^(-?[0-9]+)").cast(pl.Int64, strict=False)
    whole = pl.col("record").replace_strict(_FIRST, default="", return_dtype=pl.String)
    differs = pl.col(BASIS) == Money.DIFFERENCE
    own = pl.when(_amount_field()).then("field").otherwise(whole)
    told = (
        breaks.drop(*_ADDED, strict=False)
        .with_columns(beside(breaks, "amount"))
        .with_columns(basis())
        .with_row_index("__at")
        .with_columns(
            (pl.lit(value=True) if pool is None else pool).alias("__pool"),
            pl.when(differs).then(own).otherwise(pl.lit("")).alias("__field"),
            pl.when(of_debt).then(of_key).otherwise("debt").alias("__debt"),
            pl.col("code").replace_strict(_RANK, return_dtype=pl.Int32).alias("__rank"),
        )
    )
    there = pl.col("amount").is_not_null() | pl.col(_AMOUNT_BEYOND).is_not_null()
    # A unit with a hash of its own has one break, as nearly all have; the others are put in order.
    several = told.select(unit).hash_rows().is_duplicated()
    ordered = told.filter(several).sort(~there, "__rank", "side", "field", "id", nulls_last=True)
    foremost = ordered.filter(pl.struct(unit).is_first_distinct())["__at"]
    first = pl.lit((~several).scatter(foremost, True))
    once = pl.when(there).then(pl.when(first).then("amount").otherwise(_zero())).alias(COUNTED)
    texts = pl.when(first).then(_AMOUNT_BEYOND).alias(COUNTED_BEYOND)
    counted = told.with_columns(once, texts)
    others = [name for name in breaks.columns if name not in _ADDED]
    return _beyond_payments(counted).select(*others, *_ADDED)


def _beyond_payments(counted: pl.DataFrame) -> pl.DataFrame:
    """Of breaks about debts, what exceeds that of the breaks about their payments."""
    there = pl.col("amount").is_not_null() | pl.col(_AMOUNT_BEYOND).is_not_null()
    of_debt = pl.col("code").is_in(_OF_DEBT) & there
    debts = counted.filter(of_debt)
    if debts.is_empty():
        return counted
    payments = (
        counted.filter(~pl.col("code").is_in(_OF_DEBT), pl.col("__debt").is_not_null())
        .group_by(_DEBT)
        .agg(pl.col(COUNTED).alias("__said"), pl.col(COUNTED_BEYOND).alias("__texts"))
    )
    both = debts.join(payments, on=_DEBT, how="left", nulls_equal=True, maintain_order="left")
    said: dict[tuple[object, ...], Decimal] = {}
    left: dict[int, Decimal] = {}
    names = ["__at", "amount", _AMOUNT_BEYOND, "__said", "__texts", *_DEBT]
    for at, held, text, told, texts, *group in (
        both.sort("__rank", "__at").select(names).iter_rows()
    ):
        amount = number_of(text) if held is None else held
        if amount is None:
            continue
        before = said.setdefault(tuple(group), exact_sum(told or (), texts or ()))
        more = EXACT.subtract(amount.copy_abs(), before)
        left[at] = max(more, Decimal(0))
        said[tuple(group)] = max(before, amount.copy_abs())
    at = pl.Series("__at", list(left), counted.schema["__at"])
    rest = pl.DataFrame([at, *parted("__left", left.values())]).with_columns(__told=True)
    both = counted.join(rest, on="__at", how="left", maintain_order="left")
    return both.with_columns(
        pl.when("__told")
        .then(f"__left{ending}")
        .otherwise(COUNTED + ending)
        .alias(COUNTED + ending)
        for ending in ("", BEYOND)
    )


def of_debts(breaks: pl.DataFrame, payments: Iterable[Load]) -> pl.DataFrame:
    """Breaks about payments with the `debt` these are for, as the first of some payments says."""
    key = pl.col("key").str.extract_groups(r"^(?<Id>-?[0-9]+)/(?<TenantsId>-?[0-9]+)")
    about = (pl.col("record") == PAYMENT.name) & ~pl.col("code").is_in(_OF_DEBT)
    named = breaks.select(pl.when(about).then(key).alias("__key")).unnest("__key")
    named = named.cast({"Id": pl.Int64, "TenantsId": pl.Int32}, strict=False)
    asked = named["Id"].drop_nulls().unique()
    if asked.is_empty():
        return breaks
    near = [
        columns_of(load, ("Id", "TenantsId", "DebtsId"))
        .lazy()
        .filter(pl.col("Id").is_in(asked.implode()))
        .select("Id", "TenantsId", pl.col("DebtsId").cast(pl.Int64).alias("debt"))
        .collect()
        for load in payments
    ]
    on = ["Id", "TenantsId"]
    known = pl.concat(near).unique(on, keep="first", maintain_order=True)
    found = named.join(known, on=on, how="left", nulls_equal=False, maintain_order="left")
    return breaks.with_columns(pl.coalesce("debt", found["debt"]).alias("debt"))


def _amount_field() -> pl.Expr:
    return pl.concat_str("record", pl.lit("."), pl.col("field").fill_null("")).is_in(_FIELDS)


def _zero() -> pl.Expr:
    return pl.lit(0).cast(AMOUNT)
