"""The encoding of a text, as a draft of a profile says it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from connectors.files.content import byte_order_mark, unmarked_utf16
from flows.stages.draft_cells import DraftCells

PLAIN = "cp1252"
WIDE = ("cp932", "gbk", "cp949", "cp950")
"""Encodings whose signs have one byte or two."""
PAIRS = 3
"""Of so many runs of such bytes one, at the least, has several: a second byte may be ASCII."""
_FOREIGN = re.compile(rb"[\x80-\xff]+")


class EncodingFound(NamedTuple):
    """What a text may be written in."""

    encoding: str
    """By which it is drafted."""
    others: tuple[str, ...] = ()
    """In which it may be as well."""
    line: bytes = b""
    """The end of its first line that tells; none: the encoding goes without saying."""
    is_wide: bool = False
    """Whether it looks like UTF-16 without a byte-order mark."""

    def lines(self, cells: DraftCells) -> Iterator[str]:
        """The lines of a profile that say it."""
        first = self.encoding
        if self.is_wide:
            yield f'encoding = "{first}"  # ? It looks like it, and no byte-order mark says so.'
        if self.line:
            shown = self._shown(first, cells)
            yield f'encoding = "{first}"  # ? It is not UTF-8. Is this right: {shown}'
        for other in self.others:
            yield f'#   or "{other}": {self._shown(other, cells)}'

    def _shown(self, encoding: str, cells: DraftCells) -> str:
        return cells.shown(self.line.decode(encoding, "ignore")[-20:], 60)


def encoding_of(head: bytes) -> EncodingFound:
    """What a text that begins so is written in."""
    _, marked = byte_order_mark(head)
    if marked:
        return EncodingFound(marked)
    if wide := unmarked_utf16(head):
        return EncodingFound(wide, is_wide=True)
    lines = head[: head.rfind(b"\n") + 1 or None]
    try:
        lines.decode()
    except UnicodeDecodeError as error:
        first, *others = _fitting(lines)
        line = lines[lines.rfind(b"\n", 0, error.start) + 1 : error.start + 10]
        return EncodingFound(first, tuple(others), line)
    return EncodingFound("utf-8")


def _fitting(text: bytes) -> list[str]:
    """The encodings a text may be in that is not UTF-8, the likely one first."""
    runs = _FOREIGN.findall(text)
    # Nearly all bytes are signs of one byte; those of two stand together.
    in_pairs = sum(len(run) > 1 for run in runs) * PAIRS > len(runs)
    plain = [PLAIN] if _decodes(text, PLAIN) else []
    wide = [one for one in WIDE if _decodes(text, one)] if in_pairs or not plain else []
    return [*wide, *plain] or [PLAIN]


def _decodes(text: bytes, encoding: str) -> bool:
    try:
        text.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
