"""Uploads: files that came by a form, kept until their import has read them.

Each file is stored under a number in its upload's folder. Its delivered name is recorded beside it
with its hash, and is data: shown and compared, never used as a path. The folder's name is derived
from that record, so that an order to import states which bytes it means.
"""

import hashlib
import json
import re
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from connectors.errors import DeliveryError
from connectors.files.disk.atomic import open_private, private_folder, write_file
from connectors.files.incoming.stores import (
    UPLOAD,
    UPLOAD_NAMED,
    UPLOAD_NAMES,
    place_of,
    upload_token,
)
from connectors.printable import shown
from connectors.settings import Limits, Settings
from schemas.counting import grouped, quantity

MOST_FILES = 100
NAME_LENGTH = 255


@dataclass(slots=True)
class Upload:
    """Files being received from a form; `keep` or `drop` ends it."""

    folder: Path
    limits: Limits
    names: list[str] = field(default_factory=list)
    _hashes: "list[hashlib._Hash]" = field(default_factory=list)
    _file: BinaryIO | None = None
    is_kept: bool = False
    _bytes: int = 0

    @classmethod
    def begin(cls, settings: Settings) -> "Upload":
        token = secrets.token_hex(16)
        return cls(private_folder(uploads_folder(settings) / token), settings.limits)

    @property
    def token(self) -> str:
        """The name a job uses for the upload."""
        return self.folder.name

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def open(self, delivered: str) -> None:
        """Begin the next file; raises DeliveryError for a missing, unusable or repeated name.

        Browsers send a name, some programs a whole path; the folders in it are left out.
        """
        self.close()
        name = re.split(r"[/\\]", delivered)[-1]
        if name.strip(". ") == "":
            raise DeliveryError("A file has no name. Choose files that have one.")
        if "\0" in name:
            raise DeliveryError(f"{shown(name, 60)}: no file can be called so.")
        if len(name) > NAME_LENGTH:
            raise DeliveryError(f"{shown(name, 60)}: the name is longer than {NAME_LENGTH} signs.")
        if name in self.names:
            raise DeliveryError(
                f"Two files are called {shown(name)}. Send each by a name of its own."
            )
        if len(self.names) >= MOST_FILES:
            raise DeliveryError(f"More than {quantity(MOST_FILES, 'file')}. Put them into a zip.")
        self.names.append(name)
        self._bytes = 0
        self._hashes.append(hashlib.sha256())
        self._file = open_private(self.folder / str(len(self.names)))

    def write(self, block: bytes) -> None:
        """Write the next bytes of the file; raises DeliveryError if it becomes too large."""
        assert self._file is not None, "write comes after open"
        self._bytes += len(block)
        if self._bytes > self.limits.file_bytes:
            raise DeliveryError(
                f"{shown(self.names[-1])}: larger than "
                f"{quantity(self.limits.file_bytes, 'byte', grouped)}, the limit of "
                "RECON_LIMIT_FILE_BYTES."
            )
        self._hashes[-1].update(block)
        self._file.write(block)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def keep(self) -> None:
        """Write down the names; from then on it can be imported. Raises DeliveryError for none."""
        self.close()
        if not self.names:
            raise DeliveryError("No file was chosen. Choose one or several.")
        files = [[name, of.hexdigest()] for name, of in zip(self.names, self._hashes, strict=True)]
        # The token makes it unique: the same files sent again are another upload.
        content = json.dumps({"upload": self.token, "files": files}).encode()
        write_file(self.folder / UPLOAD_NAMES, content)
        self.folder = self.folder.rename(self.folder.with_name(upload_token(content)))
        self.is_kept = True

    def drop(self) -> None:
        """Delete everything received."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def uploads_folder(settings: Settings) -> Path:
    return settings.home / "uploads"


def upload_paths(settings: Settings, token: str) -> list[str]:
    """The locations of an upload's files; raises DeliveryError if none are kept."""
    folder = uploads_folder(settings) / token
    if re.fullmatch(UPLOAD_NAMED, token) is None or not (folder / UPLOAD_NAMES).is_file():
        raise DeliveryError("The uploaded files are not kept any more. Upload them again.")
    return [location for location, _ in place_of(f"{UPLOAD}://").entries(f"{UPLOAD}://{folder}")]


def drop_upload(settings: Settings, token: str) -> None:
    if re.fullmatch(UPLOAD_NAMED, token) is not None:
        shutil.rmtree(uploads_folder(settings) / token, ignore_errors=True)
