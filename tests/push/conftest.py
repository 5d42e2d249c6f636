"""A service to push to: a faulty one by plan, or the sandbox; and batches that go there."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.database import open_database
from connectors.sandbox import Sandbox, SandboxOptions, User
from connectors.service import Credentials, Scheme
from connectors.settings import ServiceSettings
from flows.stages.sequence import Ended, import_delivery
from flows.stages.workspace import Workspace
from tests.stages.payments import line, write

PUSHED = replace(DEFAULT, push=True)
USER = User("ops", "pw-canary", ("Client", "Admin", "Partner"))
QUICK = {"backoff_seconds": 0.001, "backoff_most_seconds": 0.005, "retry_after_most_seconds": 2.0}
"""Waits that keep a test short; nothing is decided by time."""

Copy = Callable[[Workspace], Workspace]
"""Gives another database with the same rows as a workspace."""


def towards(workspace: Workspace, url: str, form: str = "json", **settings: Any) -> Workspace:
    """The workspace with this service set."""
    service = ServiceSettings(url=url, format=form, **(QUICK | settings))
    return replace(
        workspace,
        settings=replace(workspace.settings, service=service),
        credentials=Credentials(Scheme.BASIC, USER.name, USER.password),
    )


def deliver(workspace: Workspace, *paths: Path | str) -> Ended:
    """Import and push."""
    return import_delivery(workspace, [str(path) for path in paths], PUSHED)


def written_over(workspace: Workspace, url: str, folder: Path) -> Workspace:
    """Two payments that were pushed, the first of which batch 2 has written over."""
    place = towards(workspace, url)
    deliver(place, write(folder / "a.csv", line(1), line(2)))
    deliver(place, write(folder / "b.csv", line(1, amount="2", day=2)))
    return place


@contextmanager
def sandbox_at(database_url: str, **options: Any) -> Iterator[tuple[Sandbox, str]]:
    sandbox = Sandbox(SandboxOptions(users=(USER,), password_cost=16, **options), database_url)
    with sandbox.running() as url:
        yield sandbox, url


@pytest.fixture
def sent(rows: Any) -> Callable[[int], dict[int, str]]:
    """Record number -> state at the service, of a batch."""

    def ask(batch: int) -> dict[int, str]:
        return dict(
            rows("SELECT record_number, state FROM send WHERE batch_id = %s ORDER BY 1", [batch])
        )

    return ask


@pytest.fixture
def copied(server: str) -> Iterator[Copy]:
    """Another database with the same rows; what a dump restored under another name comes to."""
    names: list[str] = []

    def copy(place: Workspace) -> Workspace:
        url = str(place.settings.database_url)
        source = url.rpartition("?")[0].rpartition("/")[2]
        names.append(f"copy_{uuid.uuid4().hex[:12]}")
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{names[-1]}" TEMPLATE "{source}"')  # type: ignore[call-overload]
        settings = replace(place.settings, database_url=url.replace(source, names[-1]))
        return replace(place, settings=settings, database=open_database(settings))

    yield copy
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')  # type: ignore[call-overload]
