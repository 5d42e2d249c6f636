"""What housekeeping removed from an archive, written down beside it: `archive/removed.jsonl`.

The ledger says so too. One that is brought back from a backup does not know what was removed since,
nor what was delivered again after that; this goes with the home.
"""

import json
import logging
import re
from datetime import datetime
from pathlib import Path

from connectors.files.atomic import open_private

log = logging.getLogger("recon.archive")
REMOVED_LIST = "removed.jsonl"
# A line that a full disk cut costs none behind it.
_LINE = re.compile(r"\{[^{}]*\}")


def list_removed(archive: Path, sha256: str, at: datetime, *, kept: bool = False) -> None:
    """Add a line for a content that is about to be removed; `kept`: for one that is kept again.

    A full disk keeps nobody from making room on it.
    """
    said = {"sha256": sha256, "at": at.isoformat()} | ({"kept": True} if kept else {})
    try:
        with open_private(archive / REMOVED_LIST, append=True) as file:
            file.write(json.dumps(said).encode() + b"\n")
    except OSError as error:
        log.warning("%s: %s: %s is not named there", archive / REMOVED_LIST, error, sha256)


def listed_as_removed(archive: Path) -> dict[str, datetime]:
    """When each content was removed last, and not kept again since.

    What cannot be read says nothing.
    """
    try:
        lines = (archive / REMOVED_LIST).read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    found: dict[str, datetime] = {}
    for line in _LINE.finditer(lines):
        try:
            told = json.loads(line[0])
            sha256, at = str(told["sha256"]), datetime.fromisoformat(told["at"])
        except (ValueError, KeyError, TypeError):
            continue
        if told.get("kept") is True:
            found.pop(sha256, None)
        elif at.tzinfo is not None:
            found[sha256] = at
    return found
