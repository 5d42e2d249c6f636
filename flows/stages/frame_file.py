"""Frames that are put aside: few in memory, many in a file without a name, which nothing leaves."""

import tempfile
import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Literal

import polars as pl

from connectors.files.disk.atomic import close_flushed


class _Piece:
    """What is written behind what a file has; it goes there as it comes, and is counted."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.bytes = 0
        self.fault: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            self._file.write(data)
        except OSError as error:
            self.fault = error
            raise
        self.bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """The file is flushed when all of it is there."""


class FrameFile:
    """Frames with the same columns, each in one of several parts; a part has them in order.

    What they take up goes to a file from `in_memory` bytes on.
    """

    def __init__(
        self, in_memory: int, compression: Literal["lz4", "uncompressed"] = "uncompressed"
    ) -> None:
        # What the file has is gone with it; it closes with whoever holds it.
        self._file = tempfile.SpooledTemporaryFile(in_memory)  # noqa: SIM115
        weakref.finalize(self, close_flushed, self._file)
        self._in_memory, self._compression = in_memory, compression
        self._places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.bytes = 0

    def add(self, rows: pl.DataFrame, part: int = 0) -> None:
        """Put rows behind all others of their part."""
        packed = _Piece(self._file)
        try:
            self._file.seek(self.bytes)
            rows.write_ipc(packed, compression=self._compression)  # type: ignore[call-overload]
            self._file.flush()
        except (pl.exceptions.PolarsError, OSError) as error:
            # A full disk is told in words there; the file has no name that would tell which one.
            fault = packed.fault or error
            if isinstance(fault, OSError):
                fault.filename = tempfile.gettempdir()
            raise fault from None
        self._places[part].append((self.bytes, packed.bytes))
        self.bytes += packed.bytes

    @property
    def parts(self) -> list[int]:
        return sorted(self._places)

    def frames(
        self, part: int = 0, at_once: int = 0, columns: list[str] | None = None
    ) -> Iterator[pl.DataFrame]:
        """The frames of a part; more than one in one, up to so many bytes. None: all columns."""
        waiting: list[pl.DataFrame] = []
        held = 0
        for at, size in self._places.get(part, ()):
            if waiting and held + size > at_once:
                yield pl.concat(waiting)
                waiting, held = [], 0
            waiting.append(self._read(at, size, columns))
            held += size
        if waiting:
            yield pl.concat(waiting)

    def _read(self, at: int, size: int, columns: list[str] | None) -> pl.DataFrame:
        if size == self.bytes > self._in_memory:
            # A frame with a file of its own is mapped, and so not copied twice.
            path = Path("/proc/self/fd", str(self._file.fileno()))
            if path.exists():
                return pl.read_ipc(path, columns=columns)
        self._file.seek(at)
        return pl.read_ipc(BytesIO(self._file.read(size)), columns=columns)

    def by_hash(self, columns: Sequence[str], parts: int, in_memory: int) -> "FrameFile":
        """The rows of the first part in so many, those with the same values in the same one."""
        if parts == 1:
            return self
        parted = FrameFile(in_memory)
        number = pl.struct(columns).hash() % parts
        for rows in self.frames(at_once=in_memory):
            for (part,), some in rows.group_by(number, maintain_order=True):
                parted.add(some, int(part))
        return parted
