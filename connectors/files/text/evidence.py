"""Kept content, proven to be what was delivered before a byte of it is used.

When a content is kept, the ledger records the hash of every piece together with the hash of the
whole. Reading a part proves only the pieces it lies in: a row of a large file costs one or two of
them, and reading everything proves all.
"""

import errno
import hashlib
import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.errors import EvidenceBroken
from schemas.counting import quantity

PIECE_BYTES = 1 << 20
"""Size of the pieces with recorded hashes; changing it makes all kept contents unreadable."""
HEX = hashlib.sha256().digest_size * 2
MISSING = "it is missing"
_NO_FILE = {
    errno.ENOENT: MISSING,
    errno.ENOTDIR: MISSING,
    errno.ELOOP: "a symbolic link is in its place",
    errno.EISDIR: "a folder is in its place",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is recorded about one kept content, and what to say if the file differs."""

    path: Path
    sha256: str
    bytes: int
    pieces: str | None
    """Hashes of the pieces in hex, concatenated; None if an earlier version kept the content."""
    about: str
    """The file's name for messages, as the user knows it."""
    remedy: str
    """What to do if the content does not match."""

    def broken(self, why: str) -> EvidenceBroken:
        """The error for a content that is not what was delivered."""
        return EvidenceBroken(
            f"{self.about}: the kept copy {self.path} is not what was delivered: {why}. Nothing "
            f"of it was used. {self.remedy}"
        )


class PieceHashes:
    """The piece hashes of a content that passes by in blocks of any size."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._digest, self._left = hashlib.sha256(), PIECE_BYTES

    def update(self, block: bytes) -> None:
        view = memoryview(block)
        while view:
            part = view[: self._left]
            self._digest.update(part)
            self._left -= len(part)
            view = view[len(part) :]
            if not self._left:
                self._done.append(self._digest.hexdigest())
                self._digest, self._left = hashlib.sha256(), PIECE_BYTES

    def hexdigests(self) -> str:
        last = [self._digest.hexdigest()] if self._left < PIECE_BYTES else []
        return "".join((*self._done, *last))


class ProvenFile(io.RawIOBase):
    """A kept content, read like a file; raises EvidenceBroken before it gives a wrong byte."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence, self._position = evidence, 0
        self._begin, self._held = 0, b""
        self._file = -1
        self._file = _opened(evidence)
        try:
            self._pieces = evidence.pieces or self._hashed_whole()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_CUR: self._position, io.SEEK_END: self._evidence.bytes}.get(whence, 0)
        self._position = max(0, begin + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, fewer only at the end; a negative size reads the rest."""
        size = size if size >= 0 else self._evidence.bytes
        begin, end = self._position, min(self._position + size, self._evidence.bytes)
        if begin >= end:
            return b""
        if not self._begin <= begin <= end <= self._begin + len(self._held):
            self._begin = begin - begin % PIECE_BYTES
            whole = min(end + -end % PIECE_BYTES, self._evidence.bytes)
            self._held = self._proven(self._begin, whole - self._begin)
        self._position = end
        return self._held[begin - self._begin : end - self._begin]

    def _proven(self, begin: int, size: int) -> bytes:
        content = self._read_at(begin, size)
        view = memoryview(content)
        for start in range(0, size, PIECE_BYTES):
            number = (begin + start) // PIECE_BYTES
            recorded = self._pieces[number * HEX : (number + 1) * HEX]
            if hashlib.sha256(view[start : start + PIECE_BYTES]).hexdigest() != recorded:
                last = min(begin + start + PIECE_BYTES, self._evidence.bytes) - 1
                raise self._evidence.broken(f"bytes {begin + start} to {last} have another hash")
        return content

    def _read_at(self, begin: int, size: int) -> bytes:
        parts, wanted = list[bytes](), size
        while wanted:
            try:
                part = os.pread(self._file, wanted, begin + size - wanted)
            except OSError as error:
                raise self._evidence.broken(f"it cannot be read: {error.strerror}") from error
            if not part:
                raise self._evidence.broken("it ends early")
            parts.append(part)
            wanted -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _hashed_whole(self) -> str:
        digest, pieces = hashlib.sha256(), PieceHashes()
        for begin in range(0, self._evidence.bytes, PIECE_BYTES):
            block = self._read_at(begin, min(PIECE_BYTES, self._evidence.bytes - begin))
            digest.update(block)
            pieces.update(block)
        if digest.hexdigest() != self._evidence.sha256:
            raise self._evidence.broken(f"its hash is {digest.hexdigest()}")
        return pieces.hexdigests()


def prove(evidence: Evidence) -> None:
    """Hash a whole kept content; raises EvidenceBroken if it is not what was delivered."""
    if fault := difference(evidence.path, evidence.sha256, evidence.bytes):
        raise evidence.broken(fault)


def difference(path: Path, sha256: str, size: int | None = None) -> str | None:
    """How a file differs from the content of this hash; None if it matches in every byte."""
    file = _regular(path)
    if isinstance(file, str):
        return file
    try:
        with os.fdopen(file, "rb", buffering=0) as opened:
            found = os.fstat(file).st_size
            if size is not None and found != size:
                return f"it has {quantity(found, 'byte')} and not {size}"
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return None if digest == sha256 else f"its hash is {digest}"


def _opened(evidence: Evidence) -> int:
    file = _regular(evidence.path)
    if isinstance(file, str):
        raise evidence.broken(file)
    size = os.fstat(file).st_size
    if size != evidence.bytes:
        os.close(file)
        raise evidence.broken(f"it has {quantity(size, 'byte')} and not {evidence.bytes}")
    return file


def _regular(path: Path) -> int | str:
    """The opened file, or why it cannot be; does not wait for a pipe or follow a link."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        mode = os.fstat(file).st_mode
    except OSError as error:
        return _NO_FILE.get(error.errno or 0, f"it cannot be read: {error.strerror}")
    if stat.S_ISREG(mode):
        return file
    os.close(file)
    return "a folder is in its place" if stat.S_ISDIR(mode) else "it is no regular file"
