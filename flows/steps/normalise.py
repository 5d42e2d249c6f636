"""Cells as the field tables name and write them, from cells as one feed does.

A feed profile states how a feed writes numbers, times and absence. What does not follow the
statement is not guessed: it is marked, and the check rejects it with the text that was delivered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import polars as pl

from schemas.field import Field, Kind, Table
from schemas.payloads import datetime_text
from schemas.reading import Moment, read_moment

NUMBERS = (Kind.DOUBLE, Kind.INTEGER, Kind.INTEGER64)
TIMES = (Kind.DATETIME, Kind.DATETIME_OFFSET)


@dataclass(frozen=True, slots=True)
class Writing:
    """How a feed writes values; the default is how the service document does."""

    decimal: str = "."
    thousands: str = ""
    date_format: str | None = None
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
    if of.kind in NUMBERS and writing.decimal != ".":
        return text.map_elements(lambda cell: _number(cell, writing), return_dtype=pl.String)
    if of.kind in TIMES and (
        writing.date_format or writing.zone or writing.offset_minutes is not None
    ):
        return text.map_elements(lambda cell: _time(cell, writing), return_dtype=pl.String)
    return text


def _number(cell: str, writing: Writing) -> str:
    whole, comma, fraction = cell.strip().partition(writing.decimal)
    groups = whole.lstrip("+-").split(writing.thousands) if writing.thousands else [whole]
    grouped = len(groups) == 1 or (
        len(groups[0]) in (1, 2, 3) and all(len(group) == 3 for group in groups[1:])
    )
    if (
        not grouped
        or (comma and not fraction)
        or "." in fraction
        or (writing.thousands != "." and "." in whole)
    ):
        return f"{cell} (decimal sign is {writing.decimal!r})"
    sign = whole[: len(whole) - len(whole.lstrip("+-"))]
    digits = "".join(groups) if writing.thousands else whole.lstrip("+-")
    return f"{sign}{digits}.{fraction}" if fraction else f"{sign}{digits}"


def _time(cell: str, writing: Writing) -> str:
    if writing.date_format:
        try:
            wall = datetime.strptime(cell.strip(), writing.date_format)  # noqa: DTZ007
        except ValueError:
            return f"{cell} (not written as {writing.date_format})"
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
    return early // timedelta(minutes=1)
