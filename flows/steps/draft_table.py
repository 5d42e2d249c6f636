"""Whether columns of a file look like values of one field: a column for each currency or month.

Only the sender knows for certain, so the result is a guess, and presented as one.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from flows.steps.draft_times import DAYS
from schemas.cells.dates import date_form
from schemas.currency_codes import CODES

_FEWEST = 3
"""Fewest columns that make a file a table."""
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
"""Kinds of column names, tried in this order."""
_FORMS = [date_form(day) for day in DAYS]


UNITS = "\0"
"""Stands for a number that differs between names, as in `1 AUD` and `100 HUF`."""
_CODE = re.compile("(?=([A-Z]{3}))")
_NUMBER = re.compile("[0-9]+")


class TableGuess(NamedTuple):
    """Columns of which each cell may be a record of its own."""

    keep: tuple[str, ...]
    """Columns repeated in every record."""
    places: tuple[int, ...]
    """Places of the columns that become records."""
    name: str
    """Name for the new column with the name of the original column."""
    value: str
    """Name for the new column with the cell."""
    around: tuple[str, str] = ("", "")
    """Texts before and behind the currency code in all names, with `UNITS` for a number."""


def table_of(
    names: Sequence[str], numbers: Collection[int], empty: Collection[int]
) -> TableGuess | None:
    """The guess, if most columns have names of one kind and are numbers or empty; else None."""
    named = [place for place, name in enumerate(names) if name]
    of_cells = [at for at in named if at in (*numbers, *empty)]
    around = _around([names[at] for at in of_cells])
    for sort in ("Day", *_SORTS):
        places = [at for at in of_cells if _is_of(sort, names[at])]
        if sort == "Currency" and not places:
            places = [at for at in of_cells if _is_between(names[at], around)]
        keep = tuple(names[at] for at in named if at not in places)
        if keep and {*places} & {*numbers} and len(places) >= max(_FEWEST, (len(named) + 1) // 2):
            taken = {name.casefold() for name in keep}
            name, value = (
                f"{one} of the column" if one.casefold() in taken else one
                for one in (sort, "Value")
            )
            is_part = sort == "Currency" and not _is_of(sort, names[places[0]])
            return TableGuess(keep, tuple(places), name, value, around if is_part else ("", ""))
    return None


def _is_of(sort: str, name: str) -> bool:
    if sort == "Day":
        return any(not isinstance(form.wall(name), str) for form in _FORMS)
    return _SORTS[sort].fullmatch(name) is not None


def _around(names: Sequence[str]) -> tuple[str, str]:
    """The texts around the currency code in most names that have one."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name in names:
        for code in _CODE.finditer(name):
            if code[1] in CODES:
                around = name[: code.start()], name[code.start() + len(code[1]) :]
                before, behind = (_NUMBER.sub(UNITS, text) for text in around)
                found.setdefault((before, behind), []).append(around)
    if not found:
        return "", ""
    alike, written = max(found.items(), key=lambda one: len(one[1]))
    return written[0] if len({*written}) == 1 else alike


def _is_between(name: str, around: tuple[str, str]) -> bool:
    """Whether a name is three capital letters between these texts."""
    before, behind = (re.escape(text).replace(UNITS, "[0-9]+") for text in around)
    return around != ("", "") and re.fullmatch(f"{before}[A-Z]{{3}}{behind}", name) is not None
