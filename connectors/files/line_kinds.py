"""Lines between the records of a text that are none, and the patterns that tell them.

A header that is printed anew, rules, rows without a cell, and lines that begin alike as no record
does: the heading of a page, of a group, a sum below it.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from connectors.files.first_record import DELIMITERS, folded
from connectors.files.headings import Heading, heading
from connectors.files.linear_patterns import as_series, fitting, literal
from schemas.own_columns import OWN_COLUMNS

SEVERAL = 2
"""Lines that begin alike, from which on they are of a kind."""
LONGEST = 1000
"""Signs of a pattern that somebody may read."""
_HEAD = re.compile(rf"\W*[^\W\d_][^\d:={re.escape(''.join(DELIMITERS))}]*[:=]?")
"""What a line begins with, up to its first digit, its first sign between cells, or a colon."""
_MEANT_WITHIN = re.compile(r"[\\\[\]^&~-]")
"""Signs that mean something within the brackets of a pattern."""
_DIGITS = re.compile(r"[0-9]+")
_AMOUNT = re.compile(r"[0-9][.,][0-9]")
"""What is within a number that may be shorter, longer or below zero on another line."""
_END = re.compile(r"[\r\n]")
_OF_RULES = "-=_*~"


class LineKind(NamedTuple):
    """Lines that are no records, by one pattern."""

    pattern: str
    lines: int
    names: tuple[str, ...] = ()
    """Of the groups of the pattern that have what such a line says of the records below it."""


def is_rule(line: str) -> bool:
    """Whether a line is drawn and not written."""
    return not any(map(str.isalnum, line)) and any(sign * 3 in line for sign in _OF_RULES)


def line_kinds(
    header: str,
    above: Sequence[str],
    lines: Sequence[str],
    rows: Collection[str],
    names: Sequence[str],
    delimiter: str,
) -> tuple[LineKind, ...]:
    """The kinds of lines that a pattern tells, which none of these rows fits.

    `above` are the lines over the header, `lines` all below it, and `names` what no group can be
    called.
    """
    rules, blank, heads = list[str](), list[str](), dict[str, list[int]]()
    places = [at for at, line in enumerate(lines) if line in rows]
    others = [at for at, line in enumerate(lines) if line not in rows and not _END.search(line)]
    again = sum(lines[at] == header for at in others)
    with_blanks = _of_empty_cells(delimiter, "[ \\t]*")
    is_empty = fitting(as_series([lines[at] for at in others]), [with_blanks])
    quoted = {at for at, fits in zip(others, is_empty, strict=True) if fits and '"' in lines[at]}
    for at in others:
        if at in quoted:
            continue
        if lines[at].strip() and not lines[at].strip(f"{delimiter} \t"):
            blank.append(lines[at])
        elif is_rule(lines[at]):
            rules.append(lines[at])
        elif lines[at] != header and (head := _head(lines[at])):
            heads.setdefault(head, []).append(at)
    taken, said = {*map(folded, (*OWN_COLUMNS, *names))}, dict[str, dict[str, str]]()
    kinds = [LineKind(literal(header), again)] * bool(again)
    for head, of in heads.items():
        over = [line for line in above if _head(line) == head]
        if len(over) + len(of) < SEVERAL:
            continue
        found = [lines[at] for at in of]
        # What is first below a row, and last above none, is a sum.
        is_sum = not over and bool(places) and of[0] > places[0] and of[-1] > places[-1]
        # What one kind of lines says no other one says, but one with the same head.
        spelled = said.setdefault(folded(head), {})
        by_others = taken - spelled.keys()
        says = None if is_sum else heading(head, [*over, *found], delimiter, by_others, spelled)
        taken.update(spelled)
        pattern, groups = says or Heading(_alike(head, found), ())
        kinds.append(LineKind(pattern, len(found), groups))
    kinds += [LineKind(_of_signs(alike), len(alike)) for alike in (rules, blank) if alike]
    if quoted:
        signs = {*"".join(lines[at] for at in quoted)} - {'"', delimiter}
        empty = with_blanks if signs else _of_empty_cells(delimiter, "")
        kinds.append(LineKind(empty, len(quoted)))
    records = as_series([*rows])
    return tuple(
        one
        for one in kinds
        if len(one.pattern) <= LONGEST
        and "\0" not in one.pattern
        and not fitting(records, [one.pattern]).any()
    )


def _of_signs(lines: Sequence[str]) -> str:
    """A pattern of lines that have no other signs than these."""
    signs = _MEANT_WITHIN.sub(r"\\\g<0>", "".join(sorted({*"".join(lines)})))
    return f"[{signs}]+"


def _of_empty_cells(delimiter: str, blanks: str) -> str:
    """A pattern of lines with nothing in any of their cells, some of which may be in quotes."""
    cell = f'{blanks}(?:"{blanks}")?{blanks}'
    return f"{cell}(?:{literal(delimiter)}{cell})+"


def _head(line: str) -> str:
    found = _HEAD.match(line)
    return found[0].rstrip() if found else ""


def _alike(head: str, lines: Sequence[str]) -> str:
    """A pattern of lines with one head: whole numbers in it differ, or all that is behind it."""
    parts = {tuple(_DIGITS.split(line)) for line in lines}
    if len(parts) == 1 and not any(map(_AMOUNT.search, lines)):
        return r"\d+".join(map(literal, min(parts)))
    return f"{literal(head)}.*"
