"""What keys of a feed profile may be, whatever they are about: texts, numbers, one of a few.

Whatever cannot be meant is refused with a ProfileError that names the key and what is allowed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from connectors.errors import ProfileError
from connectors.printable import shown
from schemas.reasons import NOT_SHOWN
from schemas.tables import SECRETS
from schemas.toml_text import suggestion

Reader = Callable[[str, Any], Any]
"""From a key, as messages name it, and its value to what the profile holds."""


def known(
    shown_key: str,
    key: str,
    readers: Mapping[str, tuple[str, Reader]],
    also: Mapping[str, Any] | None = None,
) -> tuple[str, Reader]:
    """The Profile field a key fills and its reader; a key nobody knows is refused."""
    allowed = (*readers, *(also or {}))
    if key not in readers:
        raise ProfileError(f"{shown(shown_key)} is not a key. {suggestion(key, allowed)}")
    return readers[key]


def choice(key: str, value: str, allowed: tuple[str, ...], what: str) -> str:
    """The value, when it is one of those allowed."""
    if value not in allowed:
        raise ProfileError(
            f"{key} names {shown(value)!r}, not {what}. {suggestion(value, allowed)}"
        )
    return value


def typed(key: str, value: object, kind: type, what: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        said = NOT_SHOWN if _is_of_secret(key) else repr(shown(str(value)))
        raise ProfileError(f"{key} = {said} is not {what}.")
    return value


def _is_of_secret(key: str) -> bool:
    """Whether a key, in whatever letters, is about a field whose values are never shown."""
    return not {*map(str.casefold, SECRETS)}.isdisjoint(key.casefold().split("."))


def text_of(key: str, value: object) -> str:
    text: str = typed(key, value, str, "a text in quotes")
    return text


def texts_of(key: str, value: object, such_as: str) -> list[str]:
    return [
        text_of(key, one) for one in typed(key, value, list, f"a list of texts such as {such_as}")
    ]


def as_section(key: str, value: object) -> dict[str, Any]:
    """What a section of the file holds."""
    held: dict[str, Any] = typed(key, value, dict, f"a section; write [{key}]")
    return held


def one_of(*allowed: str) -> Reader:
    return lambda key, value: choice(key, text_of(key, value), allowed, "an allowed value")


def whole(least: int, most: int) -> Reader:
    def read(key: str, value: object) -> int:
        number: int = typed(key, value, int, "a whole number")
        if not least <= number <= most:
            raise ProfileError(f"{key} = {number} is out of range. Use {least} to {most}.")
        return number

    return read


def flag(key: str, value: object) -> bool:
    flag: bool = typed(key, value, bool, "true or false")
    return flag
