"""Sets of positions in a block as bit masks, 64 positions to a word, lowest bit first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]
Words = NDArray[np.uint64]

NEVER = np.iinfo(np.int64).max // 2
ONE, TOP = np.uint64(1), np.uint64(63)


def pack(mask: Flags) -> Words:
    """Pack flags into words, with room for one position after the last."""
    words = np.zeros(len(mask) // 64 + 1, np.dtype("<u8"))
    packed = np.packbits(mask, bitorder="little")
    words.view(np.uint8)[: len(packed)] = packed
    return words


def set_bit(words: Words, position: int) -> None:
    words[position >> 6] |= np.uint64(1 << (position & 63))


def bits_at(words: Words, positions: Places) -> Flags:
    flags: Flags = ((words[positions >> 6] >> _offset(positions)) & ONE) == ONE
    return flags


def toggle(words: Words) -> Words:
    """Set each bit to the parity of the bits up to and including it."""
    parity = words.copy()
    for step in (1, 2, 4, 8, 16, 32):
        parity ^= parity << np.uint64(step)
    parity[1:] ^= np.uint64(0) - np.bitwise_xor.accumulate(parity >> TOP)[:-1]
    return parity


class Tally:
    """Counts the bits set before given positions."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._sums = np.zeros(len(words), np.int64)
        np.cumsum(np.bitwise_count(words[:-1]), out=self._sums[1:])

    def before(self, positions: Places) -> Places:
        word, lower = positions >> 6, (ONE << _offset(positions)) - ONE
        counts: Places = self._sums[word] + np.bitwise_count(self._words[word] & lower)
        return counts


def set_positions(words: Words) -> Places:
    filled = np.flatnonzero(words)
    flags = np.unpackbits(words[filled].view(np.uint8), bitorder="little").reshape(-1, 64)
    row, column = np.nonzero(flags)
    return filled[row] * 64 + column


def next_set(words: Words, positions: Places) -> Places:
    """The first set bit at or after each position, NEVER if there is none."""
    word = positions >> 6
    here = words[word] & ~((ONE << _offset(positions)) - ONE)
    filled = np.append(np.flatnonzero(words), len(words))
    later = filled[np.searchsorted(filled[:-1], word, "right")]
    value = np.where(here > 0, here, np.append(words, np.uint64(0))[later])
    lowest = np.bitwise_count(~value & (value - ONE))
    return np.where(value > 0, np.where(here > 0, word, later) * 64 + lowest, NEVER)


def _offset(positions: Places) -> Words:
    return (positions & 63).astype(np.uint64)
