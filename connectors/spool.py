"""Tuples of rows that wait to be applied, kept on disk while their batch is under way.

Only a cache: what is missing, short or not what the receipt of its chunk says is read from the
staged rows instead. A chunk's file holds its tuples by width, each width with a line of its own.
"""

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from connectors.settings import Settings
from connectors.tuples import Bytes

_NUMBER = 8


@dataclass(frozen=True, slots=True)
class Spooled:
    """The tuples of all clean rows of one chunk."""

    path: Path
    sha256: str
    first: int
    last: int
    rows: int


def spool_path(settings: Settings, batch_id: int, extract_id: int, chunk: int) -> Path:
    """Where the tuples of a chunk wait."""
    return _folder(settings, batch_id) / f"{extract_id}-{chunk}"


def write_spool(path: Path, bodies: Sequence[Bytes]) -> str | None:
    """Keep tuples; returns their hash, or None where they cannot be kept."""
    digest = hashlib.sha256()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for body in bodies:
                head = b"".join(number.to_bytes(_NUMBER, "big") for number in body.shape)
                for part in (head, body.data.cast("B")):
                    digest.update(part)
                    file.write(part)
    except OSError:
        with suppress(OSError):
            path.unlink()
        return None
    return digest.hexdigest()


def read_spool(spooled: Spooled) -> list[Bytes] | None:
    """The tuples that were kept; None: these are not they."""
    try:
        content = spooled.path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != spooled.sha256:
        return None
    whole, bodies, at = np.frombuffer(content, np.uint8), [], 0
    while at < len(content):
        rows, width = (
            int.from_bytes(content[begin : begin + _NUMBER], "big") for begin in (at, at + _NUMBER)
        )
        at += 2 * _NUMBER
        bodies.append(whole[at : at + rows * width].reshape(rows, width))
        at += rows * width
    return bodies if sum(len(body) for body in bodies) == spooled.rows else None


def clear_spool(settings: Settings, batch_id: int) -> None:
    """Remove what no longer waits."""
    with suppress(OSError):
        shutil.rmtree(_folder(settings, batch_id))


def _folder(settings: Settings, batch_id: int) -> Path:
    return settings.home / "spool" / f"batch-{batch_id}"
