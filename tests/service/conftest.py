"""Sandboxes of both styles over one database of their own."""

from collections.abc import Iterator

import pytest

from tests.conftest import Databases
from tests.sandbox.conftest import Host, running


@pytest.fixture(scope="session")
def sandbox_database(databases: Databases) -> Iterator[str]:
    with databases.new() as url:
        yield url


@pytest.fixture(scope="module", params=["pascal-5", "camel-core"])
def host(request: pytest.FixtureRequest, sandbox_database: str) -> Iterator[Host]:
    """A host of either style, in a zone that is not UTC."""
    with running(sandbox_database, style=request.param, zone="America/New_York") as host:
        yield host
