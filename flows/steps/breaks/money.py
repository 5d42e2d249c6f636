"""The money of breaks: what the amount of each is, and what it adds to a total.

One definition, from the table of codes. A difference is counted once for each record and amount
field, under the break that explains it: the first in the order of the codes. The gross money of a
record is counted once in each currency. A break about a debt adds what the breaks about the
payments of that debt do not say already. Differences and gross money are never added to each other,
nor are two currencies.
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

COUNTED is null where a break has no amount, and zero where another one of its record has it; an
amount that no exact column holds is beside it (`COUNTED_BEYOND`).
"""
COUNTED_BEYOND = COUNTED + BEYOND
COUNTED_BY = (
    *("code", "record", "tenant", "key", "field", "side", "currency", "amount", f"amount{BEYOND}"),
    *("note", "debt"),
)
"""What of breaks says what each adds to totals, beside `id`."""
_FIELDS = [f"{name}.{field}" for name, table in EXTRACTS.items() for field in table.amounts]
OF_DEBT = [code for code, of in BREAKS.items() if of.debt]
_BARE = [name for name, table in EXTRACTS.items() if not table.amounts]
"""Record kinds without money."""
ROOM = Decimal(10) ** 20
"""What a column of amounts holds at the most."""


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
        pl.when(pl.col(BASIS) != Money.NONE).then(pl.col(COUNTED, COUNTED_BEYOND))
    )
    groups = {f"__by_{place}": one for place, one in enumerate(by)}
    grouped = money.with_columns(**groups).group_by(*groups, BASIS, maintain_order=True)
    for *group, basis, amounts, texts, rows in grouped.agg(*counted(money), pl.len()).iter_rows():
        yield tuple(group), basis, rows, Sums.of(basis, amounts, texts, rows)


def counted(breaks: pl.DataFrame, suffix: str = "") -> list[pl.Expr]:
    """Of a group of these breaks what `exact_sum` adds up: amounts, and the texts beside them.

    The amounts come as one sum where so many of them cannot leave their column, and those that are
    too large for that come each by itself. Of no amount at all the sum is null.
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
    """The currency of a break by its CurrenciesId; empty where it has none."""
    return pl.col("currency").cast(pl.String).fill_null("")


def currency_named(column: str, names: Mapping[str, str]) -> pl.Expr:
    """A currency as `in_currency` names it: `978 EUR`, `currency 12` without a name, or null."""
    currency = pl.col(column).cast(pl.String)
    named = {key: in_currency(key, code) for key, code in names.items()}
    unnamed = pl.format("currency {}", currency)
    return currency.replace_strict(named, default=unnamed, return_dtype=pl.String)


@cache
def basis() -> pl.Expr:
    """The Money of each break, from its code, its field and whether its amount is there."""
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
    """Whether the amount of a break is one that, as delivered, is no number."""
    return ~has_amount() & has_unreadable()


def has_unreadable() -> pl.Expr:
    """Whether a break is about a record of which any amount, as delivered, is no number."""
    # What stands in its place is in the note; an optional amount may just not be there.
    noted = (pl.col("code") == "REJECTED") & (pl.col("note").fill_null("") != "")
    return ~pl.col("record").is_in(_BARE) & noted


def has_amount() -> pl.Expr:
    return pl.any_horizontal(pl.col("amount", f"amount{BEYOND}").is_not_null())


def largest_first() -> tuple[pl.Expr, ...]:
    """What to sort breaks by, ascending and nulls last: the largest first, near enough.

    Before all others comes what is no number, as delivered or as stored (`12,50`, NaN): nobody
    knows how large it is, so it reaches every limit. Then differences, as that money may be
    missing, then gross money, each by its size; what has no amount comes last. Those that are alike
    stand as the next key says: an id is the last of all. `largest_money` says the same of sums.
    """
    size = amount_size()
    unknown = ((pl.col(BASIS) == Money.UNREADABLE) | size.is_nan()).fill_null(value=False)
    difference = pl.when(unknown).then(pl.lit(float("inf"))).otherwise(_size_of(Money.DIFFERENCE))
    # Of equal keys -0.0 would be another one than 0.0.
    return tuple(
        pl.lit(0.0) - key for key in (difference, _size_of(Money.GROSS), size.fill_nan(None))
    )


def amount_size() -> pl.Expr:
    """The amount of each break without its sign, near enough to sort by."""
    beyond = pl.col(f"amount{BEYOND}").cast(pl.Float64, strict=False)
    return pl.coalesce(beyond, pl.col("amount").cast(pl.Float64)).abs()


def _size_of(money: Money) -> pl.Expr:
    """The size of amounts that are some money; 0 of others."""
    is_it = pl.col(BASIS).cast(pl.String) == money.value
    return pl.when(is_it).then(amount_size()).fill_nan(None).fill_null(0.0)


def largest_money(of: Iterable[Sums]) -> tuple[bool, Decimal, Decimal]:
    """What to sort groups of breaks by, ascending, from their sums: one for each currency.

    As `largest_first` has single breaks: first those with what is no number, then by difference,
    then by gross money. Two currencies are never added up: the largest sum in any of them counts.
    """
    sums = [*of]
    difference = max((one.difference.copy_abs() for one in sums), default=Decimal(0))
    gross = max((one.gross.copy_abs() for one in sums), default=Decimal(0))
    readable = not any(one.unreadable for one in sums)
    return readable, difference.copy_negate(), gross.copy_negate()


def of_debts(breaks: pl.DataFrame, payments: Iterable[Load]) -> pl.DataFrame:
    """Breaks about payments with the `debt` these are for, as the first of some payments says."""
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
