"""How the fields of a chunk's records are found: read by the loops, left, constant or absent."""

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
"""Those of which an empty text and none are one."""


@dataclass(frozen=True, slots=True)
class ReadField:
    of: Field
    lines: range
    """Its lines in what is read; several are added up."""
    total: ColumnSum | None
    units: tuple[int, CellForm] | None
    """Of a sum: the column that says for how many units it is, and how."""
    default: PlainValue | None
    """Of a sum: what it is where none of its columns has a value."""
    zone: str | None
    """Its times are wall clocks of this zone."""
    unzoned: bool
    """Its times are wall clocks, and have no offset."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the fields of a record are found; those that it does not name are absent."""

    read: tuple[ReadField, ...]
    how: Sequence[HowRead]
    """A line for each that the loops read, and behind them those of what is no field."""
    book: Book
    left: Mapping[str, Sequence[int]]
    """Fields that are left, with the places of the columns each is made of."""
    constants: Mapping[str, PlainValue]
    written: Mapping[str, str]
    """Constants that are no plain number: times, words, and no value."""

    @property
    def left_columns(self) -> NDArray[np.int64]:
        """The columns that fields which are left are made of, and those of units."""
        of_units = (field.units[0] for field in self.read if field.units)
        return np.array(sorted({*chain(*self.left.values()), *of_units}), np.int64)


def plan_of(
    table: Table,
    names: Sequence[str | None],
    writing: Writing,
    sources: Mapping[str, Sequence[int]],
    kept: Sequence[KeptBy],
) -> Plan | None:
    """How records under these columns are read; None: all of them by the strict path.

    `names` says which field each column is, `sources` which columns a field is made of that is not
    one.
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
