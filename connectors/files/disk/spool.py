"""Rows waiting to be applied, kept on disk while their batch is under way.

This is only a cache: rows that are missing, cut short or differ from their chunk's receipt are read
from the staged rows instead. So are rows of another version, whose receipts are not read here
(`connectors.forms`). A chunk's file is in Arrow format, with the columns of the target.
"""

import hashlib
import io
import logging
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from connectors.files.disk.atomic import open_private, private_folder
from connectors.settings import Settings

log = logging.getLogger("recon.apply")

OF_EXTRACT = ("batch_id", "extract_id")
"""Columns of the target that are left out because they are the same for all rows of a chunk."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """All clean rows of one chunk."""

    path: Path
    sha256: str
    first: int
    last: int
    rows: int


def spool_path(settings: Settings, batch_id: int, extract_id: int, chunk: int) -> Path:
    return _folder(settings, batch_id) / f"{extract_id}-{chunk}"


def write_spool(path: Path, frames: Sequence[pl.DataFrame]) -> str | None:
    """Keep rows; returns the hash of the file, or None if they cannot be kept."""
    buffer = io.BytesIO()
    pl.concat(frames).drop(OF_EXTRACT).write_ipc(buffer)
    content = buffer.getbuffer()
    try:
        private_folder(path.parent)
        with open_private(path) as file:
            file.write(content)
    except OSError:
        with suppress(OSError):
            path.unlink()
        return None
    return hashlib.sha256(content).hexdigest()


def read_spool(spooled: Spooled) -> pl.DataFrame | None:
    """The kept rows, without `OF_EXTRACT`; None if the file does not hold these rows."""
    try:
        content = spooled.path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != spooled.sha256:
        log.warning("%s is not what was written; its rows are made again", spooled.path)
        return None
    rows = pl.read_ipc(content)
    return rows if rows.height == spooled.rows else None


def clear_spool(settings: Settings, batch_id: int) -> None:
    """Remove the rows of a batch that no longer waits."""
    with suppress(OSError):
        shutil.rmtree(_folder(settings, batch_id))


def _folder(settings: Settings, batch_id: int) -> Path:
    return settings.spool / f"batch-{batch_id}"
