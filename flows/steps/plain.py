"""Plain rows: records that are clean beyond doubt, typed from their bytes all at once.

Most rows of most deliveries are. Of such a row no cell is ever made a text of its own, so it costs
a fraction of what judging costs. Whatever is written in another way than most is left to `judge`,
which says the same of a plain row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from flows.steps.normalise import Writing
from flows.steps.totals import Totals, totals_of_millionths
from schemas.digits import (
    LEAST_TEXT,
    Bytes,
    Cells,
    Flags,
    Places,
    read_decimals,
    read_integers,
    read_moments,
)
from schemas.field import Field, Kind, Table
from schemas.frames import compiled_rules
from schemas.kinds import OFFSET, SCALE, WORLDS
from schemas.reading import INTEGER_BITS

_MOMENTS = (Kind.DATETIME, Kind.DATETIME_OFFSET)
_KINDS = (*INTEGER_BITS, *_MOMENTS, Kind.DOUBLE)
_MICRO, _MILLION = 1_000_000, 1e6
_MOST_LEFT = 2
"""Where more than one row in so many is not plain, all are better judged together."""


@dataclass(frozen=True, slots=True, eq=False)
class Delivered:
    """The records of a chunk as bytes."""

    text: Bytes
    start: Places
    stop: Places
    sound: Flags
    """Which of them have as many fields as the header."""
    delimiter: bytes
    quote: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """The plain rows of a chunk."""

    rows: Flags
    """Which of the records they are."""
    frame: pl.DataFrame
    """Columns as SQL stores them; a double in millionths, with its digits behind the point."""
    totals: Totals


def read_plain(
    table: Table,
    names: Sequence[str | None],
    delivered: Delivered,
    writing: Writing,
    *,
    tenant: int | None,
) -> Plain | None:
    """The plain rows of a chunk; None: it has few, or its feed writes in a way of its own.

    `names` says which field each delivered column is.
    """
    found = {name: column for column, name in enumerate(names) if name is not None}
    usual = Writing() == writing and all(
        field.kind in _KINDS and field.name in found for field in table.delivered
    )
    if not usual or len(names) < 2 or len(delivered.text) < LEAST_TEXT:
        return None
    rows = delivered.sound & ~_quoted(delivered)
    edges = _edges(delivered, rows, len(names))
    if edges is None:
        return None
    plain = np.ones(edges.shape[1], np.bool_)
    columns: list[pl.Series] = []
    for field in table.delivered:
        column = found[field.name]
        cells = Cells(delivered.text, edges[column] + 1, edges[column + 1])
        columns += _typed(field, cells, plain)
    frame = pl.DataFrame(columns)
    if tenant is not None and table.tenant:
        plain &= (frame[table.tenant] == tenant).to_numpy()
    for passed in _passes(table, frame):
        plain &= passed.to_numpy()
    if plain.sum() * _MOST_LEFT < len(rows):
        return None
    if not plain.all():
        frame = frame.filter(pl.Series(plain))
        rows[np.flatnonzero(rows)[~plain]] = False
    return Plain(rows, frame, totals_of_millionths(table, frame))


def _quoted(delivered: Delivered) -> Flags:
    """Which records have a quote in them."""
    quoted = np.zeros(len(delivered.start), np.bool_)
    places = np.flatnonzero(delivered.text == ord(delivered.quote))
    if len(places):
        quoted[np.searchsorted(delivered.start, places, "right") - 1] = True
    return quoted


def _edges(delivered: Delivered, rows: Flags, width: int) -> Places | None:
    """A line for each border of fields, outer ones too; None: not as many as there have to be."""
    places = np.flatnonzero(delivered.text == ord(delivered.delimiter))
    other = np.flatnonzero(~rows)
    if len(other):
        first = np.searchsorted(places, delivered.start[other])
        beyond = np.searchsorted(places, delivered.stop[other])
        depth = np.zeros(len(places) + 1, np.int32)
        np.add.at(depth, first, 1)
        np.add.at(depth, beyond, -1)
        places = places[np.cumsum(depth[:-1]) == 0]
    start, stop = delivered.start[rows], delivered.stop[rows]
    if not len(start) or len(places) != len(start) * (width - 1):
        return None
    edges = np.empty((width + 1, len(start)), np.int64)
    edges[0], edges[1:-1], edges[-1] = start - 1, places.reshape(len(start), width - 1).T, stop
    # A field that belongs to another record would be worse than a slow reader.
    inside = (edges[1] >= start).all() and (edges[-2] < stop).all()
    return edges if inside else None


def _typed(field: Field, cells: Cells, plain: Flags) -> list[pl.Series]:
    """The columns of a field; rows of which nothing is known are taken out of `plain`."""
    name, dtype = field.name, WORLDS[field.kind].frame
    if field.kind in _MOMENTS:
        moments = read_moments(cells)
        plain &= moments.known
        micros = moments.wall
        if field.kind is Kind.DATETIME_OFFSET:
            micros = micros - moments.offset * (60 * _MICRO)
        offset = pl.Series(name + OFFSET, moments.offset.astype(np.int16))
        return [pl.Series(name, micros).cast(dtype), offset]
    if field.kind is Kind.DOUBLE:
        decimals = read_decimals(cells)
        plain &= decimals.known
        return [pl.Series(name, decimals.micro), pl.Series(name + SCALE, decimals.scale)]
    integers = read_integers(cells)
    plain &= integers.known & (integers.value < 1 << (INTEGER_BITS[field.kind] - 1))
    return [pl.Series(name, integers.value).cast(dtype, wrap_numerical=True)]


def _passes(table: Table, frame: pl.DataFrame) -> list[pl.Series]:
    """By rule of the contract: which rows pass. A double is judged as the double it is."""
    doubles = [field.name for field in table.delivered if field.kind is Kind.DOUBLE]
    typed = frame.with_columns(pl.col(doubles) / _MILLION)
    rules = (rule.passes.alias(str(number)) for number, rule in enumerate(compiled_rules(table)))
    return typed.select(rules).get_columns()
