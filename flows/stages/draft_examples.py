"""Lines of a drafted profile about keys whose values are examples."""

import re
from collections.abc import Collection, Iterator, Mapping

from flows.stages.draft_cells import DraftCells, quoted
from flows.steps.draft_numbers import Found
from schemas.cells.numbers import BLANKS
from schemas.counting import grouped, quantity

FEW = 10
"""An example of fewer than one in so many cells may be a mistake."""
_NO_SIGN = re.compile(f"[1.{BLANKS}]")
"""What two examples of one sign of a currency may differ in."""


def example_lines(
    key: str, found: Mapping[str, Found], cells: DraftCells, usual: Collection[str] = ()
) -> Iterator[str]:
    """The key with the examples that were found; those of few cells may be mistakes.

    Where all that is stated is `usual`, it goes without saying.
    """
    total = sum(count for count, _ in found.values())
    stated = [one for one, (count, _) in found.items() if count * FEW >= total]
    stated.sort(key=lambda one: one not in usual)
    differs = not {*stated} <= {*usual}
    if differs:
        yield f"{key} = [{', '.join(map(quoted, stated))}]"
    for one, (count, example) in found.items():
        if one not in stated and (differs or one not in usual):
            yield (
                f"# ? {key}: {quoted(one)} too?  # {count:,} of {total:,} cells with any, such "
                f"as {cells.shown(example, 20)}"
            )


def currency_lines(
    found: Mapping[str, Found],
    maybe: Mapping[str, Found],
    without: Mapping[int, Found],
    cells: DraftCells,
) -> Iterator[str]:
    """The key with the currencies that were found, and with what may be one.

    `without` are the numbers beside none, of columns where others have one.
    """
    yield from _known_currencies(found, without, cells)
    for sign, such in maybe.items():
        one = quoted(cells.shown(sign, 20))
        stated = f"currency: {one} too?" if found else f"currency = [{one}]"
        told = f"if it is one, {cells.such(such)}; of other texts, part takes the number"
        yield f"# ? {stated}  # {told}"


def _known_currencies(
    found: Mapping[str, Found], without: Mapping[int, Found], cells: DraftCells
) -> Iterator[str]:
    """The key with its examples; of several currencies, which a row has would be lost."""
    if len({_NO_SIGN.sub("", one) for one in found}) > 1:
        why = "only if a column says which it is"
    elif any(one.replace(".1", "1") in found for one in found if ".1" in one):
        why = "not both: is the point before the 1 of the number, or of the sign?"
    elif without:
        why = "only if the numbers without one are of this currency too"
    else:
        yield from example_lines("currency", found, cells)
        return
    yield f"# ? currency = [{', '.join(map(quoted, found))}]  # {why}"
    for one, (count, example) in found.items():
        so_many = quantity(count, "cell", grouped)
        yield f"#   {quoted(one)}: {so_many}, such as {cells.shown(example, 20)}"
    for place, none in without.items():
        so_many = quantity(none.cells, "cell", grouped)
        such = cells.shown(none.example, 20)
        yield f"#   {cells.name(place)}: {so_many} without one, such as {such}"
