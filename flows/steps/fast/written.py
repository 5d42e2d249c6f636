"""Read one cell as a feed writes it: amounts, times and words in the forms that it states.

Results equal those of `flows.steps.validate.normalise` for the same text. A cell in any other form
is not `known`.
"""

import numpy as np
from numpy.typing import NDArray

from flows.steps.fast.cells import (
    MICRO,
    POWERS,
    Bytes,
    byte_at,
    read_fraction,
    read_integer,
    wall_clock,
)
from flows.steps.fast.forms import SHORT, Book, HowRead, TimePart
from schemas.amounts import MICRO_DIGITS
from schemas.cells.numbers import LAST_GROUP
from schemas.compiled import loop_part

_ZERO, _BLANK, _TAB = ord("0"), ord(" "), ord("\t")
_MOST_WHOLE_DIGITS = 8
_MOST_DIGITS = 16
_BEYOND_WHOLE = 10**_MOST_WHOLE_DIGITS
_DAY_STEP, _MILLI_STEP, _MILLI = 86_400_000_000, 1_000, 1_000
_LAST_ASCII = 127
_LOWER = 0x20
"""The bit that makes a letter lower case."""
_MONTHS = np.array(
    [
        int.from_bytes(name.encode())
        for name in ("jan feb mar apr may jun jul aug sep oct nov dec").split()  # noqa: SIM905
    ]
)
_PIVOT = 69
"""Two-digit years from here on are in the last century, as in POSIX."""
_YEAR, _SHORT_YEAR, _MONTH, _MONTH_NAME, _DAY, _HOUR, _MINUTE, _SECOND = map(int, TimePart)


@loop_part
def without_blanks(text: Bytes, start: int, stop: int) -> tuple[int, int]:
    """The place of a cell without the blanks around it."""
    while start < stop and byte_at(text, start) in (_BLANK, _TAB):
        start += 1
    while start < stop and byte_at(text, stop - 1) in (_BLANK, _TAB):
        stop -= 1
    return start, stop


@loop_part
def has_digit(text: Bytes, start: int, stop: int) -> bool:
    for at in range(start, stop):
        if 0 <= byte_at(text, at) - _ZERO <= 9:
            return True
    return False


@loop_part
def is_word(text: Bytes, start: int, stop: int, book: Book, word: int) -> bool:
    first = book.words[word].start
    if book.words[word].stop - first != stop - start:
        return False
    for place in range(stop - start):
        if byte_at(text, start + place) != byte_at(book.text, first + place):
            return False
    return True


@loop_part
def one_of(text: Bytes, start: int, stop: int, book: Book, first: int, beyond: int) -> bool:
    for word in range(first, beyond):
        if is_word(text, start, stop, book, word):
            return True
    return False


@loop_part
def all_is_seen(text: Bytes, start: int, stop: int) -> bool:
    """Whether no byte can begin an unusual blank or an invisible character.

    Such characters are U+00A0, U+034F, U+061C, U+1680, U+200B, U+3000, U+FEFF and the like, judged
    by their first bytes in UTF-8.
    """
    for place in range(start, stop):
        byte = byte_at(text, place)
        if byte < 0x20 or byte in (0xC2, 0xCD, 0xD8, 0xE1, 0xE2, 0xE3, 0xEF):
            return False
    return True


@loop_part
def read_word(text: Bytes, start: int, stop: int, book: Book, how: HowRead) -> tuple[int, bool]:
    """What a word stands for, and whether it is one; words are in the order of their bytes."""
    low, high = how.first_word, how.beyond_word
    while low < high:
        middle = (low + high) // 2
        word = book.words[middle]
        size = min(stop - start, word.stop - word.start)
        place = 0
        while place < size and byte_at(text, start + place) == byte_at(
            book.text, word.start + place
        ):
            place += 1
        if place < size:
            before = byte_at(text, start + place) < byte_at(book.text, word.start + place)
        elif stop - start == word.stop - word.start:
            return word.value, True
        else:
            before = stop - start < word.stop - word.start
        if before:
            high = middle
        else:
            low = middle + 1
    return 0, False


@loop_part
def find_behind(text: Bytes, start: int, stop: int, book: Book, how: HowRead) -> tuple[int, int]:
    """The place of the first digits behind a word in a text; empty if it is not certain."""
    word = book.words[how.first_word]
    size = word.stop - word.start
    for begin in range(start, stop - size):
        if not is_word(text, begin, begin + size, book, how.first_word):
            continue
        first = begin + size
        while first < stop and byte_at(text, first) == how.between:
            first += 1
        at = first
        while at < stop and 0 <= byte_at(text, at) - _ZERO <= 9:
            at += 1
        # The pattern also matches digits of other scripts, and may backtrack over `between`.
        if at < stop and byte_at(text, at) > _LAST_ASCII:
            break
        if at > first:
            return first, at
        if first > begin + size:
            break
    return start, start


@loop_part
def read_amount(
    text: Bytes, start: int, stop: int, book: Book, how: HowRead
) -> tuple[int, int, bool]:
    """Read `-1.234,50`, `(20.00)` or `£5`: its millionths, number of decimals, whether known."""
    first = start
    while first < stop and not 0 <= byte_at(text, first) - _ZERO <= 9:
        first += 1
    at, whole, known = read_integer(text, first, stop)
    digits = at - first
    # Numbers with implied decimals have leading zeros; others are left to the strict path.
    most = _MOST_DIGITS if how.implied > 0 else _MOST_WHOLE_DIGITS
    if not known or digits > most:
        return 0, 0, False
    if digits <= how.group_digits and byte_at(text, first) != _ZERO:
        begin, end = _next_group(text, at, stop, book, how)
        while end > begin:
            behind = _next_group(text, end, stop, book, how)
            size = how.group_digits if behind[1] > behind[0] else LAST_GROUP
            digits += size
            if end - begin != size or digits > most:
                return 0, 0, False
            whole = whole * POWERS[MICRO_DIGITS - size] + read_integer(text, begin, end)[1]
            at = end
            begin, end = behind
    part, scale = 0, 0
    if how.implied > 0:
        scale = how.implied
        power = POWERS[MICRO_DIGITS - scale]
        whole, part = whole // power, whole % power * POWERS[scale]
        if whole >= _BEYOND_WHOLE:
            return 0, 0, False
    elif at < stop and byte_at(text, at) == how.point:
        end, part, known = read_fraction(text, at + 1, stop)
        scale = end - at - 1
        at = end
        if not known or scale > how.most_decimals:
            return 0, 0, False
    sign = _sign(text, start, first, at, stop, book, how)
    return sign * (whole * POWERS[0] + part), scale, sign != 0


@loop_part
def _next_group(text: Bytes, at: int, stop: int, book: Book, how: HowRead) -> tuple[int, int]:
    """The place of the digits behind the next group separator; empty if there are none."""
    for word in range(how.first_group, how.beyond_group):
        begin = at + book.words[word].stop - book.words[word].start
        if begin < stop and is_word(text, at, begin, book, word):
            end = begin
            while end < stop and 0 <= byte_at(text, end) - _ZERO <= 9:
                end += 1
            return begin, end
    return at, at


@loop_part
def _sign(
    text: Bytes, start: int, first: int, last: int, stop: int, book: Book, how: HowRead
) -> int:
    """1 or -1 by the words before and behind the digits; 0 if these are not stated."""
    for word in range(how.first_around, how.beyond_around, 2):
        if is_word(text, start, first, book, word) and is_word(text, last, stop, book, word + 1):
            return book.words[word].value
    return 0


@loop_part
def read_laid_out(
    text: Bytes, at: int, stop: int, book: Book, how: HowRead, parts: NDArray[np.int64]
) -> tuple[int, bool]:
    """Read a time by its layout: its wall clock, whether it is known; `parts` is memory for it."""
    parts[:] = 0
    for place in range(how.first_part, how.beyond_part):
        if at >= stop:
            return 0, False
        part = -book.layout[place]
        if part <= 0:
            if byte_at(text, at) != -part:
                return 0, False
            at += 1
            continue
        width = 4 if part == _YEAR else 3 if part == _MONTH_NAME else 2
        if part > SHORT:
            part -= SHORT
            if at + 1 == stop or not 0 <= byte_at(text, at + 1) - _ZERO <= 9:
                width = 1
        if at + width > stop:
            return 0, False
        if part == _MONTH_NAME:
            parts[_MONTH] = _month(text, at)
        else:
            end, parts[part], known = read_integer(text, at, at + width)
            if not known or end != at + width:
                return 0, False
        at += width
    year = parts[_YEAR]
    if how.short_year:
        year = parts[_SHORT_YEAR] + (1900 if parts[_SHORT_YEAR] >= _PIVOT else 2000)
    clock = parts[_HOUR], parts[_MINUTE], parts[_SECOND]
    wall, known = wall_clock(year, parts[_MONTH], parts[_DAY], *clock)
    return wall, known and at == stop


@loop_part
def _month(text: Bytes, at: int) -> int:
    """The number of the month whose English name begins with three letters; 0 if none does."""
    name = 0
    for place in range(at, at + 3):
        name = name << 8 | byte_at(text, place) | _LOWER
    for month in range(12):
        if _MONTHS[month] == name:
            return month + 1
    return 0


@loop_part
def read_count(text: Bytes, start: int, stop: int, how: HowRead) -> tuple[int, bool]:
    """Read a time as a number of steps: its wall clock, whether it is known."""
    at, whole, known = read_integer(text, start, stop)
    if not known or not how.least <= whole <= how.largest:
        return 0, False
    # Without leading zeros they have no more digits than the strict path takes.
    if byte_at(text, start) == _ZERO and at > start + 1:
        return 0, False
    part = 0
    if at < stop and how.step != _MILLI_STEP and byte_at(text, at) == how.point:
        end, part, known = read_integer(text, at + 1, stop)
        if not known or end - at - 1 > MICRO_DIGITS:
            return 0, False
        part *= POWERS[end - at - 1]
        at = end
    wall = whole * how.step + part * (how.step // MICRO)
    # Counts of days are rounded to the millisecond, which is left to the strict path.
    if how.step == _DAY_STEP and wall % _MILLI != 0:
        return 0, False
    return wall + how.epoch, at == stop
