"""A real PostgreSQL for the tests: one embedded server, one fresh database per workspace."""

import gc
import os
import shutil
import uuid
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import settings
from psycopg import sql

from connectors.postgres.database import Database, libpq_address
from connectors.postgres.schema.upgrade import migrate
from connectors.postgres.server.embedded import SERVER_SETTINGS, embedded_url
from connectors.postgres.server.postmaster import Postmaster
from connectors.settings import Limits, Settings
from flows.stages.workspace import Workspace
from schemas.derived.sql import LEDGER_TABLES
from schemas.guards.roles import statements
from tests import examples, workers
from tests.memory import MEMORY, has_room
from tests.older_server import older_server

TEMPLATE = "recon_template"
Once = Callable[[Callable[[], None]], Workspace]
"""See the fixture `once`."""
OF_TESTS = SERVER_SETTINGS | {"shared_buffers": "64MB", "fsync": "off", "full_page_writes": "off"}
"""The server's own settings, but that of its pages few are looked through for each database that is
made or dropped, and that nothing is kept for a machine that dies: only processes do so here."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", help="everything: tests marked `long`, and all examples"
    )
    parser.addoption(
        "--all-cases", action="store_true", help="tests marked `long` too, with few examples"
    )
    parser.addoption(
        "--only", default="", metavar="N,N", help="these seeds of soups, these messages of cuts"
    )
    parser.addoption(
        "--postgres",
        metavar="15",
        help="an installed release of PostgreSQL to use in place of the embedded server",
    )


def pytest_configure(config: pytest.Config) -> None:
    if has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    examples.choose(everything=config.getoption("--long"), only=config.getoption("--only"))
    # No test looks at a clock: others may use the machine as well.
    settings.register_profile("whole", deadline=None)
    # The same examples every time: a gate that finds by luck stops the wrong change.
    settings.register_profile(
        "slice", deadline=None, derandomize=True, database=None, max_examples=12
    )
    settings.load_profile("whole" if examples.ALL else "slice")
    gc.disable()  # Modules and thousands of tests come and stay: nothing of them is garbage.


def every_case(config: pytest.Config) -> bool:
    """Whether tests that are marked `long` are run."""
    return examples.ALL or bool(config.getoption("--all-cases"))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not every_case(config):
        terminalreporter.write_line("Without what is marked `long`: `pytest --long` runs all.")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> workers.Files:
    return workers.scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    return workers.sendable((yield))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=workers.begun)
    by_name = any("::" in asked for asked in config.args)  # Perhaps some of the cases alone.
    if not by_name:
        examples.check_kept(items)
    if every_case(config):
        return
    left_out = [one for one in items if examples.in_long_run(one)]
    if by_name or len(left_out) == len(items):  # Else nothing would be told of them.
        for one in left_out:
            one.add_marker(pytest.mark.skip(reason="long: `pytest --long` runs it"))
    else:
        gone = set(left_out)
        items[:] = [one for one in items if one not in gone]
        config.hook.pytest_deselected(items=left_out)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("own_release") and item.config.getoption("--postgres"):
        pytest.skip("about a server of the embedded release")


@pytest.fixture(scope="session", autouse=True)
def compiled(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """One folder of machine code for all homes of the tests; each would make its own."""
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)
    folder = cache.mkdir("compiled") if cache else tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(folder))
        yield


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of the maintenance database of a server that has the migrated template."""
    if release := pytestconfig.getoption("--postgres"):
        with older_server(release, OF_TESTS) as url:
            with psycopg.connect(url, autocommit=True) as administrator:
                administrator.execute(f"CREATE DATABASE {TEMPLATE}")
            _migrate(url.replace("/postgres?", f"/{TEMPLATE}?"))
            yield url
        return
    folder = tmp_path_factory.mktemp("server") / "postgres"
    Postmaster(folder).prepare()
    with (folder / "postgresql.auto.conf").open("a") as settings_file:
        settings_file.writelines(f"{name} = '{value}'\n" for name, value in OF_TESTS.items())
    _migrate(embedded_url(folder, TEMPLATE))
    server = embedded_url(folder, "postgres")
    yield server
    # Its folder goes before this process ends, and a server without one takes a minute to notice:
    # for the next run, which may have the same folder, it would be a former server to wait for.
    Postmaster(folder).stop()


def _migrate(url: str) -> None:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        migrate(connection)
    engine.dispose()


def _name(url: str) -> str:
    """The database that a URL of the tests' server is about."""
    return url.partition("?")[0].rpartition("/")[2]


def _new_name() -> str:
    return f"test_{uuid.uuid4().hex[:12]}"


class Databases:
    """Copies of the template, the next of them made while a test works with the last."""

    def __init__(
        self, server: str, administrator: psycopg.Connection, maker: ThreadPoolExecutor
    ) -> None:
        self._server, self._administrator, self._maker = server, administrator, maker
        self._next = maker.submit(self._make)
        self._spare: list[str] = []

    @contextmanager
    def new(self, kept: str | None = None) -> Iterator[str]:
        """URL of a database with our schema, or of a copy of what was kept, while it is needed."""
        if kept is not None:
            name = self._copy(kept, _new_name())
        elif self._spare:
            name = self._spare.pop()
        else:
            name, self._next = self._next.result(), self._maker.submit(self._make)
        try:
            yield self._server.replace("/postgres?", f"/{name}?")
        finally:
            self._maker.submit(self._drop, name)

    def keep(self, url: str) -> str:
        """A copy of this database for the rest of the run; gives its name."""
        return self._copy(_name(url), f"kept_{uuid.uuid4().hex[:12]}")

    def bring_back(self, url: str, kept: str) -> None:
        """Put a copy of what was kept in the place of this database, a new one nobody has used."""
        self._spare.append(_new_name())
        self._do(f'ALTER DATABASE "{_name(url)}" RENAME TO "{self._spare[-1]}"')
        self._copy(kept, _name(url))

    def restore(self, url: str, kept: str) -> None:
        """Put a copy of what was kept in the place of this database, whatever was done in it."""
        self._drop(_name(url))
        self._copy(kept, _name(url))

    def _make(self) -> str:
        return self._copy(TEMPLATE, _new_name())

    def _copy(self, of: str, name: str) -> str:
        self._do(f'CREATE DATABASE "{name}" TEMPLATE "{of}" STRATEGY file_copy')
        return name

    def _drop(self, name: str) -> None:
        self._do(f'DROP DATABASE "{name}" WITH (FORCE)')

    def _do(self, statement: str) -> None:
        self._administrator.execute(statement)


@pytest.fixture(scope="session")
def databases(server: str) -> Iterator[Databases]:
    with psycopg.connect(server, autocommit=True) as administrator, ThreadPoolExecutor(1) as maker:
        yield Databases(server, administrator, maker)


@pytest.fixture(scope="session")
def with_roles(databases: Databases) -> str:
    """A database that the roles are granted on: a test that asks for it has a copy as its own."""
    with databases.new() as url:
        with psycopg.connect(url, autocommit=True) as owner:
            for _ in range(2):  # As after an upgrade.
                for statement in statements():
                    owner.execute(statement)
        return databases.keep(url)


@pytest.fixture
def database_url(databases: Databases, request: pytest.FixtureRequest) -> Iterator[str]:
    """URL of a database of its own, with our schema."""
    granted = "with_roles" in request.fixturenames
    with databases.new(request.getfixturevalue("with_roles") if granted else None) as url:
        yield url


def workspace_at(database_url: str, folder: Path) -> Workspace:
    """A workspace over this database, its home in this folder."""
    # Small files are read as large ones are, by the compiled loops.
    return workspace_of(Settings((folder / "home").resolve(), database_url, Limits(strict_bytes=0)))


def workspace_of(settings: Settings) -> Workspace:
    """The workspace over a copy of what this code has just migrated.

    The database is not looked through as a command does.
    """
    limits, address = settings.limits, libpq_address(str(settings.database_url))
    database = Database(address, limits.database_wait_seconds, lease_seconds=limits.lease_seconds)
    return Workspace(settings, database)


@pytest.fixture
def workspace(database_url: str, tmp_path: Path) -> Workspace:
    """A workspace with its own database and its own home folder."""
    return workspace_at(database_url, tmp_path)


@pytest.fixture(scope="module")
def still(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One workspace for the tests of a file that change nothing another one looks at.

    A file of such tests alone may say so once: its fixture `workspace` is this one.
    """
    with databases.new() as url:
        yield workspace_at(url, tmp_path_factory.mktemp("still"))


@pytest.fixture(scope="session")
def built() -> dict[tuple[str, bool], tuple[str, Path]]:
    """What `once` has built, without roles and with them: databases and the homes of each."""
    return {}


@pytest.fixture
def once(
    workspace: Workspace,
    databases: Databases,
    built: dict[tuple[str, bool], tuple[str, Path]],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Once:
    """`once(build)` builds a state of the workspace, or brings back what an earlier test built."""

    def brought(build: Callable[[], None]) -> Workspace:
        home, url = workspace.settings.home, str(workspace.settings.database_url)
        granted = "with_roles" in request.fixturenames
        key = f"{build.__module__}.{build.__qualname__}", granted
        if key in built:
            database, kept = built[key]
            # Whoever has a spare one next expects no roles in it.
            (databases.restore if granted else databases.bring_back)(url, database)
            shutil.copytree(kept, home, dirs_exist_ok=True)
        else:
            build()
            kept = tmp_path_factory.mktemp("built") / "home"
            home.mkdir(exist_ok=True)
            shutil.copytree(home, kept)
            built[key] = databases.keep(url), kept
        return workspace

    return brought


@pytest.fixture
def rows(workspace: Workspace) -> Callable[..., list[tuple[object, ...]]]:
    """Ask the workspace's database: `rows("SELECT ...", parameters)`."""

    def ask(statement: str, parameters: object = None) -> list[tuple[object, ...]]:
        with workspace.database.connect() as connection:
            return connection.execute(statement, parameters).fetchall()  # type: ignore[arg-type]

    return ask


@pytest.fixture
def clock_set_back() -> Callable[[Workspace], None]:
    """Puts all times of a ledger an hour ahead, as a clock was before it was set back.

    But those that tell which batch, and which copy of the database it is: they are compared alone.
    """

    moved = [
        sql.SQL("UPDATE recon.{0} SET {1} = {1} + interval '1 hour'").format(
            sql.Identifier(name), sql.Identifier(column.name)
        )
        for name, table in LEDGER_TABLES.items()
        for column in table.columns
        if getattr(column.type, "timezone", False)
        and name != "push_epoch"
        and column.name != "opened_at"
    ]

    def set_back(place: Workspace) -> None:
        with psycopg.connect(str(place.settings.database_url)) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in moved:
                connection.execute(statement)

    return set_back


@pytest.fixture
def database(workspace: Workspace) -> Database:
    return workspace.database
