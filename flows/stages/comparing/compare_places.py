"""The places of the two sides of a comparison: files, folders and addresses of tables."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from connectors.compare.csv_side import csv_source
from connectors.compare.parquet_side import PARQUET, files_in, parquet_side
from connectors.compare.results import RESULTS
from connectors.compare.sides import SideSource
from connectors.compare.table_side import TableSource, opened
from connectors.errors import SidesRefused
from connectors.files.disk.system_errors import cure
from connectors.settings import Limits
from flows.steps.match.statuses import Comparison

_TABLE = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_LIKE_ADDRESS = re.compile(
    r"\s*[a-z][a-z0-9+.-]+:/|.*:.*@|.*\bpassword\s*=", re.IGNORECASE | re.DOTALL
)


def is_table(place: str) -> bool:
    """Whether a place is the address of a table rather than a path."""
    return _TABLE.match(place) is not None


def refuse_no_place(title: str, place: str) -> None:
    """Refuse an empty path, and what looks like an address but is neither a file nor a table.

    Such an address may contain a password, so no part of it is shown.
    """
    if not place.strip():
        raise SidesRefused(
            f"The {title} side {place!r} is no path. Name a file, a folder or a table; if a "
            "variable names it, the variable is not set."
        )
    if not is_table(place) and _LIKE_ADDRESS.match(place) and not os.path.lexists(place):
        raise SidesRefused(
            f"The {title} side is no file, and looks like an address that is not read here. Write "
            "postgresql://USER@HOST/DB?table=SCHEMA.TABLE, without a password: that is given by "
            "PGPASSWORD or ~/.pgpass."
        )


def open_source(
    place: str,
    scratch: Path,
    delimiter: str | None,
    key: Sequence[str],
    limits: Limits,
    open_tables: ExitStack,
) -> SideSource:
    """Open the side at a place; a table stays open until `open_tables` ends."""
    if is_table(place):
        return TableSource(open_tables.enter_context(opened(place, key)), scratch)
    path = Path(place)
    mode = _mode(path)
    if mode is None:
        raise SidesRefused(f"{place} does not exist. Check the spelling.")
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise SidesRefused(f"{place} is no regular file. Write its content into one first.")
    if stat.S_ISDIR(mode) or path.suffix.lower() in PARQUET:
        return parquet_side(path)
    return csv_source(path, scratch, delimiter, limits)


def refuse_over(folder: Path, place: str) -> None:
    """Refuse a results folder in which a result would overwrite a side or become part of it."""
    side, mode = Path(place), _mode_of(place)
    over = (
        folder.resolve().is_relative_to(side.resolve())
        if stat.S_ISDIR(mode)
        else stat.S_ISREG(mode) and any(_is_same(folder / name, side) for name in RESULTS)
    )
    if over:
        raise SidesRefused(
            f"--out {folder}: the results would be written over {place}, which is compared. Name "
            "another folder."
        )


def _is_same(path: Path, other: Path) -> bool:
    # An unreadable path is reported when the results are written.
    with suppress(OSError):
        return path.samefile(other)
    return False


class SideFile(NamedTuple):
    """A compared file or folder, as it was before the comparison."""

    path: Path
    sha256: str
    """The file's hash; empty for a folder."""
    stood: tuple[int, ...] | None


def hashed(place: str) -> SideFile | None:
    """The file or folder at a place; None for a table, and for anything else."""
    path, mode = Path(place), _mode_of(place)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return None
    with _refusing_unreadable(path):
        stood = _stands(path)
        if stat.S_ISDIR(mode):
            return SideFile(path, "", stood)
        with path.open("rb") as file:
            return SideFile(path, hashlib.file_digest(file, "sha256").hexdigest(), stood)


def _mode_of(place: str) -> int:
    """The mode of a side's file; 0 for a table, and if nothing is there."""
    return 0 if is_table(place) else _mode(Path(place)) or 0


def _mode(path: Path) -> int | None:
    """The mode of a path; None if nothing has this name."""
    with _refusing_unreadable(path), suppress(FileNotFoundError, NotADirectoryError, ValueError):
        return path.stat().st_mode
    return None


@contextmanager
def _refusing_unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SidesRefused(
            f"{path}: cannot be read: {error.strerror}. {cure(error)}, then compare again."
        ) from error


def _stands(path: Path) -> tuple[int, ...] | None:
    with suppress(OSError):
        # Whoever copies a file can give it the old time of its content, but not of its change.
        found = [file.stat() for file in (files_in(path) if path.is_dir() else (path,))]
        return tuple(part for one in found for part in (one.st_ino, one.st_size, one.st_ctime_ns))
    return None


def of_files(comparison: Comparison, *files: SideFile | None) -> Comparison:
    """Add the hashes of the files; raises SidesRefused if a side was written to meanwhile."""
    for file in files:
        if file and _stands(file.path) != file.stood:
            raise SidesRefused(f"{file.path} changed while it was compared. Compare it again.")
    left, right = (
        replace(side, sha256=file.sha256 if file else "")
        for side, file in zip((comparison.left, comparison.right), files, strict=True)
    )
    return replace(comparison, left=left, right=right)
