"""Contents in the archive that no batch knows, by which a restored database's losses show.

Imports that stopped before they had a batch, or are under way, leave such contents too.
"""

import hashlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from connectors.files.archived.archive import kept_path
from connectors.postgres.accounts import sees_part
from connectors.postgres.push.restores import known_contents
from flows.stages.workspace import Workspace
from schemas.counting import grouped, quantity


@dataclass(frozen=True, slots=True)
class Unknown:
    """A content that no batch brought."""

    path: str
    """Path below RECON_HOME."""
    bytes: int
    at: str
    """When it was last delivered."""
    delivered: tuple[str, ...] = ()
    """Files with the same bytes in the inbox's archive, below RECON_HOME; none if packed."""

    @property
    def text(self) -> str:
        """The content in one line."""
        where = f": {', '.join(self.delivered)}" if self.delivered else ""
        return f"{self.path}, {quantity(self.bytes, 'byte', grouped)}, {self.at}{where}"


def unknown_contents(
    workspace: Workspace, connection: psycopg.Connection, contents: Collection[str]
) -> tuple[Unknown, ...]:
    """Those of these contents, by their hash, that no batch knows.

    Empty for an account that sees only a part of the batches, as it does not know other contents.
    """
    if not contents or sees_part(connection):
        return ()
    settings = workspace.settings
    lost = {}
    for sha256 in sorted({*contents} - known_contents(connection)):
        path = kept_path(settings.archive, sha256)
        with suppress(FileNotFoundError):
            status = path.stat()
            at = f"{datetime.fromtimestamp(status.st_mtime, UTC):%Y-%m-%d %H:%M:%S} UTC"
            lost[sha256] = Unknown(str(path.relative_to(settings.home)), status.st_size, at)
    delivered = _in_inbox(settings.home, lost)
    return tuple(replace(one, delivered=delivered[sha256]) for sha256, one in lost.items())


def _in_inbox(home: Path, lost: Mapping[str, Unknown]) -> Mapping[str, tuple[str, ...]]:
    """Where the inbox's archive has the same bytes; reads only files with a lost content's size."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(lost, ())
    sizes = {one.bytes for one in lost.values()}
    for path in sorted((home / "inbox" / "archive").glob("??/*/*")) if lost else ():
        with suppress(OSError):
            if path.is_file() and path.stat().st_size in sizes:
                with path.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                if sha256 in found:
                    found[sha256] += (str(path.relative_to(home)),)
    return found
