"""With which bytes a line may begin that fits a pattern: by these most records are told apart.

Asking `re` for each line costs several times what reading a record does.
"""

import re
from collections.abc import Sequence
from functools import cache, reduce

import numpy as np

from connectors.files.bitmask import Bytes, Flags, Places

_FIRST = 6
"""So many bytes are looked at."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_REPEATED = re.compile(r"(?:[*+?]|\{(?=[\d,])(\d*)(,\d*)?\})[?+]?")
_MEANT = re.compile(r"[()|^$*+?{]|\\[0-9a-zA-Z]")
"""Tokens that are no sign of a line, or whose sign is not told by them alone."""
_CLASSES = re.compile(r"\\[dDsSwW]")
_Item = tuple[Flags, bool]
"""Which bytes a sign may begin with; and whether there is just one, or any number, or none."""


def may_fit(text: Bytes, start: Places, end: Places, patterns: Sequence[str]) -> Flags:
    """Which of these lines may fit one of the patterns; of the others none does.

    What is behind a byte that is no ASCII is not looked at: it may be of the same character.
    """
    fits = np.zeros(len(start), np.bool_)
    for pattern in patterns:
        table = _allowed(pattern)
        open_ = np.flatnonzero(~fits)
        fits[open_] = True
        for at in range(_FIRST):
            open_ = open_[end[open_] - start[open_] > at]
            signs = text[start[open_] + at]
            allowed = table[at][signs]
            fits[open_[~allowed]] = False
            open_ = open_[allowed & (signs < 128)]
    return fits


@cache
def _allowed(pattern: str) -> Flags:
    """By place and byte: whether a line that fits may have it there."""
    items, known = _items(pattern)
    table, at = np.zeros((_FIRST, 256), np.bool_), {0}
    for place in table:
        reached = reduce(lambda all_, one: all_ | _next(items, one), at, set[int]())
        if len(items) in reached and not known:
            place[:] = True
        signs = [items[one][0] for one in reached - {len(items)}]
        place[:] |= np.any(signs, axis=0) if signs else False
        at = {after for one in reached for after in _behind(items, one)}
    return table


def _next(items: Sequence[_Item], at: int) -> set[int]:
    """The items that may be the next one from a place on."""
    reached = {at}
    while at < len(items) and items[at][1]:
        at += 1
        reached.add(at)
    return reached


def _behind(items: Sequence[_Item], at: int) -> set[int]:
    """Where a line is behind a sign of an item; at the end whatever follows stays so."""
    if at == len(items):
        return {at}
    return {at, at + 1} if items[at][1] else {at + 1}


def _items(pattern: str) -> tuple[list[_Item], bool]:
    """What a pattern begins with, and whether it is all of it."""
    tokens, items, at = _TOKEN.findall(pattern), list[_Item](), 0
    if "|" in tokens:  # One that stands for several.
        return [], False
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        assert found is not None
        token = found[0]
        if _MEANT.fullmatch(token) and not _CLASSES.fullmatch(token):
            return items, False
        signs = re.compile(token)
        allowed = np.array([n > 127 or bool(signs.fullmatch(chr(n))) for n in range(256)])
        at = found.end()
        repeated = _REPEATED.match(pattern, at)
        least, more = 1, False
        if repeated:
            least = int(repeated[1] or 0) if repeated[0][0] == "{" else int(repeated[0][0] == "+")
            more = repeated[0][0] != "{" or repeated[2] is not None
            at = repeated.end()
        items += [(allowed, False)] * min(least, _FIRST) + [(allowed, True)] * more
    return items, True
