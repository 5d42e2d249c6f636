"""How much is tried: a fixed slice of every suite, or everything with `pytest --long`.

`tests/conftest.py` calls `choose` before any test is read.
"""

import pytest
from _pytest.mark import ParameterSet

FEWEST, SHARE = 10, 10
SHARES = 4
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
    """All of so many in the long run; elsewhere a few, which are a tenth, but 10."""
    return full if ALL else max(FEWEST, full // SHARE) if few is None else few


def in_long(*values: object) -> ParameterSet:
    """A case for the long run."""
    return pytest.param(*values, marks=pytest.mark.long)


def check_kept(items: list[pytest.Item]) -> None:
    """Every case that `long(but=...)` keeps is one of its test; raises UsageError."""
    cases: dict[str, set[str]] = {}
    kept: dict[str, set[str]] = {}
    for one in items:
        marker = one.get_closest_marker("long")
        if isinstance(one, pytest.Function) and marker is not None and marker.kwargs:
            test = one.nodeid.partition("[")[0]
            cases.setdefault(test, set()).add(one.callspec.id)
            kept[test] = set(marker.kwargs["but"])
    for test, names in kept.items():
        if unknown := names - cases[test]:
            raise pytest.UsageError(f"{test}: long(but=...) names no case of it: {unknown}")


def shares(name: str) -> list[ParameterSet]:
    """The shares (which, of how many) of a test that takes minutes, each for any process.

    The first one has the name; outside the long run there is no other.
    """
    of = SHARES if ALL and not ONLY else 1
    named = (name if not one else f"{name}, share {one + 1} of {of}" for one in range(of))
    return [pytest.param((one, of), id=name) for one, name in enumerate(named)]


def seeds(few: int, full: int) -> range | tuple[int, ...]:
    """The seeds of a soup: so many, or those asked for."""
    return ONLY or range(1, 1 + (full if ALL else few))
