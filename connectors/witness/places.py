"""Where witnesses are given to: a file, an object store, a webhook; out of the database's reach.

Giving a witness twice leaves it there once, so that one whose receipt was lost can be given again;
only a webhook may see it twice.
"""

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from connectors.errors import WitnessPlaceFailed
from connectors.files.atomic import PRIVATE_FILE
from connectors.files.stores import package_needed
from schemas.guards.witness import Witness, WitnessLine

POST_SECONDS = 5.0
"""Of one witness at a webhook: whoever decides waits for it."""
STORE_SECONDS = 15.0
LINE_BYTES = 4096
"""More than any witness has."""


class WitnessPlace(Protocol):
    """What is asked of a place; every method raises WitnessPlaceFailed."""

    name: str
    """As messages show it: without what may be a secret."""

    def give(self, witness: Witness, *, begun: bool) -> None:
        """Add a witness; `begun`: others were given there before, so something has to be there."""
        ...

    def read(self) -> list[WitnessLine] | None:
        """All that is there, in order; None: the place cannot be read by its nature."""
        ...


def place_at(address: str) -> WitnessPlace:
    """The place that an address of RECON_AUDIT_WITNESS names."""
    scheme = urlsplit(address).scheme if "://" in address else ""
    if not scheme:
        return FilePlace(Path(address))
    return Webhook(address) if scheme in ("http", "https") else StorePlace(address)


@contextmanager
def _failures(name: str, what: str) -> Iterator[None]:
    try:
        yield
    except WitnessPlaceFailed:
        raise
    except ImportError as error:
        raise WitnessPlaceFailed(package_needed(name)) from error
    except Exception as error:  # noqa: BLE001 -- whatever the library of a store raises.
        why = getattr(error, "strerror", None) or type(error).__name__
        raise WitnessPlaceFailed(f"{name} cannot be {what}: {why}") from None


def _within(seconds: float, work: Callable[[], None]) -> None:
    """Do this in a thread that is left behind when it takes longer; done late, it does no harm.

    The timeouts of a library are for each of its reads and attempts, and so is none for all.
    """
    failed: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- it is raised again below.
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:g} s")
    if failed:
        raise failed[0]


class FilePlace:
    """A file that is only ever added to, a line for each witness.

    Its folder has to be there: one that is not mounted is not replaced by another.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, str(path)

    def give(self, witness: Witness, *, begun: bool) -> None:
        """Append the line and flush it to disk."""
        if begun and not self._path.exists():
            raise WitnessPlaceFailed(f"{self.name} is gone, and witnesses were given there")
        with _failures(self.name, "written"):
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            with os.fdopen(os.open(self._path, flags, PRIVATE_FILE), "r+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - LINE_BYTES))
                tail = file.read()
                line = witness.line.encode() + b"\n"
                if not tail.endswith(line):
                    file.write(_rest(tail, line))
                os.fsync(file.fileno())
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def read(self) -> list[WitnessLine]:
        """Its lines; no file is a fault that whoever reads has to tell."""
        with _failures(self.name, "read"):
            text = self._path.read_bytes().decode(errors="replace")
        lines = text.split("\n")
        return [
            WitnessLine(self.name, f"line {number}", line)
            for number, line in enumerate(lines, 1)
            if line
        ]


def _rest(tail: bytes, line: bytes) -> bytes:
    """What is still to be written: a line that was cut off by a crash is completed."""
    begun = tail.rpartition(b"\n")[2]
    return line[len(begun) :] if line.startswith(begun) else b"\n" + line


class StorePlace:
    """A folder of an object store, an object for each witness, never overwritten."""

    def __init__(self, address: str) -> None:
        self._address, self.name = address.rstrip("/"), address.rstrip("/")

    def give(self, witness: Witness, *, begun: bool) -> None:  # noqa: ARG002
        """Put the object; one of its name is compared and left as it is."""
        name = f"{self._address}/{witness.number:010d}-{witness.sha256[:16]}.json"
        content = witness.line.encode() + b"\n"

        def put() -> None:
            files = self._files()
            try:
                files.makedirs(self._address, exist_ok=True)
                files.pipe_file(name, content, mode="create")
            except FileExistsError:
                if files.cat_file(name) != content:
                    raise WitnessPlaceFailed(f"{name} is there with another content") from None

        with _failures(self.name, "written"):
            _within(STORE_SECONDS, put)

    def read(self) -> list[WitnessLine]:
        """Its objects by name, which is in the order of their numbers."""
        with _failures(self.name, "read"):
            files = self._files()
            names = sorted(str(one) for one in files.ls(self._address, detail=False))
            found = []
            for name in names:
                text = files.cat_file(name).decode(errors="replace")
                found.append(
                    WitnessLine(self.name, name.rpartition("/")[2], text.removesuffix("\n"))
                )
            return found

    def _files(self) -> Any:
        import fsspec  # type: ignore[import-untyped]  # noqa: PLC0415 -- most have no store.

        files, _ = fsspec.core.url_to_fs(self._address)
        files.invalidate_cache()
        return files


class Webhook:
    """A URL that takes each witness as the body of a POST; what it keeps is its own affair."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._url, self.name = url, f"{parts.scheme}://{parts.hostname}"
        if parts.port:
            self.name += f":{parts.port}"

    def give(self, witness: Witness, *, begun: bool) -> None:  # noqa: ARG002
        """POST the line; anything but a 2xx is not given."""
        import httpx  # noqa: PLC0415 -- nothing else of a batch without a service needs it.

        def post() -> None:
            with (
                httpx.Client(trust_env=False, timeout=POST_SECONDS) as client,
                client.stream(
                    "POST",
                    self._url,
                    content=witness.line.encode(),
                    headers={"Content-Type": "application/json"},
                ) as answer,
            ):
                if not answer.is_success:
                    raise WitnessPlaceFailed(f"{self.name} answered {answer.status_code}")

        with _failures(self.name, "reached"):
            _within(POST_SECONDS, post)

    def read(self) -> None:
        """Nothing: a webhook takes and does not give back."""
