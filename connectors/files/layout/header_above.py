"""Comparing a header above the records with the order of columns that the feed profile states."""

import csv
from collections.abc import Callable, Sequence
from contextlib import suppress

from connectors.errors import ExtractRefused
from connectors.files.layout.first_record import folded
from connectors.files.text.content import refused
from connectors.files.text.dialect import Dialect
from connectors.printable import shown

_NEAREST = 3
"""How many lines with text are looked at: names may have units below them."""


def check_above(
    extract: str,
    above: Sequence[bytes],
    stated: Sequence[str],
    cells_of: Callable[[bytes], Sequence[str]],
    dialect: Dialect,
) -> None:
    """Refuse a file whose own header contradicts the columns that the profile states.

    `above` are the lines above the first record. Raises ExtractRefused: reordered_columns.
    """
    texts = [number for number, line in enumerate(above, 1) if line.strip()]
    for number in reversed(texts[-_NEAREST:]):
        line = above[number - 1]
        signs = next(filter(line.startswith, dialect.comment), b"")
        with suppress(csv.Error):
            names = cells_of(line.removeprefix(signs))
            if not _is_header(names, stated):
                continue
            if refusal := _refusal(extract, number, names, stated):
                raise refusal
            return


def _is_header(names: Sequence[str], stated: Sequence[str]) -> bool:
    """Whether most of a line's texts, and at least two, are names of columns.

    In a line of labels that each precede a value, at most half are.
    """
    filled = {*map(folded, names)} - {""}
    known = filled & {*map(folded, stated)}
    return len(known) > 1 and 2 * len(known) > len(filled)


def _refusal(
    extract: str, number: int, names: Sequence[str], stated: Sequence[str]
) -> ExtractRefused | None:
    here, places = [*map(folded, names)], {folded(name): at for at, name in enumerate(stated)}
    for place, name in enumerate(here):
        # A name that occurs twice may be in its stated place as well.
        if name in places and here[(of := places[name]) : of + 1] != [name]:
            called = f"{shown(stated[of], 60)!r}"
            detail = (
                f"its column {place + 1} is {called}, which the feed profile has as column {of + 1}"
            )
            return refused("reordered_columns", extract, line=number, detail=detail)
    return None
