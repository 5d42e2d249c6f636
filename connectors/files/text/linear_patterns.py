"""The patterns that a feed profile states: what they fit, and what their groups hold.

All of them are read by one engine, that of polars: no pattern makes it try again and again, so that
its time grows with the text and nothing else. It has no look-around and no references to a group;
a pattern that asks for one is refused when the profile is read.
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
"""What the groups hold that have a name; None: it took no part."""
_NO_GROUPS: Groups = {}
_STANDS_FOR = {0xDC00 + byte: 0xF700 + byte for byte in range(128, 256)}
"""A byte that is no text, by its lone surrogate: polars has a sign for private use instead."""
_IS_BYTE = {sign: surrogate for surrogate, sign in _STANDS_FOR.items()}
_MEANT = re.compile(r"[\\.+*?()|\[\]{}^$]")
"""Signs that mean something in a pattern."""
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
"""By what the engine says of a pattern: what to write instead."""


def literal(text: str) -> str:
    """A pattern that fits just this text."""
    return _MEANT.sub(r"\\\g<0>", text)


def group_names(patterns: Sequence[str]) -> tuple[str, ...]:
    """The groups of patterns that have a name, in their order."""
    names = dict.fromkeys(chain.from_iterable(map(_groups, patterns)))
    return tuple(name for name in names if not name.isdigit())


def check_pattern(key: str, pattern: str) -> int:
    """How many groups a pattern has; raises ProfileError for one that the engine does not read."""
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
    """Which of these texts one of the patterns fits, as a whole."""
    none = pl.Series([False]).new_from_index(0, len(texts))
    return reduce(or_, (texts.str.contains(_whole(one)) for one in patterns), none)


def groups_of(texts: Sequence[str], patterns: Sequence[str]) -> list[Groups | None]:
    """By text: the groups of the first pattern that fits all of it; None: none does.

    In texts and groups a byte that is no text is a lone surrogate.
    """
    found: list[Groups | None] = [None] * len(texts)
    if not texts:
        return found
    asked = as_series(texts)
    plain = asked.to_list()
    for pattern in reversed(patterns):
        fit = asked.str.contains(_whole(pattern)).arg_true()
        names = group_names([pattern])
        if not names:  # As most lines of a printed list: rules, sums, the header anew.
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
    """Texts for these patterns, of which a byte that is no text is a lone surrogate."""
    try:
        return pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError:  # polars has no surrogates.
        return pl.Series([one.translate(_STANDS_FOR) for one in texts], dtype=pl.String)


def decoded(line: bytes, encoding: str) -> str:
    """A line as text, of which a byte that is no text is a lone surrogate."""
    return line.decode(encoding, "surrogateescape")
