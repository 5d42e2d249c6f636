"""`recon` in a process of its own, forked from one that has imported everything once.

Hundreds of tests need a process that can be killed, stopped or cut off; few of them are about how
an interpreter starts. Those use `subprocess`. What the program reads of the environment when it is
imported, it reads in a process for which that is set: our own modules are imported there anew, the
libraries are not. That one forks as well, until there is something else to read.
"""

import atexit
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import IO, NoReturn, Self

from pydantic.plugin._loader import get_plugins

from flows.__main__ import main

SECONDS = 120
"""Longest life of a process; one that hangs is ended by SIGALRM, which its exit code tells."""
ROOMS = ("schemas", "connectors", "flows.steps", "flows.stages", "flows.report", "flows.commands")
OURS = ("flows", "connectors", "schemas")
READ_ON_IMPORT = "RECON_RECORDS"
"""Says where kinds of records are defined, which the field tables are made of."""
LATE = ("cyclopts.help", "rich.markdown", "rich._emoji_codes", "pydantic.types", "pydantic.fields")
"""What every command imports when it begins."""
Begin = Callable[[], None]
THEN = "&&"
"""Between commands that one process does in turn; its exit code is the highest of theirs."""
PAGES = ("flows.report.comparison", "flows.report.html", "flows.report.reconciled.html")
"""Their templates take longer to compile than a small delivery to import."""


def run(
    url: str, home: Path, *arguments: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run `recon` on this database and home folder to its end."""
    with Run(url, home, *arguments, **environment) as one:
        out, told = one.communicate()
        return subprocess.CompletedProcess(arguments, one.wait(), out, told)


class Run:
    """A `recon` that is under way: so much of `subprocess.Popen` as tests ask of it."""

    def __init__(self, url: str, home: Path, *arguments: str, **environment: str) -> None:
        ours = {"RECON_DATABASE_URL": url, "RECON_HOME": str(home)}
        request = [arguments, dict(os.environ) | ours | environment, str(Path.cwd())]
        self.returncode: int | None = None
        self._outputs, self._said = (_output(), _output()), ("", "")
        self._told, theirs = socket.socketpair()
        with theirs:
            files = [one.fileno() for one in (*self._outputs, theirs)]
            socket.send_fds(_forker()[0], [json.dumps(request).encode()], files)
        self.pid = self._number()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.communicate()

    def wait(self, timeout: float | None = SECONDS) -> int:
        """The exit code; of a signal, its negative number."""
        if self.returncode is None:
            self._told.settimeout(timeout)
            self.returncode = self._number()
            self._told.close()
        return self.returncode

    def poll(self) -> int | None:
        """The exit code, when it has ended."""
        try:
            return self.wait(0)
        except BlockingIOError:
            return None

    def communicate(self, timeout: float | None = SECONDS) -> tuple[str, str]:
        """Wait; gives all of standard output and of standard error."""
        self.wait(timeout)
        if self._outputs:
            for one in self._outputs:
                one.seek(0)
            out, told = self._outputs
            with out, told:
                self._said, self._outputs = (out.read(), told.read()), ()
        return self._said

    def send_signal(self, number: int) -> None:
        """Send a signal, as long as there is somebody to get it."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        told = self._told.recv(4)
        assert told, "the process that forks has ended"
        return int.from_bytes(told, signed=True)


def _output() -> IO[str]:
    return tempfile.TemporaryFile("w+", errors="replace")


@cache
def _forker() -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    """The process that forks, and the way to it; it ends when this one does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.recon", str(theirs.fileno())],
            cwd=Path(__file__).parents[1],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
    atexit.register(_end, ours, process, os.getpid())
    return ours, process


def _end(ours: socket.socket, process: "subprocess.Popen[bytes]", owner: int) -> None:
    if os.getpid() == owner:  # And not a copy of the process that has it.
        ours.close()
        process.kill()
        process.wait()


def _serve(requests: socket.socket) -> None:
    """Fork a keeper for every request, which forks the run and tells how it ended.

    Nothing is done here but to import: a thread of this process would be missing in every run.
    """
    _import_ours()
    for name in LATE:
        import_module(name)
    get_plugins()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _fork(requests, main)


def _import_ours() -> None:
    for room in map(import_module, ROOMS):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if ".migrations" not in found.name:  # Alembic's own, which run when imported.
                import_module(found.name)
    for name in PAGES:
        import_module(name)._template()
    import_module("connectors.postgres.schema.revisions").revisions()
    _ = import_module("schemas.derived.sql").METADATA.sorted_tables


def _fork(requests: socket.socket, begin: Begin | None) -> None:
    """Fork for every request; those that need other imports go to a process that has them."""
    gc.freeze()  # A collection would copy every page.
    read, other = "", requests
    while True:
        request, files, _, _ = socket.recv_fds(requests, 1 << 17, 3)
        if not request:
            return
        arguments, environment, folder = json.loads(request)
        if begin is main and READ_ON_IMPORT in environment:
            if read != (read := _read_on_import(environment[READ_ON_IMPORT], folder)):
                # One that had the way to the one before would keep that one alive.
                not_its = {requests.fileno(), other.fileno(), *files}
                other = _other(not_its, environment, folder)
            socket.send_fds(other, [request], files)
        elif not os.fork():
            requests.close()
            _keep(begin, (arguments, environment, folder), files)
        for one in files:
            os.close(one)


def _read_on_import(where: str, folder: str) -> str:
    """What tells definitions of kinds from others: where they are, and all that they say."""
    said = {}
    for path in sorted(Path(folder, where).rglob("*")):
        with suppress(OSError):  # A folder, or what nobody may read.
            said[str(path)] = path.read_bytes()
    return repr((where, folder, said))


def _other(not_its: Collection[int], environment: dict[str, str], folder: str) -> socket.socket:
    """The way to a process that forks too, our modules imported in this environment.

    Where they cannot be, every run of it tries so itself, and tells why. It ends when another one
    takes its place.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        theirs.close()
        return ours
    ours.close()
    for one in not_its:
        os.close(one)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    begin = None
    with suppress(Exception):
        begin = _imported_anew()
        _import_ours()
    _fork(theirs, begin)
    os._exit(0)


def _keep(
    begin: Begin | None, request: tuple[list[str], dict[str, str], str], files: list[int]
) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if not pid:
        _become(begin, *request, *files)
    with socket.socket(fileno=files[-1]) as told:
        told.sendall(pid.to_bytes(4))
        _, status = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):
            told.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
    os._exit(0)


def _become(
    begin: Begin | None,
    arguments: list[str],
    environment: dict[str, str],
    folder: str,
    out: int,
    told: int,
    keeper: int,
) -> NoReturn:
    """What `python -m flows` is, in this environment and folder."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Whatever tests themselves are to outlive.
    signal.alarm(SECONDS)
    os.dup2(out, 1)
    os.dup2(told, 2)
    for one in (out, told, keeper):
        os.close(one)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    begin = begin or _imported_anew()
    codes = []
    for then, command in groupby(arguments, THEN.__eq__):
        if not then:
            sys.argv = ["recon", *command]
            codes.append(_code(begin))
    # The end of an interpreter, but for taking down what was imported, which copies every page.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(max(codes))


def _code(begin: Begin) -> int:
    try:
        begin()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            return ended.code
        raise
    raise AssertionError("main always exits")


def _imported_anew() -> Begin:
    """The program as it is in this environment."""
    for name in [one for one in sys.modules if one.partition(".")[0] in OURS]:
        del sys.modules[name]
    begin: Begin = import_module("flows.__main__").main
    return begin


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
