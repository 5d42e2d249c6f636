"""The first bits of SHA-256 of many short texts, some at a time, in one compiled loop.

`hashlib` is called once for each text, which takes several times as long as the hash itself.
Source: FIPS 180-4, section 6.2.2.
"""

import numpy as np
from numpy.typing import NDArray

from schemas.compiled import compiled

_WORD = 0xFFFFFFFF
_BLOCK = 64
_AT_ONCE = 16
"""Texts that are hashed together: what is done to a word is done to that of each of them."""
_PRIMES = [two for two in range(2, 312) if all(two % one for one in range(2, two))]
_Words = NDArray[np.uint32]


def _root(number: int, power: int) -> int:
    """The first 32 bits of the fraction of a root."""
    low, high = 0, number << 32
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**power <= number << 32 * power else (low, middle)
    return low & _WORD


_BEGIN = np.array([_root(prime, 2) for prime in _PRIMES[:8]], np.uint32)
_ROUND = np.array([_root(prime, 3) for prime in _PRIMES], np.uint32)
_ROUNDS = len(_ROUND)


def first_bits(text: NDArray[np.uint8], ends: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The first `bits` (up to 63) of the hash of each text; they stand one behind the other."""
    out = np.empty(len(ends), np.int64)
    words, state = (np.empty((rows, _AT_ONCE), np.uint32) for rows in (_ROUNDS, 16))
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
    for first in range(0, len(ends), _AT_ONCE):
        beyond = min(first + _AT_ONCE, len(ends))
        most = 0
        for word in range(8):
            for lane in range(_AT_ONCE):
                state[word, lane] = _BEGIN[word]
        for one in range(first, beyond):
            begin = ends[one - 1] if one > 0 else 0
            most = max(most, _blocks(ends[one] - begin))
        for block in range(most):
            for one in range(first, beyond):
                begin = ends[one - 1] if one > 0 else 0
                _fill(text, begin, ends[one] - begin, block, words, one - first)
            _mix(words, state)
            for one in range(first, beyond):
                begin = ends[one - 1] if one > 0 else 0
                if block < _blocks(ends[one] - begin):
                    for word in range(8):
                        more = int(state[word + 8, one - first])
                        state[word, one - first] = (int(state[word, one - first]) + more) & _WORD
        for one in range(first, beyond):
            high, low = int(state[0, one - first]), int(state[1, one - first])
            out[one] = (high << 31 | low >> 1) >> (63 - bits)


@compiled
def _blocks(size: int) -> int:
    """Behind a text there is a bit, and at the end of its last block how long it was."""
    return (size + 8) // _BLOCK + 1


@compiled
def _fill(
    text: NDArray[np.uint8], begin: int, size: int, block: int, words: _Words, lane: int
) -> None:
    first = block * _BLOCK
    for word in range(16):
        value = 0
        for at in range(first + 4 * word, first + 4 * word + 4):
            value <<= 8
            if at < size:
                value |= int(text[np.uint64(begin + at)])
            elif at == size:
                value |= 0x80
        words[word, lane] = value
    if block + 1 == _blocks(size):
        words[14, lane], words[15, lane] = size >> 29, size << 3 & _WORD


@compiled
def _mix(words: _Words, state: _Words) -> None:
    """What a block makes of the first eight words of `state` is written to the other eight."""
    for word in range(16, _ROUNDS):
        for lane in range(_AT_ONCE):
            far, near = int(words[word - 15, lane]), int(words[word - 2, lane])
            far = _turn(far, 7) ^ _turn(far, 18) ^ far >> 3
            near = _turn(near, 17) ^ _turn(near, 19) ^ near >> 10
            more = int(words[word - 16, lane]) + int(words[word - 7, lane])
            words[word, lane] = (more + far + near) & _WORD
    for word in range(8):
        for lane in range(_AT_ONCE):
            state[word + 8, lane] = state[word, lane]
    for step in range(_ROUNDS):
        # In each step all move on by one place; here the first one moves instead.
        a, b, c, d = 8 - step & 7, 9 - step & 7, 10 - step & 7, 11 - step & 7
        e, f, g, h = 12 - step & 7, 13 - step & 7, 14 - step & 7, 15 - step & 7
        for lane in range(_AT_ONCE):
            one, two = int(state[a + 8, lane]), int(state[b + 8, lane])
            three, five = int(state[c + 8, lane]), int(state[e + 8, lane])
            six, seven = int(state[f + 8, lane]), int(state[g + 8, lane])
            more = int(state[h + 8, lane]) + int(_ROUND[step]) + int(words[step, lane])
            more += (_turn(five, 6) ^ _turn(five, 11) ^ _turn(five, 25)) + (
                (five & six) ^ (~five & seven)
            )
            less = (_turn(one, 2) ^ _turn(one, 13) ^ _turn(one, 22)) + (
                (one & two) ^ (one & three) ^ (two & three)
            )
            state[d + 8, lane] = (int(state[d + 8, lane]) + more) & _WORD
            state[h + 8, lane] = (more + less) & _WORD


@compiled
def _turn(word: int, bits: int) -> int:
    return word >> bits | word << (32 - bits) & _WORD
