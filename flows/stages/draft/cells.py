"""The cells of a file as the lines of a draft show them, by the places of their columns."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from connectors.files.drafting.shape import Shape, numbered
from connectors.files.layout.first_record import folded
from connectors.printable import shown
from flows.steps.draft_numbers import Found
from flows.steps.draft_times import NOTHING
from schemas.counting import grouped, quantity
from schemas.field import Table
from schemas.reasons import NOT_SHOWN
from schemas.tables import SECRETS

_SECRETS = {*map(folded, SECRETS)}


@dataclass(frozen=True, slots=True)
class DraftCells:
    """What a draft says of columns and their cells."""

    shape: Shape
    hidden: bool = False
    """Whether any of them may hold a secret, so that none is shown."""
    is_named: bool = True
    """Whether the names of its columns are shown."""

    @classmethod
    def of(cls, shape: Shape, table: Table | None) -> "DraftCells":
        """Of a file of a record kind; None: its header alone tells what is in it."""
        theirs = {*map(folded, shape.names)}
        if not (table and table.unquotable) and theirs.isdisjoint(_SECRETS):
            return cls(shape)
        # A line without the name of any field may be a record.
        own = {folded(name) for name in table.columns} if table else _SECRETS
        if shape.headed and not theirs.isdisjoint(own):
            return cls(shape, hidden=True)
        return cls(replace(shape, names=numbered(len(shape.names))), hidden=True, is_named=False)

    def display(self, text: str, most: int) -> str:
        """A cell, a line or a part of one, as everything of them that a draft quotes is shown."""
        return NOT_SHOWN if self.hidden else shown(text, most)

    def values(self, place: int) -> list[str]:
        """The cells of a column that say something."""
        return [cell for cell in self.shape.column(place) if not NOTHING.fullmatch(cell)]

    def name(self, place: int) -> str:
        name = self.shape.names[place]
        return quoted(shown(name, 40)) if name else f"column {place + 1}"

    def names(self, places: Iterable[int]) -> str:
        return ", ".join(map(self.name, places))

    def such(self, found: Found) -> str:
        """Cells that are alike: how many, and one of them."""
        return f"{quantity(found.cells, 'cell', grouped)} such as {self.display(found.example, 20)}"

    def but(self, place: int, found: Found, one: str, several: str) -> str:
        """What is said of the cells of a column that are not written as the others are."""
        cells = quantity(len(self.values(place)), "cell", grouped)
        is_none = f"is {one}" if found.cells == 1 else f"are {several}"
        return (
            f"# ? {self.name(place)}: {found.cells:,} of {cells} {is_none}, such as "
            f"{self.display(found.example, 40)}"
        )


def quoted(text: str) -> str:
    """A text as TOML has it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def unescaped(pattern: str) -> str:
    """A pattern as TOML has it, without escapes as far as it can be."""
    return f"'{pattern}'" if "'" not in pattern and pattern.isprintable() else quoted(pattern)
