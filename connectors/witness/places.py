"""Where witnesses are given to: a file, an object store, a webhook; out of the database's reach.

Every method of a place raises WitnessPlaceFailed; a place's name holds no secret. Giving a witness
twice leaves it there once, so a witness whose receipt was lost can be given again; only a webhook
may see it twice. A place that can be read takes no second witness with the same number.
"""

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from connectors.errors import WitnessPlaceFailed
from connectors.files.disk.atomic import PRIVATE_FILE, sync_folder
from connectors.files.incoming.stores import package_needed
from schemas.guards.witness import Witness, WitnessLine, read_witness

POST_SECONDS = 5.0
"""Time limit for one witness at a webhook: the person who decides waits for it."""
STORE_SECONDS = 15.0
"""Time limit for one question to an object store."""
LOOK_SECONDS = 5.0
"""Time limit for asking, before a witness is made, whether a store has others."""
LINE_BYTES = 4096
"""More bytes than any witness has."""

Done = TypeVar("Done")


def place_at(address: str) -> "WitnessPlace":
    """The place an address of RECON_AUDIT_WITNESS names."""
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


def _within(seconds: float, work: Callable[[], Done]) -> Done:
    """Do the work in a thread that is abandoned if it takes longer; finishing late does no harm.

    A library's timeouts hold for each read and attempt, not for the whole.
    """
    done: list[Done] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:  # noqa: BLE001 -- it is raised again below.
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:g} s")
    return done[0]


def _another(name: str, number: int) -> WitnessPlaceFailed:
    return WitnessPlaceFailed(
        f"{name} has another witness {number}: another RECON_HOME gives there, or this one went on "
        "from a backup. Keep RECON_HOME/witness under another name, and the next witness goes on "
        "from what the place has; or name another place for this home"
    )


class FilePlace:
    """A file that is only appended to, with a line for each witness.

    Its folder must exist: a folder that is not mounted is not replaced by a new one.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, str(path)

    def give(self, witness: Witness, *, begun: bool) -> None:
        """Append the line and flush it to disk; a line already there is left as it is.

        `begun`: witnesses were given there before, so the file has to exist.
        """
        if begun and not self._path.exists():
            raise WitnessPlaceFailed(f"{self.name} is gone, and witnesses were given there")
        with (
            _failures(self.name, "written"),
            self._opened(os.O_RDWR | os.O_APPEND | os.O_CREAT) as file,
        ):
            fcntl.flock(file, fcntl.LOCK_EX)
            tail = _tail(file)
            rest = _rest(tail, witness.line.encode() + b"\n")
            if any(one.number >= witness.number for one in _witnesses(tail)):
                there = {line.text for line in self.read()}
                if witness.line in there:
                    rest = b"" if tail.endswith(b"\n") else b"\n"
                elif any(_number(line) == witness.number for line in there):
                    raise _another(self.name, witness.number)
            _append(file, rest)
            os.fsync(file.fileno())
            sync_folder(self._path.parent)

    def read(self) -> list[WitnessLine]:
        """Its lines; a missing file is a fault."""
        with _failures(self.name, "read"), self._opened(os.O_RDONLY) as file:
            text = file.read().decode("utf-8-sig", errors="replace")
        lines = text.split("\n")
        return [
            WitnessLine(self.name, f"line {number}", line.removesuffix("\r"))
            for number, line in enumerate(lines, 1)
            if line
        ]

    def beyond(self, number: int) -> bool:
        """Whether a witness after this number may be there; quick, however many there are.

        Only the end of the file is read; a last line that is no witness counts as yes.
        """
        with _failures(self.name, "read"), self._opened(os.O_RDONLY) as file:
            tail = _tail(file)
        last = read_witness(_text(tail.splitlines()[-1])) if tail else None
        return bool(tail) and (last is None or any(one.number > number for one in _witnesses(tail)))

    def fix_last_line(self) -> None:
        """Complete or cut off a last line that a crash left unfinished."""
        with _failures(self.name, "mended"), self._opened(os.O_RDWR | os.O_APPEND) as file:
            if (tail := _tail(file)).endswith(b"\n") or not tail:
                return
            file.seek(0)
            content = file.read()
            begun = content.rpartition(b"\n")[2]
            if read_witness(_text(begun)):
                _append(file, b"\n")
            else:
                os.ftruncate(file.fileno(), len(content) - len(begun))
            os.fsync(file.fileno())

    def _opened(self, flags: int) -> FileIO:
        """The file, opened without waiting for the other end of a pipe."""
        flags |= os.O_CLOEXEC | os.O_NONBLOCK
        file = os.open(self._path, flags, PRIVATE_FILE)
        if stat.S_ISREG(os.fstat(file).st_mode):
            return FileIO(file, "r+" if flags & os.O_RDWR else "r")
        os.close(file)
        raise WitnessPlaceFailed(
            f"{self.name} is no regular file. Name a file; it is made where there is none"
        )


def _tail(file: FileIO) -> bytes:
    """The end of a file, with some of its last lines."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LINE_BYTES))
    return file.read()


def _text(line: bytes) -> str:
    return line.decode(errors="replace").removesuffix("\n").removesuffix("\r")


def _witnesses(tail: bytes) -> list[Witness]:
    """The witnesses whose whole line is in `tail`."""
    found = (read_witness(_text(line)) for line in tail.split(b"\n"))
    return [one for one in found if one is not None]


def _number(line: str) -> int:
    one = read_witness(line)
    return one.number if one else 0


def _append(file: FileIO, content: bytes) -> None:
    """Write all of the content, or take back the written part if the place allows that."""
    size = file.seek(0, os.SEEK_END)
    written = 0
    try:
        while written < len(content):
            written += file.write(content[written:])
    except OSError:
        with suppress(OSError):  # Otherwise the next giver completes the line.
            os.ftruncate(file.fileno(), size)
        raise


def _rest(tail: bytes, line: bytes) -> bytes:
    """What is still to be written: a line cut off by a crash is completed."""
    begun = tail.rpartition(b"\n")[2]
    return line[len(begun) :] if line.startswith(begun) else b"\n" + line


class StorePlace:
    """A folder of an object store, with an object for each witness, never overwritten."""

    def __init__(self, address: str) -> None:
        self._address, self.name = address.rstrip("/"), address.rstrip("/")

    def give(self, witness: Witness, *, begun: bool) -> None:  # noqa: ARG002
        """Put the object; an existing one of its name is compared and left as it is."""
        name = f"{witness.number:010d}-{witness.sha256[:16]}.json"
        path, content = f"{self._address}/{name}", witness.line.encode() + b"\n"

        def put() -> None:
            files = self._files()
            there = set[str]()
            with suppress(Exception):  # The right to write may come without the right to list.
                there = self._named(files, f"{witness.number:010d}-")
            if there - {name}:
                raise _another(self.name, witness.number)
            try:
                files.makedirs(self._address, exist_ok=True)
                files.pipe_file(path, content, mode="create")
            except FileExistsError:
                if files.cat_file(path) != content:
                    raise WitnessPlaceFailed(f"{path} is there with another content") from None

        with _failures(self.name, "written"):
            _within(STORE_SECONDS, put)

    def read(self) -> list[WitnessLine]:
        """Its objects by name, which is the order of their numbers."""

        def get(path: str, size: int) -> WitnessLine:
            content = b"" if size > LINE_BYTES else files.cat_file(path)
            return WitnessLine(self.name, path.rpartition("/")[2], _text(content))

        with _failures(self.name, "read"):
            files = self._files()
            listed = _within(STORE_SECONDS, lambda: files.ls(self._address, detail=True))
            sizes = sorted((str(one["name"]), one.get("size") or 0) for one in listed)
            return [_within(STORE_SECONDS, partial(get, *one)) for one in sizes]

    def beyond(self, number: int) -> bool:
        """Whether a witness after this number may be there; only the next number is looked up."""
        begin = f"{number + 1:010d}-" if number else ""
        with _failures(self.name, "read"):
            return bool(_within(LOOK_SECONDS, lambda: self._named(self._files(), begin)))

    def _named(self, files: Any, begin: str) -> set[str]:
        """The names of objects with this prefix; the store filters them itself if it can."""
        paths = files.find(self._address, prefix=begin)
        names = {str(path).rpartition("/")[2] for path in paths}
        return {name for name in names if name.startswith(begin)}

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
        """POST the line; only a 2xx counts as given, and 409 means the number is taken."""
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
                if answer.status_code == httpx.codes.CONFLICT:
                    raise WitnessPlaceFailed(
                        f"{self.name} says that it has another witness {witness.number}: another "
                        "RECON_HOME gives there, or this one went on from a backup. A webhook "
                        "cannot be gone on from: put the newer RECON_HOME/witness back, or name "
                        "another place for this home"
                    )
                if not answer.is_success:
                    raise WitnessPlaceFailed(f"{self.name} answered {answer.status_code}")

        with _failures(self.name, "reached"):
            _within(POST_SECONDS, post)

    def read(self) -> None:
        """Returns None: a webhook takes witnesses and gives none back."""

    def beyond(self, number: int) -> bool:  # noqa: ARG002
        """Always False: nobody can look into a webhook."""
        return False


WitnessPlace: TypeAlias = FilePlace | StorePlace | Webhook
