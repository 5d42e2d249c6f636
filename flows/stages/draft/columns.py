"""Lines of a drafted profile about its columns: possible fields, and constants."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import combinations
from typing import NamedTuple

from connectors.files.drafting.shape import Shape
from connectors.files.layout.first_record import folded
from connectors.files.text.linear_patterns import literal
from connectors.printable import shown
from flows.stages.draft.cells import DraftCells, quoted, unescaped
from flows.steps.draft_numbers import NumberSigns
from flows.steps.draft_table import UNITS, TableGuess
from flows.steps.draft_times import digit_times, may_be_time
from schemas.cells.widths import of_usual_width
from schemas.counting import first_of
from schemas.field import INTEGERS, TIMES, Field, Kind, Rule, Table
from schemas.tables import EXTRACTS

LIKE = 0.5
"""The least likeness of a column's and a field's name to mention them together."""
NAMED = 3
"""The most fields mentioned beside a column."""
SURE_DIGITS = {Kind.INTEGER: 9, Kind.INTEGER64: 18}
"""Every number with at most this number of digits is valid for the kind."""
_SOME = re.compile(r"[1-9]")
"""A digit that makes a number other than zero."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_AMOUNT = re.compile(
    r"(amount|betrag|umsatz|montant|importe?|importo|bedrag|kwota|belopp|beløb|valor)(?![^\W_])",
    re.IGNORECASE,
)
"""Names of columns of amounts."""
_CALLED_SO = 0.3
"""Added to the likeness of a record's first amount and such a column; less than a fitting name."""
_UNITS = r"\d+"
_DECIMALS = re.compile(r"[0-9][.,][0-9]")
CENTS = (
    "implied_decimals = 2 of the field if that counts cents; per where some currencies have none"
)
_POWER = re.compile("10*")
"""How many units a rate or an amount may be for."""
_FLAGS = (
    *({"s", "h"}, {"d", "k"}, {"d", "c", "rd", "rc"}, {"dr", "cr"}, {"dbit", "crdt"}),
    *({"debit", "credit"}, {"soll", "haben"}, {"af", "bij"}),
)
"""Marks of debit and credit beside an amount; `rd` and `rc` reverse one."""
KEY_WORDS = {"id", "no", "nr", "num", "number", "key"}
"""Last words in the names of columns that identify records."""


class CellKinds(NamedTuple):
    sure: Collection[Kind]
    """Kinds that the cells are as they stand, in the form the draft states or asks for."""
    maybe: Collection[Kind] = ()
    """Kinds that a part of the cells, or a map, could give."""


class Offer(NamedTuple):
    """The fields that a column may be."""

    field: Field | None
    """The likely field, offered to no other column; None if its name resembles none."""
    others: Sequence[Field]
    made: Sequence[Field]
    """Fields that a part of its cells, or a map, could give."""


def kinds_of(
    cells: DraftCells, times: Collection[int], numbers: Mapping[int, NumberSigns]
) -> dict[int, CellKinds]:
    """The kinds that the cells of each column are, in any form a profile can state."""
    kinds: dict[int, CellKinds] = {}
    for place in range(len(cells.shape.names)):
        values = {*cells.values(place)}
        if not values:
            kinds[place] = CellKinds([*Kind])
        elif place in times:
            kinds[place] = CellKinds(TIMES)
        elif place in numbers and not numbers[place].maybe:
            kinds[place] = _of_numbers(numbers[place], values)
        else:
            kinds[place] = _of_texts(values)
    return kinds


def _of_numbers(signs: NumberSigns, cells: Collection[str]) -> CellKinds:
    """The kinds of numbers: digits are also texts or flags, and some numbers are also times."""
    longest = max(sum(map(str.isdecimal, cell)) for cell in cells)
    whole = [] if signs.decimal else [kind for kind in INTEGERS if longest <= SURE_DIGITS[kind]]
    sure = [Kind.DOUBLE, *([] if signs.either else whole)]
    if all(map(str.isdigit, cells)):
        sure.append(Kind.STRING)
    if {*cells} <= {"0", "1"}:
        sure.append(Kind.BOOLEAN)
    if digit_times(cells):
        sure += TIMES
    return CellKinds(sure, whole if signs.either else ())


def _of_texts(cells: Collection[str]) -> CellKinds:
    """The kinds of texts: integers only by a map, amounts only by a part that has digits."""
    sure = [Kind.STRING]
    if {*map(str.casefold, cells)} <= {"true", "false"}:
        sure.append(Kind.BOOLEAN)
    no_time = not any(map(may_be_time, cells))
    no_amount = not any(map(str.isdecimal, "".join(cells)))
    none = {*sure, *(TIMES if no_time else ()), *((Kind.DOUBLE,) if no_amount else ())}
    return CellKinds(sure, [kind for kind in Kind if kind not in none])


def offers_of(
    drafted: DraftCells,
    table: Table | None,
    kinds: Mapping[int, CellKinds],
    guess: TableGuess | None,
    sides: Collection[int],
) -> dict[int, Offer]:
    """The fields that each column not named like one may be; columns in `sides` may be none."""
    names = drafted.shape.names
    left = _left(table, names)
    if guess:
        # A column beside the cells would be the value of every record of its line.
        value = _of_cells(guess, left).field
        left = [of for of in left if of != value]
    own = {name.casefold() for name in _fields(table)}
    places = {folded(name): place for place, name in reversed([*enumerate(names)])}
    making = guess.places if guess else ()
    open_ones = sorted(
        place for name, place in places.items() if name and name not in own and place not in making
    )
    values = {place: drafted.values(place) for place in open_ones}
    fitting = {
        place: [of for of in left if place not in sides and _fits(of, values[place], kinds[place])]
        for place in open_ones
    }
    # Numbers beside a table's cells are their sums, and beside debits and credits they are
    # balances, so none of them is the one remaining field.
    amounts_known = guess or sides
    deducible = [at for at in open_ones if not (amounts_known and Kind.DOUBLE in kinds[at].sure)]
    chosen = _chosen(names, table, fitting, values, deducible)
    taken = {of.name for of in chosen.values()}
    free = [of for of in left if of.name not in taken]
    return {
        place: Offer(
            chosen.get(place),
            _alike(names[place], [of for of in fitting[place] if of.name not in taken]),
            _alike(names[place], [of for of in free if of.kind in kinds[place].maybe])
            if place not in sides
            else (),
        )
        for place in open_ones
    }


def sides_of(
    cells: DraftCells, numbers: Mapping[int, NumberSigns], typed: Collection[int]
) -> tuple[int, ...]:
    """The two number columns of which each row has exactly one, as debits and credits are written.

    Empty if there are no two such columns, or several pairs. `typed` have a field's own name.
    """
    open_ones = [at for at, of in numbers.items() if at not in typed and not of.maybe]
    rows = [
        {at for at in open_ones if _SOME.search(of_usual_width(row[at]))}
        for row in cells.shape.rows
    ]
    found = [
        pair
        for pair in combinations(open_ones, 2)
        if all(len(row & {*pair}) == 1 for row in rows) and {*pair} <= set().union(*rows)
    ]
    return found[0] if len(found) == 1 else ()


def side_lines(
    cells: DraftCells, numbers: Mapping[int, NumberSigns], sides: Sequence[int], field: str
) -> Iterator[str]:
    """The section of an amount made from two columns, of which each row has one."""
    yield f"# If the columns {cells.names(sides)} are one amount, it is instead:"
    yield f"# ? [fields.{field}]"
    if any(numbers[at].negative for at in sides):
        yield f"# ? sum = [{cells.names(sides)}]"
    else:
        yield "# ? sum = []  # the one that is added"
        yield "# ? minus = []  # the other one"
    yield '# ? filled = "one"'


def _fits(of: Field, cells: Collection[str], kinds: CellKinds) -> bool:
    if not cells and of.needs_value and of.kind in INTEGERS:
        return False
    return of.kind in kinds.sure and (
        Rule.EMAIL not in of.rules or all("@" in one for one in cells)
    )


def _chosen(
    names: Sequence[str],
    table: Table | None,
    fitting: Mapping[int, Sequence[Field]],
    values: Mapping[int, Sequence[str]],
    deducible: Collection[int],
) -> dict[int, Field]:
    """The likely field of each column, each field once: first the key, then by likeness of names.

    Columns in `deducible` may also be a field if it is the only one that fits.
    """
    rows = max(map(len, values.values()), default=0)
    pairs = [
        (-_likeness(names[place], of, values[place], table, rows), place, of.name, of)
        for place, fields in fitting.items()
        for of in (
            *_alike(names[place], fields),
            *(_keys(names[place], table, fields) if _are_many(values[place]) else ()),
            *_amounts(names[place], fields)[:1],
            *(_only_one(fields) if place in deducible else ()),
        )
    ]
    chosen: dict[int, Field] = {}
    for _, place, _, of in sorted(pairs, key=lambda pair: pair[:3]):
        if place not in chosen and of not in chosen.values():
            chosen[place] = of
    return chosen


def _likeness(name: str, of: Field, cells: Sequence[str], table: Table | None, rows: int) -> float:
    """How alike a column and a field are by name; a key, recognised by its cells, beats all others.

    A column named like an amount, with decimals and a value in every row, is an amount rather than
    a count.
    """
    if _keys(name, table, [of]) and cells and len({*cells}) == len(cells):
        words = {*map(str.casefold, _WORD.findall(name))}
        return 2 + (table is not None and table.name.partition("_")[0] in words)
    alike = SequenceMatcher(None, _bare(name), of.name.casefold()).ratio()
    if of.amount:
        first = _amounts(name, table.delivered if table else [of])[:1] == [of]
        alike += _CALLED_SO * first + any(map(_DECIMALS.search, cells)) / 2
        alike += len(cells) / max(rows, 1)
    return alike


def _keys(name: str, table: Table | None, fields: Sequence[Field]) -> list[Field]:
    """The record's key among the fields, if the column is named like a key."""
    words = [word.casefold() for word in _WORD.findall(name)]
    if table is None or not words or words[-1] not in KEY_WORDS:
        return []
    keys = [of for of in table.key if of != table.tenant]
    return [of for of in fields if keys == [of.name]]


def _are_many(cells: Sequence[str]) -> bool:
    """Whether most cells occur in one row only, as numbers of records do."""
    return len({*cells}) * 2 > len(cells) or not cells


def _amounts(name: str, fields: Sequence[Field]) -> list[Field]:
    """The amounts among the fields, if the column is named like an amount."""
    return [of for of in fields if of.amount and _AMOUNT.search(name)]


def _only_one(fields: Sequence[Field]) -> list[Field]:
    """The field, if only one is left that the column may be."""
    return [*fields] if len(fields) == 1 else []


def _fields(table: Table | None) -> dict[str, Field]:
    tables = [table] if table else EXTRACTS.values()
    return {field.name: field for one in tables for field in one.delivered}


def _left(table: Table | None, names: Iterable[str]) -> list[Field]:
    """The fields whose name no column has."""
    theirs = {*map(folded, names)}
    return [field for name, field in _fields(table).items() if name.casefold() not in theirs]


def column_lines(
    drafted: DraftCells,
    table: Table | None,
    offers: Mapping[int, Offer],
    guess: TableGuess | None,
    numbers: Mapping[int, NumberSigns],
) -> Iterator[str]:
    """The section of columns, and that of constants if the record kind is known."""
    shape = drafted.shape
    theirs = {folded(name) for name in shape.names}
    if not offers and not guess and "" not in theirs:
        return
    yield 'unknown_columns = "ignore"  # ? without it every column has to be mapped'
    if guess:
        yield from _table_lines(shape, guess)
    yield ""
    yield "[columns]"
    for place, offer in offers.items():
        cells = shape.column(place)
        such = f"such as {drafted.display(cells[0], 40)}" if cells else "always empty"
        if offer.field and offer.field.amount and may_count_cents(drafted.values(place)):
            such += f", with {CENTS}"
        elif not any(signs.negative for signs in numbers.values()) and may_be_flags(cells):
            such += "; where it is the sign of an amount, from of that joins both"
        elif may_be_units(cells):
            such += "; where an amount is for so many units, its per.column"
        yield _column(shape.names[place], offer, such)
    if guess:
        taken = {offer.field.name for offer in offers.values() if offer.field}
        left = [field for field in _left(table, shape.names) if field.name not in taken]
        texts, making = _of_texts([shape.names[place] for place in guess.places]), guess.places
        such = f"by unpivot: {shown(shape.names[making[0]], 40)}"
        yield _column(guess.name, _named(guess.name, left, texts), such)
        first = min(making, key=lambda place: not drafted.values(place))
        such = f"by unpivot: {drafted.display(drafted.values(first)[0], 40)}"
        yield _column(guess.value, _of_cells(guess, left), such)
    if table:
        yield ""
        yield "[constants]"
        yield from _constants(table, theirs)


def may_count_cents(cells: Sequence[str]) -> bool:
    """Whether cells are whole numbers, and not only zeros."""
    digits = [cell.strip("+-") for cell in cells]
    return all(map(str.isdigit, digits)) and any(map(_SOME.search, digits))


def may_be_flags(cells: Sequence[str]) -> bool:
    """Whether cells may mark which amounts beside them are debits."""
    distinct = {*map(str.casefold, cells)}
    # A single letter may mean anything.
    sure = len(distinct) > 1 or any(len(one) > 1 for one in distinct)
    return sure and any(distinct <= flags for flags in _FLAGS)


def may_be_units(cells: Sequence[str]) -> bool:
    """Whether cells may say how many units the amounts beside them are for."""
    distinct = {*cells}
    return len(distinct) > 1 and all(map(_POWER.fullmatch, distinct))


def _table_lines(shape: Shape, guess: TableGuess) -> Iterator[str]:
    names = first_of(guess.places, NAMED, lambda place: shown(shape.names[place], 20))
    yield ""
    yield f"# A guess, by what the columns {names} are called:"
    yield "# if each of their cells is a record of its own, it is"
    yield "# ? [unpivot]"
    yield f"# ? keep = [{', '.join(map(quoted, guess.keep))}]"
    yield f"# ? name = {quoted(guess.name)}"
    yield f"# ? value = {quoted(guess.value)}"
    yield from _part_lines(guess)
    if len(shape.delimiter) > 1:
        yield "#   not with a delimiter of several characters: ask for a file with one of one"
    if shape.escaped:
        yield "#   not with an escape, if that is one: ask for a file with doubled quotes"


def _part_lines(guess: TableGuess) -> Iterator[str]:
    """How column names contain a currency, and its number of units."""
    before, behind = (literal(text).replace(UNITS, _UNITS) for text in guess.around)
    if not before and not behind:
        return
    name = quoted(guess.name)
    yield f"#   the currency is of {name}, part = {unescaped(f'^{before}([A-Z]{{3}}){behind}$')}"
    if UNITS in guess.around[0]:
        units = f"^{before.replace(_UNITS, f'({_UNITS})', 1)}[A-Z]{{3}}{behind}$"
        per = f"per = {{ column = {name}, part = {unescaped(units)} }}"
        yield f"#   the amount is sum = [{quoted(guess.value)}], {per}"


def _named(name: str, left: Sequence[Field], kinds: CellKinds) -> Offer:
    """The fields that a column made by unpivot may be."""
    fitting = [of for of in left if of.kind in kinds.sure]
    likely = _alike(name, fitting) or _only_one(fitting)
    made = _alike(name, [of for of in left if of.kind in kinds.maybe])
    return Offer(next(iter(likely), None), likely[1:], made)


def _of_cells(guess: TableGuess, left: Sequence[Field]) -> Offer:
    """The fields that the cells, each of which makes a record, may be."""
    return _named(guess.value, left, CellKinds((Kind.DOUBLE,)))


def _column(name: str, offer: Offer, such: str) -> str:
    first = offer.field.name if offer.field else ""
    others, made = (", ".join(of.name for of in some) for some in (offer.others, offer.made))
    more = f"; or {others}" if others else ""
    by = "part, prefix, suffix" if any(of.kind in TIMES for of in offer.made) else "part"
    by_map = f"; by {by} or map {made}" if made else ""
    return f'# ? {quoted(name)} = "{first}"  # {such}{more}{by_map}'


def _constants(table: Table, theirs: set[str]) -> Iterator[str]:
    for field in table.delivered:
        if field.needs_value and field.name.casefold() not in theirs:
            yield f"# ? {field.name} = {_example(field)}  # required: of a column, or in all rows"


def _example(field: Field) -> str:
    if field.kind in INTEGERS:
        return "0"
    return '"0.00"' if field.kind is Kind.DOUBLE else '""'


def _alike(name: str, fields: Sequence[Field]) -> list[Field]:
    """The fields whose names resemble a column's."""
    names = {field.name.casefold(): field for field in fields}
    return [names[one] for one in get_close_matches(_bare(name), names, n=NAMED, cutoff=LIKE)]


def _bare(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.casefold())
