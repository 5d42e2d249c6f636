"""Which encodings a text beyond ASCII may be in, by the words it makes in each of them."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

WINDOWS = ("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1257", "cp1255", "cp1256")
"""Single-byte encodings, the usual ones first."""
OLDER = ("iso8859-2", "cp850", "cp852", "cp866", "koi8-r")
"""Older ones, which are offered only if they make more words of a text than any of WINDOWS."""
WIDE = {
    "cp932": (range(0x81, 0x85), range(0x88, 0x99), range(0xA1, 0xE0)),
    "gbk": (range(0xA1, 0xAA), range(0xB0, 0xD8)),
    "cp949": (range(0xA1, 0xAD), range(0xB0, 0xC9)),
    "cp950": (range(0xA1, 0xC7),),
}
"""Double-byte encodings, with the first bytes of their frequent characters."""
PAIRS = 3
"""In a double-byte text at least one run of foreign bytes in this many has several of them.

Not every run has several, because the second byte of a character may be ASCII.
"""
LOOKED_AT = 200
"""Lines that are decoded in each encoding."""
MOST_ODD = 1 / 4
"""Share of odd characters above which a text must be in another encoding."""
OFFERED = 6
NO_PLAIN = 4
"""Most letters of a Latin word without an ASCII letter."""
FOREIGN = re.compile(rb"[\x80-\xff]+")
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = "LATIN"
_ALPHABETS = ("CYRILLIC", "GREEK", "HALFWIDTH", "HEBREW", "ARABIC")
_EASTERN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")
_WITHIN_WORDS = "\N{RIGHT SINGLE QUOTATION MARK}\N{NO-BREAK SPACE}\N{EN DASH}\N{MIDDLE DOT}"
_AROUND_WORDS = ("Pi", "Pf", "Ps", "Pe", "Pd", "Zs")
_NO_SIGNS = ("Cc", "Cn", "Co")


def likely_encodings(text: bytes) -> list[str]:
    """The encodings that a text may be in if it is not UTF-8, the likeliest first.

    Of encodings that give the same text only the most usual is returned, and none that give no
    words, unless there is no other.
    """
    foreign = [line for line in text.splitlines() if not line.isascii()]
    lines = ([line for line in foreign if not decodes(line, "utf-8")] or foreign)[:LOOKED_AT]
    runs = [run for line in lines for run in FOREIGN.findall(line)]
    # In single-byte encodings foreign bytes are mostly alone; double-byte characters form runs.
    in_pairs = sum(len(run) > 1 for run in runs) * PAIRS > len(runs)
    wide = WIDE if in_pairs or not decodes(text, WINDOWS[0]) else ()
    read: dict[str, str] = {}
    for encoding in (*wide, *WINDOWS, *OLDER):
        if not decodes(text, encoding):
            continue
        decoded = b"\n".join(lines).decode(encoding, "replace")
        if decoded not in read.values():
            read[encoding] = decoded
    # A double-byte encoding is unlikely if no character of the text has two bytes.
    size = sum(map(len, lines)) + len(lines) - 1
    odd = {
        encoding: (odd_share(decoded, encoding), encoding in WIDE and len(decoded) == size)
        for encoding, decoded in read.items()
    }
    ranked = sorted(odd, key=odd.__getitem__)
    least = min((share for one, (share, _) in odd.items() if one in WINDOWS), default=1.0)
    offered = [
        one
        for one in ranked
        if odd[one][0] <= MOST_ODD and (one not in OLDER or odd[one][0] < least)
    ]
    return offered[:OFFERED] or ranked[:1] or [WINDOWS[0]]


def decodes(text: bytes, encoding: str) -> bool:
    try:
        text.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def odd_share(text: str, encoding: str = "") -> float:
    """The share of the characters beyond ASCII that are not in words as people write them."""
    foreign = len(text) - len(text.encode("ascii", "ignore"))
    words = Counter(_WORD.findall(text))
    odd = sum(times * _odd_letters(word, encoding) for word, times in words.items())
    return (odd + _odd_signs(text)) / max(foreign, 1)


def _odd_letters(word: str, encoding: str) -> int:
    """Number of foreign letters in a word that is unlikely: mixed script or case, rare letters."""
    foreign = [letter for letter in word if not letter.isascii()]
    scripts = {*map(_script, word)} - {""}
    only_foreign = len(foreign) == len(word) > NO_PLAIN
    is_cased = word.islower() or word.isupper() or word == word.capitalize()
    if len(scripts) > 1 or (only_foreign and scripts == {_LATIN}) or not is_cased:
        return len(foreign)
    return sum(_is_rare(letter, encoding) for letter in foreign)


@lru_cache(1 << 12)
def _script(letter: str) -> str:
    """The script of a letter, which words do not mix; empty for East Asian scripts, which mix."""
    name = unicodedata.name(letter, "")
    if name.startswith(_EASTERN):
        return ""
    return next((one for one in _ALPHABETS if name.startswith(one)), _LATIN)


def _is_rare(letter: str, encoding: str) -> bool:
    """Whether a letter in a double-byte encoding is not among the frequent ones."""
    if letter.isascii() or encoding not in WIDE:
        return False
    first = letter.encode(encoding)[0]
    return not any(first in frequent for frequent in WIDE[encoding])


def _odd_signs(text: str) -> int:
    """Number of foreign characters other than letters that are unassigned or in an odd place."""
    found = Counter(
        (before, sign, after)
        for before, sign, after in zip(f" {text}", text, f"{text[1:]} ", strict=False)
        if not (sign.isascii() or sign.isalpha())
    )
    return sum(times for signs, times in found.items() if _is_odd(*signs))


def _is_odd(before: str, sign: str, after: str) -> bool:
    category = unicodedata.category(sign)
    return (
        category in _NO_SIGNS
        or (before.isalpha() and after.isalpha() and sign not in _WITHIN_WORDS)
        or (
            category not in _AROUND_WORDS
            and any(one.isalpha() or not one.isascii() for one in (before, after))
        )
    )
