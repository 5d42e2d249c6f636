"""A real PostgreSQL for the tests: one embedded server, one fresh database per workspace."""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from connectors.database import Database, migrate, open_database
from connectors.embedded import embedded_url
from connectors.settings import Settings
from flows.stages.workspace import Workspace

TEMPLATE = "recon_template"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of the maintenance database of a server that has the migrated template."""
    folder = tmp_path_factory.mktemp("server") / "postgres"
    url = embedded_url(folder, TEMPLATE)
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        migrate(connection)
    engine.dispose()
    server = embedded_url(folder, "postgres")
    # Processes die in tests, machines do not: what they hand to the system is never lost.
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    return server


class Databases:
    """Copies of the template, the next of them made while a test works with the last."""

    def __init__(self, server: str, maker: ThreadPoolExecutor) -> None:
        self._server, self._maker = server, maker
        self._next = maker.submit(self._make)

    @contextmanager
    def new(self) -> Iterator[str]:
        """URL of a database with our schema, for as long as it is needed."""
        name, self._next = self._next.result(), self._maker.submit(self._make)
        try:
            yield self._server.replace("/postgres?", f"/{name}?")
        finally:
            self._maker.submit(self._drop, name)

    def _make(self) -> str:
        name = f"test_{uuid.uuid4().hex[:12]}"
        self._do(f'CREATE DATABASE "{name}" TEMPLATE {TEMPLATE}')
        return name

    def _drop(self, name: str) -> None:
        self._do(f'DROP DATABASE "{name}" WITH (FORCE)')

    def _do(self, statement: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture(scope="session")
def databases(server: str) -> Iterator[Databases]:
    with ThreadPoolExecutor(1) as maker:
        yield Databases(server, maker)


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """URL of a database of its own, with our schema."""
    with databases.new() as url:
        yield url


@pytest.fixture
def workspace(database_url: str, tmp_path: Path) -> Workspace:
    """A workspace with its own database and its own home folder."""
    settings = Settings((tmp_path / "home").resolve(), database_url)
    return Workspace(settings, open_database(settings))


@pytest.fixture
def rows(workspace: Workspace) -> Callable[..., list[tuple[object, ...]]]:
    """Ask the workspace's database: `rows("SELECT ...", parameters)`."""

    def ask(statement: str, parameters: object = None) -> list[tuple[object, ...]]:
        with workspace.database.connect() as connection:
            return connection.execute(statement, parameters).fetchall()  # type: ignore[arg-type]

    return ask


@pytest.fixture
def database(workspace: Workspace) -> Database:
    return workspace.database
