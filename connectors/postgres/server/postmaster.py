"""The process of an embedded PostgreSQL: prepared, found, started and stopped.

A process counts as this server only if the system says so: it listens on the socket in the data
folder, or works in that folder as the folder's owner. `postmaster.pid` is never believed.
"""

import errno
import fcntl
import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote_from_bytes

import psutil  # type: ignore[import-untyped]
import psycopg

from connectors.errors import DatabaseUnusable
from connectors.files.disk.atomic import OTHERS, open_private, private_folder
from connectors.postgres.server.programs import (
    as_seen_inside,
    give,
    identity,
    name_of,
    owner_of,
    program,
    server_user,
)

LONGEST_SOCKET = 100
"""Bytes of a socket's path that every system accepts."""
PORT = 5432
"""Only a part of the socket's name; the same whatever the environment says."""
TEXTS = ("--encoding=utf8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
"""Order texts by code point and map the case of all letters, whoever runs recon first."""
_WAYS = (
    "options=&target_session_attrs=any&require_auth=&channel_binding=disable"
    "&sslmode=disable&sslnegotiation=postgres&gssencmode=disable"
)
"""Connection parameters for a socket in a folder of ours."""
START_SECONDS = STOP_SECONDS = 60
PAUSE_SECONDS = 0.02
RULE = "local all all peer map=recon"
_ENTRY = re.compile(r'recon "[^"]*" all')
_REFUSED = re.compile(r"authentication failed|pg_hba\.conf")
"""Matches the server's refusal to let somebody in, which waiting does not change."""
_SERVICE = re.compile(r"\bservice\b")
"""Matches the error about an unreadable PGSERVICE, which no address can override."""


class Postmaster:
    """The server of one data folder; the caller keeps other processes from managing it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self._living = folder.with_suffix(".alive")

    def uri(self, database: str = "postgres") -> str:
        """URL of a database, over the socket in the data folder.

        It states every parameter, since libpq takes missing ones from the environment, which is
        meant for other servers.
        """
        place = f"port={PORT}&hostaddr=&{_WAYS}&host={self._socket_folder()}"
        return f"postgresql://postgres:@/{database}?{place}"

    def is_made(self) -> bool:
        return (self.folder / "PG_VERSION").exists()

    def prepare(self) -> bool:
        """Create the data folder, completely or not at all, if missing; gives whether it did."""
        if self.is_made():
            return False
        draft = self.folder.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)  # Left by a process that was killed.
        private_folder(draft)
        if os.geteuid() == 0:
            user = server_user()
            os.chown(draft, user.pw_uid, user.pw_gid)
        options = ["--auth=reject", "--auth-local=peer", "-U", "postgres", *TEXTS]
        done = subprocess.run(
            [program("initdb", draft), "-D", as_seen_inside(draft), *options],
            env=_environment(),
            **identity(draft),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DatabaseUnusable(
                f"The embedded PostgreSQL in {self.folder} cannot be set up: "
                f"{(done.stderr or done.stdout).strip()[-500:]} Nothing was made: free disk space "
                "where that is what it lacks, or set RECON_DATABASE_URL to a server of your own."
            )
        Postmaster(draft)._let_in_only_us()
        draft.rename(self.folder)
        return True

    def start(self) -> None:
        """Start the server unless it runs; leftovers of a dead one do not block it."""
        if os.geteuid() == 0 and self.folder.stat().st_uid == 0:
            give(self.folder, server_user())  # A copy that root has restored.
        if self.listens() and self._answers():
            return
        # It may also have been shutting down when it was asked.
        self._await_end_of_former()
        for path in [self.folder / "postmaster.pid", *self.folder.glob(".s.PGSQL.*")]:
            if path.is_dir() and not path.is_symlink():
                _remove_empty(path)
            path.unlink(missing_ok=True)
        self.close_to_others()
        self._launch()
        if not self._answers():
            fatal = [line for line in _lines(self.log) if "FATAL" in line or "PANIC" in line]
            last_words = fatal[-1] if fatal else "it said nothing."
            raise DatabaseUnusable(
                f"The embedded PostgreSQL in {self.folder} ended as soon as it was started: "
                f"{last_words} Read {self.log}; nothing was changed."
            )

    def stop(self) -> None:
        """Stop the server, whoever started it; raises DatabaseUnusable if it does not end."""
        found = self.listener()
        for pid in [found] if found else [process.pid for process in self._processes()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        self._await_end(STOP_SECONDS)

    def listens(self) -> bool:
        return any(_connected(path) is not None for path in self._sockets())

    def close_to_others(self) -> bool:
        """Let in only this folder's owner and root, as identified by the system.

        Rules that somebody made are kept, unless they trust everybody. Rules that recon made may
        be for the machine or account that the folder came from. Gives whether it changed anything.
        """
        rules, people = _rules(self.folder / "pg_hba.conf"), _rules(self.folder / "pg_ident.conf")
        ours = rules == [RULE] and all(map(_ENTRY.fullmatch, people))
        outdated = ours and {*people} != {*self._entries()}
        if not outdated and not any("trust" in line.split() for line in rules):
            return False
        self._let_in_only_us()
        return True

    def _entries(self) -> list[str]:
        """Entries of the server's user map for those who may be any role."""
        owner = self.folder.stat().st_uid
        names = {name_of(owner), name_of(0), name_of(os.geteuid())}
        return [f'recon "{name}" all' for name in sorted(names)]

    def _let_in_only_us(self) -> None:
        people = "\n".join(self._entries())
        for name, content in (
            ("pg_ident.conf", f"# Who may be any role of this server.\n{people}\n"),
            ("pg_hba.conf", f"# Only over the socket, only those in pg_ident.conf.\n{RULE}\n"),
        ):
            _replace(self.folder / name, content)

    def _launch(self) -> None:
        """Start the server detached, so that it outlives this process if others need it.

        It and each of its processes hold the lock as long as they live.
        """
        with (
            open_private(self._living) as living,
            open_private(self.log, append=True, follow=False) as log,
        ):
            fcntl.flock(living, fcntl.LOCK_EX)
            os.fchown(log.fileno(), *owner_of(self.folder))
            subprocess.run(
                [
                    program("pg_ctl", self.folder),
                    *("start", "--silent", "--no-wait"),
                    *("-D", as_seen_inside(self.folder)),
                    *("-o", f"-k . -h '' -p {PORT}"),
                ],
                env=_environment(),
                **identity(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C must not reach it.
                pass_fds=[living.fileno()],
                check=False,  # The log says why it failed.
            )

    def _answers(self) -> bool:
        """Wait until it accepts connections; False if it has ended meanwhile."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.uri(), connect_timeout=START_SECONDS).close()
            except psycopg.OperationalError as error:
                if not self._is_alive():
                    return False
                if _REFUSED.search(str(error)):
                    raise DatabaseUnusable(
                        f"The embedded PostgreSQL in {self.folder} does not let "
                        f"{name_of(os.geteuid())} in: {str(error).strip()}. Its pg_hba.conf and "
                        f"pg_ident.conf are not as recon writes them. Have `{RULE}` in the first "
                        f"and `{', '.join(self._entries())}` in the second, a line each, and run "
                        "the same command again."
                    ) from None
                if _SERVICE.search(str(error)):
                    raise DatabaseUnusable(
                        f"PGSERVICE cannot be read: {str(error).strip()}. The embedded PostgreSQL "
                        "needs none: run the same command again without it."
                    ) from None
                if time.monotonic() > deadline:
                    raise DatabaseUnusable(
                        f"The embedded PostgreSQL in {self.folder} does not answer within "
                        f"{START_SECONDS} s: {str(error).strip()} Read {self.log}."
                    ) from None
            else:
                return True
            time.sleep(PAUSE_SECONDS)

    def _await_end_of_former(self) -> None:
        """Wait for, or end, a server that is shutting down, or what is left of a killed one.

        Nothing listens, yet two servers in one folder would destroy it.
        """
        for name, seconds in ((None, 5), (signal.SIGINT, 30), (signal.SIGKILL, 10)):
            for process in self._processes():
                with suppress(psutil.NoSuchProcess):
                    if name is not None:
                        process.send_signal(name)
            with suppress(DatabaseUnusable):
                self._await_end(seconds)
                return
        self._await_end(1)

    def _await_end(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._is_alive():
            if time.monotonic() > deadline:
                raise DatabaseUnusable(
                    f"Something still works in {self.folder} and has not ended after "
                    f"{seconds:g} s: a server in another container or on another machine, or one "
                    "that hangs. Stop it there; nothing was changed."
                )
            time.sleep(PAUSE_SECONDS)

    def _is_alive(self) -> bool:
        with suppress(FileNotFoundError), self._living.open("rb") as living:
            try:
                fcntl.flock(living, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return self.listens() or bool(self._processes())

    def listener(self) -> int | None:
        """The process that listens on our socket, according to the system."""
        for path in self._sockets():
            if (pid := _connected(path)) and pid > 1:
                return pid
        return None

    def _sockets(self) -> list[Path]:
        folder = Path(self._socket_folder())
        with suppress(OSError):
            return [folder / path.name for path in self.folder.glob(".s.PGSQL.*[0-9]")]
        return []

    def _processes(self) -> list[psutil.Process]:
        """Server processes that work in the folder, or were started for it, as its owner."""
        try:
            owner = self.folder.stat().st_uid
        except FileNotFoundError:
            return []
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if (
                    process.name() == "postgres"
                    and process.uids().effective == owner
                    and process.status() != psutil.STATUS_ZOMBIE
                    and _works_in(process, self.folder)
                ):
                    found.append(process)
        return found

    def _socket_folder(self) -> str:
        """The data folder, or a link to it if its path is too long or unfit for an address.

        In an address blanks, commas and other characters have meanings; a comma cannot be quoted.
        """
        own = str(self.folder)
        if len(os.fsencode(own)) + len("/.s.PGSQL.65535") <= LONGEST_SOCKET and _is_plain(own):
            return own
        link = _own_runtime_folder() / hashlib.sha256(os.fsencode(own)).hexdigest()[:12]
        with suppress(OSError):
            if link.readlink() == self.folder:
                return str(link)
        draft = link.with_suffix(f".{os.getpid()}")
        draft.unlink(missing_ok=True)
        draft.symlink_to(self.folder)
        draft.replace(link)
        return str(link)


def _environment() -> Mapping[str, str]:
    """The environment without PG variables, which configure libpq for other servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _remove_empty(path: Path) -> None:
    """Remove a folder that stands in the place of a file, unless it has contents."""
    try:
        path.rmdir()
    except OSError:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path)) from None


def _connected(path: Path) -> int | None:
    """The process that listens on a socket; 0 if the system does not tell, None if none does."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(START_SECONDS)
        try:
            client.connect(str(path))
        except OSError:
            return None
        if not hasattr(socket, "SO_PEERCRED"):
            return 0
        peer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", peer)[0])


def _works_in(process: psutil.Process, folder: Path) -> bool:
    with suppress(psutil.AccessDenied):
        return Path(process.cwd()).samefile(folder)
    arguments = process.cmdline()
    return "-D" in arguments and arguments[arguments.index("-D") + 1 :][:1] == [str(folder)]


def _is_plain(path: str) -> bool:
    """Whether this path needs no quoting in an address."""
    return quote_from_bytes(os.fsencode(path)) == path


def _own_runtime_folder() -> Path:
    """A folder with a short, plain name that nobody else can look into or replace."""
    for place in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108
        if not place or not Path(place).is_dir() or len(os.fsencode(place)) > LONGEST_SOCKET // 2:
            continue
        if not _is_plain(place):
            continue
        folder = Path(place) / f"recon-{os.geteuid()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        there = folder.lstat()
        ours = stat.S_ISDIR(there.st_mode) and there.st_uid == os.geteuid()
        if ours and not there.st_mode & OTHERS:
            return folder
    raise DatabaseUnusable(
        "The path of RECON_HOME is too long for a socket, or has other signs than letters without "
        "marks, digits and ._~-, and there is no private folder for a short one: "
        f"{tempfile.gettempdir()}/recon-{os.geteuid()} belongs to somebody else or is "
        "open to others. Remove it, set XDG_RUNTIME_DIR, or choose another RECON_HOME."
    )


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return [line.strip() for line in path.read_text(errors="replace").splitlines()]
    return []


def _rules(path: Path) -> list[str]:
    """The lines of a configuration file without comments."""
    return [rule for line in _lines(path) if (rule := line.partition("#")[0].strip())]


def _replace(path: Path, text: str) -> None:
    """Give a file of the server new content and keep its owner."""
    owner = path.stat()
    draft = path.with_suffix(".new")
    with open_private(draft) as file:
        os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
