"""A database for earlier code, or earlier steps, to make their own schema in."""

import os
from collections.abc import Iterator

import psycopg
import pytest


@pytest.fixture
def empty_url(server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database without a schema."""
    name = f"earlier_{os.getpid()}_{abs(hash(request.node.name)) % 10**8}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload]
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')  # type: ignore[call-overload]
