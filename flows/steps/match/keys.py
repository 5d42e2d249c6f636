"""Keys: which row of the right side matches which row of the left, in parts to bound memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from flows.steps.match.cells import BOOLEAN_WORDS, INFINITE, plain_moments
from flows.steps.match.value_texts import MIDNIGHT, plain_numbers, texts
from schemas.cells.readings import NUMBERS, TIMES, Reading
from schemas.frame_types import Dtype

PART_ROWS = 250_000
"""Rows of a side that are joined at a time."""
_INTEGER = r"^(?:0|-?[1-9][0-9]{0,17})$"
_PACKED_BITS = 62
_NOBODY = 2**32 - 1
_PARTITIONS = 1
_GAPS = 16
"""Most places of a lookup table per key."""
_MOST_PLACES = 2**23
"""Most places of a lookup table."""
_SIGNED = frozenset({pl.Int8, pl.Int16, pl.Int32, pl.Int64})
_NARROW = _SIGNED | {pl.UInt8, pl.UInt16, pl.UInt32}
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
RowNumbers = np.ndarray[tuple[int], np.dtype[np.uint32]]
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Partners:
    """Every row of both sides, exactly once, by its row number."""

    left: pl.Series
    right: pl.Series
    """Row `left[n]` matches row `right[n]`, in the order of the left side."""
    only_left: pl.Series
    only_right: pl.Series
    repeated_left: pl.Series
    repeated_right: pl.Series
    """Rows whose key occurs more than once on one side, so that no pairing is certain."""
    keyless_left: pl.Series
    keyless_right: pl.Series
    """Rows with a null in their key."""


def comparable(
    left: pl.Series, right: pl.Series, readings: tuple[Reading, Reading]
) -> tuple[pl.Series, pl.Series]:
    """One key column of both sides as values of one type, equal exactly where the keys are."""
    if left.dtype.is_integer() and right.dtype.is_integer():
        if left.dtype == right.dtype:
            return left, right
        wide = pl.Int64 if {left.dtype, right.dtype} <= _NARROW else pl.Int128
        return left.cast(wide), right.cast(wide)
    if set(readings) <= {Reading.CELL, Reading.INTEGER}:
        sides = [_integers(one) for one in (left, right)]
        if sides[0] is not None and sides[1] is not None:
            return sides[0], sides[1]
    alike = left.dtype == right.dtype and readings[0] is readings[1]
    if alike and not (left.dtype.is_float() or left.dtype.is_nested()):
        return left, right
    if set(readings) == {Reading.CELL}:
        # One side may be stored as integers while the other side is not.
        return texts(left), texts(right)
    return _values(left, *readings), _values(right, *reversed(readings))


def partition_numbers(
    columns: Sequence[pl.Series],
    dtypes: Sequence[tuple[Dtype, Dtype]],
    readings: Sequence[tuple[Reading, Reading]],
    count: int,
) -> pl.Series:
    """Assign each row to one of `count` partitions; rows with equal keys share it on both sides.

    Types and readings are pairs of this side's column and the other side's. Rows that lack a part
    of their key match nothing and are spread evenly.
    """
    parts = [
        _one_form(column, *types, *read).alias(str(place))
        for place, (column, types, read) in enumerate(zip(columns, dtypes, readings, strict=True))
    ]
    keys = pl.DataFrame(parts)
    # A seed of its own, because `partners` splits a partition by another hash of the same key.
    number = keys.hash_rows(seed=_PARTITIONS) % count
    lacking = keys.select(pl.any_horizontal(pl.all().is_null())).to_series()
    if lacking.any():
        number = (pl.int_range(keys.height, dtype=pl.UInt64, eager=True) % count).zip_with(
            lacking, number
        )
    return number.cast(pl.UInt32).alias("partition")


def _one_form(
    column: pl.Series, dtype: Dtype, other_dtype: Dtype, own: Reading, other: Reading
) -> pl.Series:
    """Values in a form that depends on no other value of the column, equal where keys are equal."""
    if dtype.is_integer() and other_dtype.is_integer():
        return column.cast(pl.Int64 if {dtype, other_dtype} <= _NARROW else pl.Int128)
    alike = dtype == other_dtype and own is other and not dtype.is_float()
    return texts(column) if alike or own is other is Reading.CELL else _values(column, own, other)


def _values(column: pl.Series, own: Reading, other: Reading) -> pl.Series:
    """One text per value; a CSV cell is read as the type of the other side where possible."""
    # -0.0 and 0.0 are one number.
    column = texts(column + 0.0 if column.dtype.is_float() else column)
    if {own, other} <= NUMBERS:
        return plain_numbers(column).replace(INFINITE)
    if own is Reading.DATE and other in TIMES:
        return column + MIDNIGHT
    if own is not Reading.CELL:
        return column
    if other is Reading.BOOLEAN:
        words = pl.col("word").str.to_lowercase().replace_strict(BOOLEAN_WORDS, default=None)
        return column.to_frame("word").select(pl.coalesce(words, "word")).to_series()
    if other in TIMES:
        return plain_moments(column, zone=other is Reading.INSTANT)
    return column


def _integers(values: pl.Series) -> pl.Series | None:
    """The column as integers if every value is the canonical text of one, else None."""
    if values.dtype.is_integer():
        return values.cast(pl.Int64) if values.dtype in _NARROW else None
    return values.cast(pl.Int64) if values.str.contains(_INTEGER).all() else None


class KeyFrames:
    """The key columns of both sides, added one after the other.

    Integer columns are packed into one column where their ranges allow it: one column is smaller
    and quicker to join.
    """

    def __init__(self) -> None:
        self.left: list[pl.Series] = []
        self.right: list[pl.Series] = []
        self._lowest, self._bits = 0, 0
        """The least value of the last column, and the bits its values need above that."""
        self.behind = 0
        """Bits of the last column that hold key columns packed behind its first one."""

    def add(self, left: pl.Series, right: pl.Series) -> None:
        """Add the next column of the key, as `comparable` returned it."""
        lowest, bits = _range(left, right)
        if not self._bits or not bits or self._bits + bits > _PACKED_BITS:
            self.left.append(left)
            self.right.append(right)
            # A number too wide to be packed stays a column of its own.
            self._lowest, self._bits = lowest, bits if bits < _PACKED_BITS else 0
            self.behind = 0
            return
        for side, column in ((self.left, left), (self.right, right)):
            side[-1] = _packed(side[-1], self._lowest, column, lowest, bits)
        self._lowest, self._bits = 0, self._bits + bits
        self.behind += bits

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        left, right = (
            pl.DataFrame({str(number): one for number, one in enumerate(side)})
            for side in (self.left, self.right)
        )
        return left, right


def _packed(packed: pl.Series, least: int, column: pl.Series, lowest: int, bits: int) -> pl.Series:
    """Pack a column into the low bits behind an already packed one."""
    if packed.null_count() or column.null_count():
        high: pl.Series = (packed.cast(pl.Int64) - least) * 2**bits
        return high + (column.cast(pl.Int64) - lowest)
    # In place, because these are the largest arrays in memory.
    values = np.subtract(packed.to_numpy(), least, dtype=np.int64)
    values <<= bits
    values += column.to_numpy()
    values -= lowest
    return pl.Series(values)


def _range(left: pl.Series, right: pl.Series) -> tuple[int, int]:
    """The least value and the bits all values need above it; (0, 0) for non-integer columns."""
    if not (left.dtype in _SIGNED and right.dtype in _SIGNED):
        return 0, 0
    ends = [end for one in (left, right) for end in (one.min(), one.max()) if end is not None]
    if not ends:
        return 0, 0
    values = [int(end) for end in ends]  # type: ignore[arg-type]
    return min(values), max(1, (max(values) - min(values)).bit_length())


def partners(left: pl.DataFrame, right: pl.DataFrame, behind: int = 0) -> Partners:
    """Find every row's partner by the columns of both frames, which have the same names.

    `behind` is the number of low bits of a packed column that hold later columns of the key.
    """
    if left.equals(right) and (same := _same_order(left)) is not None:
        return same
    if (near := _near(left, right, behind)) is not None:
        return near
    parts = max(1, -(-max(left.height, right.height) // PART_ROWS))
    # Equal keys fall into the same part.
    mixed = pl.struct(left.columns) if left.width > 1 else pl.col(left.columns)
    number = (mixed.hash() % parts).cast(pl.UInt16)
    membership = [side.select(number).to_series() if parts > 1 else None for side in (left, right)]
    partner = np.full(left.height, _NOBODY, np.uint32)
    taken = np.zeros(right.height, np.bool_)
    again = [np.zeros(side.height, np.bool_) for side in (left, right)]
    for part in range(parts):
        mine = _part(left, membership[0], part, "left")
        theirs = _part(right, membership[1], part, "right")
        mine, theirs = _without_repeated(mine, theirs, left.columns, again)
        pairs = mine.join(theirs, on=left.columns, how="inner")
        partner[pairs["left"].to_numpy()] = pairs["right"].to_numpy()
        taken[pairs["right"].to_numpy()] = True
    return _as_partners(partner, taken, again, [_keyless(side) for side in (left, right)])


def _as_partners(
    partner: RowNumbers, taken: Flags, again: Sequence[Flags], keyless: Sequence[Flags]
) -> Partners:
    known = partner != _NOBODY
    alone = (
        ~paired & ~repeated & ~nameless
        for paired, repeated, nameless in zip((known, taken), again, keyless, strict=True)
    )
    others = map(_numbers, (*alone, *again, *keyless))
    return Partners(_numbers(known), pl.Series(partner[known]), *others)


def _numbers(rows: Flags) -> pl.Series:
    return pl.Series(np.flatnonzero(rows).astype(np.uint32))


def _same_order(keys: pl.DataFrame) -> Partners | None:
    """Partners of equal sides with sorted unique keys; None if the keys are not such."""
    column = keys.to_series()
    if keys.width > 1 or column.null_count():
        return None
    if not column.is_sorted() or (column == column.shift(1)).any():
        return None
    rows = pl.int_range(keys.height, dtype=pl.UInt32, eager=True)
    none = rows.head(0)
    return Partners(rows, rows, *[none] * 6)


def _near(left: pl.DataFrame, right: pl.DataFrame, behind: int) -> Partners | None:
    """Partners of integer keys that lie close together, by a lookup table; None for other keys.

    Ids from a database sequence are such keys. The table takes a fifth of the time of a join.
    """
    keys = (left.to_series(), right.to_series())
    if left.width > 1 or not all(key.len() and key.dtype in _SIGNED for key in keys):
        return None
    lowest, bits = _range(*keys)
    if bits >= _PACKED_BITS or any(key.null_count() for key in keys):
        return None
    most = min(_MOST_PLACES, _GAPS * max(left.height, right.height))
    mine, theirs = (np.subtract(key.to_numpy(), lowest, dtype=np.int64) for key in keys)
    # The first column of a key is mostly unique by itself, and its table is smaller.
    for shift in sorted({behind, 0}, reverse=True):
        if bits > shift and 2 ** (bits - shift) <= most:
            partner = _by_table(mine, theirs, shift, 2 ** (bits - shift))
            if partner is not None:
                taken = np.zeros(right.height, np.bool_)
                taken[partner[partner != _NOBODY]] = True
                none = [np.zeros(side.height, np.bool_) for side in (left, right)]
                return _as_partners(partner, taken, none, none)
    return None


def _by_table(mine: Numbers, theirs: Numbers, shift: int, places: int) -> RowNumbers | None:
    """The other side's row number for each key; None if two keys of a side share a place."""
    at = [key >> shift if shift else key for key in (mine, theirs)]
    there = np.zeros(places, np.bool_)
    there[at[0]] = True
    if np.count_nonzero(there) != len(mine):
        return None
    table = np.full(places, _NOBODY, np.uint32)
    numbers = np.arange(len(theirs), dtype=np.uint32)
    table[at[1]] = numbers
    if not np.array_equal(table[at[1]], numbers):
        return None
    partner = table[at[0]]
    if shift:
        # Keys of the two sides that share a place need not be equal.
        known = np.flatnonzero(partner != _NOBODY)
        partner[known[theirs[partner[known]] != mine[known]]] = _NOBODY
    return partner


def _keyless(keys: pl.DataFrame) -> Flags:
    if not any(column.null_count() for column in keys):
        return np.zeros(keys.height, np.bool_)
    return keys.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()


def _part(keys: pl.DataFrame, parts: pl.Series | None, part: int, name: str) -> pl.DataFrame:
    """The rows of one part that have a complete key, with their row numbers."""
    if parts is None:
        rows = keys.with_row_index(name)
    else:
        places = (parts == part).arg_true()
        rows = keys[places].with_columns(places.alias(name))
    nulls = any(rows[column].null_count() for column in keys.columns)
    return rows.drop_nulls(keys.columns) if nulls else rows


def _without_repeated(
    mine: pl.DataFrame, theirs: pl.DataFrame, on: list[str], again: list[Flags]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Remove the rows whose key occurs twice on one of the sides, and flag them in `again`."""
    sides = (mine, theirs)
    # Counting distinct keys is cheaper than finding the repeated ones.
    some = [side for side in sides if len(on) > 1 or side[on[0]].n_unique() < side.height]
    doubled = [side.filter(side.select(on).is_duplicated()).select(on) for side in some]
    if not any(side.height for side in doubled):
        return sides
    twice = pl.concat(doubled).unique()
    for side, flags, name in zip(sides, again, ("left", "right"), strict=True):
        flags[side.join(twice, on=on, how="semi")[name].to_numpy()] = True
    return mine.join(twice, on=on, how="anti"), theirs.join(twice, on=on, how="anti")
