"""Whether the columns of a file look like values of one field: a column for each currency or month.

Nobody but who sends it knows, so what is found here is a guess, and is told as one.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from flows.steps.draft_times import DAYS
from schemas.cells.dates import date_form

_FEWEST = 3
"""Columns that make a table of a file."""
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_SORTS = {
    "Currency": re.compile(r"[A-Z]{3}"),
    "Month": re.compile(
        rf"(?:{_MONTHS})[a-z]*\W?(?:\d{{2}}|\d{{4}})?|(?:19|20)\d\d(?:[-/.]?(?:0[1-9]|1[0-2]))?"
        r"|(?:0[1-9]|1[0-2])[-/.](?:19|20)\d\d|Q[1-4]\W?(?:\d{2}|\d{4})?",
        re.IGNORECASE,
    ),
    "Code": re.compile(r"[A-Z]{0,3}[-.]?\d{2,}"),
}
"""What names are those of, in this order."""
_FORMS = [date_form(day) for day in DAYS]


class TableGuess(NamedTuple):
    """What may make a record each."""

    keep: tuple[str, ...]
    """Columns that would stand in each record."""
    places: tuple[int, ...]
    """The other columns."""
    name: str
    """What to call the column that says which of them a record is of."""
    value: str
    """What to call the column with its cell."""


def table_of(
    names: Sequence[str], numbers: Collection[int], empty: Collection[int]
) -> TableGuess | None:
    """What the columns may become, where most are called alike and hold numbers, or are empty."""
    named = [place for place, name in enumerate(names) if name]
    for sort in ("Day", *_SORTS):
        places = [at for at in named if at in (*numbers, *empty) and _is_of(sort, names[at])]
        keep = tuple(names[at] for at in named if at not in places)
        if keep and {*places} & {*numbers} and len(places) >= max(_FEWEST, (len(named) + 1) // 2):
            taken = {name.casefold() for name in keep}
            name, value = (
                f"{one} of the column" if one.casefold() in taken else one
                for one in (sort, "Value")
            )
            return TableGuess(keep, tuple(places), name, value)
    return None


def _is_of(sort: str, name: str) -> bool:
    if sort == "Day":
        return any(not isinstance(form.wall(name), str) for form in _FORMS)
    return _SORTS[sort].fullmatch(name) is not None
