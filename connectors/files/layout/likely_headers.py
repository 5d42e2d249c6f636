"""Finding lines that may be headers: they begin with the name of a column, or hold several."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from connectors.files.layout.first_record import folded
from connectors.files.text.bitmask import Bytes, Flags, Places
from connectors.files.text.dialect import Dialect

MARK = "\ufeff"
"""The mark at the beginning of a text that was appended to another."""
_END = 0
"""Stands for any byte that may follow the last letter of a name."""
_LEAD, _NAME = 1, 2
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class LikelyHeaders:
    """Finds possible headers among all lines of a block, hardly any of which is one."""

    spelled: frozenset[str]
    """Names of columns as they are spelled."""
    stated: frozenset[str]
    """For a table: the folded names that each of its headers has, whatever the others are."""
    anywhere: bytes
    """One of these as written, if other names come before it."""
    dialect: Dialect
    width: int
    """Number of cells of a record, if delimiters separate them."""

    def among(self, block: bytes, text: Bytes, start: Places, end: Places) -> Places:
        """Which lines may be headers; hardly any line begins with a name."""
        if not len(start):
            return _NONE
        if self.anywhere:
            return self._holding(block, start)
        begin = text[np.minimum(start, len(text) - 1)]
        there = np.bincount(begin, minlength=len(self._signs.kind)) > 0
        first = behind = _NONE
        if self._signs.kind[there].any():
            first = self._with_name_first(block, text, start, end)
        if self._signs.word[there].any():
            behind = self._with_names_behind(block, text, start, end)
        return np.union1d(first, behind)

    def _with_name_first(self, block: bytes, text: Bytes, start: Places, end: Places) -> Places:
        signs = self._signs
        rows, at = self._begun(block, text, start, end, signs.kind)
        pairs = self._sign(text, at, end[rows]).astype(np.int64) << 8
        pairs |= self._sign(text, at + 1, end[rows])
        likely = signs.pairs[pairs]
        rows, at, pairs = rows[likely], at[likely], pairs[likely]
        found = np.zeros(len(start), np.bool_)
        for pair in np.unique(pairs).tolist():
            of_pair = pairs == pair
            for name, of in signs.names[pair].items():
                named, behind = self._with_name(text, rows[of_pair], at[of_pair], end, name)
                if of not in self.stated:
                    # After it comes another name and no number, except in a table, with any names.
                    word = np.maximum(signs.word, signs.kind)
                    named = named[self._begun(block, text, behind, end[named], word)[0]]
                found[named] = True
        return np.flatnonzero(found)

    def _with_names_behind(self, block: bytes, text: Bytes, start: Places, end: Places) -> Places:
        """The lines that begin with any word and have more names of columns than other texts.

        Each is assumed to have as many cells as a record.
        """
        signs, sign, last = self._signs, self.dialect.delimiter[-1], len(text) - 1
        if not self.width:
            return _NONE
        worded, first = self._begun(block, text, start, end, signs.word)
        if not len(worded):
            return _NONE
        before = np.flatnonzero(text == sign)
        at = np.minimum(before + 1, last)
        kind, empty = signs.kind[text[at]], before[np.isin(text[at], [sign, *b"\r\n"])]
        quoted = at[(kind == _LEAD) & (text[at] != sign)] + 1
        quoted += signs.kind[text[np.minimum(quoted, last)]] == _LEAD
        at = np.concatenate((first, at[kind == _NAME], quoted[quoted < last]))
        pairs = signs.fold[text[at]].astype(np.int64) << 8
        pairs |= signs.fold[text[np.minimum(at + 1, last)]]
        likely = signs.pairs[pairs]
        at, pairs = at[likely], pairs[likely]
        rows = np.searchsorted(start, at, "right") - 1
        within = (rows >= 0) & (at < end[rows]) & np.isin(rows, worded)
        rows, at, pairs = rows[within], at[within], pairs[within]
        names, filled = np.zeros(len(start), np.int64), np.full(len(start), self.width)
        certain = np.zeros(len(start), np.bool_)
        for pair in np.unique(pairs).tolist():
            of_pair = pairs == pair
            for name, of in signs.names[pair].items():
                named, _ = self._with_name(text, rows[of_pair], at[of_pair], end, name)
                names[np.unique(named)] += 1
                np.subtract.at(filled, named, 1)
                certain[named] |= of in self.stated
        found = np.flatnonzero((names > 2) | certain)
        empties = np.searchsorted(empty, end[found]) - np.searchsorted(empty, start[found])
        of_names: Flags = filled[found] - empties < names[found]
        return found[certain[found] | of_names]

    def _begun(
        self, block: bytes, text: Bytes, start: Places, end: Places, kinds: Bytes
    ) -> tuple[Places, Places]:
        """The lines whose first letter may be that of a name, and where it is."""
        if not len(start):
            return _NONE, _NONE
        rows, at = np.arange(len(start)), start
        mark = MARK.encode()
        marked = np.flatnonzero(text[np.minimum(at, len(text) - 1)] == mark[0])
        if self.dialect.encoding == "utf-8" and len(marked):
            at = at.copy()
            at[marked] += [len(mark) * block.startswith(mark, one) for one in at[marked].tolist()]
        found_rows, found_at = [_NONE], [_NONE]
        while len(rows):
            inside = at < end[rows]
            if not inside.all():
                rows, at = rows[inside], at[inside]
            kind = kinds[text[at]]
            if kind.any():
                found_rows.append(rows[kind == _NAME])
                found_at.append(at[kind == _NAME])
            lead = kind == _LEAD
            rows, at = (rows, at + 1) if lead.all() else (rows[lead], at[lead] + 1)
        return np.concatenate(found_rows), np.concatenate(found_at)

    def _sign(self, text: Bytes, at: Places, end: Places) -> Bytes:
        """The folded byte at a position; after the line, the one that ends a name."""
        found = self._signs.fold[text[np.minimum(at, len(text) - 1)]]
        found[at >= end] = _END
        return found

    def _with_name(
        self, text: Bytes, rows: Places, at: Places, end: Places, name: bytes
    ) -> tuple[Places, Places]:
        """The lines that have a name at a position, and where the text after it begins."""
        for place, sign in enumerate(name):
            if not len(rows):
                break
            fits = self._sign(text, at + place, end[rows]) == sign
            rows, at = rows[fits], at[fits]
        at = at + len(name) - 1
        return self._as_cell(text, rows, at, end) if self.width else (rows, at)

    def _as_cell(self, text: Bytes, rows: Places, at: Places, end: Places) -> tuple[Places, Places]:
        """Of these lines, those whose cell has only blanks after the name."""
        behind, (blanks, ends) = at, self._around
        while len(rows):
            sign = text[np.minimum(behind, len(text) - 1)]
            blank = (behind < end[rows]) & blanks[sign]
            if not blank.any():
                break
            behind = behind + blank
        within = ends[text[np.minimum(behind, len(text) - 1)]] | (behind >= end[rows])
        return rows[within], at[within]

    def _holding(self, block: bytes, start: Places) -> Places:
        """The lines with the name anywhere in them."""
        places, at = list[int](), block.find(self.anywhere)
        while at >= 0:
            places.append(at)
            at = block.find(self.anywhere, at + 1)
        rows = np.searchsorted(start, places, "right") - 1
        return np.unique(rows[rows >= 0])

    def with_word(self, block: bytes, text: Bytes, start: Places, end: Places) -> Places:
        """Which lines begin with a name, or with any other word."""
        return self._begun(block, text, start, end, self._signs.word)[0]

    @cached_property
    def _around(self) -> tuple[Flags, Flags]:
        """By byte: whether it is a blank, and whether it ends a cell."""
        blanks, ends = np.zeros((2, 256), np.bool_)
        ends[[*self.dialect.delimiter, *self.dialect.quote, *b"\r\n"]] = True
        blanks[[*b" \t"]] = True
        return blanks & ~ends, ends

    @cached_property
    def _signs(self) -> "_Signs":
        sign, quote, encoding = self.dialect.delimiter, self.dialect.quote, self.dialect.encoding
        return _signs_of(self.spelled, sign, quote, encoding)


class _Signs(NamedTuple):
    """How lines begin that may be headers."""

    kind: Bytes
    """By byte: whether it may come before a name, or be its first one."""
    word: Bytes
    """The same for any word that does not begin like a number."""
    fold: Bytes
    """By byte: the one it counts as in comparisons."""
    pairs: Flags
    """By two folded bytes: whether a name begins with them."""
    names: Mapping[int, Mapping[bytes, str]]
    """By the same two, the names as folded bytes with an end mark -> the folded name."""


@lru_cache(16)
def _signs_of(spelled: frozenset[str], delimiter: bytes, quote: bytes, encoding: str) -> _Signs:
    """How lines with one of these names begin; cached, as files of one feed have the same names."""
    between = {*delimiter, *quote, *b" \t"}
    fold = np.arange(256, dtype=np.uint8)
    fold[ord("A") : ord("Z") + 1] += ord("a") - ord("A")
    fold[[*between, *b"\r\n"]] = _END
    kind, pairs = np.zeros(256, np.uint8), np.zeros(1 << 16, np.bool_)
    kind[[*between]] = _LEAD
    names: dict[int, dict[bytes, str]] = {}
    for name in {form for one in spelled for form in (one, one.upper(), one.lower())}:
        text = name.encode(encoding, "replace") + b" "
        kind[text[0]] = kind[text[0]] or _NAME
        signs = fold[np.frombuffer(text, np.uint8)].tobytes()
        pair = signs[0] << 8 | signs[1]
        pairs[pair] = True
        names.setdefault(pair, {})[signs] = folded(name)
    first = MARK.encode()[0]
    kind[first] = kind[first] or _LEAD
    word = np.where(kind == _LEAD, _LEAD, _NAME).astype(np.uint8)
    word[[*b"0123456789+-.("]] = 0
    return _Signs(kind, word, fold, pairs, names)
