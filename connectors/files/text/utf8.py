"""Pieces of a text as UTF-8, whatever its encoding."""

from typing import NamedTuple

import numpy as np

from connectors.files.text.bitmask import Places
from connectors.files.text.encodings import utf8_sizes

LAST_ASCII = 127


class Utf8(NamedTuple):
    """Records as UTF-8, with the beginning and end of each."""

    text: bytes
    start: Places
    end: Places


def as_utf8(text: bytes, start: Places, end: Places, encoding: str) -> Utf8 | None:
    """The pieces as UTF-8, if each byte is one character; None for other encodings.

    Bytes that are no text stay as they are in UTF-8, and become U+FFFD otherwise.
    """
    if encoding == "utf-8" or text.isascii():
        return Utf8(text, start, end)
    sizes = utf8_sizes(encoding)
    if sizes is None:
        return None
    signs = np.frombuffer(text, np.uint8)
    wide = np.flatnonzero(signs > LAST_ASCII)
    more = np.frombuffer(sizes, np.uint8)[signs[wide]] - 1
    grown = np.append(0, np.cumsum(more, dtype=np.int64))
    start, end = (at + grown[np.searchsorted(wide, at)] for at in (start, end))
    return Utf8(text.decode(encoding, "replace").encode(), start, end)
