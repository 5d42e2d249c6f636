"""The cells of a file as the lines of a draft show them, by the places of their columns."""

from collections.abc import Iterable
from dataclasses import dataclass

from connectors.files.content import shown
from connectors.files.shape import Shape
from flows.stages.draft_shape import quoted
from flows.steps.draft_numbers import Found
from flows.steps.draft_times import NOTHING
from schemas.counting import grouped, quantity


@dataclass(frozen=True, slots=True)
class DraftCells:
    """What a draft says of columns and their cells."""

    shape: Shape

    def told(self, place: int) -> list[str]:
        """The cells of a column that say something."""
        return [cell for cell in self.shape.column(place) if not NOTHING.fullmatch(cell)]

    def name(self, place: int) -> str:
        return quoted(shown(self.shape.names[place], 40))

    def names(self, places: Iterable[int]) -> str:
        return ", ".join(map(self.name, places))

    def such(self, found: Found) -> str:
        """Cells that are alike: how many, and one of them."""
        return f"{quantity(found.cells, 'cell', grouped)} such as {shown(found.example, 20)}"

    def but(self, place: int, found: Found, one: str, several: str) -> str:
        """What is said of the cells of a column that are not written as the others are."""
        cells = quantity(len(self.told(place)), "cell", grouped)
        is_none = f"is {one}" if found.cells == 1 else f"are {several}"
        return (
            f"# ? {self.name(place)}: {found.cells:,} of {cells} {is_none}, such as "
            f"{shown(found.example, 40)}"
        )
