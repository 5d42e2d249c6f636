"""The whole product on one machine, behind `recon up`: started, watched and stopped in order.

PostgreSQL, a Prefect server on a database of its own, the sandbox of the service, a work pool with
one worker, and the deployments. This process is the only parent; importing it imports no Prefect.
"""

import base64
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import psutil  # type: ignore[import-untyped]
import psycopg

from connectors.addresses import read_path
from connectors.desk_settings import read_desk_settings
from connectors.environment import setting
from connectors.errors import ReconError
from connectors.files.disk.atomic import open_private, private_folder, write_file
from connectors.oidc import Provider
from connectors.postgres.database import database_url, embedded_folder, open_database
from connectors.postgres.push.gate import held_text_for_sender
from connectors.postgres.server.embedded import answers, embedded_url
from connectors.postgres.server.postmaster import PORT
from connectors.sandbox import Sandbox, SandboxOptions
from connectors.settings import PATHS, Settings
from flows.desk.app import Desk
from flows.desk.jobs import start_here
from flows.desk.server import serving
from flows.ops.dead_runs import end_dead_runs
from flows.ops.demo import SANDBOX_USER, load_listings
from flows.ops.running import (
    RUN_SECONDS,
    Running,
    alone,
    children_of,
    describe,
    end,
    find,
    log_tail,
    note,
    prefect_home,
    runs_of,
    stop_all,
)
from flows.ops.up_options import UpOptions, refuse_open_doors, refuse_taken_ports
from flows.ops.whose_server import holder_of, login_header, who_answers
from flows.stages.workspace import Workspace

SERVER_SECONDS = 180
"""How long a server's first answer may take, since it creates its tables."""
PAUSE_SECONDS = 0.25
"""How often a start looks whether a part is there or it has to stop."""
STOP_SECONDS = 20
"""How long a part may take to end before it is killed."""
QUERY_SECONDS = "2"
"""How often the worker looks for runs."""
HEARTBEAT_SECONDS = "30"
"""How often a run reports that it lives; the automation for silent runs relies on it."""
DEPLOY_LOG = "deploy.log"
NOTED = ("note ", "left over ")
"""How lines of `recon deploy` begin that tell operators something."""
SERVER = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    # Prefect's own block types show pictures from outside; ours and the webhook are enough.
    "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
    # Leases kept in memory would be lost with the server, but the places they hold would not.
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": (
        "prefect.server.concurrency.lease_storage.filesystem"
    ),
    # How long a run that finds its place taken is put off; the default is longer than most imports
    # take. Every waiting run asks this often, so it is not shorter.
    "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "5",
}
"""Settings of every server; docs/production.md gives the same for a server of one's own."""

Show = Callable[[str], None]


def run(settings: Settings, choice: UpOptions, show: Show) -> int:
    """Start everything, stay until interrupted, stop everything.

    Raises ReconError, and KeyboardInterrupt if interrupted before everything was up.
    """
    login = os.environ.get("RECON_UP_AUTH") or None
    refuse_open_doors(choice, login)
    folder = settings.home / "up"
    with alone(folder) as free:
        if not free:
            show(describe(find(folder)))
            show_held(settings, show)
            return 0
        stopped = _stop_signals()
        stop_all(folder)  # Ends what a killed run left behind, and removes its note.
        note(folder, None)
        with ExitStack() as parts:
            refuse_taken_ports(choice, login)
            parts.callback(note, folder, None)
            start = Start(folder, choice, stopped, parts)
            running = _start(settings, choice, login, start, show)
            note(folder, running)
            show(describe(running))
            show_held(settings, show)
            show_registered(folder, show)
            show("Ctrl-C stops everything.")
            _watch(settings, running, stopped)
    show("Everything is stopped.")
    return 0


class Start:
    """The parts started so far; processes are noted, so that a killed start leaves no strangers."""

    def __init__(
        self, folder: Path, choice: UpOptions, stopped: threading.Event, parts: ExitStack
    ) -> None:
        self.folder, self.stopped, self.parts = folder, stopped, parts
        self.terms = {name: str(value) for name, value in asdict(choice).items()}
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self._note()

    def child(self, name: str, *arguments: str, environment: Mapping[str, str]) -> None:
        self.go_on()
        self.children[name] = self.parts.enter_context(
            _child(self.folder, name, arguments, environment)
        )
        self._note()

    def go_on(self) -> None:
        """Raise KeyboardInterrupt if somebody has stopped it meanwhile."""
        if self.stopped.is_set():
            raise KeyboardInterrupt

    def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Whether this is done within the time; a stop ends the wait."""
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                return False
            self.stopped.wait(PAUSE_SECONDS)
            self.go_on()
        return True

    def _note(self) -> None:
        note(self.folder, Running.of(self.children, self.terms, up=False))


def show_held(settings: Settings, show: Show) -> None:
    """Say if runs started here are kept from sending anything."""

    def say(connection: psycopg.Connection) -> None:
        held = held_text_for_sender(connection, settings.home)
        if held:
            show(held)

    open_database(settings, say)


def show_registered(folder: Path, show: Show) -> None:
    """Show what `recon deploy` noted when it registered the deployments of this start."""
    for line in (folder / DEPLOY_LOG).read_text(errors="replace").splitlines():
        if line.startswith(NOTED):
            show(line)


def _start(
    settings: Settings, choice: UpOptions, login: str | None, start: Start, show: Show
) -> Running:
    show(f"Starting PostgreSQL in {settings.home / 'postgres'} ...")
    open_database(settings)
    target = database_url(settings)
    inbox = private_folder(settings.home / "inbox")

    start.go_on()
    show("Starting the sandbox of the service ...")
    # Never in a database of the user's.
    own = embedded_url(embedded_folder(settings))
    sandbox = start.parts.enter_context(_sandbox(choice, own, show))

    start.go_on()
    show("Starting the desk ...")
    work: dict[str, str] = {}
    desk = start.parts.enter_context(_desk(settings, choice, work))

    start.go_on()
    show("Starting the Prefect server ...")
    environment = prefect_environment(settings, choice, login)
    server_only = {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": _server_database(settings),
        "PREFECT_SERVER_ENCRYPTION_KEY": _encryption_key(start.folder),
    }
    start.child("server", "prefect", "server", "start", environment=environment | server_only)
    _await_health(start, choice, login)
    work |= environment | _work_environment(settings, target, sandbox)
    work.setdefault("RECON_DESK_URL", desk)
    show("Registering pool, blocks, deployments and automations ...")
    _register(start, work)
    end_dead_runs(choice, login, show)
    show("Starting the worker ...")
    options = ("--pool", "recon", "--type", "process")
    start.child("worker", "prefect", "worker", "start", *options, environment=work)
    start.go_on()
    return Running.of(
        start.children,
        start.terms,
        prefect=choice.address,
        sandbox=sandbox,
        desk=desk,
        inbox=str(inbox),
        logs=str(start.folder),
    )


@contextmanager
def _sandbox(choice: UpOptions, database: str, show: Show) -> Iterator[str]:
    options = SandboxOptions(port=choice.sandbox_port, users=(SANDBOX_USER,))
    sandbox = Sandbox(options, database)
    with sandbox.running() as url:
        with psycopg.connect(database) as connection:
            try:
                load_listings(sandbox, connection)
            except ReconError as missing:
                show(f"The listings of the sandbox are empty: {missing}")
        yield url


def _desk(
    settings: Settings, choice: UpOptions, work: Mapping[str, str]
) -> AbstractContextManager[str]:
    """Serve the desk on this machine only, with the login provider if one is set.

    Jobs start with the worker's environment, which is complete once everything is up.
    """
    # Runs are on the Prefect server started here, whatever else is set.
    terms = replace(read_desk_settings(), prefect_ui=choice.address)
    provider = Provider(terms.provider) if terms.provider else None
    place = Workspace(settings, open_database(settings))

    def start(place: Workspace, number: int) -> None:
        start_here(place, number, work or os.environ)

    desk = Desk(place, terms, provider, start=start)
    return serving(desk, "127.0.0.1", choice.desk_port, ahead=True, option="--desk-port")


def prefect_environment(settings: Settings, choice: UpOptions, login: str | None) -> dict[str, str]:
    """The environment of every part: no Prefect settings of the user, and no calls outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    secret = (
        {"PREFECT_SERVER_API_AUTH_STRING": login, "PREFECT_API_AUTH_STRING": login} if login else {}
    )
    return {
        **kept,
        **secret,
        "DO_NOT_TRACK": "1",
        "PREFECT_HOME": str(prefect_home(settings.home / "up")),
        "PREFECT_PROFILES_PATH": str(settings.home / "up" / "profiles.toml"),
        "PREFECT_API_URL": f"{choice.address}/api",
        "PREFECT_SERVER_API_HOST": choice.host,
        # The pages use this port whatever the command line says.
        "PREFECT_SERVER_API_PORT": str(choice.port),
        **SERVER,
        "PREFECT_SERVER_UI_V2_ENABLED": "true" if choice.pages == "v2" else "false",
        "PREFECT_WORKER_QUERY_SECONDS": QUERY_SECONDS,
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": HEARTBEAT_SECONDS,
        "PREFECT_LOGGING_EXTRA_LOGGERS": "recon",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
    }


def _work_environment(settings: Settings, target: str, sandbox: str) -> dict[str, str]:
    """The environment of runs; the service is the sandbox unless the user names another."""
    ours = {"RECON_HOME": str(settings.home), "RECON_DATABASE_URL": target}
    # Relative paths would be in the run's own folder, which is removed after it.
    ours |= {
        name: str(read_path(name, text).absolute()) for name in PATHS if (text := setting(name))
    }
    if settings.audit.witness:
        ours["RECON_AUDIT_WITNESS"] = ",".join(settings.audit.witness)
    if setting("RECON_SERVICE_URL"):
        return ours
    return ours | {
        "RECON_SERVICE_URL": sandbox,
        "RECON_SERVICE_USER": SANDBOX_USER.name,
        "RECON_SERVICE_PASSWORD": SANDBOX_USER.password,
    }


def _server_database(settings: Settings) -> str:
    """Create the server's own database on the embedded PostgreSQL, with its extension."""
    url = embedded_url(embedded_folder(settings), "prefect")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    socket = parse_qs(urlsplit(url).query)["host"][0]
    return f"postgresql+asyncpg://postgres@/prefect?host={socket}&port={PORT}"


def _encryption_key(folder: Path) -> str:
    """The key that encrypts the values of blocks; by default the server keeps it beside them."""
    path = folder / "blocks.key"
    if not path.exists() or not path.stat().st_size:
        write_file(path, base64.urlsafe_b64encode(secrets.token_bytes(32)))
    return path.read_text()


@contextmanager
def _child(
    folder: Path, name: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a part of the machine as a process; at the end it and its children are gone."""
    with open_private(folder / f"{name}.log", append=True) as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches only this process, which stops them in order.
        )
    try:
        yield process
    finally:
        if name == "worker":
            # It kills them when it ends: told themselves, they write down what they have done.
            end(runs_of(folder), RUN_SECONDS)
        # The number of an ended process may belong to another one.
        left = children_of(process.pid) if process.poll() is None else runs_of(folder)
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        if process.poll() is None:
            process.kill()
            process.wait()
        _, alive = psutil.wait_procs(left, timeout=STOP_SECONDS / 4)
        end(alive, STOP_SECONDS / 4)


def _await_health(start: Start, choice: UpOptions, login: str | None) -> None:
    folder, server = start.folder, start.children["server"]
    with httpx.Client(trust_env=False, timeout=5, headers=login_header(login)) as client:

        def healthy() -> bool:
            if server.poll() is not None:
                raise ReconError(_ended("server", folder))
            with suppress(httpx.TransportError):
                return client.get(f"{choice.address}/api/health").status_code == httpx.codes.OK
            return False

        if not start.until(healthy, SERVER_SECONDS):
            raise ReconError(
                f"The Prefect server did not answer within {SERVER_SECONDS} s: "
                f"{log_tail(folder / 'server.log')}"
            )
    _refuse_stranger(folder, choice, login)


def _refuse_stranger(folder: Path, choice: UpOptions, login: str | None) -> None:
    """Raise ReconError if another server took the port before ours did."""
    answering = who_answers(choice.address, login)
    if answering is None or answering.home in (None, str(prefect_home(folder))):
        return
    raise ReconError(
        f"Port {choice.port} was taken meanwhile by {answering}{holder_of(choice.port)}. It was "
        f"left alone. Take another port: recon up --port {choice.port + 1}."
    )


def _register(start: Start, environment: Mapping[str, str]) -> None:
    log = start.folder / DEPLOY_LOG
    log.unlink(missing_ok=True)
    start.child("deploy", "flows", "deploy", environment=environment)
    deploy = start.children["deploy"]
    done = start.until(lambda: deploy.poll() is not None, SERVER_SECONDS)
    if not done or deploy.returncode:
        raise ReconError(f"The deployments could not be registered: {log_tail(log)}")
    del start.children["deploy"]


def _stop_signals() -> threading.Event:
    """An event set when this process is told to stop, which it says at once."""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        if not stopped.is_set():
            stopped.set()
            with suppress(OSError):  # The terminal itself may be gone.
                os.write(sys.stdout.fileno(), b"Stopping ...\n")

    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, stop)
    return stopped


def _watch(settings: Settings, running: Running, stopped: threading.Event) -> None:
    """Wait for the end; a part that ends by itself ends the others, with an error that says why.

    Only the database is restarted: all parts find it at the same place.
    """
    folder, database = settings.home / "up", embedded_folder(settings)
    while not stopped.wait(1):
        if not answers(database):
            embedded_url(database)
        for name, one in running.children.items():
            if not one.alive():
                raise ReconError(_ended(name, folder))


def _ended(name: str, folder: Path) -> str:
    path = folder / f"{name}.log"
    return f"The {name} ended by itself; everything else was stopped. {path} says: {log_tail(path)}"
