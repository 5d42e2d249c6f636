"""The cells of a file as the lines of a draft show them, by the places of their columns."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from connectors.files.drafting.shape import Shape, numbered
from connectors.files.layout.first_record import folded
from connectors.printable import shown
from flows.steps.draft_numbers import Found
from flows.steps.draft_times import NOTHING
from schemas.cells.widths import of_usual_width
from schemas.counting import grouped, quantity
from schemas.field import Table
from schemas.reasons import NOT_SHOWN
from schemas.tables import SECRETS

_SECRETS = {*map(folded, SECRETS)}


@dataclass(frozen=True, slots=True)
class DraftCells:
    """How a draft refers to columns and their cells."""

    shape: Shape
    hidden: bool = False
    """Whether any cell may hold a secret, so that no cell is shown."""
    is_named: bool = True
    """Whether the names of the columns are shown."""

    @classmethod
    def of(cls, shape: Shape, table: Table | None) -> "DraftCells":
        """The cells of a file; for table None, the header alone tells whether there are secrets."""
        theirs = {*map(folded, shape.names)}
        if not (table and table.unquotable) and theirs.isdisjoint(_SECRETS):
            return cls(shape)
        # A first line that names no field may be a record.
        own = {folded(name) for name in table.columns} if table else _SECRETS
        if shape.headed and not theirs.isdisjoint(own):
            return cls(shape, hidden=True)
        return cls(replace(shape, names=numbered(len(shape.names))), hidden=True, is_named=False)

    def display(self, text: str, most: int) -> str:
        """A cell, a line or a part of one, as a draft may quote it."""
        return NOT_SHOWN if self.hidden else shown(text, most)

    def values(self, place: int) -> list[str]:
        """The cells of a column that have a value, as they are read with `width = "folded"`."""
        folded_cells = map(of_usual_width, self.shape.column(place))
        return [cell for cell in folded_cells if not NOTHING.fullmatch(cell)]

    def name(self, place: int) -> str:
        name = self.shape.names[place]
        return quoted(shown(name, 40)) if name else f"column {place + 1}"

    def names(self, places: Iterable[int]) -> str:
        return ", ".join(map(self.name, places))

    def such(self, found: Found) -> str:
        """A number of similar cells, and one of them as an example."""
        return f"{quantity(found.cells, 'cell', grouped)} such as {self.display(found.example, 20)}"

    def but(self, place: int, found: Found, one: str, several: str) -> str:
        """The line about cells of a column that are not written like the others."""
        cells = quantity(len(self.values(place)), "cell", grouped)
        is_none = f"is {one}" if found.cells == 1 else f"are {several}"
        return (
            f"# ? {self.name(place)}: {found.cells:,} of {cells} {is_none}, such as "
            f"{self.display(found.example, 40)}"
        )


def quoted(text: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def unescaped(pattern: str) -> str:
    """A pattern as TOML writes it, with as few escapes as possible."""
    return f"'{pattern}'" if "'" not in pattern and pattern.isprintable() else quoted(pattern)
