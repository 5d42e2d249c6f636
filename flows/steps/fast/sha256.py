"""The first bits of SHA-256 of many short texts, several at a time, in one compiled loop.

A call of `hashlib` for each text takes several times as long as the hash itself.
Source: FIPS 180-4, section 6.2.2.
"""

import numpy as np
from numpy.typing import NDArray

from schemas.compiled import compiled, loop_part

_WORD = 0xFFFFFFFF
_BLOCK = 64
_AT_ONCE = 256
"""Texts that are hashed together, each operation being done on a word of each of them.

Enough that the check for overlapping rows before each step costs little, and few enough that all
stay in the cache."""
_LAST = 15
"""Index of the last of the sixteen words kept; a later word replaces the one it is made from."""
_PRIMES = [two for two in range(2, 312) if all(two % one for one in range(2, two))]
_Words = NDArray[np.uint32]
_U32 = np.uint32


def _root(number: int, power: int) -> int:
    """The first 32 bits of the fractional part of a root."""
    low, high = 0, number << 32
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**power <= number << 32 * power else (low, middle)
    return low & _WORD


_BEGIN = np.array([_root(prime, 2) for prime in _PRIMES[:8]], np.uint32)
_ROUND = np.array([_root(prime, 3) for prime in _PRIMES], np.uint32)
_ROUNDS = len(_ROUND)


def first_bits(text: NDArray[np.uint8], ends: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The first `bits` (up to 63) of the hash of each text; texts are concatenated in `text`."""
    out = np.empty(len(ends), np.int64)
    words, state = np.empty((2, 16, max(1, min(_AT_ONCE, len(ends)))), np.uint32)
    with np.errstate(over="ignore"):  # Sums wrap at 32 bits, also without compilation.
        _hash(text, ends, bits, words, state, out)
    return out


@compiled
def _hash(
    text: NDArray[np.uint8],
    ends: NDArray[np.int64],
    bits: int,
    words: _Words,
    state: _Words,
    out: NDArray[np.int64],
) -> None:
    lanes = words.shape[1]
    for first in range(0, len(ends), lanes):
        beyond = min(first + lanes, len(ends))
        most = 0
        for word in range(8):
            for lane in range(lanes):
                state[word, lane] = _BEGIN[word]
        for one in range(first, beyond):
            begin = ends[one - 1] if one > 0 else 0
            most = max(most, _blocks(ends[one] - begin))
        for block in range(most):
            for one in range(first, beyond):
                begin = ends[one - 1] if one > 0 else 0
                if block < _blocks(ends[one] - begin):
                    _fill(text, begin, ends[one] - begin, block, words, one - first)
            _mix(words, state)
            for one in range(first, beyond):
                begin = ends[one - 1] if one > 0 else 0
                if block < _blocks(ends[one] - begin):
                    for word in range(8):
                        state[word, one - first] += state[word + 8, one - first]
        for one in range(first, beyond):
            high, low = int(state[0, one - first]), int(state[1, one - first])
            out[one] = (high << 31 | low >> 1) >> (63 - bits)


@loop_part
def _blocks(size: int) -> int:
    """Number of blocks of a text: a bit follows it, and its last block ends with its length."""
    return (size + 8) // _BLOCK + 1


@loop_part
def _fill(
    text: NDArray[np.uint8], begin: int, size: int, block: int, words: _Words, lane: int
) -> None:
    first = block * _BLOCK
    for word in range(16):
        value, at = 0, first + 4 * word
        if at + 4 <= size:
            for place in range(4):
                value = value << 8 | int(text[np.uint64(begin + at + place)])
        else:
            for place in range(at, at + 4):
                value <<= 8
                if place < size:
                    value |= int(text[np.uint64(begin + place)])
                elif place == size:
                    value |= 0x80
        words[word, lane] = value
    if block + 1 == _blocks(size):
        words[14, lane], words[15, lane] = size >> 29, size << 3 & _WORD


@loop_part
def _mix(words: _Words, state: _Words) -> None:
    """Mix a block with the first eight words of `state`; write the result to the other eight."""
    lanes = words.shape[1]
    for word in range(8):
        for lane in range(lanes):
            state[word + 8, lane] = state[word, lane]
    for step in range(_ROUNDS):
        own = step & _LAST
        if step > _LAST:
            _next_word(words, own, step + 1 & _LAST, step + 14 & _LAST, step + 9 & _LAST)
        # In the standard all eight words move on by one place in each step; here indexes rotate.
        a, b, c, d = 8 - step & 7, 9 - step & 7, 10 - step & 7, 11 - step & 7
        e, f, g, h = 12 - step & 7, 13 - step & 7, 14 - step & 7, 15 - step & 7
        of_round = _ROUND[step]
        for lane in range(lanes):
            one, two, three = state[a + 8, lane], state[b + 8, lane], state[c + 8, lane]
            five, six, seven = state[e + 8, lane], state[f + 8, lane], state[g + 8, lane]
            turned = _turn(five, 6) ^ _turn(five, 11) ^ _turn(five, 25)
            chosen = (five & six) ^ (~five & seven)
            # Every sum is cut to 32 bits, because wider ones would halve the lanes of a register.
            more = _U32(state[h + 8, lane] + of_round + words[own, lane] + turned + chosen)
            turned = _turn(one, 2) ^ _turn(one, 13) ^ _turn(one, 22)
            less = _U32(turned + ((one & two) ^ (one & three) ^ (two & three)))
            state[d + 8, lane] += more
            state[h + 8, lane] = _U32(more + less)


@loop_part
def _next_word(words: _Words, own: int, far: int, near: int, middle: int) -> None:
    for lane in range(words.shape[1]):
        one, two = words[far, lane], words[near, lane]
        more = _turn(one, 7) ^ _turn(one, 18) ^ _U32(one >> _U32(3))
        more = _U32(more + (_turn(two, 17) ^ _turn(two, 19) ^ _U32(two >> _U32(10))))
        words[own, lane] = _U32(words[own, lane] + words[middle, lane] + more)


@loop_part
def _turn(word: np.uint32, bits: int) -> np.uint32:
    return _U32(_U32(word >> _U32(bits)) | _U32(word << _U32(32 - bits)))
