"""The money of breaks: what kind of amount each has, and what it adds to a total.

All of it follows from the table of codes. A difference is counted once for each record and amount
field, under the break that explains it: the first in the order of the codes. The gross money of a
record is counted once per currency. A break about a debt adds only what exceeds the breaks about
its payments. Differences and gross money are never added up, nor are two currencies.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from flows.steps.frames.beyond import exact_sum
from flows.steps.frames.parts import Load, columns_of
from flows.steps.totals import in_currency
from schemas.amounts import BEYOND, EXACT
from schemas.breaks import BREAKS, Money
from schemas.tables import EXTRACTS, PAYMENT

BASIS, COUNTED = "basis", "counted"
"""Columns of `counted.additions`: the Money of the break, and what it adds to totals.

COUNTED is null if a break has no amount, and zero if another break of its record counts it; the
text of an amount that no exact column holds is beside it (`COUNTED_BEYOND`).
"""
COUNTED_BEYOND = COUNTED + BEYOND
COUNTED_BY = (
    *("code", "record", "tenant", "key", "field", "side", "currency", "amount", f"amount{BEYOND}"),
    *("note", "debt"),
)
"""Columns, beside `id`, from which follows what each break adds to totals."""
_FIELDS = [f"{name}.{field}" for name, table in EXTRACTS.items() for field in table.amounts]
OF_DEBT = [code for code, of in BREAKS.items() if of.debt]
_BARE = [name for name, table in EXTRACTS.items() if not table.amounts]
"""Record kinds without money."""
ROOM = Decimal(10) ** 20
"""The limit below which an exact column holds an amount."""


class Sums(NamedTuple):
    """Money of breaks in one currency."""

    difference: Decimal = Decimal(0)
    gross: Decimal = Decimal(0)
    unreadable: int = 0
    """How many breaks have an unreadable amount, which is in neither sum."""

    def plus(self, other: "Sums") -> "Sums":
        """Add each kind of money to the last digit."""
        return Sums(
            EXACT.add(self.difference, other.difference),
            EXACT.add(self.gross, other.gross),
            self.unreadable + other.unreadable,
        )

    @property
    def negative(self) -> "Sums":
        """The same with opposite signs, to subtract it."""
        return Sums(self.difference.copy_negate(), self.gross.copy_negate(), -self.unreadable)

    @classmethod
    def of(
        cls,
        basis: str | None,
        amounts: Iterable[Decimal | None],
        beyond: Iterable[str | None],
        rows: int,
    ) -> "Sums":
        """Add up the amounts of breaks of one kind of money, with the texts beside them."""
        if basis == Money.UNREADABLE:
            return cls(unreadable=rows)
        total = exact_sum(amounts, beyond)
        return cls(gross=total) if basis == Money.GROSS else cls(difference=total)


def sum_money(breaks: pl.DataFrame) -> dict[str, Sums]:
    """The sums of breaks with COUNTED, by CurrenciesId as text, each kind of money by itself."""
    found: dict[str, Sums] = {}
    for (currency,), _, _, more in sums_by(breaks, currency_text()):
        found[currency] = found.get(currency, Sums()).plus(more)
    return dict(sorted(found.items(), key=lambda one: (len(one[0]), one[0])))


def sums_by(breaks: pl.DataFrame, *by: pl.Expr) -> Iterator[tuple[tuple[Any, ...], str, int, Sums]]:
    """Yield the sums of groups of breaks with COUNTED: group, kind of money, number and sum.

    A group with several kinds of money comes once for each.
    """
    money = breaks.with_columns(
        pl.when(pl.col(BASIS) != Money.NONE).then(pl.col(COUNTED, COUNTED_BEYOND))
    )
    groups = {f"__by_{place}": one for place, one in enumerate(by)}
    grouped = money.with_columns(**groups).group_by(*groups, BASIS, maintain_order=True)
    for *group, basis, amounts, texts, rows in grouped.agg(*counted(money), pl.len()).iter_rows():
        yield tuple(group), basis, rows, Sums.of(basis, amounts, texts, rows)


def counted(breaks: pl.DataFrame, suffix: str = "") -> list[pl.Expr]:
    """Aggregations of a group of breaks for `exact_sum`: amounts, and the texts beside them.

    Amounts are summed here as far as the sum cannot overflow its column; larger ones are listed
    individually. The sum of no amounts is null.
    """
    amount = pl.col(COUNTED + suffix)
    most = ROOM / max(breaks.height, 1)
    largest = breaks[COUNTED + suffix].abs().max() if breaks.height else None
    fits = largest is None or Decimal(str(largest)) < most
    large = amount.abs() >= most
    added = amount if fits else amount.filter(~large)
    total = pl.when(added.count() > 0).then(added.sum())
    parts = (total,) if fits else (amount.filter(large).implode(), total)
    beyond = pl.col(COUNTED_BEYOND + suffix).drop_nulls()
    return [pl.concat_list(*parts).alias(COUNTED + suffix), beyond]


def currency_text() -> pl.Expr:
    """The currency of a break as the text of its CurrenciesId; empty if it has none."""
    return pl.col("currency").cast(pl.String).fill_null("")


def currency_named(column: str, names: Mapping[str, str]) -> pl.Expr:
    """A currency as named by `in_currency`: `978 EUR`, `currency 12` without a name, or null."""
    currency = pl.col(column).cast(pl.String)
    named = {key: in_currency(key, code) for key, code in names.items()}
    unnamed = pl.format("currency {}", currency)
    return currency.replace_strict(named, default=unnamed, return_dtype=pl.String)


@cache
def basis() -> pl.Expr:
    """The Money of each break, from its code, its field and whether it has an amount."""
    of = {code: known.money.value for code, known in BREAKS.items()}
    whole = {code: (known.whole or known.money).value for code, known in BREAKS.items()}
    by_code = pl.col("code").replace_strict(of, return_dtype=pl.String)
    return (
        pl.when(~has_amount() & pl.col("record").is_in(_BARE))
        .then(pl.lit(Money.NONE.value))
        .when(is_unreadable())
        .then(pl.lit(Money.UNREADABLE.value))
        .when(pl.col("field").fill_null("") == "")
        .then(pl.col("code").replace_strict(whole, return_dtype=pl.String))
        .when(~is_amount_field() & (by_code == Money.DIFFERENCE))
        .then(pl.lit(Money.GROSS.value))
        .otherwise(by_code)
        .alias(BASIS)
    )


def is_unreadable() -> pl.Expr:
    """Whether the amount of a break, as delivered, is not a number."""
    return ~has_amount() & has_unreadable()


def has_unreadable() -> pl.Expr:
    """Whether a break is about a record with an amount that, as delivered, is not a number."""
    # The note quotes such an amount; without a note an optional amount is merely absent.
    noted = (pl.col("code") == "REJECTED") & (pl.col("note").fill_null("") != "")
    return ~pl.col("record").is_in(_BARE) & noted


def has_amount() -> pl.Expr:
    return pl.any_horizontal(pl.col("amount", f"amount{BEYOND}").is_not_null())


def largest_first() -> tuple[pl.Expr, ...]:
    """Sort keys for breaks, ascending and nulls last: the largest first, to double precision.

    First come amounts that are not numbers, as delivered or as stored (`12,50`, NaN): their size is
    unknown, so they reach every limit. Then come differences, as that money may be missing, then
    gross money, each by size, and last breaks without an amount. Callers add further keys, ending
    with the id. `largest_money` does the same for sums.
    """
    size = amount_size()
    unknown = ((pl.col(BASIS) == Money.UNREADABLE) | size.is_nan()).fill_null(value=False)
    difference = pl.when(unknown).then(pl.lit(float("inf"))).otherwise(_size_of(Money.DIFFERENCE))
    # Subtracted, because -0.0 would sort differently from 0.0.
    return tuple(
        pl.lit(0.0) - key for key in (difference, _size_of(Money.GROSS), size.fill_nan(None))
    )


def amount_size() -> pl.Expr:
    """The absolute amount of each break as a double, exact enough to sort by."""
    beyond = pl.col(f"amount{BEYOND}").cast(pl.Float64, strict=False)
    return pl.coalesce(beyond, pl.col("amount").cast(pl.Float64)).abs()


def _size_of(money: Money) -> pl.Expr:
    """The size of amounts of one kind of money; 0 for others."""
    is_it = pl.col(BASIS).cast(pl.String) == money.value
    return pl.when(is_it).then(amount_size()).fill_nan(None).fill_null(0.0)


def largest_money(of: Iterable[Sums]) -> tuple[bool, Decimal, Decimal]:
    """Sort key for groups of breaks, ascending, from their sums in each currency.

    The order is that of `largest_first`: groups with unreadable amounts first, then by difference,
    then by gross money. Currencies are never added up: the largest sum in any of them counts.
    """
    sums = [*of]
    difference = max((one.difference.copy_abs() for one in sums), default=Decimal(0))
    gross = max((one.gross.copy_abs() for one in sums), default=Decimal(0))
    readable = not any(one.unreadable for one in sums)
    return readable, difference.copy_negate(), gross.copy_negate()


def of_debts(breaks: pl.DataFrame, payments: Iterable[Load]) -> pl.DataFrame:
    """Fill in `debt` of breaks about payments; the first payment with the same key decides."""
    key = pl.col("key").str.extract_groups(r"^(?<Id>-?[0-9]+)/(?<TenantsId>-?[0-9]+)")
    about = (pl.col("record") == PAYMENT.name) & ~pl.col("code").is_in(OF_DEBT)
    named = breaks.select(pl.when(about).then(key).alias("__key")).unnest("__key")
    named = named.cast({"Id": pl.Int64, "TenantsId": pl.Int32}, strict=False)
    asked = named["Id"].drop_nulls().unique()
    if asked.is_empty():
        return breaks
    on, is_asked = ["Id", "TenantsId"], pl.col("Id").is_in(asked.implode())
    near = (
        columns_of(load, (*on, "DebtsId"))
        .lazy()
        .filter(is_asked)
        .select(*on, debt=pl.col("DebtsId").cast(pl.Int64))
        .collect()
        for load in payments
    )
    known = pl.concat(near).unique(on, keep="first", maintain_order=True)
    found = named.join(known, on=on, how="left", nulls_equal=False, maintain_order="left")
    return breaks.with_columns(pl.coalesce("debt", found["debt"]).alias("debt"))


def is_amount_field() -> pl.Expr:
    """Whether a break names a field that holds money."""
    return pl.concat_str("record", pl.lit("."), pl.col("field").fill_null("")).is_in(_FIELDS)
