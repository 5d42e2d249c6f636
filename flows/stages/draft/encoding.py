"""The encoding of a text, as the draft of a profile states it."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from connectors.files.text.content import byte_order_mark, unmarked_utf16
from flows.stages.draft.cells import DraftCells
from flows.steps.draft_encodings import FOREIGN, LOOKED_AT, decodes, likely_encodings
from schemas.counting import agree, grouped, quantity

UTF_8 = "utf-8"


class Mixed(NamedTuple):
    """The lines beyond ASCII of a text of which some are UTF-8 and some are not."""

    good: bytes
    """The end of the first line that is UTF-8."""
    broken: bytes
    """The end of the first line that is not."""
    place: int
    """The number of that line."""
    lines: int
    """How many lines go beyond ASCII."""
    are_broken: int
    """How many of those are not UTF-8."""


class EncodingFound(NamedTuple):
    """The encodings that a text may have."""

    encoding: str
    """The encoding used for the draft."""
    others: tuple[str, ...] = ()
    """Other possible encodings."""
    line: bytes = b""
    """The end of the first line that tells; empty if the encoding goes without saying."""
    is_wide: bool = False
    """Whether it looks like UTF-16 without a byte-order mark."""
    mixed: Mixed | None = None

    def lines(self, cells: DraftCells) -> Iterator[str]:
        first, mixed = self.encoding, self.mixed
        if self.is_wide:
            yield f'encoding = "{first}"  # ? It looks like it, and no byte-order mark says so.'
        if mixed and first == UTF_8:
            are = agree(mixed.are_broken, "is", "are")
            such = f"{mixed.are_broken:,} of {quantity(mixed.lines, 'line', grouped)}"
            where = f"{'the first ' if mixed.are_broken > 1 else ''}line {mixed.place:,}"
            yield f'# ? encoding = "{first}"  # {such} beyond ASCII {are} not, {where}'
            yield f"#   in it: {_display(mixed.good, first, cells)}"
        elif self.line:
            display = _display(self.line, first, cells)
            mark, asked = ("# ? ", "") if self.others else ("", "? ")
            yield f'{mark}encoding = "{first}"  # {asked}It is not UTF-8. Is this right: {display}'
        for other in self.others:
            yield f'#   or "{other}": {_display(self.line, other, cells)}'
        if mixed and first != UTF_8:
            good = mixed.lines - mixed.are_broken
            such = f"{good:,} of {quantity(mixed.lines, 'line', grouped)} beyond ASCII"
            are = agree(good, "is", "are")
            display = _display(mixed.good, UTF_8, cells)
            yield f"# ? {such} {are} UTF-8 all the same: {display}"


def encoding_of(head: bytes) -> EncodingFound:
    """The encoding of a text that begins with these bytes."""
    _, marked = byte_order_mark(head)
    if marked:
        return EncodingFound(marked)
    if wide := unmarked_utf16(head):
        return EncodingFound(wide, is_wide=True)
    lines = head[: head.rfind(b"\n") + 1 or None]
    try:
        lines.decode()
    except UnicodeDecodeError:
        mixed = _mixed(lines)
        if mixed and mixed.are_broken * 2 < mixed.lines:
            others = likely_encodings(mixed.broken)
            return EncodingFound(UTF_8, tuple(others), mixed.broken, mixed=mixed)
        found = likely_encodings(lines)
        return EncodingFound(found[0], tuple(found[1:]), _telling(lines, found), mixed=mixed)
    return EncodingFound(UTF_8)


def _telling(text: bytes, encodings: Sequence[str]) -> bytes:
    """The end of the first non-UTF-8 line whose text differs most among these encodings."""
    lines = [line for line in text.splitlines() if not decodes(line, UTF_8)][:LOOKED_AT]
    ends = (
        line[: run.end() + 10]
        for line in lines
        for run in islice(FOREIGN.finditer(line), LOOKED_AT)
    )
    return max(ends, key=lambda end: len({_ending(end, one) for one in encodings}))


def _mixed(text: bytes) -> Mixed | None:
    """What the lines say one by one; None if no line beyond ASCII is UTF-8."""
    lines = [(place, line) for place, line in enumerate(text.split(b"\n"), 1) if not line.isascii()]
    good = [line for _, line in lines if decodes(line, UTF_8)]
    if not good:
        return None
    place, broken = next(one for one in lines if not decodes(one[1], UTF_8))
    return Mixed(_end(good[0]), _end(broken), place, len(lines), len(lines) - len(good))


def _end(line: bytes) -> bytes:
    """A line up to a few bytes after its first non-ASCII characters."""
    found = FOREIGN.search(line)
    return line[: found.end() + 10] if found else line


def _display(line: bytes, encoding: str, cells: DraftCells) -> str:
    return cells.display(_ending(line, encoding), 60)


def _ending(line: bytes, encoding: str) -> str:
    return line.decode(encoding, "ignore")[-20:]
