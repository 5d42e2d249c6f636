"""Blocks of an extract as they are read, with a view of the next ones."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache

from connectors.files.text.dialect import Dialect
from connectors.files.text.shadow import covered, is_csv, shadow


class Pieces:
    """Iterates over the blocks, each with whether it is the last one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._next: deque[bytes] = deque()

    def __iter__(self) -> Iterator[tuple[bytes, bool]]:
        while self._next or self._read():
            piece = self._next.popleft()
            yield piece, not (self._next or self._read())

    def give_back(self, blocks: Iterable[bytes]) -> None:
        """Return taken blocks, so that they are read again before the next ones."""
        self._next.extendleft(reversed([*blocks]))

    def record_size(self, begun: bytes, dialect: Dialect) -> int | None:
        """Length of the record that begins with these bytes and goes on in the next blocks.

        None if it does not end within `look_ahead_bytes`. So a record whose quote never closes is
        recognised by its bytes alone, and needs no more memory than they take. If a sign after a
        quote proves that it is no record, the blocks after it are not waited for.
        """
        bound = dialect.look_ahead_bytes
        record = record_pattern(covered(dialect))
        for wanted in (len(begun) + 1, bound + 1):
            more = self._read_to(wanted - len(begun))
            text = shadow(b"".join([begun, *self._next]), dialect)
            found = record.match(text, 0, bound + 1)
            if found and (found.end() < len(text) or not more):
                return found.end() if found.end() <= bound else None
            is_none = not found and is_csv(dialect) and not _is_open(text[: bound + 1], dialect)
            if is_none or not more:
                break
        return None

    def _read(self) -> bool:
        piece = next(self._pieces, None)
        if piece is not None:
            self._next.append(piece)
        return piece is not None

    def _read_to(self, size: int) -> bool:
        """Read ahead at least `size` bytes of the next blocks; False if there are no more."""
        held = sum(map(len, self._next))
        while held < size:
            if not self._read():
                return False
            held += len(self._next[-1])
        return True


def _is_open(text: bytes, dialect: Dialect) -> bool:
    """Whether a text of plain CSV ends within the quotes of its first record."""
    return _open_pattern(dialect).match(text) is not None


@cache
def record_pattern(dialect: Dialect) -> re.Pattern[bytes]:
    """A whole record of a shadow by RFC 4180, up to the line end or the end of the data."""
    field, delimiter = _field(dialect), re.escape(dialect.delimiter)
    return re.compile(field + b"(?:" + delimiter + field + rb")*+(?=[\r\n]|\Z)")


@cache
def _open_pattern(dialect: Dialect) -> re.Pattern[bytes]:
    signs = {b"d": re.escape(dialect.delimiter), b"q": re.escape(dialect.quote)}
    last = rb"%(q)s(?:[^%(q)s]++|%(q)s%(q)s)*+\Z" % signs
    return re.compile(b"(?:" + _field(dialect) + signs[b"d"] + b")*+" + last)


def _field(dialect: Dialect) -> bytes:
    blanks = b"[" + dialect.blanks + b"]*+" if dialect.blanks else b""
    signs = {b"d": re.escape(dialect.delimiter), b"q": re.escape(dialect.quote), b"b": blanks}
    quoted = b"%(b)s%(q)s(?:[^%(q)s]++|%(q)s%(q)s)*+%(q)s%(b)s" % signs
    return b"(?:" + quoted + rb"|[^%(q)s%(d)s\r\n]*+)" % signs
