"""Lines between the records of a text that are none, and the patterns that tell them.

A header that is printed anew, rules, and lines that begin alike as no record does: the heading of a
page, of a group, a sum below it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from connectors.files.first_record import DELIMITERS, folded
from connectors.files.linear_patterns import as_series, fitting

SEVERAL = 2
"""Lines that begin alike, from which on they are of a kind."""
LONGEST = 1000
"""Signs of a pattern that somebody may read."""
_HEAD = re.compile(rf"\W*[^\W\d_][^\d:={re.escape(''.join(DELIMITERS))}]*[:=]?")
"""What a line begins with, up to its first digit, its first sign between cells, or a colon."""
_WORD = re.compile(r"[^\W\d_]\w*")
_MEANT = re.compile(r"[\\.+*?()|\[\]{}^$]")
_MEANT_WITHIN = re.compile(r"[\\\[\]^&~-]")
"""Signs that mean something in a pattern, and within brackets."""
_DIGITS = re.compile(r"[0-9]+")
_OF_RULES = "-=_*~"


class LineKind(NamedTuple):
    """Lines that are no records, by one pattern."""

    pattern: str
    lines: int
    name: str = ""
    """Of the group of the pattern that has what stands behind the head; empty: it has none."""


def is_rule(line: str) -> bool:
    """Whether a line is drawn and not written."""
    return not any(map(str.isalnum, line)) and any(sign * 3 in line for sign in _OF_RULES)


def line_kinds(
    header: str,
    above: Sequence[str],
    lines: Sequence[str],
    rows: Sequence[str],
    names: Sequence[str],
    delimiter: str,
) -> tuple[LineKind, ...]:
    """The kinds of these lines that a pattern tells, which no row fits.

    `above` are the lines over the header, and `names` what no group can be called.
    """
    rules, heads = list[str](), dict[str, list[str]]()
    again = lines.count(header)
    for line in lines:
        if is_rule(line):
            rules.append(line)
        elif line != header and (head := _HEAD.match(line)):
            heads.setdefault(head[0].rstrip(), []).append(line)
    over = [head[0].rstrip() for head in map(_HEAD.match, above) if head]
    signs = _MEANT_WITHIN.sub(r"\\\g<0>", "".join(sorted({*"".join(rules)})))
    taken = {*map(folded, names)}
    kinds = [LineKind(_literal(header), again)] * bool(again)
    for begin, of in heads.items():
        if len(of) + over.count(begin) >= SEVERAL:
            kinds.append(_kind(begin, of, delimiter, taken))
            taken.add(folded(kinds[-1].name))
    kinds += [LineKind(f"[{signs}]+", len(rules))] * bool(rules)
    records = as_series(rows)
    return tuple(
        one
        for one in kinds
        if len(one.pattern) <= LONGEST and not fitting(records, [one.pattern]).any()
    )


def _kind(head: str, lines: Sequence[str], delimiter: str, taken: set[str]) -> LineKind:
    """A kind of lines with one head, of which no name is taken that a group has."""
    word = _WORD.findall(head)[-1]
    named = word.isascii() and folded(word) not in taken and len(delimiter) == 1
    if head[-1] in ":=" and named:
        return LineKind(rf"{_literal(head)} *(?P<{word}>.*)", len(lines), word)
    behind = {line[len(head) :] for line in lines}
    if named and all(one.startswith(delimiter) for one in behind):
        sign = _literal(delimiter)
        pattern = rf"{_literal(head)}{sign}(?P<{word}>[^{sign}]*).*"
        return LineKind(pattern, len(lines), word)
    parts = {tuple(_DIGITS.split(one)) for one in lines}
    alike = r"\d+".join(map(_literal, min(parts))) if len(parts) == 1 else f"{_literal(head)}.*"
    return LineKind(alike, len(lines))


def _literal(text: str) -> str:
    """A pattern that fits just this text."""
    return _MEANT.sub(r"\\\g<0>", text)
