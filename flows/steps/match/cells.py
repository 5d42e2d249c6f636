"""Cells: where two columns differ, exactly, with both values and the difference between them.

Columns of one type are compared as they are. Across types, and in CSV where nothing has a type,
equal texts are equal; other values are compared as numbers or times if both sides read as such.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal, InvalidOperation, localcontext

import polars as pl

from flows.steps.match.comparison import plain_text
from flows.steps.match.value_texts import NUMBER, texts
from schemas.cells.columns import type_cells
from schemas.cells.reading import Moment, read_moment
from schemas.cells.readings import BOOLEANS, NUMBERS, TIMES, Reading
from schemas.derived.json_text import number_text
from schemas.field import Field, Kind, Table
from schemas.frame_types import AMOUNT
from schemas.kinds import OFFSET

CELL_SCHEMA: dict[str, pl.DataType] = {
    "place": pl.UInt32(),
    "left": pl.String(),
    "right": pl.String(),
    "delta": pl.String(),
    "within": pl.Boolean(),
}
"""One line per differing cell: `place` in the compared rows, `delta` right minus left."""

_DECIMALS = 18
_FITTING = r"^[+-]?[0-9]{0,20}(?:\.[0-9]{0,18})?$"
INFINITE = {"Infinity": "inf", "-Infinity": "-inf"}
"""PostgreSQL's spelling of infinite numbers, and that of doubles here."""
BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "t", "1"), "true"),
    **dict.fromkeys(("false", "f", "0"), "false"),
}
_TIME = Table("time", "A time", (Field("time", Kind.DATETIME),))
_DATE = r"^[0-9]{4}-[0-9]{2}.*[^ \t]$"
"""A text worth reading as a time; with blanks around it, it is a text, as a number would be."""
_FINE = re.compile(r"(.*\.[0-9]{6})([0-9]{1,3})((?:[Z+-].*)?)")
"""A time with digits behind its microseconds."""
_PRECISION = 2000
_HALF = Decimal(5 * 10**19)
"""Two numbers below this differ by at most 20 digits before the point."""
_MICRO = 1_000_000
_NANO = 1000 * _MICRO


@dataclass(frozen=True, slots=True)
class Leeway:
    """How far two values of a column may be apart; the wider of the two bounds applies."""

    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    """Share of the left value."""
    seconds: Decimal | None = None
    """Leeway of times; None for a column of numbers."""


def differing(
    left: pl.Series, right: pl.Series, readings: tuple[Reading, Reading], leeway: Leeway | None
) -> pl.DataFrame:
    """The cells that differ, as `CELL_SCHEMA`; cells inside the leeway are marked `within`."""
    places = _unequal(left, right, readings)
    if not places.len():
        return pl.DataFrame(schema=CELL_SCHEMA)
    cells = pl.DataFrame(
        {"place": places, "left": texts(left.gather(places)), "right": texts(right.gather(places))}
    ).with_columns(delta=pl.lit(None, pl.String), within=pl.lit(False), same=pl.lit(False))
    asked = set(readings)
    if asked <= NUMBERS:
        cells = _as_numbers(cells, leeway)
        if asked != {Reading.CELL}:
            cells = _same_words(cells, lambda side: side.replace(INFINITE))
    if asked <= TIMES:
        cells = _as_times(cells, leeway)
    if asked <= BOOLEANS and Reading.BOOLEAN in asked:
        cells = _same_words(
            cells, lambda side: side.str.to_lowercase().replace_strict(BOOLEAN_WORDS, default=None)
        )
    return cells.filter(~pl.col("same")).select(
        pl.col(name).cast(dtype) for name, dtype in CELL_SCHEMA.items()
    )


def _unequal(left: pl.Series, right: pl.Series, readings: tuple[Reading, Reading]) -> pl.Series:
    if left.dtype == right.dtype and (readings[0] is readings[1] or left.dtype.is_integer()):
        if left.dtype.is_nested():
            left, right = texts(left), texts(right)
        return left.ne_missing(right).arg_true()
    if left.dtype.is_integer() and right.dtype.is_integer():
        return left.cast(pl.Int128).ne_missing(right.cast(pl.Int128)).arg_true()
    return texts(left).ne_missing(texts(right)).arg_true()


def plain_moments(values: pl.Series, *, zone: bool) -> pl.Series:
    """Rewrite texts that are times, with or without a zone, as `texts` does; leave others."""
    read = _moments(values)
    fits = read["at"].is_not_null() & (read["zone"] == zone)
    moments = texts(read["at"].cast(pl.Datetime("us", "UTC" if zone else None)))
    finer = (fits & (read["nanos"] > 0)).arg_true()
    if finer.len():
        at = read[finer]["at"].cast(pl.Datetime("us")).dt.to_string("%Y-%m-%dT%H:%M:%S%.6f")
        digits = read[finer]["nanos"].cast(pl.String).str.zfill(3).str.strip_chars_end("0")
        moments = moments.scatter(finer, at + digits + ("+00:00" if zone else ""))
    return moments.zip_with(fits, values)


def numbers(values: pl.Series) -> pl.Series:
    """The decimals of texts that are numbers of up to 20 digits and 18 decimals; else null."""
    fits = values.str.contains(NUMBER) & values.str.contains(_FITTING)
    known = pl.when(fits).then(values.str.strip_prefix("+"))
    return pl.select(known.cast(AMOUNT, strict=False)).to_series()


def _as_numbers(cells: pl.DataFrame, leeway: Leeway | None) -> pl.DataFrame:
    share = leeway.relative if leeway else Decimal(0)
    cells = cells.with_columns(l=numbers(cells["left"]), r=numbers(cells["right"]))
    # A difference or a share may have more digits than fit; the slow way has no such limit. Which
    # way a cell is compared depends on no other cell.
    small = pl.lit(_HALF / max(share, Decimal(1)), AMOUNT)
    most = pl.lit(_HALF, AMOUNT)
    both = (pl.col("l").abs() < small) & (pl.col("r").abs() < most) & _share_fits(share)
    both = both.fill_null(value=False)
    number = pl.col("left").str.contains(NUMBER) & pl.col("right").str.contains(NUMBER)
    compared = cells.with_columns(pl.when(both).then(pl.col("l", "r")))
    compared = compared.with_columns(d=pl.col("r") - pl.col("l"))
    slow = compared.select((number & ~both).fill_null(value=False)).to_series()
    inside = pl.lit(False)
    if leeway is not None:
        part = (pl.col("l").abs() * pl.lit(_kept(share), AMOUNT)).cast(AMOUNT)
        bound = pl.max_horizontal(pl.lit(_kept(leeway.absolute), AMOUNT), part)
        inside = (pl.col("d").abs() <= bound).fill_null(value=False)
    compared = compared.with_columns(
        delta=pl.coalesce(plain_text(compared["d"].cast(pl.String)), "delta"),
        same=pl.col("same") | (pl.col("d") == 0).fill_null(value=False),
        within=pl.col("within") | inside,
    ).drop("l", "r", "d")
    return _each(compared, slow, leeway) if slow.any() else compared


def _kept(bound: Decimal) -> Decimal:
    """A bound cut to the decimals that differences keep; digits beyond them cannot matter."""
    return bound.quantize(Decimal(1).scaleb(-_DECIMALS), ROUND_DOWN, Context(prec=_PRECISION))


def _share_fits(share: Decimal) -> pl.Expr:
    """Whether the share of the left number has no more decimals than are kept."""
    exponent = share.normalize(Context(prec=_PRECISION)).as_tuple().exponent
    assert isinstance(exponent, int)
    rest = _DECIMALS + min(exponent, 0)
    if rest < 0:
        return pl.lit(False)
    return ~pl.col("left").str.contains(rf"\.[0-9]{{{rest + 1},}}$")


def _difference(left: str, right: str, leeway: Leeway | None) -> tuple[bool, str, bool] | None:
    """Whether two number texts are equal, their difference, and whether it is inside the leeway.

    None if one of them is not a number.
    """
    try:
        # An exponent adds up to 999 digits; all other digits are written out.
        with localcontext(prec=_PRECISION + len(left) + len(right)):
            one, other = Decimal(left), Decimal(right)
            delta = other - one
            bound = max(leeway.absolute, abs(one) * leeway.relative) if leeway else Decimal(-1)
            return delta == 0, number_text(delta), abs(delta) <= bound
    except InvalidOperation:
        return None


def _as_times(cells: pl.DataFrame, leeway: Leeway | None) -> pl.DataFrame:
    dated = [pl.col(side).str.contains(_DATE) for side in ("left", "right")]
    asked = (~pl.col("same") & dated[0] & dated[1]).fill_null(value=False)
    rows = cells.select(asked.arg_true()).to_series()
    if not rows.len():
        return cells
    some = cells[rows]
    left, right = _moments(some["left"]), _moments(some["right"])
    known = left["at"].is_not_null() & right["at"].is_not_null() & (left["zone"] == right["zone"])
    micros, nanos = (
        ((right[part] - left[part]).cast(AMOUNT) / unit).cast(AMOUNT)
        for part, unit in (("at", _MICRO), ("nanos", _NANO))
    )
    difference = micros + nanos
    seconds = leeway.seconds if leeway else None
    inside = known & (difference.abs() <= (-1 if seconds is None else _kept(seconds)))
    delta = plain_text(difference.cast(pl.String)) + " s"
    compared = some.select(
        delta=pl.when(known).then(delta).otherwise("delta"),
        same=(known & (difference == 0)).fill_null(value=False),
        within=pl.col("within") | inside.fill_null(value=False),
    )
    return cells.with_columns(cells[one.name].scatter(rows, one) for one in compared)


def _moments(values: pl.Series) -> pl.DataFrame:
    """Microseconds, nanoseconds beyond them, and whether a zone was given, for texts of times.

    Microseconds are of the instant if a zone was given, else of the wall clock.
    """
    typed = type_cells(pl.DataFrame({"time": values}), _TIME)
    offset = typed["time" + OFFSET]
    shift = offset.fill_null(0).cast(pl.Int64) * 60 * _MICRO
    at = typed["time"].cast(pl.Int64) - shift
    nanos = pl.Series([0], dtype=pl.Int64).new_from_index(0, values.len())
    # Only texts with a date in them are worth reading one by one.
    unread = (at.is_null() & values.str.contains(_DATE).fill_null(value=False)).arg_true()
    zone = offset.is_not_null()
    if unread.len():
        read = [_moment(value) for value in values.gather(unread)]
        moments = [moment for moment, _ in read]
        at = at.scatter(unread, pl.Series([_micros(one) for one in moments], dtype=pl.Int64))
        nanos = nanos.scatter(unread, [behind for _, behind in read])
        zone = zone.scatter(unread, [one is not None and one.offset is not None for one in moments])
    return pl.DataFrame({"at": at, "nanos": nanos, "zone": zone})


def _moment(text: str) -> tuple[Moment | None, int]:
    """The time of a text, None if it is none, and the nanoseconds beyond its microseconds."""
    fine = _FINE.fullmatch(text)
    read = read_moment(fine[1] + fine[3] if fine else text, offset_required=False)
    behind = int(fine[2].ljust(3, "0")) if fine else 0
    return (read, behind) if isinstance(read, Moment) else (None, 0)


def _micros(moment: Moment | None) -> int | None:
    if moment is None:
        return None
    wall = pl.Series([moment.wall], dtype=pl.Datetime("us")).cast(pl.Int64)[0]
    return int(wall) - (moment.offset or 0) * 60 * _MICRO


def _same_words(cells: pl.DataFrame, word: Callable[[pl.Expr], pl.Expr]) -> pl.DataFrame:
    left, right = (word(pl.col(side)) for side in ("left", "right"))
    return cells.with_columns(same=pl.col("same") | (left == right).fill_null(value=False))


def _each(cells: pl.DataFrame, where: pl.Series, leeway: Leeway | None) -> pl.DataFrame:
    """Compare one by one the numbers that no type of fixed width can hold."""
    rows = where.arg_true()
    sides = zip(rows, cells["left"].gather(rows), cells["right"].gather(rows), strict=True)
    found = {row: _difference(left, right, leeway) for row, left, right in sides}
    known = {row: verdict for row, verdict in found.items() if verdict}
    return cells.with_columns(
        cells[name].scatter([*known], [verdict[place] for verdict in known.values()])
        for place, name in enumerate(("same", "delta", "within"))
    )
