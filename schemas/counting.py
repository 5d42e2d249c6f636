"""Numbers of things as a person writes them: `1 row`, `2 rows`, `1 batch`, `3 batches`."""

from collections.abc import Callable, Sequence
from typing import Any


def quantity(number: int, noun: str, spell: Callable[[int], str] = str) -> str:
    """A number and its noun, which is given in the singular and stays so for exactly one."""
    return f"{spell(number)} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of a regular noun, or of a phrase that ends in one: `kept file`, `open break`."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def agree(number: int, one: str, more: str) -> str:
    """The verb, or any other word, that agrees with the number."""
    return one if number == 1 else more


def first_of(
    several: Sequence[Any],
    most: int,
    spell: Callable[[Any], str] = str,
    *,
    by: str = ", ",
    end: str = " and",
) -> str:
    """The first of several, each spelled out, and the number of the rest: `a, b and 3 more`."""
    more = f"{end} {len(several) - most} more" if len(several) > most else ""
    return by.join(map(spell, several[:most])) + more


def grouped(number: int) -> str:
    """A number in groups of three with commas, for terminals and logs."""
    return f"{number:,}"
