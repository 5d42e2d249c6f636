"""Passages of kept contents, read one after the other.

A text that cannot be entered in its middle, as UTF-16 and sheets, is read from its beginning on:
once, where each passage stands behind the one before, and not once for each.
"""

from collections.abc import Iterator

from connectors.files.archived.blocks import blocks
from connectors.files.text.content import Content

BLOCK_BYTES = 1 << 20


class Passages:
    """Holds one content open: that of the passage before."""

    def __init__(self) -> None:
        self._content: Content | None = None
        self._blocks: Iterator[bytes] = iter(())
        self._begin, self._held = 0, b""

    def read(self, content: Content, start: int, end: int) -> bytes:
        """The text from byte `start` to `end`, proven."""
        beyond = self._begin + len(self._held)
        entered = content is self._content and self._begin <= start
        # Others are entered where the passage is.
        if not entered or (start > beyond + BLOCK_BYTES and not content.transcoded):
            self._blocks = blocks(content, start, BLOCK_BYTES)
            self._begin, self._held = start, b""
        self._content = None  # Until it was read: of what failed nothing is left to go on with.
        while self._begin + len(self._held) < end and (block := next(self._blocks, b"")):
            left = self._held[max(0, start - self._begin) :]
            self._begin += len(self._held) - len(left)
            self._held = left + block
        self._content = content
        return self._held[max(0, start - self._begin) : end - self._begin]
