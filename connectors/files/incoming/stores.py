"""Where delivered files are: the disk, an upload, or an object store reached through fsspec."""

import errno
import glob
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast

from connectors.errors import DeliveryError, EvidenceBroken, MachineFailed, ReconError
from connectors.files.disk.system_errors import too_many_open
from connectors.printable import shown

PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
}
STORES = (*PACKAGES, "memory")
UPLOAD, UPLOAD_NAMES, UPLOAD_NAMED = "upload", "names.json", r"^[0-9a-f]{32}$"
"""The scheme of files uploaded by a form, the file beside them with their names, and the pattern of
their folder's name."""
OF_THE_MACHINE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE)
"""Errors of the machine that say nothing about the file."""

VERSION = ("ETag", "etag", "generation", "LastModified", "last_modified", "created", "mtime")
"""Properties by which stores show that an object was replaced or rewritten."""

Sort = Literal["file", "folder", "other"]
FileState = tuple[int, ...] | tuple[int, str]
"""A file's state, which changes if it is replaced or written to; its size comes first."""


def place_of(location: str) -> "FileStore":
    scheme, separator, _ = location.partition("://")
    if not separator:
        return Disk()
    return Uploaded() if scheme == UPLOAD else ObjectStore(scheme)


def location_of(path: str) -> str:
    """One spelling per place: an absolute path, or a URL of a known store.

    Raises DeliveryError for another kind of URL, for one that carries a password, and for an empty
    path, which would otherwise mean the current folder.
    """
    path = os.fspath(path).removeprefix("file://")
    if not path.strip() or "\0" in path:
        raise DeliveryError(
            f"{shown(path)!r} is no path. Name files or folders; where a variable names them, it "
            "is not set."
        )
    protocol, separator, rest = path.partition("://")
    if not separator:
        return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 (`..` is resolved)
    if protocol not in (*STORES, UPLOAD):
        raise DeliveryError(
            f"{shown(protocol, 20)}:// is no place extracts are read from. "
            f"Use a local path or one of {', '.join(f'{store}://' for store in STORES)}."
        )
    user, at, _ = rest.partition("/")[0].partition("@")
    if at and ":" in user:
        raise DeliveryError(
            f"{protocol}://...: the address holds a password. "
            "Leave it out, and give credentials the way the store's own tools read them."
        )
    return f"{protocol}://{rest.rstrip('/')}"


def package_needed(location: str) -> str:
    """Which package a store needs, and how to install it where this program finds it."""
    protocol = location.partition("://")[0]
    package = PACKAGES.get(protocol, protocol)
    return (
        f"{protocol}:// needs the package {package} in recon's own environment: pipx inject recon "
        f"{package}, or pip install {package} in its virtual environment."
    )


def unreadable(location: str, error: OSError | ImportError) -> ReconError:
    """The error for a file that exists by name but cannot be read; never the store's own text."""
    if isinstance(error, ImportError):
        return DeliveryError(package_needed(location))
    what = f"{shown(location)}: cannot be read: {error.strerror or type(error).__name__}."
    if error.errno in OF_THE_MACHINE:
        todo = too_many_open(error) or "Nothing is said against the file. Run again."
        return MachineFailed(f"{what} {todo}")
    return DeliveryError(f"{what} Check that it exists and may be read.")


class Disk:
    """Files on this disk; locations separate their parts by `/`.

    Every method raises OSError or ImportError, as in `ObjectStore`, whatever its library raises.
    """

    def sort(self, location: str) -> Sort | None:
        path = Path(location)
        try:
            mode = path.stat().st_mode
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None  # A manifest's name beside a file with a name too long for that.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
            # A dangling or circular link must not fail the other files of its folder.
            return "other" if path.is_symlink() else None
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    def entries(self, folder: str) -> list[tuple[str, Sort]]:
        paths = [f"{folder.rstrip('/')}/{path.name}" for path in sorted(Path(folder).iterdir())]
        return [(path, self._sort_of_entry(path)) for path in paths]

    def _sort_of_entry(self, location: str) -> Sort:
        """The sort of one entry among others, which must not suffer if it cannot be examined."""
        try:
            return self.sort(location) or "other"
        except OSError as error:
            if error.errno in OF_THE_MACHINE:
                raise
            return "other"

    def matching(self, pattern: str) -> list[str]:
        return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (it begins at the root)

    def open(self, location: str) -> BinaryIO:
        return Path(location).open("rb")

    def state(self, location: str, file: BinaryIO) -> FileState:  # noqa: ARG002 -- it is open.
        """The present state of a file opened from this place."""
        status = os.fstat(file.fileno())
        return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino


def upload_token(content: bytes) -> str:
    """The name of an upload's folder, derived from the record of its files."""
    return hashlib.sha256(content).hexdigest()[:32]


class Uploaded(Disk):
    """Folders of numbered files, each with its delivered name, which is never a path.

    Only the bytes that were uploaded are read; raises EvidenceBroken for any others.
    """

    def sort(self, location: str) -> Sort | None:
        folder, name = self._parts(location)
        if name is None:
            return "folder"
        return "file" if name in self._names(folder) else None

    def entries(self, folder: str) -> list[tuple[str, Sort]]:
        path, _ = self._parts(folder)
        return [(f"{UPLOAD}://{path}/{name}", "file") for name in sorted(self._names(path))]

    def matching(self, pattern: str) -> list[str]:  # noqa: ARG002 -- its names are no patterns.
        return []

    def open(self, location: str) -> BinaryIO:
        folder, name = self._parts(location)
        names = self._names(folder)
        if name not in names:
            raise FileNotFoundError(errno.ENOENT, "no such file in this upload")
        try:
            file = (folder / str([*names].index(name) + 1)).open("rb")
        except FileNotFoundError:
            raise _not_as_uploaded(name, "it is gone") from None
        if hashlib.file_digest(file, "sha256").hexdigest() != names[name]:
            file.close()
            raise _not_as_uploaded(name, "its hash is another one")
        file.seek(0)
        return file

    def _parts(self, location: str) -> tuple[Path, str | None]:
        """The folder and the name of a file in it, or None; a name holds no slash.

        A name may look like a folder's and be too long for any path.
        """
        path = Path(location.removeprefix(f"{UPLOAD}://"))
        named = [re.fullmatch(UPLOAD_NAMED, one.name) for one in (path, path.parent)]
        return (path, None) if named[0] and not named[1] else (path.parent, path.name)

    def _names(self, folder: Path) -> dict[str, str]:
        """Its files in the order of their numbers, with their hashes."""
        content = (folder / UPLOAD_NAMES).read_bytes()
        if upload_token(content) != folder.name:
            raise _not_as_uploaded(UPLOAD_NAMES, "it was changed, or an earlier version wrote it")
        return dict(json.loads(content)["files"])


def _not_as_uploaded(name: str, why: str) -> EvidenceBroken:
    return EvidenceBroken(
        f"{shown(name)} is not what was uploaded: {why}. Nothing was taken in. Find out who "
        "changed it where uploads are kept (RECON_HOME/uploads). Upload them again."
    )


class ObjectStore:
    def __init__(self, protocol: str) -> None:
        # Imported here: the import takes a tenth of a second, and most deliveries are local.
        import fsspec  # type: ignore[import-untyped]  # noqa: PLC0415

        with store_errors():
            self._files: Any = fsspec.filesystem(protocol)
        # A cached listing would hide files that have arrived since.
        self._files.invalidate_cache()

    def sort(self, location: str) -> Sort | None:
        try:
            kind = self._ask("info", location)["type"]
        except FileNotFoundError:
            return None
        return "folder" if kind == "directory" else "file"

    def entries(self, folder: str) -> list[tuple[str, Sort]]:
        own = self._files._strip_protocol(folder).rstrip("/")
        rows = sorted(self._ask("ls", folder, detail=True), key=lambda row: str(row["name"]))
        return [
            (self._full(row["name"]), "folder" if row["type"] == "directory" else "file")
            for row in rows
            if row["name"].rstrip("/") != own
        ]

    def matching(self, pattern: str) -> list[str]:
        """The matches of fsspec's `glob`, which itself may hang on names with several stars."""
        import polars as pl  # noqa: PLC0415
        from fsspec.utils import glob_translate  # type: ignore[import-untyped]  # noqa: PLC0415

        from connectors.files.text.linear_patterns import fitting  # noqa: PLC0415

        own: str = self._files._strip_protocol(pattern)
        before = own[: next((at for at, sign in enumerate(own) if sign in "*?["), None)]
        if before == own:
            return []
        root = before[: before.rfind("/") + 1]
        depth = None if "**" in own else own.count("/") - root.count("/") + 1
        found = self._ask("find", root, maxdepth=depth, withdirs=True, detail=True)
        of_folders = "/" if own.endswith("/**") else ""
        names = [
            f"{name}{of_folders}" if info["type"] == "directory" else name
            for name, info in found.items()
        ]
        with store_errors():
            wanted = glob_translate(own).removesuffix(r"\Z")
            fits = fitting(pl.Series(names, dtype=pl.String), [wanted])
        return sorted(map(self._full, compress(found, fits)))

    def open(self, location: str) -> BinaryIO:
        return cast("BinaryIO", self._ask("open", location, mode="rb"))

    def state(self, location: str, file: BinaryIO) -> FileState:  # noqa: ARG002 -- it may be kept.
        info = self._ask("info", location)
        return int(info.get("size") or 0), str([info.get(key) for key in VERSION])

    def _ask(self, method: str, location: str, **options: object) -> Any:
        with store_errors():
            return getattr(self._files, method)(self._files._strip_protocol(location), **options)

    def _full(self, name: str) -> str:
        return str(self._files.unstrip_protocol(name))


FileStore: TypeAlias = Disk | ObjectStore


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn the errors of a store's library, missing credentials included, into OSError."""
    try:
        yield
    except (OSError, ImportError):
        raise
    except Exception as error:
        raise OSError(None, type(error).__name__) from error
