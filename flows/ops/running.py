"""What `recon up` is running: noted in a file, guarded by a lock that dies with its holder."""

import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import Popen

import psutil  # type: ignore[import-untyped]

from connectors.environment import setting
from connectors.files.disk.atomic import open_private, private_folder, write_file

LINES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Process:
    """A process; its start tells it from a later one with the same number."""

    pid: int
    started: str | float
    """As `_start_of` gives it; a note of an earlier version has the time of day."""

    @classmethod
    def of(cls, pid: int) -> "Process":
        return cls(pid, _start_of(psutil.Process(pid)))

    def find(self) -> psutil.Process | None:
        """The process itself while it lives; else None."""
        with suppress(psutil.NoSuchProcess):
            found = psutil.Process(self.pid)
            if isinstance(self.started, float):
                same = found.create_time() == self.started
            else:
                same = _start_of(found) == self.started
            if same and found.status() != psutil.STATUS_ZOMBIE:
                return found
        return None

    def alive(self) -> bool:
        return self.find() is not None


def _start_of(process: psutil.Process) -> str:
    """When a process began, in a form that does not move when somebody sets the clock.

    Linux counts from the start of the machine; the time of day is derived from that, and moves.
    """
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return str(process.create_time())
    return f"{fields[19]} {machine}"


@dataclass(frozen=True, slots=True)
class Running:
    process: Process
    prefect: str = ""
    sandbox: str = ""
    inbox: str = ""
    logs: str = ""
    children: Mapping[str, Process] = field(default_factory=dict)
    desk: str = ""
    """Address of the desk; empty in a note of an earlier version, which has none."""
    terms: Mapping[str, str] = field(default_factory=dict)
    """Options it was started with, as text; empty in a note of an earlier version."""
    up: bool = True
    """False while it is starting; whoever ends it then has to find what exists. An earlier version
    noted nothing before everything was up."""

    @classmethod
    def of(
        cls,
        children: Mapping[str, Popen[bytes]],
        terms: Mapping[str, str],
        *,
        up: bool = True,
        **places: str,
    ) -> "Running":
        found = {name: Process.of(child.pid) for name, child in children.items()}
        own = Process.of(psutil.Process().pid)
        return cls(own, **places, children=found, terms=terms, up=up)


@contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """Whether this process is the one that runs here; the lock is free once it is gone."""
    private_folder(folder)
    with open_private(folder / "lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def note(folder: Path, running: Running | None) -> None:
    """Write down what runs; None: nothing does."""
    path = folder / "running.json"
    if running is None:
        path.unlink(missing_ok=True)
    else:
        write_file(path, json.dumps(asdict(running), indent=2).encode())


def find(folder: Path) -> Running | None:
    """What was last noted, perhaps by a process that is gone; None if nothing was."""
    try:
        known = json.loads((folder / "running.json").read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    processes = {name: Process(**one) for name, one in known.pop("children").items()}
    return Running(Process(**known.pop("process")), **known, children=processes)


def children_of(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return list(psutil.Process(pid).children(recursive=True))
    return []


def prefect_home(folder: Path) -> Path:
    """Where the Prefect server of this folder, and its clients, keep their files."""
    return folder.parent / "prefect"


def runs_of(folder: Path) -> list[psutil.Process]:
    """Processes of flow runs here; each has its own session and outlives its worker."""
    found, home = [], str(prefect_home(folder))
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            environment = one.environ()
            if "PREFECT__FLOW_RUN_ID" in environment and environment.get("PREFECT_HOME") == home:
                found.append(one)
    return found


def stop_all(folder: Path) -> int:
    """End what a dead process left running, the worker first; returns how many there were."""
    running = find(folder)
    known = running.children.values() if running else ()
    left = [found for one in known if (found := one.find())]
    left += [child for one in left for child in children_of(one.pid)]
    left += runs_of(folder)
    ended = dict.fromkeys(left[::-1])
    end([*ended], 10)
    return len(ended)


def end(processes: list[psutil.Process], seconds: float) -> None:
    """Ask processes to end, in this order; kill those that are left after this time."""
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.terminate()
    for one in psutil.wait_procs(processes, timeout=seconds)[1]:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def await_end(process: Process, seconds: float) -> bool:
    """Whether the process ends within this time."""
    deadline = time.monotonic() + seconds
    while process.alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def log_tail(path: Path) -> str:
    """The last lines of a log, for an error message."""
    with suppress(OSError):
        lines = path.read_text(errors="replace").strip().splitlines()
        return "\n" + "\n".join(lines[-LINES_SHOWN:])
    return "(no log was written)"


def describe(running: Running | None) -> str:
    if running is None or not running.up:
        return "recon up is just starting here; ask again in a moment."
    lines = [
        f"recon is up (process {running.process.pid}):",
        *([f"  desk     {running.desk}    (reports to review and sign)"] if running.desk else []),
        f"  pages    {running.prefect}",
        f"  API      {running.prefect}/api    (export PREFECT_API_URL=...)",
        f"  service  {running.sandbox}    ({_about_sandbox()})",
        f"  inbox    {running.inbox}",
        f"  logs     {running.logs}",
    ]
    return "\n".join(lines)


def _about_sandbox() -> str:
    if setting("RECON_SERVICE_URL"):
        return "the sandbox; runs push to RECON_SERVICE_URL instead"
    return "the sandbox, user demo, password demo"
