"""Amounts that no exact column holds: more than 20 digits before the point or 18 behind it.

A frame has null in place of such an amount and its canonical text in a column beside it (`BEYOND`),
so that it is compared, added up and shown exactly. The column exists only where it is needed, and
few rows have a value in it: these are read one by one.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from flows.steps.totals import plain
from schemas.amounts import BEYOND, EXACT, UNREADABLE, spelled
from schemas.field import Field
from schemas.frame_types import AMOUNT

_WHOLE, _BEHIND = 20, 18


def exact_sum(amounts: Iterable[Decimal | None], beyond: Iterable[str | None] = ()) -> Decimal:
    """Add up amounts and texts of amounts to the last digit; None adds nothing."""
    total = Decimal(0)
    for amount in amounts:
        total = total if amount is None else EXACT.add(total, amount)
    for text in beyond:
        number = number_of(text)
        total = total if number is None else EXACT.add(total, number)
    return total


def number_of(text: str | None) -> Decimal | None:
    """The number of a text; None if it cannot be added (NaN or an infinity)."""
    number = None if text is None else EXACT.create_decimal(text)
    return number if number is not None and number.is_finite() else None


def fits(number: Decimal) -> bool:
    """Whether an exact column holds the number."""
    if not number:
        return True
    *_, exponent = EXACT.normalize(number).as_tuple()
    assert isinstance(exponent, int), "finite"
    return number.adjusted() < _WHOLE and exponent >= -_BEHIND


def parted(name: str, numbers: Iterable[Decimal | None]) -> list[pl.Series]:
    """Numbers as an exact column, and a column of texts for those that it does not hold."""
    values = list(numbers)
    # A zero fits, however many digits it has behind its point.
    held = [None if one is None or not fits(one) else plain(one) for one in values]
    texts = [None if one is None or fits(one) else spelled(one) for one in values]
    return [
        pl.Series(name, held, pl.String).cast(AMOUNT),
        pl.Series(name + BEYOND, texts, pl.String),
    ]


def from_both(amount: Decimal | None, beyond: str | None) -> Decimal | None:
    return amount if beyond is None else number_of(beyond)


def beyond_texts(frame: pl.DataFrame, name: str) -> pl.Series:
    """The texts beside an amount column of a frame; nulls if the frame has no such column."""
    if name + BEYOND in frame.columns:
        return frame[name + BEYOND]
    return pl.Series(name + BEYOND, [None], pl.String).new_from_index(0, frame.height)


def beyond_of(frame: pl.DataFrame | pl.LazyFrame, names: Iterable[str]) -> list[str]:
    """The given amount columns that have texts beside them in a frame."""
    there = frame.collect_schema().names()
    return [name for name in names if name + BEYOND in there]


def unheld(field: Field, frame: pl.DataFrame) -> pl.Series:
    """Which rows have an amount that no exact column holds and whose text is beside it.

    A required amount that is null counts too, even without a text: rows cannot lack it.
    """
    amounts, texts = frame[field.name], beyond_texts(frame, field.name)
    return texts.is_not_null() | (amounts.is_null() & field.required)


def texts_last(frame: pl.DataFrame) -> pl.DataFrame:
    """Move the texts beside amounts behind all other columns, in the order of the amounts.

    Some parts of a side have such texts and others do not, and they may come in any order.
    """
    there = frame.columns
    candidates = (name + end for end in (UNREADABLE, BEYOND) for name in there)
    texts = [text for text in candidates if text in there]
    return frame.select(*(name for name in frame.columns if name not in texts), *texts)


def unreadable_of(frame: pl.DataFrame | pl.LazyFrame, names: Iterable[str]) -> list[str]:
    """The given amount columns of which some row holds an unreadable value."""
    there = frame.collect_schema().names()
    return [name for name in names if name + UNREADABLE in there]


def too_large(texts: pl.Series) -> pl.Series:
    """Which texts are numbers of more than 20 digits before the point.

    Judged by their digits: a double ends at 1.8e308 and rounds a number just below the limit up
    to it.
    """
    numbers = map(number_of, texts)
    large = [one is not None and one.adjusted() >= _WHOLE for one in numbers]
    return pl.Series(texts.name, large, pl.Boolean)


def reaches(texts: pl.Series, limit: Decimal) -> pl.Series:
    """Which texts reach a limit in absolute value; a text that is not a finite number does."""

    def reached(text: str | None) -> bool | None:
        if text is None:
            return None
        number = number_of(text)
        return number is None or number.copy_abs() >= limit

    if texts.null_count() == texts.len():
        return pl.repeat(None, texts.len(), dtype=pl.Boolean, eager=True)
    return pl.Series(texts.name, map(reached, texts), pl.Boolean)


def unsigned(text: pl.Expr) -> pl.Expr:
    return text.str.strip_prefix("-")


def amount_text(name: str) -> pl.Expr:
    """An amount as text, exact and without trailing zeros."""
    return pl.coalesce(pl.col(name + BEYOND), money_text(name))


def money_text(value: str | pl.Expr) -> pl.Expr:
    """An exact amount, or the column of this name, as text without trailing zeros."""
    text = as_column(value).cast(AMOUNT).cast(pl.String)
    return text.str.strip_chars_end("0").str.strip_chars_end(".")


def as_column(value: str | pl.Expr) -> pl.Expr:
    return pl.col(value) if isinstance(value, str) else value


def sums_beyond(
    rows: pl.LazyFrame, by: list[pl.Expr], columns: Mapping[str, str]
) -> dict[tuple[Any, ...], dict[str, Decimal]]:
    """Sum the texts beside amounts by group; `columns` maps the name of each sum to its column."""
    found: dict[tuple[Any, ...], dict[str, Decimal]] = {}
    there = beyond_of(rows, columns.values())
    for name, column in columns.items():
        if column not in there:
            continue
        text = pl.col(column + BEYOND)
        texts = rows.filter(text.is_not_null()).select(*by, text.alias("__text")).collect()
        for *key, value in texts.iter_rows():
            sums = found.setdefault(tuple(key), {})
            sums[name] = exact_sum([sums.get(name)], [value])
    return found
