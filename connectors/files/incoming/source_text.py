"""The bytes of a source on their way in: decompressed, hashed as delivered, refused if unusable."""

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from connectors.files.incoming import unpack
from connectors.files.incoming.delivery import Source, open_held
from connectors.files.incoming.stores import store_errors, unreadable
from connectors.files.incoming.unpack import PACKED, READ_BYTES, is_broken_zip, packing_of
from connectors.files.text.content import (
    HEAD_BYTES,
    WORKBOOKS,
    ZIP,
    byte_order_mark,
    foreign_format,
    is_blank,
    over_ratio,
    refused,
)
from connectors.printable import shown
from connectors.settings import Limits
from schemas.counting import quantity

BROKEN = (*unpack.BROKEN, zipfile.BadZipFile)


def unpacked_text(path: Path, limits: Limits) -> Iterator[bytes]:
    """The decompressed blocks of a file outside the archive; refused as `store` refuses it."""
    source = Source(path.name, str(path), str(path.parent), path.name)
    return text_of(source, DeliveredBytes(), limits)


@dataclass(slots=True)
class DeliveredBytes:
    """The bytes of a source read so far, before decompression."""

    bytes: int = 0
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    packed: bool = False
    """Whether it turned out to be compressed."""


def text_of(source: Source, delivered: DeliveredBytes, limits: Limits) -> Iterator[bytes]:
    """Yield the decompressed blocks, checking size, format and emptiness on the way.

    Raises ExtractRefused as `archive.store` says, DeliveryError if the source cannot be read.
    """
    head, waiting, blank, size = b"", True, True, 0
    for block in _unpacked(source, delivered):
        size += len(block)
        _check_size(source, size, delivered, limits)
        if waiting:
            head += block
            if len(head) < HEAD_BYTES:
                continue
            waiting, block = False, head  # noqa: PLW2901 (the head is the first block)
            _check_format(source, head)
            blank = is_blank(block[len(byte_order_mark(block)[0]) :])
        elif blank:
            blank = is_blank(block)
        yield block
    if waiting:
        blank = is_blank(head[len(byte_order_mark(head)[0]) :])
    if blank:
        raise refused("empty_file", source.name)
    if waiting:
        _check_format(source, head)
        yield head


def _unpacked(source: Source, delivered: DeliveredBytes) -> Iterator[bytes]:
    """The blocks of the content; its first bytes tell the compression."""
    pieces = _pieces(source, delivered)
    try:
        first = next(pieces, b"")
        if packing := packing_of(first):
            delivered.packed = True
            yield from packing.unpack(first, pieces)
        elif first and (suffix := Path(source.key.lower()).suffix) in PACKED:
            raise refused("corrupt_archive", source.name, detail=f"no {suffix} inside")
        else:
            if first:
                yield first
            yield from pieces
    except BROKEN as error:
        if "too much memory" in str(error) or "Memory usage limit" in str(error):
            raise refused(
                "too_large", source.name, detail="unpacked over 128 MiB at once"
            ) from error
        raise refused("corrupt_archive", source.name, detail=shown(str(error))) from error
    except (NotImplementedError, RuntimeError) as error:
        # The zip reader raises these for an unknown compression and an encrypted member.
        raise refused("unsupported_format", source.name, detail=shown(str(error))) from error


def _pieces(source: Source, delivered: DeliveredBytes) -> Iterator[bytes]:
    """The bytes as delivered; a file that changes during reading is still being written."""
    with open_held(source) as (file, holder):
        try:
            before = source.state(holder)
            while piece := _read(source, file):
                delivered.bytes += len(piece)
                delivered.digest.update(piece)
                yield piece
            after = source.state(holder)
        except OSError as error:
            if source.member is not None and is_broken_zip(error):
                raise zipfile.BadZipFile(str(error)) from error
            raise unreadable(source.location, error) from error
    if before != after:
        detail = f"it changed while it was read ({quantity(before[0], 'byte')}, then {after[0]})"
        raise refused("incomplete_file", source.name, detail=detail)


def _read(source: Source, file: BinaryIO) -> bytes:
    if not source.remote:
        return file.read(READ_BYTES)
    with store_errors():
        return file.read(READ_BYTES)


def _check_size(source: Source, size: int, delivered: DeliveredBytes, limits: Limits) -> None:
    if size > limits.file_bytes:
        detail = f"more than {quantity(limits.file_bytes, 'byte')} (RECON_LIMIT_FILE_BYTES)"
        raise refused("too_large", source.name, detail=detail)
    packed = delivered.bytes
    if source.member is not None:
        packed = min(packed, max(1, source.member.info.compress_size))
    # A single block does no harm, and short texts of one letter compress extremely well.
    if size > limits.block_bytes and size > limits.compression_ratio * packed:
        raise over_ratio(source.name, limits)


def _check_format(source: Source, head: bytes) -> None:
    if source.key.lower().endswith(WORKBOOKS):
        if not head.startswith(ZIP):
            raise refused("unsupported_format", source.name, detail="no workbook inside")
        return
    if title := foreign_format(head):
        raise refused("unsupported_format", source.name, detail=title)
