"""Lines of a drafted profile about how numbers and times are written."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from flows.stages.draft.cells import DraftCells, quoted
from flows.steps.draft_joined import JoinedTime
from flows.steps.draft_months import WordedDays
from flows.steps.draft_numbers import Between, Found, NumberSigns
from flows.steps.draft_times import TimesFound, latest
from schemas.cells.numbers import BLANKS, NEGATIVE, POSITIVE
from schemas.counting import grouped, quantity
from schemas.reasons import NOT_SHOWN

_FEW = 10
"""An example in fewer than one in this many cells may be a mistake."""
_RECENT = 10
"""The last time in a file is expected within this number of years."""
_OF_BUDDHA = 2400
_NO_SIGN = re.compile(f"[1.{BLANKS}]")
"""What two examples of the same currency sign may differ in."""
Columns = Mapping[int, NumberSigns]
"""The signs of the columns of numbers, by their places."""
Times = Mapping[int, TimesFound]
"""The forms of the columns of times, by their places."""


def number_lines(columns: Columns, cells: DraftCells) -> Iterator[str]:
    """Lines about how all numbers are written, and about columns that do not tell."""
    signs = NumberSigns.of(columns.values())
    several = max(len(signs.decimal), len(signs.thousands)) > 1
    if several or signs.decimal & signs.thousands:
        yield from _differing(columns, cells)
    else:
        yield from _between(signs)
        yield from _either(columns, cells)
    yield from _example_lines("negative", signs.negative, cells, NEGATIVE)
    yield from _example_lines("positive", signs.positive, cells, POSITIVE)
    without = {
        place: of.no_currency
        for place, of in columns.items()
        if of.currency and of.no_currency.cells
    }
    yield from _currency_lines(signs.currency, signs.maybe_currency, without, cells)
    for place, of in columns.items():
        for one, found in of.words.items():
            around = f"{cells.display(one, 20)} of {cells.name(place)}, {cells.such(found)}"
            yield f"# ? positive, negative or part: what stands around the 1 in {around}"
    yield from _percent_lines(columns, cells)
    for place, of in columns.items():
        if of.others.cells:
            yield cells.but(place, of.others, "no number", "no numbers")


def _between(signs: NumberSigns) -> Iterator[str]:
    """The separators between digits, of columns that tell them by themselves."""
    if signs.decimal == {","} or (not signs.decimal and signs.thousands == {"."}):
        yield 'decimal = ","'
    if signs.thousands:
        yield f"thousands = {quoted(min(signs.thousands))}"
        if "lakh" in signs.groups:
            mark = "# ? " if len(signs.groups) > 1 else ""
            yield f"{mark}groups = {' or '.join(map(quoted, sorted(signs.groups)))}"


def _either(columns: Columns, cells: DraftCells) -> Iterator[str]:
    """Signs that may be either separator, if no other cell of their column tells which.

    How another column is written is no evidence, least of all if nobody imports that column.
    """
    signs = NumberSigns.of(columns.values())
    alone = sorted({sign for of in columns.values() for sign in of.unsure})
    if alone and not signs.decimal | signs.thousands:
        for sign in alone:
            yield f"# ? decimal or thousands = {quoted(sign)}  # one or the other in 1{sign}234"
        return
    for place, of in columns.items():
        for sign in sorted(of.unsure):
            others = [at for at, one in columns.items() if one.decimal or sign in one.thousands]
            by_others = f"; only {cells.names(others)} says which" if others else ""
            such = cells.such(of.between[Between(either=sign)])
            yield (
                f"# ? {cells.name(place)}: {quoted(sign)} is decimal or thousands in {such}"
                f"{by_others}"
            )
    thousands = {sign for of in columns.values() if of.decimal for sign in of.either - of.decimal}
    for sign in sorted(thousands - signs.thousands):
        yield f"# ? thousands = {quoted(sign)}"


def _percent_lines(columns: Columns, cells: DraftCells) -> Iterator[str]:
    """The question about columns with percent signs; unanswered, their numbers are rejected."""
    percents = {place: of for place, of in columns.items() if of.percent.cells}
    where = "" if len(percents) == len(columns) else "; in [fields.NAME], as others have none"
    for place, of in percents.items():
        such = f"{cells.name(place)}, such as {cells.display(of.percent.example, 20)}"
        yield f'# ? percent = "share" or "points"  # {such}: 5 % is 0.05, or it is 5{where}'
        if of.no_percent.cells:
            without = "without a percent sign"
            yield cells.but(place, of.no_percent, without, without)


def _differing(columns: Columns, cells: DraftCells) -> Iterator[str]:
    """How the numbers of columns are written, if columns do not agree."""
    alone = all(
        max(len(of.decimal), len(of.thousands)) <= 1 and not of.decimal & of.thousands
        for of in columns.values()
    )
    what = "columns differ in them, see [fields.NAME]" if alone else "cells differ in them"
    yield f"# ? decimal and thousands: {what}"
    for place, of in columns.items():
        if signs := [found for between, found in of.between.items() if between != Between()]:
            yield f"#   {cells.name(place)}: {'; '.join(map(cells.such, signs))}"


def _example_lines(
    key: str, found: Mapping[str, Found], cells: DraftCells, usual: Collection[str] = ()
) -> Iterator[str]:
    """The key with the examples found; an example in few cells may be a mistake.

    If only `usual` examples would be stated, the key is left out.
    """
    total = sum(count for count, _ in found.values())
    stated = [one for one, (count, _) in found.items() if count * _FEW >= total]
    stated.sort(key=lambda one: one not in usual)
    differs = not {*stated} <= {*usual}
    if differs:
        yield f"{key} = [{', '.join(map(quoted, stated))}]"
    for one, (count, example) in found.items():
        if one not in stated and (differs or one not in usual):
            yield (
                f"# ? {key}: {quoted(one)} too?  # {count:,} of {total:,} cells with any, such "
                f"as {cells.display(example, 20)}"
            )


def _currency_lines(
    found: Mapping[str, Found],
    maybe: Mapping[str, Found],
    without: Mapping[int, Found],
    cells: DraftCells,
) -> Iterator[str]:
    """The key with the currencies found, and with texts that may be currencies.

    `without` are numbers without a currency, in columns where others have one.
    """
    yield from _known_currencies(found, without, cells)
    for sign, such in maybe.items():
        one = quoted(cells.display(sign, 20))
        stated = f"currency: {one} too?" if found else f"currency = [{one}]"
        what = f"if it is one, {cells.such(such)}; of other texts, part takes the number"
        yield f"# ? {stated}  # {what}"


def _known_currencies(
    found: Mapping[str, Found], without: Mapping[int, Found], cells: DraftCells
) -> Iterator[str]:
    """The key with its examples; a question if there are several, as a row's own would be lost."""
    if len({_NO_SIGN.sub("", one) for one in found}) > 1:
        why = "only if a column says which it is"
    elif any(one.replace(".1", "1") in found for one in found if ".1" in one):
        why = "not both: is the point before the 1 of the number, or of the sign?"
    elif without:
        why = "only if the numbers without one are of this currency too"
    else:
        yield from _example_lines("currency", found, cells)
        return
    yield f"# ? currency = [{', '.join(map(quoted, found))}]  # {why}"
    for one, (count, example) in found.items():
        so_many = quantity(count, "cell", grouped)
        yield f"#   {quoted(one)}: {so_many}, such as {cells.display(example, 20)}"
    for place, none in without.items():
        so_many = quantity(none.cells, "cell", grouped)
        such = cells.display(none.example, 20)
        yield f"#   {cells.name(place)}: {so_many} without one, such as {such}"


def time_lines(
    times: Times, worded: Mapping[int, WordedDays], joined: JoinedTime | None, cells: DraftCells
) -> Iterator[str]:
    """Lines about how all times are written, and about columns that do not tell."""
    zones = sorted({zone for of in times.values() for zone in of.zones})
    yield from _form_lines(times, cells, is_zoned=bool(zones))
    for place, of in times.items():
        if of.others:
            no_time = Found(of.others, of.example)
            yield cells.but(place, no_time, f"not {_forms(of)}", f"not {_forms(of)}")
        forms = [form for several in of.forms for form in several]
        yield from year_lines(place, forms, cells)
    yield from _month_lines(times, worded, cells)
    if zones:
        yield _zones(zones, cells)
    is_local = worded or any(not of.offsets for of in times.values())
    if is_local and not (joined and joined.zones):
        yield '# ? zone = "Europe/Berlin" or offset = "Z"  # what a time without offset means'


def _form_lines(times: Times, cells: DraftCells, *, is_zoned: bool) -> Iterator[str]:
    """The form of all times, stated only if a column tells it by itself."""
    written = {of.forms for of in times.values()}
    agreed = tuple(form for form in min(written, default=()) if all(form in one for one in written))
    if len(written) > 1 and not agreed:
        yield "# ? date_format: columns differ in it, see [fields.NAME]"
        for place, of in times.items():
            yield f"#   {cells.name(place)}: {_forms(of)}"
        return
    known = [place for place, of in times.items() if of.forms == agreed]
    if agreed:
        others = any(of.others for of in times.values())
        fits = "each fits as many cells" if others else "each fits every row"
        caveat = fits if len(agreed) > 1 else "of most cells" if others else ""
        why = f"  # {caveat or 'no column tells it alone'}" if caveat or not known else ""
        mark = "# ? " if why or is_zoned else ""
        yield f"{mark}date_format = {' or '.join(map(_stated, agreed))}{why}"
    by_others = f"; only {cells.names(known)} says which" if known else ""
    for place, of in times.items():
        if of.forms != agreed:
            found = cells.values(place)
            such = cells.such(Found(len(found) - of.others, found[0]))
            yield f"# ? {cells.name(place)}: {_forms(of)} in {such}{by_others}"


def year_lines(place: int, forms: Iterable[str], cells: DraftCells) -> Iterator[str]:
    """Questions about a column whose times may be of another century or calendar."""
    of_forms = [*forms]
    short = [form for form in of_forms if "%y" in form]
    if found := latest(short, cells.values(place)):
        cell, form, day = found
        such = f"{cells.name(place)}: {cells.display(cell, 40)} is in {day.year} by {quoted(form)}"
        today = datetime.now(UTC).date()
        if day > today:
            yield f"# ? {such}; where that is wrong, years need four digits, or year_zero"
        elif day.year < today.year - _RECENT:
            yield f"# ? {such}, and no other is later; where it is the year of an era, year_zero"
    long = [form for form in of_forms if "%Y" in form]
    if (found := latest(long, cells.values(place))) and found[2].year >= _OF_BUDDHA:
        cell, form, day = found
        such = f"{cells.name(place)}: {cells.display(cell, 40)} is in {day.year} by {quoted(form)}"
        yield f"# ? year_zero = -543  # {such}; in Thailand it is in {day.year - 543}"


def _month_lines(
    times: Collection[int], worded: Mapping[int, WordedDays], cells: DraftCells
) -> Iterator[str]:
    """Questions about months of another language, whose order a file does not tell."""
    for place, of in worded.items():
        if place not in times:
            such = f"{cells.name(place)}, such as {cells.display(cells.shape.column(place)[0], 40)}"
            forms = NOT_SHOWN if cells.hidden else " or ".join(map(quoted, of.forms))
            yield f"# ? date_format = {forms}  # of {such}"
    if worded:
        found = dict.fromkeys(name for of in worded.values() for name in of.names)
        named = ", ".join(dict.fromkeys(cells.display(name, 20) for name in found))
        yield f"# ? months = []  # all twelve, from January on, as in the file: here {named}"


def joined_lines(joined: JoinedTime, field: str, cells: DraftCells) -> Iterator[str]:
    """The section of a field that may be made from several columns."""
    names = cells.names(joined.places)
    yield f"# If the columns {names} are one time, it is instead:"
    yield f"# ? [fields.{field}]"
    yield f"# ? from = [{names}]"
    yield '# ? join = " "'
    yield f"# ? date_format = {' or '.join(map(quoted, joined.forms))}"
    if joined.zones:
        yield _zones(joined.zones, cells)


def _zones(zones: Iterable[str], cells: DraftCells) -> str:
    named = NOT_SHOWN if cells.hidden else ", ".join(f'{zone} = ""' for zone in zones)
    return f'# ? zones = {{ {named} }}  # what each means: "+01:00", or "Europe/Berlin"'


def _forms(of: TimesFound) -> str:
    return " or ".join(map(_stated, of.forms)) if of.forms else "of ISO 8601"


def _stated(forms: Sequence[str]) -> str:
    """A form as a profile states it, or several, of which each cell has one."""
    listed = ", ".join(map(quoted, forms))
    return listed if len(forms) == 1 else f"[{listed}]"
