"""A Prefect server of the tests' own; it calls nobody and keeps to a temporary folder."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest
from cryptography.x509 import DNSName

from flows.stages.workspace import Workspace
from tests.certificates import made
from tests.flows.runs import server_database


@pytest.fixture(scope="package", autouse=True)
def prefect_home(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("prefect")
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)
    folder = cache.mkdir("prefect") if cache else home
    migrated = folder / f"{version('prefect')}.db"
    # Each of its clients, a dozen in a run, would read all authorities that certifi knows.
    authority = made(tmp_path_factory.mktemp("authority"), DNSName("localhost"))
    # Prefect reads its environment when it is first imported.
    os.environ |= {
        "PREFECT_HOME": str(home),
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "storage"),
        "PREFECT_API_SSL_CERT_FILE": str(authority.path),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "DO_NOT_TRACK": "1",
    }
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    def begun() -> str:
        """A folder for the server, its database that of an earlier run as it began."""
        place = tempfile.mkdtemp()
        if migrated.is_file():
            shutil.copyfile(migrated, Path(place) / "prefect-test.db")
        return place

    with (
        pytest.MonkeyPatch.context() as patch,
        temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
    ):
        patch.setattr("prefect.testing.utilities.mkdtemp", begun)
        with prefect_test_harness(server_startup_timeout=120):
            if not migrated.is_file():
                keep(server_database(), migrated)
            yield home


def keep(database: Path, where: Path) -> None:
    """A copy of the database of a server that runs, there as a whole or not at all."""
    part = where.with_suffix(f".{os.getpid()}")
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(part)) as copy:
        source.backup(copy)
    part.replace(where)


@pytest.fixture
def no_database() -> None:
    """Asked for by a test that opens no database: none is made for it."""


@pytest.fixture(autouse=True)
def environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks find their workspace where a worker finds it: in the environment."""
    if "no_database" in request.fixturenames:
        return
    workspace: Workspace = request.getfixturevalue("workspace")
    assert workspace.settings.database_url is not None
    monkeypatch.setenv("RECON_DATABASE_URL", workspace.settings.database_url)
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))
