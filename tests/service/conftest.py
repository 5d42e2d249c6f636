"""Sandboxes of both styles over one PostgreSQL of their own."""

from collections.abc import Iterator

import pytest

from connectors.embedded import embedded_url
from tests.sandbox.conftest import Host, running


@pytest.fixture(scope="session")
def sandbox_database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return embedded_url(tmp_path_factory.mktemp("service") / "postgres")


@pytest.fixture(scope="module", params=["pascal-5", "camel-core"])
def host(request: pytest.FixtureRequest, sandbox_database: str) -> Iterator[Host]:
    """A host of either style, in a zone that is not UTC."""
    with running(sandbox_database, style=request.param, zone="America/New_York") as host:
        yield host
