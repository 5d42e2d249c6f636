"""Read the records of a chunk that take the fast path into a typed frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flows.steps.validate.arithmetic import ColumnSum, few_zeros
from flows.steps.validate.excluded import KeptBy
from flows.steps.validate.normalise import Writing
from flows.steps.validate.quick_times import offset_on
from schemas.amounts import BEYOND_MILLIONTHS, MICRO_DIGITS
from schemas.cells.columns import type_fields
from schemas.cells.reading import MINUTE
from schemas.field import Field, Kind, Table
from schemas.frame_types import millionth_columns
from schemas.kinds import EXACT, OFFSET, SCALE
from schemas.millionths import in_millionths, plain_rows

if TYPE_CHECKING:
    from flows.steps.fast.book import PlainValue
    from flows.steps.fast.plan import Plan
    from flows.steps.fast.records import Read

_DAY = 24 * 60 * MINUTE
_EPOCH = date(1970, 1, 1)
_GIVEN = "__given"
_UNITS = "units"


@dataclass(frozen=True, slots=True, eq=False)
class Delivered:
    """The records of a chunk as bytes, which are UTF-8."""

    text: NDArray[np.uint8]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    sound: NDArray[np.bool_]
    """Which records have as many fields as the header, on one line."""
    delimiter: bytes
    quote: bytes
    ranges: Sequence[tuple[int, int]] = ()
    """Cells of fixed width: their first character, and the one behind their last."""


@dataclass(frozen=True, slots=True, eq=False)
class TypedRecords:
    frame: pl.DataFrame
    """Columns as SQL stores them; doubles in millionths, with their number of decimals."""
    rows: NDArray[np.bool_]
    """Which of the delivered records are in the frame."""
    sound: NDArray[np.bool_]
    """Which rows of the frame equal those of the strict path; the others are left to it."""


def typed_records(
    table: Table,
    names: Sequence[str | None],
    delivered: Delivered,
    writing: Writing,
    sources: Mapping[str, Sequence[int]],
    kept: Sequence[KeptBy] = (),
) -> TypedRecords | None:
    """Read the records that can be read from their bytes; None if none can.

    `names` has the field of each delivered column, `sources` the columns of fields that are made of
    others, `kept` the rules by which rows are left out.
    """
    # Importing the compiler of the loops takes longer than validating a small delivery.
    from flows.steps.fast.plan import plan_of  # noqa: PLC0415

    plan = plan_of(table, names, writing, sources, kept)
    if plan is None:
        return None
    rows = delivered.sound.copy()
    read, count = _read(delivered, plan, rows, len(names))
    if count == 0:
        return None
    frame = _Frame(table, count)
    cells = {
        column: _texts(delivered.text, read.begins[place, :count], read.ends[place, :count])
        for place, column in enumerate(plan.left_columns.tolist())
    }
    for field in plan.read:
        of = slice(field.lines.start, field.lines.stop), slice(count)
        found = _Values(read.values[of], read.companions[of], read.given[of])
        if field.total is not None:
            zeros = None
            if field.units is not None:
                column, form = field.units
                zeros = _zeros(cells[column], form.made(field.of, [pl.col(_UNITS)]))
            frame.add_total(field.of, found, field.total, field.default, zeros)
        else:
            one = _Values(found.values[0], found.companions[0], found.given[0])
            frame.add(field.of, one, zone=field.zone, unzoned=field.unzoned)
    for name, (value, scale) in plan.constants.items():
        full = np.full(count, value), np.full(count, scale, np.int16), np.ones(count, np.bool_)
        frame.add(table.by_name[name], _Values(*full))
    if plan.written:
        frame.add_texts(pl.DataFrame([plan.written]), times=count)
    if plan.left:
        texts = pl.DataFrame({str(column): of for column, of in cells.items()})
        frame.add_left(texts, plan.left, writing)
    typed = frame.finish()
    if writing.keys:
        from flows.steps.fast.keys import key_numbers  # noqa: PLC0415

        typed = typed.with_columns(
            key_numbers(table, key, typed).alias(name)
            for name, key in writing.keys.items()
            if {name, *key.names} <= table.by_name.keys()
        )
    return TypedRecords(typed, rows, frame.sound)


def _read(
    delivered: Delivered, plan: "Plan", rows: NDArray[np.bool_], width: int
) -> tuple["Read", int]:
    """Read the records flagged in `rows`, and clear the flag of those that cannot be read.

    Returns what was read, and the number of records.
    """
    from flows.steps.fast.records import Read, read_records, room_for  # noqa: PLC0415

    left, height = plan.left_columns, int(rows.sum())
    shape, places = (len(plan.how), height), (len(left), height)
    read = Read(
        np.empty(shape, np.int64),
        np.empty(shape, np.int16),
        np.empty(shape, np.bool_),
        np.empty(places, np.int64),
        np.empty(places, np.int64),
    )
    count = read_records(
        delivered.text,
        delivered.start,
        delivered.stop,
        rows,
        (ord(delivered.delimiter), ord(delivered.quote)),
        np.array(delivered.ranges, np.int64).ravel(),
        plan.how,
        plan.book,
        left,
        room_for(width, len(plan.how)),
        read,
    )
    return read, count


class _Values(NamedTuple):
    """What was read of a field, in the form of `Read`; for a sum, a line for each column."""

    values: NDArray[np.int64]
    companions: NDArray[np.int16]
    given: NDArray[np.bool_]


class _Frame:
    def __init__(self, table: Table, height: int) -> None:
        self.sound = np.ones(height, np.bool_)
        """Which rows equal those of the strict path."""
        self._table = table
        self._given: dict[str, pl.Series] = {}
        self._made: dict[str, pl.Expr] = {}

    def add(
        self, of: Field, found: _Values, *, zone: str | None = None, unzoned: bool = False
    ) -> None:
        """Add a field that was read; its times are wall clocks of `zone`, or `unzoned` ones."""
        values, companions, given = found
        if zone is not None:
            companions, known = _offsets(values, given, zone)
            self.sound &= known
            if of.kind is Kind.DATETIME_OFFSET:
                values = values - companions.astype(np.int64) * MINUTE
        mask = of.name + _GIVEN
        self._given[mask] = pl.Series(mask, given)
        for name, dtype in millionth_columns(of).items():
            if unzoned and name.endswith(OFFSET):
                continue
            self._given[name] = pl.Series(name, values if name == of.name else companions)
            cast = pl.col(name).cast(dtype, wrap_numerical=True)
            whole = name.endswith(SCALE) or given.all()
            self._made[name] = cast if whole else pl.when(mask).then(cast).alias(name)

    def add_total(
        self,
        of: Field,
        found: _Values,
        total: ColumnSum,
        default: "PlainValue | None",
        zeros: NDArray[np.int16] | None,
    ) -> None:
        """Add the sum of amounts that were read, a line for each; `default` if none is given.

        `zeros` is the number of zeros of the units that the sum is for; negative if unknown.
        """
        values, companions, given = found
        added = values[: total.added].sum(axis=0) - values[total.added :].sum(axis=0)
        digits, there = companions.max(axis=0), np.logical_or.reduce(given)
        if zeros is not None:
            digits = digits + zeros
            self.sound &= (zeros == 0) | ((zeros > 0) & (digits <= MICRO_DIGITS))
            added //= 10 ** zeros.clip(0, MICRO_DIGITS).astype(np.int64)
        if default is not None:
            added[~there], digits[~there] = default
            there[:] = True
        self.sound &= np.abs(added) < BEYOND_MILLIONTHS
        if total.one_filled:
            self.sound &= (values != 0).sum(axis=0) <= 1
        self.add(of, _Values(added, digits, there))

    def add_left(
        self, cells: pl.DataFrame, left: Mapping[str, Sequence[int]], writing: Writing
    ) -> None:
        """Add the fields that the loops leave, from the cells of their columns."""
        fields = [self._table.by_name[name] for name in left]
        texts = cells.select(
            writing.form_of(of.name)
            .made(of, [pl.col(str(place)) for place in left[of.name]])
            .alias(of.name)
            for of in fields
        )
        self.add_texts(texts)

    def add_texts(self, texts: pl.DataFrame, *, times: int = 1) -> None:
        """Add fields from texts in the service document's form, with each row repeated `times`."""
        fields = [self._table.by_name[name] for name in texts.columns]
        typed = type_fields(texts, fields)
        for of in fields:
            unread = (texts[of.name] != "").fill_null(value=False) & typed[of.name].is_null()
            self.sound &= ~unread.to_numpy()
        amounts = [of.name for of in fields if of.kind is Kind.DOUBLE]
        if amounts:
            exact = typed.with_columns(pl.col(name + EXACT).alias(name) for name in amounts)
            plain = plain_rows(self._table, exact)
            self.sound &= plain.to_numpy()
            short = exact.with_columns(pl.when(plain).then(name).alias(name) for name in amounts)
            typed = in_millionths(self._table, short)
        for name in (name for of in fields for name in millionth_columns(of)):
            values = typed[name]
            self._given[name] = values if times == 1 else values.new_from_index(0, times)
            self._made[name] = pl.col(name)

    def finish(self) -> pl.DataFrame:
        """All columns of the table; columns of fields that the feed lacks are null."""
        return pl.DataFrame([*self._given.values()]).select(
            self._made.get(name, pl.lit(0 if name.endswith(SCALE) else None, dtype).alias(name))
            for of in self._table.delivered
            for name, dtype in millionth_columns(of).items()
        )


def _texts(
    text: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> pl.Series:
    """Cells as texts, none of which contains a line end."""
    from flows.steps.fast.records import copy_cells  # noqa: PLC0415

    out = np.empty(int((ends - begins).sum()) + len(begins), np.uint8)
    copy_cells(text, begins, ends, out)
    return pl.scan_lines(BytesIO(out.data)).collect().to_series()


def _zeros(texts: pl.Series, made: pl.Expr) -> NDArray[np.int16]:
    """The number of zeros of the units in texts: 2 for 100; -1 if there are none or unknown.

    There are few distinct texts: the names of columns, or a handful of numbers.
    """
    distinct = texts.unique()
    zeros = pl.DataFrame({_UNITS: distinct}).select(few_zeros(made).fill_null(-1)).to_series()
    return texts.replace_strict(distinct, zeros, return_dtype=pl.Int16).to_numpy()


def _offsets(
    walls: NDArray[np.int64], given: NDArray[np.bool_], zone: str
) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """Minutes that wall clocks of a zone are ahead of UTC, and for which that is certain."""
    days = np.where(given, walls, 0) // _DAY
    first = days.min(initial=0)
    there = np.zeros(days.max(initial=0) - first + 1, np.bool_)
    there[days - first] = True
    offsets, known = np.zeros(len(there), np.int16), np.zeros(len(there), np.bool_)
    for day in np.flatnonzero(there).tolist():
        offset = offset_on(zone, _EPOCH + timedelta(days=day + int(first)))
        offsets[day], known[day] = offset or 0, offset is not None
    return offsets[days - first], known[days - first]
