"""Lines of a drafted profile about texts that stand for no value."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from flows.stages.draft_cells import DraftCells, quoted
from flows.steps.draft_times import NOTHING
from schemas.counting import grouped, quantity


def nothing_lines(places: Collection[int], cells: DraftCells) -> Iterator[str]:
    """What stands in numbers and times where there is none, unless texts are written so too."""
    nothing = _counted(places, cells)
    if not nothing:
        return
    so_many = quantity(nothing.total(), "cell", grouped)
    texts = _in_texts(nothing, places, cells)
    told = f"such texts are in {so_many} of numbers and times{',' if texts else ''}"
    yield f"# ? null = [{_listed(['', *nothing])}]  # {told}"
    for place, found in texts.items():
        count = quantity(found.total(), "cell", grouped)
        yield f"#   and in {count} of {cells.name(place)}, which this would empty: {_listed(found)}"
    if texts:
        yield "#   where that is wrong, the sections below say it of single fields instead"


def nothing_sections(
    places: Collection[int], names: Mapping[int, str], cells: DraftCells
) -> Iterator[str]:
    """Sections of numbers and times with such texts, where other columns may have them as texts.

    `names` are the fields of columns that are called like one.
    """
    if not _in_texts(_counted(places, cells), places, cells):
        return
    for place in sorted(places):
        if found := _counted([place], cells):
            of = "" if place in names else f"  # of {cells.name(place)}"
            yield ""
            yield f"# ? [fields.{names.get(place, 'NAME')}]{of}"
            yield f"# ? null = [{_listed(['', *found])}]"


def _counted(places: Iterable[int], cells: DraftCells) -> Counter[str]:
    each = (cell for place in sorted(places) for cell in cells.shape.column(place))
    return Counter(cell for cell in each if NOTHING.fullmatch(cell))


def _in_texts(
    nothing: Collection[str], places: Collection[int], cells: DraftCells
) -> dict[int, Counter[str]]:
    """How often other columns have these words, by their places."""
    others = (place for place in range(len(cells.shape.names)) if place not in places)
    found = {
        place: Counter(cell for cell in cells.shape.column(place) if cell in nothing)
        for place in others
    }
    return {place: words for place, words in found.items() if words}


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(quoted, sorted(words)))
