"""Cells as the field tables name and write them, from cells as one feed does.

A feed profile states how a feed writes numbers, times and absence. What does not follow the
statement is not guessed: it is marked, and the check rejects it with the text that was delivered.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo

import polars as pl

from schemas.cells.dates import date_form
from schemas.cells.reading import Moment, read_moment
from schemas.derived.json_text import datetime_text
from schemas.field import Field, Kind, Table

NUMBERS = (Kind.DOUBLE, Kind.INTEGER, Kind.INTEGER64)
TIMES = (Kind.DATETIME, Kind.DATETIME_OFFSET)


@dataclass(frozen=True, slots=True)
class Writing:
    """How a feed writes values; the default is how the service document does."""

    decimal: str = "."
    thousands: str = ""
    date_format: str | None = None
    zeros_dropped: bool = False
    """Whether digits of a date lack their leading zeros."""
    offset_minutes: int | None = None
    """What times without an offset mean, by a fixed offset ..."""
    zone: str | None = None
    """... or by the rules of a zone; a time the zone skips or repeats is not guessed."""
    null: Sequence[str] = ("",)
    constants: Mapping[str, str] = field(default_factory=dict)


def normalise(
    table: Table, cells: pl.DataFrame, names: Sequence[str | None], writing: Writing
) -> pl.DataFrame:
    """One String column per delivered field; `names` says which field each delivered column is."""
    found = {name: str(column) for column, name in enumerate(names) if name is not None}
    columns = []
    for of in table.delivered:
        if of.name in writing.constants:
            columns.append(pl.lit(writing.constants[of.name]).alias(of.name))
        elif of.name in found:
            columns.append(_column(of, pl.col(found[of.name]), writing).alias(of.name))
        else:
            columns.append(pl.lit(None, pl.String).alias(of.name))
    frame = cells.with_columns(pl.lit(0).alias("__height")).select("__height", *columns)
    return frame.drop("__height")


def _column(of: Field, text: pl.Expr, writing: Writing) -> pl.Expr:
    if tuple(writing.null) != ("",):
        text = pl.when(~text.is_in(list(writing.null))).then(text)
    if of.kind in NUMBERS and (writing.decimal != "." or writing.thousands):
        return text.map_elements(lambda cell: _number(cell, writing), return_dtype=pl.String)
    if of.kind in TIMES and (
        writing.date_format or writing.zone or writing.offset_minutes is not None
    ):
        return text.map_elements(lambda cell: _time(cell, writing), return_dtype=pl.String)
    return text


def _number(cell: str, writing: Writing) -> str:
    text = cell.strip(" \t")
    match = _form(writing.decimal, writing.thousands).fullmatch(text)
    if match is None:
        # What has no digit is no number in any writing, and may be told by its name, as NaN is.
        digits = any(sign.isdigit() for sign in text)
        return f"{cell} (decimal sign is {writing.decimal!r})" if digits else cell
    sign, whole, fraction, exponent = (part or "" for part in match.groups())
    if writing.thousands:
        whole = whole.replace(writing.thousands, "")
    return f"{sign}{whole}{'.' if fraction else ''}{fraction}{exponent}"


@cache
def _form(decimal: str, thousands: str) -> re.Pattern[str]:
    """Numbers of one writing; 0.123 is no number of thousands, whatever sign separates them."""
    grouped = rf"[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+|" if thousands else ""
    return re.compile(
        rf"([+-]?)(?=.*[0-9])({grouped}[0-9]*)(?:{re.escape(decimal)}([0-9]+))?([eE][+-]?[0-9]+)?"
    )


def _time(cell: str, writing: Writing) -> str:
    if writing.date_format:
        form = date_form(writing.date_format, zeros_dropped=writing.zeros_dropped)
        wall = form.wall(cell.strip(" \t"))
        if isinstance(wall, str):
            return f"{cell} ({wall})"
        if wall.tzinfo is not None:
            return wall.isoformat()
    else:
        moment = read_moment(cell, offset_required=False)
        if not isinstance(moment, Moment) or moment.offset is not None:
            return cell
        wall = moment.wall
    offset = _offset(wall, writing)
    if isinstance(offset, str):
        return f"{cell} ({offset})"
    return datetime_text(wall, offset)


def _offset(wall: datetime, writing: Writing) -> int | str | None:
    if writing.zone is None:
        return writing.offset_minutes
    zone: tzinfo = ZoneInfo(writing.zone)
    early, late = (wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    assert early is not None
    assert late is not None
    if early != late:
        return f"this time does not exist once in {writing.zone}"
    if early % timedelta(minutes=1):
        return f"its offset in {writing.zone} has seconds"
    return early // timedelta(minutes=1)
