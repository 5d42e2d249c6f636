"""Rows that share a key, found without a database, for deliveries that are only examined.

Only the place, the key and a hash of the content of each row are needed; the text of rows that
conflict is read again from the extract. In an imported batch PostgreSQL finds the repeats.
"""

from collections.abc import Iterable, Sequence

import polars as pl

from flows.steps.validate.field_errors import settled_errors
from schemas.amounts import MICRO_DIGITS
from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.field import Kind, Table
from schemas.kinds import OFFSET, SCALE, stored_columns
from schemas.reasons import NOT_SHOWN

PLACE = "__place"
"""A row's extract and record number as one integer, in their order. No field has such a name."""
CONTENT = "__content"
_RECORDS = 1 << 42
"""More records than a file can have, each being at least a byte; leaves room for 2^21 files."""
_MINUTE = 60_000_000
"""A minute in microseconds, the unit of stored times."""
FIRST, LAST, CONFLICT = "__first", "__last", "__conflict"
_SEVERAL, _LEAST, _MOST = "__several", "__least", "__most"
VERSION, MOMENT = "__version", "__moment"
_NEWEST = "__newest"


def place() -> pl.Expr:
    return (pl.col("extract_id").cast(pl.Int64) * _RECORDS + pl.col("record_number")).alias(PLACE)


def extract_of() -> pl.Expr:
    return (pl.col(PLACE) // _RECORDS).cast(pl.Int32).alias("extract_id")


def record_of() -> pl.Expr:
    return (pl.col(PLACE) % _RECORDS).alias("record_number")


def key_of(table: Table) -> dict[str, pl.Expr]:
    """Columns that identify the keys of staged rows: integers, or 128 bits for any other key."""
    if key_columns(table) == (IDENTITY,):
        # In a large delivery two keys may share one 64-bit hash, but hardly both.
        return {f"{IDENTITY}_{seed}": pl.col(IDENTITY).hash(seed) for seed in (1, 2)}
    return {name: pl.col(name).cast(pl.Int64) for name in key_columns(table)}


def content_of(table: Table, clean: pl.DataFrame) -> pl.Series:
    """A hash of the content of staged rows, whose doubles are texts or in millionths."""
    # 12.5 and 12.50 are the same content: a double is compared by its value, which is exact.
    doubles = [of.name for of in table.delivered if of.kind is Kind.DOUBLE]
    values = clean.select(stored_columns(table)).with_columns(pl.col(doubles).cast(pl.Float64))
    for name in doubles:
        if name + SCALE in clean.columns:
            # Both are exact, so their quotient is the double nearest to the amount, as when a text
            # is read. polars multiplies by the reciprocal, which at times gives another double.
            quotient = values[name].to_numpy() / 10.0**MICRO_DIGITS
            values = values.with_columns(pl.Series(name, quotient).fill_nan(None))
    return values.select(pl.struct(pl.all()).hash().alias(CONTENT)).to_series()


def version_of(table: Table) -> dict[str, pl.Expr]:
    """Columns that decide which of several rows with one key is the newest, as in `batch_keys`."""
    if not table.version:
        return {}
    of = table.by_name[table.version]
    version = moment = pl.col(of.name).cast(pl.Int64)
    if of.kind is Kind.DATETIME:
        moment = version - pl.col(of.name + OFFSET).cast(pl.Int64) * _MINUTE
    return {VERSION: version, MOMENT: moment}


def repeated_keys(frames: Iterable[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """The keys of more than one row: `keys`, their `FIRST` and `LAST` place, whether they CONFLICT.

    With the columns of `version_of`, `LAST` is the newest row, and the last of equally new ones.
    Memory grows with the number of keys, not with the rows of a key.
    """
    found: pl.DataFrame | None = None
    for rows in frames:
        part = rows.select(
            *keys,
            pl.lit(1).alias(_SEVERAL),
            pl.col(PLACE).alias(FIRST),
            pl.col(PLACE).alias(LAST),
            *((pl.col(PLACE).alias(_NEWEST), VERSION, MOMENT) if MOMENT in rows.columns else ()),
            *(pl.col(CONTENT).alias(name) for name in (_LEAST, _MOST)),
        )
        found = _joined(part if found is None else found.vstack(_joined(part, keys)), keys)
    assert found is not None, "no part without a frame"
    if MOMENT in found.columns:
        # If a row has no offset, the rows of its key are compared as written.
        newest = pl.when(pl.col(MOMENT).is_null()).then(LAST).otherwise(_NEWEST)
        found = found.with_columns(newest.alias(LAST))
    return found.filter(pl.col(_SEVERAL) > 1).select(
        *keys, FIRST, LAST, (pl.col(_LEAST) != pl.col(_MOST)).alias(CONFLICT)
    )


def _joined(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    least, most = pl.col(FIRST, _LEAST).min(), pl.col(_MOST).max()
    last = [pl.col(LAST).max()]
    if MOMENT in rows.columns:
        known = pl.col(MOMENT).is_not_null().all()
        last = [
            pl.col(LAST).sort_by(VERSION, LAST).last(),
            pl.col(_NEWEST).sort_by(MOMENT, _NEWEST).last(),
            pl.col(VERSION).max(),
            pl.when(known).then(pl.col(MOMENT).max()).alias(MOMENT),
        ]
    return rows.group_by(keys).agg(pl.col(_SEVERAL).sum(), least, most, *last).select(rows.columns)


def conflict_errors(table: Table, code: str, rows: pl.DataFrame) -> pl.Series:
    """ErrorData of staged rows in conflict, with the code of their conflict, as in an import."""
    value = pl.Series([NOT_SHOWN]).new_from_index(0, rows.height)
    if not table.unquotable:
        parts = [_as_text(rows[part]) for part in table.identity]
        value = pl.select(pl.concat_str(parts, separator=", ")).to_series()
    return settled_errors(code, table.identity[0], value, rows["first_line"])


def _as_text(values: pl.Series) -> pl.Series:
    """Values as Python writes them; empty for null."""
    if values.dtype.is_integer() or values.dtype == pl.String:
        return values.cast(pl.String).fill_null("")
    each = ["" if value is None else str(value) for value in values]
    return pl.Series(each, dtype=pl.String)
