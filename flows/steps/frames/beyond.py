"""Amounts that no exact column holds: more than 20 digits before the point or 18 behind it.

A frame has null in their place and, in a column beside it (`BEYOND`), their one text. So they are
compared, added up and shown as what they are. The column is there only where it is needed, and few
rows have a value in it: they are read one by one.
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
    """The sum of amounts to the last digit, with those that are texts; no amount is none of it."""
    total = Decimal(0)
    for amount in amounts:
        total = total if amount is None else EXACT.add(total, amount)
    for text in beyond:
        number = number_of(text)
        total = total if number is None else EXACT.add(total, number)
    return total


def number_of(text: str | None) -> Decimal | None:
    """The number of a text; None where it is none that can be added (a NaN, an infinity)."""
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
    """Numbers as an exact column, and the texts of those it does not hold beside it."""
    values = list(numbers)
    # A zero with many digits behind its point is a zero, and fits.
    held = [None if one is None or not fits(one) else plain(one) for one in values]
    texts = [None if one is None or fits(one) else spelled(one) for one in values]
    return [
        pl.Series(name, held, pl.String).cast(AMOUNT),
        pl.Series(name + BEYOND, texts, pl.String),
    ]


def from_both(amount: Decimal | None, beyond: str | None) -> Decimal | None:
    return amount if beyond is None else number_of(beyond)


def beyond_texts(frame: pl.DataFrame, name: str) -> pl.Series:
    """The texts beside an amount of a frame; nulls where the frame has none."""
    if name + BEYOND in frame.columns:
        return frame[name + BEYOND]
    return pl.Series(name + BEYOND, [None], pl.String).new_from_index(0, frame.height)


def beyond_of(frame: pl.DataFrame | pl.LazyFrame, names: Iterable[str]) -> list[str]:
    """Of some amounts those with texts beside them in a frame."""
    there = frame.collect_schema().names()
    return [name for name in names if name + BEYOND in there]


def unheld(field: Field, frame: pl.DataFrame) -> pl.Series:
    """Which rows have an amount that no exact column holds: its text is beside it.

    A required one that is not there at all is one too: rows cannot lack it.
    """
    amounts, texts = frame[field.name], beyond_texts(frame, field.name)
    return texts.is_not_null() | (amounts.is_null() & field.required)


def texts_last(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with the texts beside amounts behind all else, in the order of these.

    Not all that is read of a side has such texts, and what has some may come first or last.
    """
    there = frame.columns
    candidates = (name + end for end in (UNREADABLE, BEYOND) for name in there)
    texts = [text for text in candidates if text in there]
    return frame.select(*(name for name in frame.columns if name not in texts), *texts)


def unreadable_of(frame: pl.DataFrame | pl.LazyFrame, names: Iterable[str]) -> list[str]:
    """Of some amounts those of which some row has one that cannot be read."""
    there = frame.collect_schema().names()
    return [name for name in names if name + UNREADABLE in there]


def too_large(texts: pl.Series) -> pl.Series:
    """Which of some texts are numbers of more than 20 digits before the point.

    By their digits: a double ends at 1.8e308, and rounds what is just below the limit to it.
    """
    numbers = map(number_of, texts)
    large = [one is not None and one.adjusted() >= _WHOLE for one in numbers]
    return pl.Series(texts.name, large, pl.Boolean)


def reaches(texts: pl.Series, limit: Decimal) -> pl.Series:
    """Which of some texts are numbers that reach a limit, without their sign; what is none does."""

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
    """An amount as text: as it is, without zeros that say nothing."""
    return pl.coalesce(pl.col(name + BEYOND), money_text(name))


def money_text(value: str | pl.Expr) -> pl.Expr:
    """An exact amount, or the column of this name, as text without zeros that say nothing."""
    text = as_column(value).cast(AMOUNT).cast(pl.String)
    return text.str.strip_chars_end("0").str.strip_chars_end(".")


def as_column(value: str | pl.Expr) -> pl.Expr:
    return pl.col(value) if isinstance(value, str) else value


def sums_beyond(
    rows: pl.LazyFrame, by: list[pl.Expr], columns: Mapping[str, str]
) -> dict[tuple[Any, ...], dict[str, Decimal]]:
    """What the texts beside amounts add up to in groups; `columns` are amounts by their name."""
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
