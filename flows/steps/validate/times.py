"""Times as a feed writes them, read by the form and the zone that it states, never guessed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl

from flows.steps.validate.quick_times import quick_counts, quick_texts
from schemas.cells.counted_times import EPOCHS
from schemas.cells.date_forms import DateForms
from schemas.cells.reading import UNFIT, Moment, read_moment
from schemas.derived.json_text import datetime_text

_ISO = DateForms()
_SEVERAL = 4
"""From this many rows per text on, reading each text once is cheaper than reading all rows."""


@dataclass(frozen=True, slots=True)
class TimeForm:
    """How a feed writes times; the default is ISO 8601 with an offset."""

    dates: DateForms = _ISO
    offset_minutes: int | None = None
    """Fixed offset of times without one."""
    zone: str | None = None
    """Zone of times without an offset.

    A time that the zone skips or repeats is not guessed; a day alone is its first moment.
    """

    def plain(self, text: pl.Expr) -> pl.Expr:
        """The time of each text in ISO 8601; a text that is not a time is marked."""
        return text.map_batches(self._plain, return_dtype=pl.String, is_elementwise=True)

    def _plain(self, texts: pl.Series) -> pl.Series:
        """Read each distinct text once if most occur several times, as days do."""
        each = texts.unique()
        if len(each) * _SEVERAL > len(texts):
            return self._read(texts)
        return texts.replace_strict(each, self._read(each), return_dtype=pl.String)

    def _read(self, texts: pl.Series) -> pl.Series:
        read = self.at_once(texts)
        left = texts.filter(read.is_null())
        each = left.drop_nulls().unique()
        if each.is_empty():
            return read
        plain = pl.Series([self.of(one) for one in each], dtype=pl.String)
        found = left.replace_strict(each, plain, default=None, return_dtype=pl.String)
        return read.scatter(read.is_null().arg_true(), found)

    def at_once(self, texts: pl.Series) -> pl.Series:
        """The times that can be read in whole columns; null for others."""
        forms = self.dates.texts or (None,)
        (first, *others) = read = [self._quick(texts, form) for form in forms]
        if not others:
            return first
        bare = texts.str.strip_chars(" \t")
        fits = [bare.str.contains(f"^(?:{one})$").cast(pl.Int8) for one in self.dates.outlines]
        # Texts that several forms may read are compared one by one.
        alone = pl.sum_horizontal(fits) == 1
        return pl.select(pl.when(alone).then(pl.coalesce(read))).to_series()

    def _quick(self, texts: pl.Series, form: str | None) -> pl.Series:
        if form is not None and form in EPOCHS:
            return quick_counts(texts, form)
        if self.dates.zeros_dropped or self.dates.year_zero:
            return pl.Series([None], dtype=pl.String).new_from_index(0, len(texts))
        return quick_texts(texts, form, self.offset_minutes, self.zone)

    def of(self, cell: str) -> str:
        wall = self._wall(cell)
        if isinstance(wall, str):
            return wall
        own = wall.tzinfo if isinstance(wall.tzinfo, ZoneInfo) else None
        zone = self.zone if own is None else own.key
        offset = self._offset(wall, zone)
        if zone is not None and changes_at(wall, zone) and self._says_a_day(cell):
            # A day begins at the time the clock is put forward to, or at its first midnight.
            begins = wall.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
            day, wall = wall.date(), begins.astimezone(ZoneInfo(zone))
            kept = wall.date() == day
            offset = _minutes(wall, zone) if kept else f"the clocks skip this day in {zone}"
        if isinstance(offset, str):
            return f"{cell}{UNFIT} ({offset})"
        return datetime_text(wall, offset)

    def _says_a_day(self, cell: str) -> bool:
        text = cell.strip(" \t")
        return self.dates.says_a_day(text) if self.dates.texts else ":" not in text

    def _wall(self, cell: str) -> datetime | str:
        """The time without an offset, or the final text for the cell."""
        if not self.dates.texts:
            moment = read_moment(cell, offset_required=False)
            return moment.wall if isinstance(moment, Moment) and moment.offset is None else cell
        wall = self.dates.wall(cell.strip(" \t"))
        if isinstance(wall, str):
            return f"{cell}{UNFIT} ({wall})"
        by_rules = wall.tzinfo is None or isinstance(wall.tzinfo, ZoneInfo)
        return wall if by_rules else wall.isoformat()

    def _offset(self, wall: datetime, zone: str | None) -> int | str | None:
        if zone is None:
            return self.offset_minutes
        change = changes_at(wall, zone)
        if change > timedelta():
            return f"the clocks skip this time in {zone}"
        if change:
            return f"this time comes twice in {zone}: write its offset"
        return _minutes(wall.replace(tzinfo=ZoneInfo(zone)), zone)


def changes_at(wall: datetime, zone: str) -> timedelta:
    """By how much the clocks of a zone skip a time; negative if they show it twice."""
    of = (wall.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset() for fold in (0, 1))
    early, late = (offset or timedelta() for offset in of)
    return late - early


def _minutes(moment: datetime, zone: str) -> int | str:
    """Minutes that a moment in a zone is ahead of UTC, or why there is no whole number of them."""
    offset = moment.utcoffset()
    assert offset is not None
    if offset % timedelta(minutes=1):
        return f"its offset in {zone} has seconds"
    return offset // timedelta(minutes=1)
