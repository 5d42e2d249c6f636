"""Workspaces to compare: each with a database and a home of its own, so that ids are the same."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from connectors.database import open_database
from connectors.settings import Limits, Settings
from flows.stages.workspace import Workspace
from tests.conftest import TEMPLATE

NewWorkspace = Callable[..., Workspace]


@pytest.fixture
def new_workspace(server: str, tmp_path: Path) -> Iterator[NewWorkspace]:
    names: list[str] = []

    def new(block_bytes: int = 64 * 1024) -> Workspace:
        name = f"scale_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE {TEMPLATE}')
        names.append(name)
        url = server.replace("/postgres?", f"/{name}?")
        home = (tmp_path / name).resolve()
        settings = Settings(home, url, limits=Limits(block_bytes=block_bytes))
        return Workspace(settings, open_database(settings))

    yield new
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
