"""Lines of a drafted profile about how times are written."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from flows.stages.draft.cells import DraftCells, quoted
from flows.steps.draft_joined import JoinedTime
from flows.steps.draft_months import WordedDays
from flows.steps.draft_numbers import Found
from flows.steps.draft_times import TimesFound, latest
from schemas.reasons import NOT_SHOWN

Times = Mapping[int, TimesFound]
"""How the columns of times are written, by their places."""


def time_lines(
    times: Times, worded: Mapping[int, WordedDays], joined: JoinedTime | None, cells: DraftCells
) -> Iterator[str]:
    """How all times are written, and of which columns nobody can tell."""
    zones = sorted({zone for of in times.values() for zone in of.zones})
    yield from _form_lines(times, cells, is_zoned=bool(zones))
    for place, of in times.items():
        if of.others:
            no_time = Found(of.others, of.example)
            yield cells.but(place, no_time, f"not {_forms(of)}", f"not {_forms(of)}")
        forms = [form for several in of.forms for form in several]
        yield from future_lines(place, forms, cells)
    yield from _month_lines(times, worded, cells)
    if zones:
        yield _zones(zones, cells)
    is_local = worded or any(not of.offsets for of in times.values())
    if is_local and not (joined and joined.zones):
        yield '# ? zone = "Europe/Berlin" or offset = "Z"  # what a time without offset means'


def _form_lines(times: Times, cells: DraftCells, *, is_zoned: bool) -> Iterator[str]:
    """The form of all times, stated only where a column tells it itself."""
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
        doubt = fits if len(agreed) > 1 else "of most cells" if others else ""
        why = f"  # {doubt or 'no column tells it alone'}" if doubt or not known else ""
        mark = "# ? " if why or is_zoned else ""
        yield f"{mark}date_format = {' or '.join(map(_stated, agreed))}{why}"
    by_others = f"; only {cells.names(known)} says which" if known else ""
    for place, of in times.items():
        if of.forms != agreed:
            found = cells.values(place)
            such = cells.such(Found(len(found) - of.others, found[0]))
            yield f"# ? {cells.name(place)}: {_forms(of)} in {such}{by_others}"


def future_lines(place: int, forms: Iterable[str], cells: DraftCells) -> Iterator[str]:
    """What two digits of a year would make of a column whose times may be of the last century."""
    short = [form for form in forms if "%y" in form]
    if found := latest(short, cells.values(place)):
        cell, form, day = found
        if day > datetime.now(UTC).date():
            such = f"{cells.name(place)}: {cells.shown(cell, 40)}"
            yield (
                f"# ? {such} is in {day.year} by {quoted(form)}; "
                "where that is wrong, years need four digits"
            )


def _month_lines(
    times: Collection[int], worded: Mapping[int, WordedDays], cells: DraftCells
) -> Iterator[str]:
    """What is asked of months in another language; their order is that of no file."""
    for place, of in worded.items():
        if place not in times:
            such = f"{cells.name(place)}, such as {cells.shown(cells.shape.column(place)[0], 40)}"
            forms = NOT_SHOWN if cells.hidden else " or ".join(map(quoted, of.forms))
            yield f"# ? date_format = {forms}  # of {such}"
    if worded:
        found = dict.fromkeys(name for of in worded.values() for name in of.names)
        named = ", ".join(dict.fromkeys(cells.shown(name, 20) for name in found))
        yield f"# ? months = []  # all twelve, from January on, as in the file: here {named}"


def joined_lines(joined: JoinedTime, field: str, cells: DraftCells) -> Iterator[str]:
    """The section of a field that may be made of several columns."""
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
    """A form as a profile states it, or several of which each cell has one."""
    listed = ", ".join(map(quoted, forms))
    return listed if len(forms) == 1 else f"[{listed}]"
