"""How much is tried: a fixed slice of every suite, or everything with `pytest --long`.

`tests/conftest.py` calls `choose` before any test is read.
"""

import pytest
from _pytest.mark import ParameterSet

FEWEST, SHARE = 20, 10
ALL = False
"""Whether this is the long run; import it where a test is read, not where one is set up."""
ONLY: tuple[int, ...] = ()
"""Of soups these seeds, of cuts these messages; empty for what the run has."""


def choose(*, everything: bool, only: str) -> None:
    global ALL, ONLY
    ALL, ONLY = everything, tuple(map(int, filter(None, only.split(","))))


def in_long_run(item: pytest.Item) -> bool:
    """Whether the gate leaves a test out: it is marked `long`, or `long(but=...)` other cases."""
    marker = item.get_closest_marker("long")
    if marker is None:
        return False
    case = item.callspec.id if isinstance(item, pytest.Function) and marker.kwargs else None
    return case not in marker.kwargs.get("but", ())


def examples(full: int, few: int | None = None) -> int:
    """All of so many in the long run; elsewhere a few, which are a tenth, but 20."""
    return full if ALL else max(FEWEST, full // SHARE) if few is None else few


def in_long(*values: object) -> ParameterSet:
    """A case for the long run."""
    return pytest.param(*values, marks=pytest.mark.long)


def mostly_long(cases: "list[str] | tuple[str, ...]", *kept: str) -> list[ParameterSet]:
    """These cases, of which only those that are named are in every run."""
    assert set(kept) <= set(cases), set(kept) - set(cases)
    return [pytest.param(one) if one in kept else in_long(one) for one in cases]


def seeds(few: int, full: int) -> range | tuple[int, ...]:
    """The seeds of a soup: so many, or those asked for."""
    return ONLY or range(1, 1 + (full if ALL else few))
