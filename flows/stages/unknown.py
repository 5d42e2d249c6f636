"""Contents in the archive that no batch knows: what a restored database has lost shows by them.

So do imports that stopped before they had a batch, and those that are under way.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from connectors.files.archive import kept_path
from connectors.postgres.accounts import sees_part
from connectors.postgres.push.restores import known_contents
from flows.stages.workspace import Workspace
from schemas.counting import grouped, quantity


@dataclass(frozen=True, slots=True)
class Unknown:
    """One content that no batch brought."""

    path: str
    """Below RECON_HOME."""
    bytes: int
    at: str
    """When it was delivered last."""
    delivered: tuple[str, ...] = ()
    """The same bytes in the archive of the inbox, below RECON_HOME; none where it came packed."""

    @property
    def text(self) -> str:
        """The same in one line."""
        where = f": {', '.join(self.delivered)}" if self.delivered else ""
        return f"{self.path}, {quantity(self.bytes, 'byte', grouped)}, {self.at}{where}"


def unknown_contents(
    workspace: Workspace, connection: psycopg.Connection, contents: Collection[str]
) -> tuple[Unknown, ...]:
    """Those of these contents, by their hash, that no batch knows.

    None for whoever sees a part of the batches: the contents of others are unknown to them.
    """
    if not contents or sees_part(connection, "extract"):
        return ()
    settings = workspace.settings
    lost = sorted({*contents} - known_contents(connection))
    delivered = _in_inbox(settings.home, {*lost}) if lost else {}
    found = []
    for sha256 in lost:
        path = kept_path(settings.archive, sha256)
        with suppress(FileNotFoundError):
            status = path.stat()
            at = f"{datetime.fromtimestamp(status.st_mtime, UTC):%Y-%m-%d %H:%M:%S} UTC"
            below = str(path.relative_to(settings.home))
            found.append(Unknown(below, status.st_size, at, tuple(delivered.get(sha256, ()))))
    return tuple(found)


def _in_inbox(home: Path, contents: Collection[str]) -> Mapping[str, list[str]]:
    """Where the archive of the inbox has these bytes."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((home / "inbox" / "archive").glob("??/*/*")):
        if path.is_file():
            with suppress(OSError), path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                if sha256 in contents:
                    found[sha256].append(str(path.relative_to(home)))
    return found
