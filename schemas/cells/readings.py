"""Readings: what the values of a column are, and which readings can be equal across types."""

from enum import StrEnum
from typing import NamedTuple

import polars as pl

from schemas.frame_types import Dtype


class Reading(StrEnum):
    CELL = "text without a declared type"
    """A CSV cell; numbers and times in it are read if both sides have one."""
    NUMBER = "exact number"
    """Text that is a number of any length, like PostgreSQL's numeric."""
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "double"
    TEXT = "text"
    INSTANT = "instant"
    WALL = "time without zone"
    DATE = "date"
    BOOLEAN = "boolean"
    OTHER = "other"


NUMBERS = frozenset({Reading.CELL, Reading.NUMBER, Reading.INTEGER, Reading.DECIMAL, Reading.FLOAT})
TIMES = frozenset({Reading.CELL, Reading.INSTANT, Reading.WALL, Reading.DATE})
BOOLEANS = frozenset({Reading.CELL, Reading.BOOLEAN})


class Column(NamedTuple):
    name: str
    dtype: Dtype
    reading: Reading

    @property
    def shown(self) -> str:
        named = {Reading.CELL: "CSV text", Reading.NUMBER: "numeric"}
        return named.get(self.reading, str(self.dtype))


def column(name: str, dtype: Dtype) -> Column:
    """A column of a typed source."""
    return Column(name, dtype, reading_of(dtype))


def reading_of(dtype: Dtype) -> Reading:
    if dtype.is_integer():
        return Reading.INTEGER
    if dtype.is_decimal():
        return Reading.DECIMAL
    if dtype.is_float():
        return Reading.FLOAT
    if isinstance(dtype, pl.Datetime):
        return Reading.INSTANT if dtype.time_zone else Reading.WALL
    if dtype == pl.Date:
        return Reading.DATE
    if dtype == pl.Boolean:
        return Reading.BOOLEAN
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return Reading.TEXT
    return Reading.OTHER


def remark(left: Column, right: Column) -> str:
    """What a reader should know about comparing these two columns; empty if nothing."""
    if pl.Null in (left.dtype, right.dtype):
        return ""  # Without a value there is nothing to compare.
    readings = {left.reading, right.reading}
    if Reading.FLOAT in readings and len(readings) > 1 and readings <= NUMBERS:
        return "doubles are taken for the shortest decimal that names them"
    if readings == {Reading.INSTANT, Reading.WALL}:
        return "one side has no zone: compared as text"
    same = len(readings) == 1 or any(readings <= kind for kind in (NUMBERS, TIMES, BOOLEANS))
    return "" if same else "types differ: compared as text"
