"""Staged rows: every record of a chunk verbatim, with its position, values and verdict."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flows.steps.validate.check import Checked
from flows.steps.validate.field_errors import NO_ERRORS, FieldErrors, empty_texts, of_record
from schemas.counting import quantity
from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.field import Field, Kind, Table
from schemas.frame_types import FRAME_TYPES, frame_columns
from schemas.kinds import EXACT
from schemas.ledger import POSITION

AT_ONCE = 8192
"""Most reasons, and rows, in memory as text at a time: a reason takes 1 KiB while it is made."""
_HASHED = json.JSONEncoder(ensure_ascii=False, default=str)
"""Encodes keys for hashing; shared, because making an encoder takes longer than encoding a row."""
_DIVIDED = (
    "Lines {} to {} have together the fields of one record: a line break within a text may have "
    "divided it. Have the sender quote such texts, or escape their line breaks. Where they are "
    "corrected, write the whole record in the row of each of them: one alone leaves the others in "
    "error."
)
_ABOVE = "It is in what a line above says of the records below it (skip_lines)."


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of the records of a chunk and the faults of broken ones, one entry per record."""

    frame: pl.DataFrame
    """record_number, first_line, last_line, byte_start, byte_end, data, raw."""
    faults: pl.Series
    """ErrorCode of each record with a broken structure, which has no cells; else null."""
    details: pl.Series | None = None
    """Text beside the reason of each broken record, if there is any; else null."""

    def only(self, chosen: pl.Series) -> "Positions":
        details = None if self.details is None else self.details.filter(chosen)
        return Positions(self.frame.filter(chosen), self.faults.filter(chosen), details)

    @property
    def sound(self) -> NDArray[np.intp]:
        return self.faults.is_null().arg_true().to_numpy().astype(np.intp)


@dataclass(frozen=True, slots=True)
class Rows:
    """All records of a chunk, the sound ones first: typed values, positions, reasons by row."""

    typed: pl.DataFrame
    positions: pl.DataFrame
    errors: FieldErrors
    broken: int = 0
    """Number of records without cells, which come last."""


def all_rows(checked: Checked, positions: Positions) -> Rows:
    """Put the broken records, which have no cells, behind the checked ones."""
    broken = positions.faults.is_not_null()
    if not broken.any():
        return Rows(checked.typed, positions.frame, checked.errors)
    typed, faulty = checked.typed, positions.only(broken)
    codes, details = faulty.faults, faulty.details
    behind = [
        of_record(
            code,
            there.arg_true().to_numpy().astype(np.intp) + typed.height,
            None if details is None else details.filter(there),
        )
        for code in codes.unique().sort()
        for there in (codes == code,)
    ]
    return Rows(
        pl.concat([typed, typed.clear(len(codes))]),
        positions.frame.filter(~broken).vstack(faulty.frame),
        FieldErrors([*checked.errors.found, *behind]),
        len(codes),
    )


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows for the staged table of a record kind, whose ErrorData is made on demand.

    ErrorData may be many times as large as the delivery.
    """

    frame: pl.DataFrame
    """Columns in the order of `sql_names.staged_columns`; that of ErrorData is null."""
    errors: FieldErrors = NO_ERRORS

    @property
    def clean(self) -> pl.Series:
        clean = pl.repeat(True, self.frame.height, eager=True)
        return clean.scatter(self.errors.rows, False)

    def only(self, chosen: pl.Series) -> "StagedRows":
        return StagedRows(self.frame.filter(chosen), self.errors.among(chosen.to_numpy()))

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yield all rows with their ErrorData, some at a time."""
        reasons = np.cumsum(self.errors.count(self.frame.height))
        first = 0
        while first < self.frame.height:
            before = int(reasons[first - 1]) if first else 0
            beyond = int(np.searchsorted(reasons, before + AT_ONCE, "right"))
            beyond = max(min(beyond, first + AT_ONCE), first + 1)
            piece = self.frame[first:beyond]
            errors = self.errors.between(first, beyond)
            rows, error_data = errors.error_data(piece["first_line"])
            yield piece.with_columns(piece["error_data"].scatter(rows, error_data))
            first = beyond


def staged_rows(
    table: Table, batch_id: int, extract_id: int, rows: Rows, identity: pl.Series
) -> StagedRows:
    known = rows.positions.with_columns(
        identity, batch_id=pl.lit(batch_id, pl.Int32), extract_id=pl.lit(extract_id, pl.Int32)
    )
    position = known.select(
        pl.col(field.name)
        if field.name in known.columns
        else pl.lit(None, FRAME_TYPES[field.kind]).alias(field.name)
        for field in POSITION
    )
    return StagedRows(position.hstack(rows.typed.select(stored(table))), rows.errors)


def stored(table: Table) -> list[pl.Expr]:
    """A typed frame's columns as SQL stores them, with doubles as decimal texts."""
    expressions = []
    for of in table.delivered:
        if of.kind is Kind.DOUBLE:
            expressions.append(pl.col(of.name + EXACT).alias(of.name))
        else:
            expressions += map(pl.col, frame_columns(of))
    return expressions


def identities(
    table: Table, typed: pl.DataFrame, extract_id: int, record_numbers: pl.Series
) -> pl.Series:
    """Hash of the business key of each row, for record kinds whose key is not all integers.

    A row that lacks a part of its key equals no other: its identity is its place, whose first 60
    bits are zero, so that it adds nothing to the hash total of keys.
    """
    if key_columns(table) != (IDENTITY,):
        return pl.Series(IDENTITY, [None] * typed.height, dtype=pl.String)
    columns = [part for name in table.identity for part in _key_parts(table.by_name[name])]
    hashes = [
        hashlib.sha256(_HASHED.encode(row).encode()).hexdigest()[:32]
        for row in typed.select(columns).iter_rows()
    ]
    found = pl.Series(IDENTITY, hashes, dtype=pl.String)
    if not any(typed[name].null_count() for name in table.key):
        return found
    lacking = typed.select(pl.any_horizontal(pl.col(name).is_null() for name in table.key))
    rows = lacking.to_series().arg_true()
    places = [
        f"{0:015x}{extract_id:08x}{number:010x}" for number in record_numbers.gather(rows).to_list()
    ]
    return found.scatter(rows, pl.Series(places, dtype=pl.String))


def _key_parts(field: Field) -> list[pl.Expr]:
    if field.kind is Kind.DOUBLE:
        # 12.5 and 12.50 are the same number, and so are 0.00 and -0.00, which are two texts.
        double = pl.col(field.name)
        return [pl.when(double == 0).then(0.0).otherwise(double).alias(field.name)]
    return [pl.col(name) for name in frame_columns(field)]


def broken_details(
    counted: pl.Series,
    width: int,
    unnamed: int,
    divided: Mapping[int, tuple[int, int]],
    above: Sequence[int],
) -> pl.Series:
    """The details of broken records; null for records without any.

    `counted` is the number of fields a record has instead of `width`, the last `unnamed` of which
    have no name; null if it is not to be mentioned. `divided` has records that may be parts of one,
    with its first and last line. `above` are records whose fault is in a cell from a line above.
    """
    behind = f", the last {unnamed} without a name" if unnamed else ""
    counts = counted.unique().drop_nulls()
    widths = [f"It has {quantity(count, 'field')} instead of {width}{behind}." for count in counts]
    fields = counted.replace_strict(counts, widths, default=None, return_dtype=pl.String)
    if not divided and not above:
        return fields
    of_lines = [_DIVIDED.format(*between) for between in divided.values()]
    lines = empty_texts(len(counted)).scatter([*divided], of_lines)
    of_above = empty_texts(len(counted)).scatter(above, _ABOVE)
    texts = pl.DataFrame([fields.alias("fields"), lines.alias("lines"), of_above.alias("above")])
    text = pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)
    return texts.select(pl.when(pl.any_horizontal(pl.all().is_not_null())).then(text)).to_series()
