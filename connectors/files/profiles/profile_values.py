"""Readers for general kinds of values in a feed profile: texts, numbers, one of a few.

Values that make no sense are refused with a ProfileError that names the key and what is allowed.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from connectors.errors import ProfileError
from connectors.printable import shown
from schemas.reasons import NOT_SHOWN
from schemas.tables import SECRETS
from schemas.toml_text import suggestion

Reader = Callable[[str, Any], Any]
"""Turns a key, as messages name it, and its value into what the profile holds."""
T = TypeVar("T")


def known(at: str, key: str, readers: Mapping[str, T], also: Collection[str] = ()) -> T:
    """The reader of a key; an unknown key is refused, with suggestions that include `also`."""
    if key not in readers:
        raise ProfileError(f"{shown(at)} is not a key. {suggestion(key, (*readers, *also))}")
    return readers[key]


def read_keys(
    section: str, value: object, readers: Mapping[str, Reader], also: Collection[str] = ()
) -> dict[str, Any]:
    """The values of all keys in a section."""
    found = {}
    for key, one in as_section(section, value).items():
        at = f"{section}.{key}"
        found[key] = known(at, key, readers, also)(at, one)
    return found


def choice(key: str, value: str, allowed: tuple[str, ...], what: str) -> str:
    """The value, if it is one of those allowed."""
    if value not in allowed:
        raise ProfileError(
            f"{key} names {shown(value)!r}, not {what}. {suggestion(value, allowed)}"
        )
    return value


def typed(key: str, value: object, kind: type[T], what: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        text = NOT_SHOWN if _is_of_secret(key) else as_written(value)
        raise ProfileError(f"{key} = {text} is not {what}.")
    return value


def as_written(value: object) -> str:
    """A value for a message: a text in quotes, and nothing else."""
    text = shown(str(value))
    if isinstance(value, bool):
        return text.lower()
    return repr(text) if isinstance(value, str) else text


def _is_of_secret(key: str) -> bool:
    """Whether a key, in any case, is about a field whose values are never shown."""
    return not {*map(str.casefold, SECRETS)}.isdisjoint(key.casefold().split("."))


def text_of(key: str, value: object) -> str:
    return typed(key, value, str, "a text in quotes")


def texts_of(key: str, value: object, such_as: str) -> list[str]:
    return [
        text_of(key, one) for one in typed(key, value, list, f"a list of texts such as {such_as}")
    ]


def as_section(key: str, value: object) -> dict[str, Any]:
    return typed(key, value, dict, f"a section; write [{key}]")


def one_of(*allowed: str) -> Reader:
    return lambda key, value: choice(key, text_of(key, value), allowed, "an allowed value")


def whole(least: int, most: int) -> Reader:
    def read(key: str, value: object) -> int:
        number = typed(key, value, int, "a whole number")
        if not least <= number <= most:
            raise ProfileError(f"{key} = {number} is out of range. Use {least} to {most}.")
        return number

    return read


def flag(key: str, value: object) -> bool:
    return typed(key, value, bool, "true or false")
