"""Pairing: which record of the other side is the same record, by business key.

A record without a business key is paired by its whole content, as a member of a multiset. Equal
instants are equal whatever their offsets. If a side has one instant with two offsets, which are
two records to the database, each pairs with the record that is written the same way.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from zoneinfo import ZoneInfo

import polars as pl

from flows.steps.frames.light import flags
from flows.steps.match.near_keys import distinct, near_partners
from flows.steps.validate.quick_times import offset_on
from flows.steps.validate.times import changes_at
from schemas.cells.reading import zone_minutes
from schemas.field import TIMES, Field, Kind, Table
from schemas.kinds import OFFSET

_MINUTE = 60_000_000
_BITS: dict[pl.DataType | type[pl.DataType], int] = {pl.Int32: 32, pl.Int64: 64}
_PACKED_BITS = 127


@dataclass(frozen=True, slots=True)
class Pairs:
    """The partners of the left rows among the right rows."""

    partner: pl.Series
    """The number of each left row's right row; null if there is none."""
    unmatched: pl.Series
    """Numbers of the right rows that are no left row's partner."""
    repeats: pl.Series
    """Whether an earlier right row has the same key, for each of `unmatched`."""


def key_frame(table: Table, frame: pl.DataFrame, *, wire: str | None) -> pl.DataFrame:
    """The columns that identify the rows of a record kind.

    `wire`, the time zone of a server, is given if one side came over the service's CSV: there empty
    text and null are the same, and times without an offset are by the server's clock. A key that
    lacks an optional part equals no other key: such a record is identified by the delivered row
    that wrote it, which both the row and its record in the database know.
    """
    fields = [table.by_name[name] for name in table.identity]
    parts = [part for field in fields for part in key_parts(field, wire=wire)]
    if any(not table.by_name[name].required for name in table.key):
        place = pl.lit(None, pl.String)
        if {"extract_id", "row"} <= set(frame.columns):
            place = pl.concat_str("extract_id", "row", separator=":")
        lacking = pl.any_horizontal(pl.col(name).is_null() for name in table.key)
        parts.append(pl.when(lacking).then(place).alias("place"))
    return frame.select(parts)


def written_frame(table: Table, frame: pl.DataFrame, *, wire: str | None = None) -> pl.DataFrame:
    """`key_frame` with the offsets of its times, which make separate records in the database."""
    keys = key_frame(table, frame, wire=wire)
    offsets = [pl.col(name + OFFSET).alias(f"{name} as written") for name in _times(table)]
    return keys.hstack(frame.select(offsets)) if offsets else keys


def _times(table: Table) -> list[str]:
    """The times among the identity fields."""
    return [name for name in table.identity if table.by_name[name].kind in TIMES]


def key_parts(field: Field, *, wire: str | None = None) -> list[pl.Expr]:
    """The parts of a field that identify a record; a time counts by its instant, not its offset."""
    column = pl.col(field.name)
    if field.kind is Kind.DATETIME:
        offset = pl.col(field.name + OFFSET)
        moment = column.cast(pl.Int64) - offset.fill_null(0).cast(pl.Int64) * _MINUTE
        if wire is None:
            return [moment.alias(field.name), offset.is_null().alias(field.name + OFFSET)]
        there = column.map_batches(partial(_instants, wire), return_dtype=pl.Int64)
        return [pl.when(offset.is_null()).then(there).otherwise(moment).alias(field.name)]
    if wire is not None and field.kind is Kind.STRING:
        return [pl.when(column != "").then(column).alias(field.name)]
    return [column]


def _instants(zone: str, walls: pl.Series) -> pl.Series:
    """The instants at which a server's clock first showed these times.

    A time that the clock skipped stays as it is. Zones are those of the machine, with which times
    are read and sent: those of polars end in 2100.
    """
    days, there = walls.dt.date(), ZoneInfo(zone)
    known = {day: offset_on(zone, day) for day in days.unique().drop_nulls()}
    minutes = days.replace_strict(known, default=None, return_dtype=pl.Int64)
    of_odd = {
        wall: 0 if changes_at(wall, zone) > timedelta() else zone_minutes(wall, there)
        for wall in walls.filter(minutes.is_null()).drop_nulls().unique()
    }
    own = walls.replace_strict(of_odd, default=None, return_dtype=pl.Int64)
    return walls.cast(pl.Int64) - minutes.fill_null(own) * _MINUTE


def keyless(table: Table, frame: pl.DataFrame) -> pl.Series:
    """Which rows lack a required part of their key, so that no record can be theirs."""
    required = [name for name in table.key if table.by_name[name].required]
    if not required or not any(frame[name].null_count() for name in required):
        return pl.Series("keyless", [False]).new_from_index(0, frame.height)
    return frame.select(keyless=pl.any_horizontal(pl.col(required).is_null())).to_series()


def repeated(keys: pl.DataFrame) -> pl.Series | None:
    """Which rows share their key with another row; None if every key is unique."""
    if distinct(keys):
        return None
    keys = _packed(keys) if _packable(keys) else keys
    if keys.width == 1:
        column = keys.to_series()
        return None if column.n_unique() == keys.height else column.is_duplicated()
    if maybe_repeated(keys) is None:
        return None
    again = keys.is_duplicated()
    return again if again.any() else None


def maybe_repeated(rows: pl.DataFrame) -> pl.Series | None:
    """Which rows share their hash with another row; None if every hash is unique.

    Unique rows nearly always have unique hashes, so few rows are left to compare.
    """
    hashes = rows.hash_rows()
    return None if hashes.n_unique() == rows.height else hashes.is_duplicated()


def pair(left: pl.DataFrame, right: pl.DataFrame, *, nulls_equal: bool = True) -> Pairs:
    """Pair rows by equal keys; among equal right keys the first one pairs."""
    partner, again = near_partners(left, right), None
    if partner is None and nulls_equal:
        partner = _hashed(left, right)
    if partner is None:
        partner, again = _joined(left, right, nulls_equal=nulls_equal)
    unmatched = (~flags(right.height, partner.drop_nulls())).arg_true()
    repeats = (
        pl.Series([False]).new_from_index(0, unmatched.len())
        if again is None
        else unmatched.is_in(again.implode())
    )
    return Pairs(partner, unmatched, repeats.alias("repeats"))


def pair_records(
    table: Table, left: pl.DataFrame, right: pl.DataFrame, *, wire: str | None = None
) -> Pairs:
    """Pair the records of two sides; `wire` is that of `key_frame`.

    Records of the same instant pair first if they are written alike, then one by one in order.
    """
    keys = [key_frame(table, side, wire=wire) for side in (left, right)]
    if not _times(table) or all(repeated(side) is None for side in keys):
        return pair(*keys)
    written = [written_frame(table, side, wire=wire) for side in (left, right)]
    alike = pair(*written)
    mine = alike.partner.is_null().arg_true()
    names = keys[0].columns
    rest = pair(
        *(
            side[rows].with_columns(pl.int_range(pl.len()).over(names).alias("nth"))
            for side, rows in zip(keys, (mine, alike.unmatched), strict=True)
        )
    )
    partner = alike.partner.scatter(mine, alike.unmatched.gather(rest.partner))
    unmatched = alike.unmatched.gather(rest.unmatched)
    # A server states an instant in one way only.
    keyed = (written if wire is None else keys)[1][pl.concat([partner.drop_nulls(), unmatched])]
    first = keyed.to_struct().is_first_distinct().tail(unmatched.len())
    return Pairs(partner, unmatched, (~first).alias("repeats"))


def _hashed(left: pl.DataFrame, right: pl.DataFrame) -> pl.Series | None:
    """Partners of keys of several columns by their hashes; None if two keys share a hash.

    A join by the columns themselves would copy all of them and take five times the memory.
    """
    if left.width == 1:
        return None
    keys, others = (side.hash_rows().alias("hash").to_frame() for side in (left, right))
    if others.to_series().n_unique() != right.height:
        return None
    partner, _ = _joined(keys, others, nulls_equal=True)
    paired = partner.is_not_null()
    for name in left.columns:
        same = left[name].eq_missing(right[name].gather(partner))
        if not (same | ~paired).all():
            return None  # Two keys share a hash.
    return partner


def _joined(
    left: pl.DataFrame, right: pl.DataFrame, *, nulls_equal: bool
) -> tuple[pl.Series, pl.Series | None]:
    """The left rows' partners, and the right rows whose key an earlier right row has."""
    if all(_packable(side, nulls=not nulls_equal) for side in (left, right)):
        left, right = _packed(left), _packed(right)
    on = left.columns
    numbered = right.with_row_index("partner")
    again = None
    if repeated(right) is not None:
        first = numbered.select(pl.struct(on).is_first_distinct()).to_series()
        again = numbered.filter(~first)["partner"]
        numbered = numbered.filter(first)
    partner = left.join(
        numbered, on=on, how="left", nulls_equal=nulls_equal, maintain_order="left", coalesce=True
    )["partner"]
    return partner, again


def _packable(keys: pl.DataFrame, *, nulls: bool = False) -> bool:
    """Whether keys are integers that fit one number; a key with a null in it is packed to null."""
    bits = [_BITS.get(dtype, _PACKED_BITS + 1) for dtype in keys.dtypes]
    return sum(bits) <= _PACKED_BITS and (nulls or not any(one.null_count() for one in keys))


def _packed(keys: pl.DataFrame) -> pl.DataFrame:
    """Pack each key into one number, which joins and counts in a fraction of the time."""
    packed = pl.lit(0, pl.Int128)
    for name, dtype in keys.schema.items():
        packed = packed * 2 ** _BITS[dtype] + pl.col(name).cast(pl.Int128)
    return keys.select(packed.alias("key"))
