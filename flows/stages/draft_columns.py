"""Lines of a drafted profile about its columns: which fields they may be, and what is constant."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain

from connectors.files.content import shown
from connectors.files.first_record import folded
from connectors.files.shape import Shape
from flows.stages.draft_cells import DraftCells, quoted
from flows.steps.draft_numbers import NumberSigns
from flows.steps.draft_table import TableGuess
from flows.steps.draft_times import NOTHING, may_be_time
from schemas.field import Field, Kind, Table
from schemas.tables import EXTRACTS

LIKE = 0.5
"""How alike the names of a column and a field are, at the least, to be named together."""
TIMES = (Kind.DATETIME, Kind.DATETIME_OFFSET)
INTEGERS = (Kind.INTEGER, Kind.INTEGER64)
NUMBERS = (Kind.DOUBLE, *INTEGERS)
NAMED = 3
"""Fields that are named beside a column."""

Kinds = Mapping[int, Collection[Kind]]
"""What the columns may be, by their places."""


def kinds_of(
    shape: Shape, times: Collection[int], numbers: Mapping[int, NumberSigns]
) -> dict[int, Collection[Kind]]:
    """What the cells of each column may be, in any form that a profile can state."""
    kinds: dict[int, Collection[Kind]] = {}
    for place in range(len(shape.names)):
        if place in times:
            kinds[place] = TIMES
        elif place in numbers and not numbers[place].maybe:
            kinds[place] = NUMBERS
        else:
            kinds[place] = _of_texts(shape.column(place))
    return kinds


def _of_texts(cells: Sequence[str]) -> list[Kind]:
    """What texts may be: whole numbers always, by a map, and amounts where they have digits."""
    told = {cell for cell in cells if not NOTHING.fullmatch(cell)}
    no_time = told and not any(map(may_be_time, told))
    no_amount = told and not any(map(str.isdecimal, "".join(told)))
    none = {*(TIMES if no_time else ()), *((Kind.DOUBLE,) if no_amount else ())}
    return [kind for kind in Kind if kind not in none]


def column_lines(
    drafted: DraftCells, table: Table | None, kinds: Kinds, guess: TableGuess | None
) -> Iterator[str]:
    """The section of columns, and that of constants where the record kind is known."""
    shape = drafted.shape
    tables = [table] if table else EXTRACTS.values()
    fields = {field.name: field for one in tables for field in one.delivered}
    own = {name.casefold() for name in fields}
    theirs = {folded(name) for name in shape.names}
    places = {folded(name): place for place, name in reversed([*enumerate(shape.names)])}
    making = guess.places if guess else ()
    unknown = [
        (place, shape.names[place])
        for name, place in sorted(places.items(), key=lambda one: one[1])
        if name and name not in own and place not in making
    ]
    if not unknown and not guess and "" not in theirs:
        return
    yield 'unknown_columns = "ignore"  # ? without it every column has to be mapped'
    if guess:
        yield from _table_lines(shape, guess)
    yield ""
    yield "[columns]"
    left = [field for name, field in fields.items() if name.casefold() not in theirs]
    for place, name in unknown:
        cells = shape.column(place)
        such = f"such as {drafted.shown(cells[0], 40)}" if cells else "always empty"
        yield _column(name, left, kinds[place], such)
    if guess:
        such = f"by unpivot: {shown(shape.names[making[0]], 40)}"
        yield _column(guess.name, left, [*Kind], such)
        cell = next(chain.from_iterable(shape.column(at) for at in _numbers_first(making, kinds)))
        yield _column(guess.value, left, NUMBERS, f"by unpivot: {drafted.shown(cell, 40)}")
    if table:
        yield ""
        yield "[constants]"
        yield from _constants(table, theirs)


def _numbers_first(places: Collection[int], kinds: Kinds) -> list[int]:
    return sorted(places, key=lambda place: kinds[place] != NUMBERS)


def _table_lines(shape: Shape, guess: TableGuess) -> Iterator[str]:
    names = [shown(shape.names[place], 20) for place in guess.places]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    yield ""
    yield f"# A guess, by what the columns {', '.join(names[:NAMED])}{more} are called:"
    yield "# if each of their cells is a record of its own, it is"
    yield "# ? [unpivot]"
    yield f"# ? keep = [{', '.join(map(quoted, guess.keep))}]"
    yield f"# ? name = {quoted(guess.name)}"
    yield f"# ? value = {quoted(guess.value)}"


def _column(name: str, fields: Sequence[Field], kinds: Collection[Kind], such: str) -> str:
    fitting = [one.name for one in fields if one.kind in kinds]
    first, *others = _alike(name, fitting) or [""]
    more = f"; or {', '.join(others)}" if others else ""
    return f'# ? {quoted(name)} = "{first}"  # {such}{more}'


def _constants(table: Table, theirs: set[str]) -> Iterator[str]:
    for field in table.delivered:
        if field.needs_value and field.name.casefold() not in theirs:
            yield f"# ? {field.name} = {_example(field)}  # required: of a column, or in all rows"


def _example(field: Field) -> str:
    if field.kind in INTEGERS:
        return "0"
    return '"0.00"' if field.kind is Kind.DOUBLE else '""'


def _alike(name: str, fields: Sequence[str]) -> list[str]:
    """The fields whose names are like that of a column; one that is left alone is one as well."""
    bare = re.sub(r"[^a-z]", "", name.casefold())
    names = {field.casefold(): field for field in fields}
    found = get_close_matches(bare, names, n=NAMED, cutoff=LIKE)
    return [names[one] for one in found] or ([*fields] if len(fields) == 1 else [])
