"""Acceptances: bound to the values that were seen, so that they do not cover a changed break.

An acceptance names a break (its id is code, record kind, tenant, key, field and side) and the
values it had in that run. It holds while every value of BOUND is the same or, with a ceiling, while
the difference has the same direction and does not exceed the ceiling. Values that are not amounts
in one currency, such as a debt or the day of a rate, have to be the same even with a ceiling.
"""

from collections.abc import Callable, Mapping

import polars as pl

from flows.steps.breaks.frame import BREAK_SCHEMA
from flows.steps.breaks.money import currency_named, is_amount_field
from flows.steps.frames.beyond import amount_text, money_text
from schemas.amounts import BEYOND
from schemas.breaks import OF_AMOUNTS
from schemas.frame_types import Dtype
from schemas.life import BreakState

BOUND = (
    *("currency", "expected", "found", "delta", f"delta{BEYOND}"),
    *("amount", f"amount{BEYOND}", "amounts", "note"),
)
"""Columns of a break that an acceptance is bound to, beside those of its id."""
SEEN: dict[str, Dtype] = {
    "seen": pl.Boolean(),
    **{f"seen_{name}": BREAK_SCHEMA[name] for name in BOUND},
    "up_to": BREAK_SCHEMA["amount"],
}
"""The terms of an acceptance beside who, until and why; `seen` is null if there is none."""

_FIRST_SIZE = r"^(\S+ -?)[^,]+"
"""The size of the first of `amounts`, behind its name and its sign."""
_OF_SUMS = ("DISCOUNT_GT_PAID", "TOLERANCE_BUDGET")
"""Codes whose values are sums without a difference beside them."""
_WORDS = {"expected": "expected", "found": "found", "delta": "difference", "amount": "amount"}
_MONEY = ("delta", "amount")


def holds(seen: str, up_to: str) -> pl.Expr:
    """Whether an acceptance still covers a break; accepted values have the column prefix `seen`.

    `code`, `record` and `field` of the break are needed as well.
    """
    same = is_same(lambda name: seen + name)
    now, then = size(), size(seen)
    # A difference of zero has no direction, and an absent amount has no size.
    alike = ((now > 0) & (then > 0)) | ((now < 0) & (then < 0))
    values = (pl.col(name).eq_missing(pl.col(seen + name)) for name in ("expected", "found"))
    within = (
        alike
        & pl.col("currency").eq_missing(pl.col(f"{seen}currency"))
        & _same_amounts(seen + "amounts", lambda amounts: amounts.str.replace(_FIRST_SIZE, "${1}"))
        & (_of_amounts() | pl.all_horizontal(values))
        & (now.abs() <= pl.col(up_to))
    )
    return same | within.fill_null(value=False)


def _of_amounts() -> pl.Expr:
    """Whether expected and found of a break are amounts, whose difference is its size."""
    code = pl.col("code")
    of_amounts = code.is_in([*OF_AMOUNTS, *_OF_SUMS]) | ((code == "ECHO") & is_amount_field())
    return pl.col("delta").is_not_null() | of_amounts


def is_same(before: Callable[[str], str]) -> pl.Expr:
    """Whether a break has the same values as before; `before` names the column of an old value."""
    others = (name for name in BOUND if name != "amounts")
    same = (pl.col(name).eq_missing(pl.col(before(name))) for name in others)
    return pl.all_horizontal(*same, _same_amounts(before("amounts"), lambda amounts: amounts))


def _same_amounts(before: str, part: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    """Whether a part of a record's amounts is the same; true if an earlier version kept none."""
    then = pl.col(before)
    return then.is_null() | part(pl.col("amounts")).eq_missing(part(then))


def size(prefix: str = "") -> pl.Expr:
    """The value that a ceiling limits: the difference, or else the amount of the break."""
    return pl.coalesce(f"{prefix}delta", f"{prefix}amount")


def acceptance(carried: pl.DataFrame, names: Mapping[str, str]) -> pl.Series:
    """Who accepted a break, until when and why, as reports say it; null if nobody did.

    A break that has changed since is described with both values. `names` are those of currencies,
    as for `values`.
    """
    other = outgrown()
    lapsed = pl.col("state") == BreakState.EXPIRED
    both = pl.format(" as {}; it is now {}", values(names, "seen_"), values(names))
    text = pl.format(
        "{} by {} until {}{}{}: {}",
        pl.when(lapsed | other).then(pl.lit("was accepted")).otherwise(pl.lit("accepted")),
        "accepted_by",
        pl.col("accepted_until").cast(pl.String),
        _up_to(),
        pl.when(other).then(both).otherwise(pl.lit("")),
        "accepted_reason",
    )
    return carried.select(text.alias("acceptance")).to_series()


def outgrown() -> pl.Expr:
    """Whether a break was accepted and has changed since."""
    seen = pl.col("seen").fill_null(value=False)
    return ((pl.col("state") == BreakState.REOPENED) & seen).alias("outgrown")


def name_of() -> pl.Expr:
    """The name of a break for people: its code, record kind, key and field."""
    parts = ("code", "record", "key", pl.when(pl.col("field") != "").then("field"))
    return pl.concat_str(parts, separator=" ", ignore_nulls=True).alias("what")


def both_values(names: Mapping[str, str]) -> tuple[pl.Expr, pl.Expr]:
    """The values a break was accepted with, null if it was not, and its values now."""
    was = pl.when(pl.col("seen")).then(values(names, "seen_"))
    return was.alias("accepted_as"), values(names).alias("is_now")


def accepted_terms(names: Mapping[str, str]) -> pl.Expr:
    """The values a break was accepted with, its ceiling and the last day of the acceptance."""
    until = pl.format(" until {}", pl.col("accepted_until").cast(pl.String)).fill_null("")
    return pl.concat_str([values(names, "seen_"), _up_to(), until])


def _up_to() -> pl.Expr:
    """The ceiling of an acceptance; empty if it has none."""
    return pl.format(" up to {}", money_text("up_to")).fill_null("")


def values(names: Mapping[str, str], prefix: str = "") -> pl.Expr:
    """The values of a break, now or with `prefix` when it was accepted, in one line.

    `names` are those of currencies by CurrenciesId; a currency without a name is shown by its id.
    """
    parts = [
        pl.format(f"{word} {{}}", amount_text(prefix + name) if name in _MONEY else prefix + name)
        for name, word in _WORDS.items()
    ]
    parts.append(pl.format("in {}", currency_named(f"{prefix}currency", names)))
    amounts, note = pl.col(f"{prefix}amounts"), pl.col(f"{prefix}note")
    # For a record with one positive amount, `amount` says it all.
    unsaid = amount_text(f"{prefix}amount").is_null() & (amounts != "")
    parts.append(pl.when(amounts.str.contains(", | -") | unsaid).then(amounts))
    parts.append(pl.when(note != "").then(note))
    text = pl.concat_str(parts, separator=", ", ignore_nulls=True)
    return pl.when(text == "").then(pl.lit("without a value")).otherwise(text)
