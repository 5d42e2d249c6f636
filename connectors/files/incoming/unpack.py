"""Packings of delivered files, recognised by their first bytes, and how each is unpacked.

Every unpacker reads several packed texts in sequence, yields blocks of at most `READ_BYTES` (zstd:
of what `ZSTD_FEED_BYTES` can become), and raises one of `BROKEN` for anything else between or after
them.
"""

import bz2
import errno
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

import zstandard

READ_BYTES = 1 << 20
# Zstd expands four bytes to as much as 128 KiB, and its decoder cannot be stopped: only the size of
# its input bounds its output.
ZSTD_FEED_BYTES = 1024
WINDOW_BYTES = 128 << 20
"""Most memory that a decoder may keep of the text while unpacking."""
SKIPPABLE = b"\x2a\x4d\x18"
"""Bytes after the first of a zstd frame that carries no content."""
BROKEN = (zlib.error, zstandard.ZstdError, lzma.LZMAError, EOFError)
_BROKEN_ZIP = (*BROKEN, zipfile.BadZipFile, ValueError, struct.error)

Unpacker = Callable[[bytes, Iterator[bytes]], Iterator[bytes]]


class PackedForm(NamedTuple):
    """One way to pack a file."""

    suffix: str
    begins: Callable[[bytes], bool]
    unpack: Unpacker
    """Turns the first packed piece and the others into blocks of text."""


_Stream: TypeAlias = bz2.BZ2Decompressor | lzma.LZMADecompressor
"""Decoders whose output can be limited."""


def packing_of(first: bytes) -> PackedForm | None:
    """The packing that begins with these bytes; None if it is unknown."""
    return next((one for one in PACKINGS if one.begins(first)), None)


def is_broken_zip(error: Exception) -> bool:
    """Whether an error of the zip reader is about the archive's bytes, not about the disk.

    Positions outside the file and broken bzip2 data come as an OSError.
    """
    if isinstance(error, OSError):
        return error.errno in {None, errno.EINVAL}
    return isinstance(error, _BROKEN_ZIP)


def _gunzip(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    member = None
    for piece in chain([first], pieces):
        rest, block = piece, b""
        # Output may remain inside after all input is consumed; a full block indicates that.
        while rest or len(block) == READ_BYTES:
            member = member or zlib.decompressobj(wbits=31)
            block = member.decompress(rest, READ_BYTES)
            if block:
                yield block
            rest = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member, block = None, b""
    if member is not None:
        raise EOFError("it ends in the middle")


def _unzstd(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES)
    frame = None
    for piece in chain([first], pieces):
        for begin in range(0, len(piece), ZSTD_FEED_BYTES):
            rest = piece[begin : begin + ZSTD_FEED_BYTES]
            while rest:
                frame = frame or decompressor.decompressobj()
                if block := frame.decompress(rest):
                    yield block
                rest = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = None
    if frame is not None:
        raise EOFError("it ends in the middle")


def _unxz(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    return _streams(first, pieces, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, WINDOW_BYTES))


def _unbzip2(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from _streams(first, pieces, bz2.BZ2Decompressor)
    except OSError as error:
        if error.errno is not None:
            raise  # An error of the file, not of its content.
        raise EOFError(str(error)) from error


def _streams(
    first: bytes, pieces: Iterator[bytes], begin: Callable[[], _Stream]
) -> Iterator[bytes]:
    stream: _Stream | None = None
    for piece in chain([first], pieces):
        rest = piece
        while rest or (stream is not None and not stream.needs_input):
            stream = stream or begin()
            if block := stream.decompress(rest, READ_BYTES):
                yield block
            rest = stream.unused_data if stream.eof else b""
            if stream.eof:
                stream = None
    if stream is not None:
        raise EOFError("it ends in the middle")


def _zstd_begins(first: bytes) -> bool:
    return first.startswith(b"\x28\xb5\x2f\xfd") or (first[1:4] == SKIPPABLE and first[0] >> 4 == 5)


# Source: the format's description. After the block size comes the first block, or the end of an
# empty text.
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")

PACKINGS = (
    PackedForm(".gz", lambda first: first.startswith(b"\x1f\x8b"), _gunzip),
    PackedForm(".zst", _zstd_begins, _unzstd),
    PackedForm(".xz", lambda first: first.startswith(b"\xfd7zXZ\x00"), _unxz),
    PackedForm(".bz2", lambda first: bool(_BZIP2.match(first)), _unbzip2),
)
PACKED = tuple(one.suffix for one in PACKINGS)
"""Suffixes of packed files."""
