"""The records of a chunk that take the fast path, as a typed frame."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.cells.reading import INTEGER_BITS
from schemas.field import Field, Kind, Table
from schemas.kinds import OFFSET, SCALE, WORLDS


@dataclass(frozen=True, slots=True, eq=False)
class Delivered:
    """The records of a chunk as bytes."""

    text: NDArray[np.uint8]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    sound: NDArray[np.bool_]
    """Which of them have as many fields as the header."""
    delimiter: bytes
    quote: bytes


def typed_records(
    table: Table, names: Sequence[str | None], delivered: Delivered
) -> tuple[pl.DataFrame, NDArray[np.bool_]]:
    """The records that take the fast path, and which they are.

    `names` says which field each delivered column is. Columns are as SQL stores
    them; a double is in millionths, with its digits behind the point.
    """
    # What compiles the loops takes longer to load than a small delivery to validate.
    from flows.steps.fast.records import Form, read_records  # noqa: PLC0415

    forms = {
        **dict.fromkeys(INTEGER_BITS, Form.INTEGER),
        Kind.DOUBLE: Form.DECIMAL,
        Kind.DATETIME: Form.WALL,
        Kind.DATETIME_OFFSET: Form.INSTANT,
    }
    kinds = [None if name is None else table.by_name[name].kind for name in names]
    rows = delivered.sound.copy()
    values = np.empty((len(names), len(rows)), np.int64)
    beside = np.empty((len(names), len(rows)), np.int16)
    count = read_records(
        delivered.text,
        delivered.start,
        delivered.stop,
        rows,
        (ord(delivered.delimiter), ord(delivered.quote)),
        np.array([Form.SKIP if kind is None else forms[kind] for kind in kinds], np.int8),
        np.array([(1 << (INTEGER_BITS.get(kind, 64) - 1)) - 1 if kind else 0 for kind in kinds]),
        values,
        beside,
    )
    places = ((field, names.index(field.name)) for field in table.delivered)
    columns = [
        column
        for field, place in places
        for column in _columns(field, values[place, :count], beside[place, :count])
    ]
    return pl.DataFrame(columns), rows


def _columns(
    field: Field, values: NDArray[np.int64], beside: NDArray[np.int16]
) -> Iterator[pl.Series]:
    """The columns of a field: its own, and what stands beside it."""
    column = pl.Series(field.name, values)
    match field.kind:
        case Kind.DOUBLE:
            yield column
            yield pl.Series(field.name + SCALE, beside.astype(np.int8))
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            yield column.cast(WORLDS[field.kind].frame)
            yield pl.Series(field.name + OFFSET, beside)
        case _:
            yield column.cast(WORLDS[field.kind].frame, wrap_numerical=True)
