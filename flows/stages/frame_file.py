"""Frames put aside: small ones in memory, larger ones in a nameless file that leaves no trace."""

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
    """A writer at the end of a file that passes data on at once and counts the bytes."""

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
        """Do nothing: the file is flushed once everything is in it."""


class FrameFile:
    """Frames with the same columns, each in one of several parts; a part keeps their order.

    Beyond `in_memory` bytes they are in a file.
    """

    def __init__(
        self, in_memory: int, compression: Literal["lz4", "uncompressed"] = "uncompressed"
    ) -> None:
        # The file and its content vanish when it is closed, together with this object.
        self._file = tempfile.SpooledTemporaryFile(in_memory)  # noqa: SIM115
        weakref.finalize(self, close_flushed, self._file)
        self._in_memory, self._compression = in_memory, compression
        self._places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.bytes = 0

    def add(self, rows: pl.DataFrame, part: int = 0) -> None:
        """Append rows to their part."""
        packed = _Piece(self._file)
        try:
            self._file.seek(self.bytes)
            rows.write_ipc(packed, compression=self._compression)  # type: ignore[call-overload]
            self._file.flush()
        except (pl.exceptions.PolarsError, OSError) as error:
            # Polars tells of a full disk only in words; a nameless file is told by its folder.
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
        """The frames of a part, joined up to `at_once` bytes; `columns` None: all columns."""
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
            # The only frame of the file is mapped, which avoids a second copy.
            path = Path("/proc/self/fd", str(self._file.fileno()))
            if path.exists():
                return pl.read_ipc(path, columns=columns)
        self._file.seek(at)
        return pl.read_ipc(BytesIO(self._file.read(size)), columns=columns)

    def by_hash(self, columns: Sequence[str], parts: int, in_memory: int) -> "FrameFile":
        """Distribute the rows of the first part over `parts`, equal values into the same part."""
        if parts == 1:
            return self
        parted = FrameFile(in_memory)
        number = pl.struct(columns).hash() % parts
        for rows in self.frames(at_once=in_memory):
            for (part,), some in rows.group_by(number, maintain_order=True):
                parted.add(some, int(part))
        return parted
