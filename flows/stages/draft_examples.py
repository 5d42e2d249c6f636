"""Lines of a drafted profile about keys whose values are examples."""

import re
from collections.abc import Iterator, Mapping

from connectors.files.content import shown
from flows.stages.draft_shape import quoted
from flows.steps.draft import Found
from schemas.counting import grouped, quantity

FEW = 10
"""An example of fewer than one in so many cells may be a mistake."""
_NO_SIGN = re.compile(r"[^A-Za-z\u00a2-\u00a5\u0e3f\u20a0-\u20cf$]")
"""What is no sign and no letter of a currency."""


def example_lines(key: str, found: Mapping[str, Found], usual: str = "") -> Iterator[str]:
    """The key with the examples that were found; those of few cells may be mistakes."""
    total = sum(count for count, _ in found.values())
    stated = [one for one, (count, _) in found.items() if count * FEW >= total]
    stated.sort(key=lambda one: one != usual)
    if stated and stated != [usual]:
        yield f"{key} = [{', '.join(map(quoted, stated))}]"
    for one, (count, example) in found.items():
        if one not in stated:
            yield (
                f"# ? {key}: {quoted(one)} too?  # {count:,} of {total:,} cells with any, such "
                f"as {shown(example, 20)}"
            )


def currency_lines(found: Mapping[str, Found]) -> Iterator[str]:
    """The key with the currencies that were found; of several, which a row has would be lost."""
    if len({_NO_SIGN.sub("", one) for one in found}) < 2:
        yield from example_lines("currency", found)
        return
    yield f"# ? currency = [{', '.join(map(quoted, found))}]  # only if a column says which it is"
    for one, (count, example) in found.items():
        cells = quantity(count, "cell", grouped)
        yield f"#   {quoted(one)}: {cells}, such as {shown(example, 20)}"
