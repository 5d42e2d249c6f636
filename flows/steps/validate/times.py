"""Times as a feed writes them: by the form and the zone that it states, and not guessed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl

from flows.steps.validate.quick_times import quick_counts, quick_texts
from schemas.cells.counted_times import EPOCHS, counted_time
from schemas.cells.dates import Zones, date_form
from schemas.cells.reading import Moment, read_moment
from schemas.derived.json_text import datetime_text

_SEVERAL = 4
"""From so many rows a text on, reading each text once is cheaper than reading all rows."""


@dataclass(frozen=True, slots=True)
class TimeForm:
    """How a feed writes times; the default is ISO 8601 with an offset."""

    date_format: str | None = None
    """Directives, or a name of `EPOCHS`."""
    zeros_dropped: bool = False
    """Whether digits of a date lack their leading zeros."""
    months: tuple[str, ...] = ()
    """What the twelve months are called; none: in English."""
    offset_minutes: int | None = None
    """What times without an offset mean, by a fixed offset ..."""
    zone: str | None = None
    """... or by the rules of a zone; a time the zone skips or repeats is not guessed."""
    zones: Zones = ()
    """What the names of zones that stand beside times mean: an offset, or the rules of a zone."""
    decimal: str = "."
    """What stands before the fraction of a number of days or seconds."""

    def plain(self, text: pl.Expr) -> pl.Expr:
        """The time that each text says as ISO 8601; a text that says none is marked."""
        return text.map_batches(self._plain, return_dtype=pl.String, is_elementwise=True)

    def _plain(self, texts: pl.Series) -> pl.Series:
        """Each text is read once, where most stand several times, as days do."""
        each = texts.unique()
        if len(each) * _SEVERAL > len(texts):
            return self._read(texts)
        return texts.replace_strict(each, self._read(each), return_dtype=pl.String)

    def _read(self, texts: pl.Series) -> pl.Series:
        read = pl.Series([None], dtype=pl.String).new_from_index(0, len(texts))
        if self.date_format is not None and self.date_format in EPOCHS:
            read = quick_counts(texts, self.date_format)
        elif not (self.months or self.zeros_dropped):
            read = quick_texts(texts, self.date_format, self.offset_minutes, self.zone)
        left = texts.filter(read.is_null())
        each = left.drop_nulls().unique()
        if each.is_empty():
            return read
        plain = pl.Series([self.of(one) for one in each], dtype=pl.String)
        found = left.replace_strict(each, plain, default=None, return_dtype=pl.String)
        return read.scatter(read.is_null().arg_true(), found)

    def of(self, cell: str) -> str:
        """One of them."""
        wall = self._wall(cell)
        if isinstance(wall, str):
            return wall
        zone = wall.tzinfo if isinstance(wall.tzinfo, ZoneInfo) else None
        offset = self._offset(wall, self.zone if zone is None else zone.key)
        return f"{cell} ({offset})" if isinstance(offset, str) else datetime_text(wall, offset)

    def _wall(self, cell: str) -> datetime | str:
        """The time without an offset; or the text that stands for the cell."""
        if self.date_format is None:
            moment = read_moment(cell, offset_required=False)
            return moment.wall if isinstance(moment, Moment) and moment.offset is None else cell
        text = cell.strip(" \t")
        if self.date_format in EPOCHS:
            point = {ord(self.decimal): ".", ord("."): self.decimal}
            wall = counted_time(text.translate(point), self.date_format)
        else:
            wall = date_form(
                self.date_format,
                zeros_dropped=self.zeros_dropped,
                months=self.months,
                zones=self.zones,
            ).wall(text)
        if isinstance(wall, str):
            return f"{cell} ({wall})"
        by_rules = wall.tzinfo is None or isinstance(wall.tzinfo, ZoneInfo)
        return wall if by_rules else wall.isoformat()

    def _offset(self, wall: datetime, zone: str | None) -> int | str | None:
        if zone is None:
            return self.offset_minutes
        rules = ZoneInfo(zone)
        early, late = (wall.replace(tzinfo=rules, fold=fold).utcoffset() for fold in (0, 1))
        assert early is not None
        assert late is not None
        if early != late:
            return f"this time does not exist once in {zone}"
        if early % timedelta(minutes=1):
            return f"its offset in {zone} has seconds"
        return early // timedelta(minutes=1)
