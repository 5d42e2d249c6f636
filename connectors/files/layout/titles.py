"""Titles above several columns, as merged cells are saved: each in the first of its columns."""

from collections.abc import Sequence
from itertools import zip_longest

from connectors.files.text.content import refused
from connectors.printable import shown
from schemas.counting import first_of

SPREAD, KEPT = "spread", "kept"
"""How far a title extends: up to the next one, or only above its own column."""
_NAMED = 5
"""How many columns a refusal names."""


def with_titles(columns: Sequence[Sequence[str]], stated: int | str) -> list[tuple[str, ...]]:
    """The names of columns from top to bottom, each with the titles above it.

    A title ends where a cell of its row, or of one above, has a text of its own, or after `stated`
    columns. A column without a name below has no title.
    """
    found: list[tuple[str, ...]] = []
    most = stated if isinstance(stated, int) else len(columns)
    titles = [("", 0)] * max(map(len, columns), default=0)
    for place, column in enumerate(columns):
        begun = next((at for at, cell in enumerate(column) if cell), len(column))
        titles[begun:] = [(cell, place) for cell in column[begun:]]
        last = max((at for at, cell in enumerate(column) if cell), default=0)
        above = (title if place - first < most else "" for title, first in titles[:last])
        found.append((*above, *column[last:]))
    return found


def check_titles(extract: str, line: int, rows: Sequence[Sequence[str]]) -> None:
    """Refuse a header whose last title would spread over more columns than any other.

    Nothing shows where that title ends. Raises ExtractRefused: untitled_columns.
    """
    columns = [*zip_longest(*rows, fillvalue="")]
    for row in range(len(rows) - 1):
        below = [any(column[row + 1 :]) for column in columns]
        width = max((place for place, named in enumerate(below, 1) if named), default=0)
        begun = [place for place in range(width) if any(columns[place][: row + 1])]
        ends = [*begun[1:], width]
        spans = [
            (end - place, place)
            for place, end in zip(begun, ends, strict=False)
            if columns[place][row] and below[place]
        ]
        if not spans or not spans[:-1]:
            continue
        (last, place), usual = spans[-1], max(spans[:-1])[0]
        if last > usual and place + last == width:
            beyond = [" ".join(filter(None, one)) for one in columns[place + usual : width]]
            raise refused(
                "untitled_columns",
                extract,
                line=line,
                title=repr(shown(columns[place][row], 60)),
                columns=first_of([shown(name, 60) for name in beyond if name], _NAMED, repr),
            )
