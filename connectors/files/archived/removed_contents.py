"""The list of what housekeeping removed from an archive, kept beside it: `archive/removed.jsonl`.

The ledger has the same facts, but a ledger restored from a backup does not know what was removed or
delivered again since; this list belongs to the home. The report of a batch is listed by `REPORT`
and the hash of its manifest.
"""

import json
import logging
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from connectors.errors import ReconError
from connectors.files.disk.atomic import open_private, take_lock, write_file

log = logging.getLogger("recon.archive")
REMOVED_LIST = "removed.jsonl"
REPORT = "report "
LISTED = timedelta(days=1096)
"""How long a content stays listed: three years, longer than any backup is worth restoring."""
LOCK_SECONDS = 10
"""How long to wait for a process that writes the list; it takes a moment, unless it hangs."""
# Found by pattern, so that a line cut off by a full disk does not spoil the next one.
_LINE = re.compile(r"\{[^{}]*\}")
_HASH = re.compile(r"[0-9a-f]{64}")


def list_removed(archive: Path, sha256: str, at: datetime, *, kept: bool = False) -> None:
    """Add a line before something is removed; with `kept`, when it is kept again.

    A full disk must not prevent making room on it, nor may a process that hangs, so a failure is
    only logged.
    """
    try:
        with _alone(archive) as file:
            file.write(_line(sha256, at, kept=kept))
    except (OSError, ReconError) as error:
        log.warning(
            "%s: %s. The removal of %s is not noted there", archive / REMOVED_LIST, error, sha256
        )


def forget_long_removed(archive: Path, now: datetime) -> None:
    """Drop lines from the list that no longer matter, and removals too long ago.

    Lines about contents kept again, or listed later again, do not matter. A list that cannot be
    written stays as it is.
    """
    path = archive / REMOVED_LIST
    if not path.exists():
        return
    try:
        with _alone(archive):
            lines = _lines(archive)
            left = {sha256: at for sha256, at in _last_removals(lines).items() if at > now - LISTED}
            if len(left) < lines.count("\n"):
                write_file(path, b"".join(_line(sha256, at) for sha256, at in left.items()))
    except (OSError, ReconError) as error:
        log.warning("%s could not be shortened and stays as it is: %s", path, error)


def _line(sha256: str, at: datetime, *, kept: bool = False) -> bytes:
    entry = {"sha256": sha256, "at": at.isoformat()} | ({"kept": True} if kept else {})
    return json.dumps(entry).encode() + b"\n"


@contextmanager
def _alone(archive: Path) -> Iterator[BinaryIO]:
    """The list, locked for adding to it; reopened if it was rewritten meanwhile."""
    path = archive / REMOVED_LIST
    while True:
        with open_private(path, append=True) as file:
            take_lock(file, LOCK_SECONDS, lambda: "another process has it locked")
            if os.fstat(file.fileno()).st_nlink:
                yield file
                return


def listed_as_removed(archive: Path) -> dict[str, datetime]:
    """When each content or report was last removed, unless it was kept again since.

    Unreadable lines are ignored.
    """
    return _last_removals(_lines(archive))


def listed_among(archive: Path, contents: Collection[str]) -> set[str]:
    """Those contents that are listed as removed; quick if the list names none of them."""
    lines = _lines(archive)
    named = {*contents}.intersection(_HASH.findall(lines))
    return named & _last_removals(lines).keys() if named else named


def _lines(archive: Path) -> str:
    try:
        return (archive / REMOVED_LIST).read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _last_removals(lines: str) -> dict[str, datetime]:
    found: dict[str, datetime] = {}
    for line in _LINE.finditer(lines):
        try:
            entry = json.loads(line[0])
            sha256, at = str(entry["sha256"]), datetime.fromisoformat(entry["at"])
        except (ValueError, KeyError, TypeError):
            continue
        if entry.get("kept") is True:
            found.pop(sha256, None)
        elif at.tzinfo is not None:
            found[sha256] = at
    return found
