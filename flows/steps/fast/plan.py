"""Plan for each field of a chunk's records: read by the loops, left, constant or absent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from flows.steps.fast.book import Bookmaker, PlainValue, is_unix, plain_value
from flows.steps.fast.forms import Book, HowRead
from flows.steps.validate.arithmetic import ColumnSum
from flows.steps.validate.excluded import KeptBy
from flows.steps.validate.normalise import CellForm, Writing
from flows.steps.validate.times import TimeForm
from schemas.field import NUMBERS, TIMES, Field, Kind, Table

KINDS = (*NUMBERS, Kind.BOOLEAN, *TIMES)
"""Kinds of fields for which an empty text and null are the same."""


@dataclass(frozen=True, slots=True)
class ReadField:
    of: Field
    lines: range
    """The field's lines in what is read; several lines are added up."""
    total: ColumnSum | None
    units: tuple[int, CellForm] | None
    """For a sum, the column with its number of units, and the form of that."""
    default: PlainValue | None
    """For a sum, its value if none of its columns has one."""
    zone: str | None
    """Zone whose wall clock the times are, if any."""
    unzoned: bool
    """Whether the times are wall clocks without an offset."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the fields of a record are found; fields not named are absent."""

    read: tuple[ReadField, ...]
    how: Sequence[HowRead]
    """The lines of all fields that the loops read, and behind them those of kept rows."""
    book: Book
    left: Mapping[str, Sequence[int]]
    """Fields left to the strict readers, with the places of their columns."""
    constants: Mapping[str, PlainValue]
    written: Mapping[str, str]
    """Constants that are not plain numbers: times, words and empty texts."""

    @property
    def left_columns(self) -> NDArray[np.int64]:
        """The columns of fields that are left, and the columns with units."""
        of_units = (field.units[0] for field in self.read if field.units)
        return np.array(sorted({*chain(*self.left.values()), *of_units}), np.int64)


def plan_of(
    table: Table,
    names: Sequence[str | None],
    writing: Writing,
    sources: Mapping[str, Sequence[int]],
    kept: Sequence[KeptBy],
) -> Plan | None:
    """Plan how records with these columns are read; None if the strict path has to read all.

    `names` has the field of each column, `sources` the columns of fields that are made of others.
    """
    if any(field.kind not in KINDS for field in table.delivered):
        return None
    places = {name: (place,) for place, name in enumerate(names) if name} | {**sources}
    read, left, constants, written = [], {}, {}, {}
    book = Bookmaker()
    for of in table.delivered:
        form = writing.form_of(of.name)
        if of.name in writing.constants:
            text = writing.constants[of.name]
            constant = plain_value(of, text)
            if constant is None:
                written[of.name] = text
            else:
                constants[of.name] = constant
        elif of.name in writing.keys or of.name not in places:
            continue
        elif lines := book.add(of, form, places[of.name]):
            read.append(_read_field(of, form, lines, places[of.name]))
        else:
            left[of.name] = places[of.name]
    for rule in kept:
        book.keep(*rule[:2], left_out=rule.left_out)
    how, words = book.finish()
    return Plan(tuple(read), how, words, left, constants, written)


def _read_field(of: Field, form: CellForm, lines: range, columns: Sequence[int]) -> ReadField:
    time = form.time
    default = None if form.default is None else plain_value(of, form.default)
    stated = of.kind in TIMES and time != TimeForm() and not is_unix(time)
    zone = time.zone if stated else None
    unzoned = stated and zone is None and time.offset_minutes is None
    units = None if form.units is None else (columns[-1], form.units)
    return ReadField(of, lines, form.sum, units, default, zone, unzoned)
