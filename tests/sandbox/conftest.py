"""One database for all tests of the sandbox; hosts of both styles over it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from connectors.sandbox import Sandbox, SandboxOptions, User
from tests.conftest import Databases
from tests.sandbox.caller import Caller

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
USERS = (
    User("client", "p@ss", ("Client",), api_key="key-of-client"),
    User("partner", "p@ss", ("Partner",)),
    User("admin", "p@ss", ("Admin",)),
    User("nobody", "p@ss"),
)


class Host(NamedTuple):
    sandbox: Sandbox
    caller: Caller


@contextmanager
def running(database_url: str, **chosen: Any) -> Iterator[Host]:
    """A host with these options, its records forgotten."""
    defaults: dict[str, Any] = {"users": USERS, "clock": lambda: NOW, "password_cost": 2**4}
    sandbox = Sandbox(SandboxOptions(**{**defaults, **chosen}), database_url)
    with sandbox.running() as base_url, Caller(base_url) as caller:
        sandbox.clear()
        yield Host(sandbox, caller)


@pytest.fixture(scope="session")
def database_url(databases: Databases) -> Iterator[str]:
    with databases.new() as url:
        yield url


@pytest.fixture(scope="module")
def pascal(database_url: str) -> Iterator[Host]:
    with running(database_url) as host:
        yield host


@pytest.fixture(scope="module")
def camel(database_url: str) -> Iterator[Host]:
    with running(database_url, style="camel-core") as host:
        yield host


@pytest.fixture
def host(pascal: Host) -> Host:
    """The default host without records."""
    pascal.sandbox.clear()
    return pascal
