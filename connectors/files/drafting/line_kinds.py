"""Lines between the records of a text that are no records, and patterns that match them.

They are repeated headers, rules, rows without a cell, and lines with a common beginning that no
record has: the heading of a page or group, or a sum below it.

The heading of a group states values for the records below it. A value stands in the cell after the
one that names it (`Account;4711;Currency;EUR`), after a colon (`Account: 4711 Currency: EUR`), or
is the number after a name (`Customer  5001 Smith`).
"""

import re
from collections.abc import Collection, Iterable, MutableMapping, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from connectors.files.drafting.text_records import QUOTE
from connectors.files.layout.first_record import DELIMITERS, folded
from connectors.files.text.linear_patterns import as_series, fitting, literal
from schemas.own_columns import OWN_COLUMNS

SEVERAL = 2
"""From this many lines with a common beginning, they are of a kind."""
LONGEST = 1000
"""Most characters of a pattern that a person can still read."""
_HEAD = re.compile(rf"\W*[^\W\d_][^\d:={re.escape(''.join(DELIMITERS))}]*[:=]?")
"""The beginning of a line, up to its first digit, delimiter or colon."""
_MEANT_WITHIN = re.compile(r"[\\\[\]^&~-]")
"""Signs with a meaning within the brackets of a pattern."""
_DIGITS = re.compile(r"[0-9]+")
_AMOUNT = re.compile(r"[0-9][.,][0-9]")
"""Part of a number that may be longer, shorter or negative on another line."""
_END = re.compile(r"[\r\n]")
_OF_RULES = "-=_*~"


class LineKind(NamedTuple):
    """Lines that are no records and match one pattern."""

    pattern: str
    lines: int
    names: tuple[str, ...] = ()
    """Names of the pattern's groups with values for the records below such a line."""


def is_rule(line: str) -> bool:
    """Whether a line is a drawn rule and no text."""
    return not any(map(str.isalnum, line)) and any(sign * 3 in line for sign in _OF_RULES)


def line_kinds(
    header: str,
    above: Sequence[str],
    lines: Sequence[str],
    rows: Collection[str],
    names: Sequence[str],
    delimiter: str,
) -> tuple[LineKind, ...]:
    """The kinds of lines that a pattern matches without matching any of these rows.

    `above` are the lines over the header, `lines` all lines below it, and `names` are unavailable
    as names of groups.
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
    taken, spellings = {*map(folded, (*OWN_COLUMNS, *names))}, dict[str, dict[str, str]]()
    kinds = [LineKind(literal(header), again)] * bool(again)
    for head, of in heads.items():
        over = [line for line in above if _head(line) == head]
        if len(over) + len(of) < SEVERAL:
            continue
        found = [lines[at] for at in of]
        # Lines that begin below the first row and end below the last are sums.
        is_sum = not over and bool(places) and of[0] > places[0] and of[-1] > places[-1]
        # A name that one kind of lines uses is taken for others, except those with the same head.
        spelled = spellings.setdefault(folded(head), {})
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
    """A pattern of lines that consist of the same signs as these."""
    signs = _MEANT_WITHIN.sub(r"\\\g<0>", "".join(sorted({*"".join(lines)})))
    return f"[{signs}]+"


def _of_empty_cells(delimiter: str, blanks: str) -> str:
    """A pattern of lines whose cells are all empty; some may be quoted."""
    cell = f'{blanks}(?:"{blanks}")?{blanks}'
    return f"{cell}(?:{literal(delimiter)}{cell})+"


def _head(line: str) -> str:
    found = _HEAD.match(line)
    return found[0].rstrip() if found else ""


def _alike(head: str, lines: Sequence[str]) -> str:
    """A pattern of lines with one head that differ in whole numbers, or in all that follows it."""
    parts = {tuple(_DIGITS.split(line)) for line in lines}
    if len(parts) == 1 and not any(map(_AMOUNT.search, lines)):
        return r"\d+".join(map(literal, min(parts)))
    return f"{literal(head)}.*"


_WORD = re.compile(r"[^\W\d_]\w*")
_LABEL = re.compile(r"((?<!\w)[^\W\d_]\w*[:=])")
"""A word that names the value after it."""
_NUMBER = re.compile(r"\s+([0-9]+)(?![0-9.,/:-])")
_FIRST_PAGES = (0, 1, 2)


class Heading(NamedTuple):
    """Lines that state values for the records below them."""

    pattern: str
    names: tuple[str, ...]
    """Names of its groups."""


def heading(
    head: str,
    lines: Sequence[str],
    delimiter: str,
    taken: Collection[str],
    spelled: MutableMapping[str, str],
) -> Heading | None:
    """The values that lines with one head state; None if they cannot be recognised.

    `taken` are folded names that no group can have; `spelled` are names in lines with the same
    folded head, as they are spelled there.
    """
    if len(delimiter) > 1:
        return None
    groups = _Groups(taken, spelled)
    pattern = _of_cells(lines, delimiter, groups) or _of_number(head, lines, groups)
    if pattern is None or not fitting(as_series(lines), [pattern]).all():
        return None
    return Heading(pattern, tuple(groups.names))


class _Groups:
    """The groups of one pattern, each with its own name."""

    def __init__(self, taken: Collection[str], spelled: MutableMapping[str, str]) -> None:
        self.taken = {*taken}
        self.spelled = spelled
        self.names: list[str] = []

    def named(self, word: str, text: str) -> str:
        """A named group for the pattern `text`, or just `text` if the word cannot be a name."""
        if not (_WORD.fullmatch(word) and word.isidentifier()) or folded(word) in self.taken:
            return text
        self.taken.add(folded(word))
        word = self.spelled.setdefault(folded(word), word)
        self.names.append(word)
        return f"(?P<{word}>{text})"


def _of_cells(lines: Sequence[str], delimiter: str, groups: _Groups) -> str | None:
    parts, label, last = list[str](), "", 0
    any_sign = "." if not any(delimiter in line for line in lines) else f"[^{literal(delimiter)}]"
    for column in zip(*(line.split(delimiter) for line in lines), strict=False):
        before = len(groups.names)
        part, label = _cell({*column}, label, any_sign, groups)
        parts.append(part)
        last = len(parts) if len(groups.names) > before else last
    if not last:
        return None
    pattern = literal(delimiter).join(parts[:last])
    return pattern if pattern.endswith(".*)") else f"{pattern}.*"


def _cell(texts: Collection[str], label: str, any_sign: str, groups: _Groups) -> tuple[str, str]:
    """The pattern of one cell, and the word in it that may name the next cell."""
    quoted = [one.startswith(QUOTE) for one in texts]
    around = QUOTE if all(quoted) else f"{QUOTE}?" if any(quoted) else ""
    anything = f"[^{QUOTE}]*" if any(quoted) else f"{any_sign}*"
    bare = {one.strip(QUOTE) for one in texts}
    names = ""
    if label and any(map(str.strip, bare)):
        part = groups.named(label, anything)
    elif labelled := _labelled(bare, anything, groups):
        part = labelled
    elif len(bare) == 1:
        part = literal(min(bare))
        names = next(iter(_WORD.findall(min(bare))[-1:]), "")
    else:
        part = anything
    return f"{around}{part}{around}", names


def _labelled(texts: Iterable[str], anything: str, groups: _Groups) -> str | None:
    """The pattern of texts with the same words before colons and other values after them."""
    split = [_LABEL.split(text) for text in texts]
    (begin, *others), labels = {one[0] for one in split}, {tuple(one[1::2]) for one in split}
    values = [*zip(*(one[2::2] for one in split), strict=False)]
    if others or len(labels) > 1 or not any(map(str.strip, [*sum(values, ())])):
        return None
    found = literal(begin)
    ends = [*map(_last_words, values[:-1]), ""]
    if any(end and end.strip() in map(str.strip, of) for end, of in zip(ends, values, strict=True)):
        # It is unclear whether it belongs to the value of one label or to the name of the next.
        return None
    for label, end, (at, _) in zip(min(labels), ends, enumerate(values), strict=True):
        lazy = "?" if at < len(values) - 1 else ""
        value = groups.named(label[:-1], anything + lazy)
        found += f"{literal(label)} *{value}{' *' * bool(lazy)}{literal(end)}"
    return found


def _last_words(values: Iterable[str]) -> str:
    """The common last words of all values: they belong to the label that follows them."""
    ends = [re.findall(r"\S+\s*", value)[::-1] for value in values]
    alike = takewhile(
        lambda words: len({*words}) == 1 and words[0][:-1].isalpha(), zip(*ends, strict=False)
    )
    return "".join([words[0] for words in alike][::-1])


def _of_number(head: str, lines: Sequence[str], groups: _Groups) -> str | None:
    """The pattern of lines with a number after their head that is no page number."""
    read = [found for line in lines if (found := _NUMBER.match(line, len(head)))]
    numbers = [int(found[1]) for found in read]
    steps = {later - one for one, later in pairwise(numbers)}
    if len(read) < len(lines) or (numbers[0] in _FIRST_PAGES and steps <= {0, 1}):
        return None
    value = groups.named(head.rsplit(maxsplit=1)[-1], "[0-9]+")
    return rf"{literal(head)}\s+{value}.*" if groups.names else None
