"""The patterns of a feed profile: what they match and what their groups hold.

All of them are run by one engine, that of polars, which never backtracks, so its time grows only
with the length of the text. It has no look-around and no backreferences; a pattern that uses one is
refused when the profile is read.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from itertools import chain
from operator import or_

import polars as pl

from connectors.errors import ProfileError
from connectors.printable import shown

Groups = Mapping[str, str | None]
"""Texts of the named groups; None for a group that took no part."""
_NO_GROUPS: Groups = {}
_STANDS_FOR = {0xDC00 + byte: 0xF700 + byte for byte in range(128, 256)}
"""Bytes that are no text, by lone surrogate -> a private-use character that polars can hold."""
_IS_BYTE = {sign: surrogate for surrogate, sign in _STANDS_FOR.items()}
_MEANT = re.compile(r"[\\.+*?()|\[\]{}^$]")
"""Signs with a meaning in patterns."""
_INSTEAD = {
    "look-around": "Say what stands there, such as [^;]* for all up to a semicolon; several "
    "patterns, or (one|other), for several kinds of text.",
    "backreferences": "Write again what stands there; a sign by its number is \\x41.",
    "unrecognized flag": "Of groups with a question mark there are (?:...), (?P<Name>...) and "
    "flags: (?i), (?s), (?x).",
    "unrecognized escape": "The end of a text is \\z; letters that mean themselves have no "
    "backslash.",
    "valid decimal": "Write numbers in the braces, {0,3}, or \\{ for the sign.",
    "missing expression": "Write a backslash before *, +, ? and { that are signs of the text.",
    "size limit": "Repeat less often, or smaller classes: [0-9] for \\d, [A-Za-z0-9_] for \\w.",
}
"""Advice on what to write instead, by a part of the engine's error."""


def literal(text: str) -> str:
    """A pattern that matches exactly this text."""
    return _MEANT.sub(r"\\\g<0>", text)


def group_names(patterns: Sequence[str]) -> tuple[str, ...]:
    """The named groups of the patterns, in their order."""
    names = dict.fromkeys(chain.from_iterable(map(_groups, patterns)))
    return tuple(name for name in names if not name.isdigit())


def check_pattern(key: str, pattern: str) -> int:
    """The number of a pattern's groups; raises ProfileError if the engine cannot read it."""
    try:
        groups = _groups(pattern)
        _groups(_whole(pattern))
    except pl.exceptions.PolarsError as error:
        why = str(error).rstrip().splitlines()[-1].removeprefix("error: ").rstrip(".")
        if "size limit" in why:
            why = "it is too large"
        instead = next((advice for sign, advice in _INSTEAD.items() if sign in str(error)), "")
        raise ProfileError(
            f"{key}: '{shown(pattern)}' is no pattern: {shown(why)}. {instead}".rstrip()
        ) from None
    return len(groups)


@cache
def _groups(pattern: str) -> tuple[str, ...]:
    return tuple(pl.select(pl.lit("").str.extract_groups(pattern)).item())


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def fitting(texts: pl.Series, patterns: Sequence[str]) -> pl.Series:
    """Which of these texts one of the patterns matches as a whole."""
    none = pl.Series([False]).new_from_index(0, len(texts))
    return reduce(or_, (texts.str.contains(_whole(one)) for one in patterns), none)


def groups_of(texts: Sequence[str], patterns: Sequence[str]) -> list[Groups | None]:
    """By text: the groups of the first pattern that matches all of it; None if none does.

    In texts and groups, a byte that is no text is a lone surrogate.
    """
    found: list[Groups | None] = [None] * len(texts)
    if not texts:
        return found
    asked = as_series(texts)
    plain = asked.to_list()
    for pattern in reversed(patterns):
        fit = asked.str.contains(_whole(pattern)).arg_true()
        names = group_names([pattern])
        if not names:  # Typical of most lines of a printed list: rules, sums, repeated headers.
            for at in fit.to_list():
                found[at] = _NO_GROUPS
            continue
        held = asked.gather(fit).str.extract_groups(_whole(pattern))
        for at, groups in zip(fit.to_list(), held.to_list(), strict=True):
            own = {name: groups[name] for name in names}
            if plain[at] != texts[at]:
                own = {name: text and text.translate(_IS_BYTE) for name, text in own.items()}
            found[at] = own
    return found


def as_series(texts: Sequence[str]) -> pl.Series:
    """Texts for these patterns, in which a byte that is no text is a lone surrogate."""
    try:
        return pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError:  # polars cannot hold surrogates.
        return pl.Series([one.translate(_STANDS_FOR) for one in texts], dtype=pl.String)


def decoded(line: bytes, encoding: str) -> str:
    """A line as text, in which a byte that is no text becomes a lone surrogate."""
    return line.decode(encoding, "surrogateescape")
