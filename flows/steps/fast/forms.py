"""How the loops read the fields of a feed: its forms as arrays."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Form(IntEnum):
    INTEGER = 1
    DECIMAL = 2
    AMOUNT = 3
    """A number with words around it and between its digits."""
    MOMENT = 4
    """A time of ISO 8601 with an offset."""
    LAID_OUT = 5
    """A time by a layout of its parts."""
    COUNT = 6
    """A time as a number of days, seconds or milliseconds."""
    WORD = 7
    """One of some words, each of which stands for a number."""
    BEHIND = 8
    """An integer in a text, behind a word."""
    KEPT = 9
    """No field: whether a row is kept, by one of its cells."""


class TimePart(IntEnum):
    """A part of a laid-out time; in a layout it is below zero, and a byte as it stands is not."""

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
    """How a field is read, as a line of an array; ranges are of what stands in the `Book`."""

    form: int
    bare: bool
    """Nearly always it is the cell of one column, as the service document writes it."""
    column: int
    first_column: int
    beyond_column: int
    join: int
    """The word between the cells of its columns."""
    one_number: bool
    """Whether no more than one of them may have a digit."""
    trimmed: bool
    """Whether blanks around a cell are dropped, before words for nothing are looked for."""
    first_null: int
    beyond_null: int
    default_given: bool
    """Whether nothing stands for something: for `default`, with its companion."""
    default: int
    default_companion: int
    least: int
    """Of a count; an integer that is read is never below zero."""
    largest: int
    first_around: int
    """Pairs of words around the digits of an amount; the value of each is the sign."""
    beyond_around: int
    first_group: int
    """Words between groups of digits."""
    beyond_group: int
    group_digits: int
    """How many each of them has, but the last, which has three."""
    point: int
    """The byte before the decimals of an amount or a count."""
    most_decimals: int
    """How many digits may stand behind that."""
    implied: int
    """How many of the digits of an amount are decimals, where no sign stands before them."""
    first_word: int
    """The words it may be, in the order of their bytes; or the one that stands before it ..."""
    beyond_word: int
    left_out: bool
    """Of what is no field: whether a row is left out by one of these words, or by all others."""
    between: int
    """... and the byte between them, which may stand any number of times; below zero: none."""
    first_part: int
    """The layout of a time."""
    beyond_part: int
    short_year: bool
    step: int
    """Microseconds of a count of one."""
    epoch: int
    """Microseconds from 1970 to a count of none."""
    offset: int
    """Minutes a time is ahead of UTC."""
    instant: bool
    """Whether it is kept as the moment in UTC, or else as the wall clock."""


class Word:
    """A word, as a line of an array: where it is in the text, what it stands for."""

    start: int
    stop: int
    value: int


class Book(NamedTuple):
    """What the lines of an array of `HowRead` name."""

    text: NDArray[np.uint8]
    words: Sequence[Word]
    columns: NDArray[np.int64]
    layout: NDArray[np.int16]


def lines_of(shape: type) -> np.dtype[np.void]:
    """The lines of an array that have the attributes of a class."""
    kinds = {int: np.int64, bool: np.bool_}
    return np.dtype([(name, kinds[kind]) for name, kind in shape.__annotations__.items()])
