"""The instructions by which the loops read the fields of a feed, as arrays."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Form(IntEnum):
    INTEGER = 1
    DECIMAL = 2
    AMOUNT = 3
    """A number that may have words around it and between its digits."""
    MOMENT = 4
    """A time in ISO 8601 with an offset."""
    LAID_OUT = 5
    """A time in a fixed layout of parts."""
    COUNT = 6
    """A time as a number of days, seconds or milliseconds."""
    WORD = 7
    """One of a list of words, each of which stands for a number."""
    BEHIND = 8
    """An integer behind a word in a text."""
    KEPT = 9
    """No field, but a cell that decides whether its row is kept."""


class TimePart(IntEnum):
    """A part of a laid-out time; layouts have parts as negative numbers and bytes as they are."""

    YEAR = 1
    SHORT_YEAR = 2
    MONTH = 3
    MONTH_NAME = 4
    DAY = 5
    HOUR = 6
    MINUTE = 7
    SECOND = 8


SHORT = 16
"""Added to a part that may have one digit instead of two."""


class HowRead:
    """How a field is read, as a line of an array; `first_` to `beyond_` are ranges of a `Book`."""

    form: int
    bare: bool
    """Whether to try first the cell of one column in the service document's own form."""
    column: int
    first_column: int
    beyond_column: int
    join: int
    """The word between the cells of the field's columns."""
    one_number: bool
    """Whether at most one of the cells may have a digit."""
    trimmed: bool
    """Whether blanks around a cell are dropped before it is compared with words for null."""
    first_null: int
    beyond_null: int
    default_given: bool
    """Whether an empty cell stands for `default` with its companion."""
    default: int
    default_companion: int
    least: int
    """Lower bound of a count; integers have none, as negative ones are not read."""
    largest: int
    first_around: int
    """Pairs of words around the digits of an amount; the value of each word is the sign."""
    beyond_around: int
    first_group: int
    """Words between groups of digits."""
    beyond_group: int
    group_digits: int
    """Number of digits in each group except the last, which has three."""
    point: int
    """The byte before the decimals of an amount or a count."""
    most_decimals: int
    """Most digits behind the point."""
    implied: int
    """Number of implied decimals of an amount that is written without a point."""
    first_word: int
    """The words a cell may be, in the order of their bytes; for BEHIND the word before the digits.
    """
    beyond_word: int
    left_out: bool
    """For KEPT, whether rows with one of the words are left out, or rows with any other."""
    between: int
    """For BEHIND, the byte that may be repeated between word and digits; negative if none."""
    first_part: int
    """The layout of a time."""
    beyond_part: int
    short_year: bool
    step: int
    """Microseconds in one step of a count."""
    epoch: int
    """Microseconds from 1970 to the time with count zero."""
    offset: int
    """Minutes that a time is ahead of UTC."""
    instant: bool
    """Whether a time is stored as an instant in UTC, or else as a wall clock."""


class Word:
    """A word, as a line of an array: its place in the text of the `Book`, and its value."""

    start: int
    stop: int
    value: int


class Book(NamedTuple):
    """The arrays that ranges of `HowRead` refer to."""

    text: NDArray[np.uint8]
    words: Sequence[Word]
    columns: NDArray[np.int64]
    layout: NDArray[np.int16]


def lines_of(shape: type) -> np.dtype[np.void]:
    """The dtype of an array whose lines have the attributes of a class."""
    kinds = {int: np.int64, bool: np.bool_}
    return np.dtype([(name, kinds[kind]) for name, kind in shape.__annotations__.items()])
