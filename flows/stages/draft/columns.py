"""Lines of a drafted profile about its columns: which fields they may be, and what is constant."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from connectors.files.content import shown
from connectors.files.first_record import folded
from connectors.files.shape import Shape
from flows.stages.draft.cells import DraftCells, quoted
from flows.steps.draft_numbers import NumberSigns
from flows.steps.draft_table import TableGuess
from flows.steps.draft_times import NOTHING, digit_times, may_be_time
from schemas.counting import first_of
from schemas.field import INTEGERS, NUMBERS, TIMES, Field, Kind, Table
from schemas.tables import EXTRACTS

LIKE = 0.5
"""How alike the names of a column and a field are, at the least, to be named together."""
NAMED = 3
"""Fields that are named beside a column."""

Kinds = Mapping[int, Collection[Kind]]
"""What the columns may be, by their places."""


def kinds_of(
    cells: DraftCells, times: Collection[int], numbers: Mapping[int, NumberSigns]
) -> dict[int, Collection[Kind]]:
    """What the cells of each column may be, in any form that a profile can state."""
    kinds: dict[int, Collection[Kind]] = {}
    for place in range(len(cells.shape.names)):
        if place in times:
            kinds[place] = TIMES
        elif place in numbers and not numbers[place].maybe:
            kinds[place] = (*NUMBERS, *_beside_number({*cells.values(place)}))
        else:
            kinds[place] = _of_texts(cells.shape.column(place))
    return kinds


def _beside_number(texts: Collection[str]) -> Iterator[Kind]:
    """What numbers may be as well: digits a text or a flag, and some of all numbers times."""
    if all(map(str.isdigit, texts)):
        yield Kind.STRING
    if {*texts} <= {"0", "1"}:
        yield Kind.BOOLEAN
    if digit_times(texts):
        yield from TIMES


def _of_texts(cells: Sequence[str]) -> list[Kind]:
    """What texts may be: whole numbers always, by a map, and amounts where they have digits."""
    texts = {cell for cell in cells if not NOTHING.fullmatch(cell)}
    no_time = texts and not any(map(may_be_time, texts))
    no_amount = texts and not any(map(str.isdecimal, "".join(texts)))
    none = {*(TIMES if no_time else ()), *((Kind.DOUBLE,) if no_amount else ())}
    return [kind for kind in Kind if kind not in none]


def offers_of(
    drafted: DraftCells, table: Table | None, kinds: Kinds, guess: TableGuess | None
) -> dict[int, list[Field]]:
    """The fields that each column may be which has no field's own name, the likely one first."""
    names = drafted.shape.names
    left = _left(table, names)
    own = {name.casefold() for name in _fields(table)}
    places = {folded(name): place for place, name in reversed([*enumerate(names)])}
    making = guess.places if guess else ()
    return {
        place: _alike(names[place], [one for one in left if one.kind in kinds[place]])
        for name, place in sorted(places.items(), key=lambda one: one[1])
        if name and name not in own and place not in making
    }


def _fields(table: Table | None) -> dict[str, Field]:
    tables = [table] if table else EXTRACTS.values()
    return {field.name: field for one in tables for field in one.delivered}


def _left(table: Table | None, names: Iterable[str]) -> list[Field]:
    """The fields that no column is called like."""
    theirs = {*map(folded, names)}
    return [field for name, field in _fields(table).items() if name.casefold() not in theirs]


def column_lines(
    drafted: DraftCells,
    table: Table | None,
    offers: Mapping[int, Sequence[Field]],
    guess: TableGuess | None,
) -> Iterator[str]:
    """The section of columns, and that of constants where the record kind is known."""
    shape = drafted.shape
    theirs = {folded(name) for name in shape.names}
    if not offers and not guess and "" not in theirs:
        return
    yield 'unknown_columns = "ignore"  # ? without it every column has to be mapped'
    if guess:
        yield from _table_lines(shape, guess)
    yield ""
    yield "[columns]"
    for place, fields in offers.items():
        cells = shape.column(place)
        such = f"such as {drafted.shown(cells[0], 40)}" if cells else "always empty"
        digits = cells and all(map(str.isdigit, drafted.values(place)))
        if digits and any(field.amount for field in fields):
            such += ", with implied_decimals = 2 of the field if that counts cents"
        yield _column(shape.names[place], fields, such)
    if guess:
        left, making = _left(table, shape.names), guess.places
        such = f"by unpivot: {shown(shape.names[making[0]], 40)}"
        yield _column(guess.name, _alike(guess.name, left), such)
        first = min(making, key=lambda place: not drafted.values(place))
        such = f"by unpivot: {drafted.shown(drafted.values(first)[0], 40)}"
        numbers = [field for field in left if field.kind in NUMBERS]
        yield _column(guess.value, _alike(guess.value, numbers), such)
    if table:
        yield ""
        yield "[constants]"
        yield from _constants(table, theirs)


def _table_lines(shape: Shape, guess: TableGuess) -> Iterator[str]:
    names = first_of(guess.places, NAMED, lambda place: shown(shape.names[place], 20))
    yield ""
    yield f"# A guess, by what the columns {names} are called:"
    yield "# if each of their cells is a record of its own, it is"
    yield "# ? [unpivot]"
    yield f"# ? keep = [{', '.join(map(quoted, guess.keep))}]"
    yield f"# ? name = {quoted(guess.name)}"
    yield f"# ? value = {quoted(guess.value)}"


def _column(name: str, fields: Sequence[Field], such: str) -> str:
    first, *others = [field.name for field in fields] or [""]
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


def _alike(name: str, fields: Sequence[Field]) -> list[Field]:
    """The fields whose names are like that of a column; one that is left alone is one as well."""
    bare = re.sub(r"[^a-z]", "", name.casefold())
    names = {field.name.casefold(): field for field in fields}
    found = get_close_matches(bare, names, n=NAMED, cutoff=LIKE)
    return [names[one] for one in found] or ([*fields] if len(fields) == 1 else [])
