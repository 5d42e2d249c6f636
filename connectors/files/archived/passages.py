"""Passages of kept contents, read one after the other.

Texts that cannot be entered in the middle, such as UTF-16 and sheets, are read from the beginning:
only once as long as each passage comes after the one before.
"""

from collections.abc import Iterator

from connectors.files.archived.blocks import blocks
from connectors.files.text.content import Content

BLOCK_BYTES = 1 << 20


class Passages:
    """Holds one content open, that of the previous passage."""

    def __init__(self) -> None:
        self._content: Content | None = None
        self._blocks: Iterator[bytes] = iter(())
        self._begin, self._held = 0, b""

    def read(self, content: Content, start: int, end: int) -> bytes:
        """The proven text from byte `start` to `end`."""
        beyond = self._begin + len(self._held)
        entered = content is self._content and self._begin <= start
        # Other texts are entered at the passage.
        if not entered or (start > beyond + BLOCK_BYTES and not content.transcoded):
            self._blocks = blocks(content, start, BLOCK_BYTES)
            self._begin, self._held = start, b""
        self._content = None  # Until it is read: a failed reading cannot be continued.
        while self._begin + len(self._held) < end and (block := next(self._blocks, b"")):
            left = self._held[max(0, start - self._begin) :]
            self._begin += len(self._held) - len(left)
            self._held = left + block
        self._content = content
        return self._held[max(0, start - self._begin) : end - self._begin]
