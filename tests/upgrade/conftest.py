"""A database for earlier code, or earlier steps, to make their own schema in."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict


@pytest.fixture
def empty_url(server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database without a schema."""
    name = f"earlier_{os.getpid()}_{abs(hash(request.node.name)) % 10**8}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload]
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')  # type: ignore[call-overload]


@pytest.fixture
def owned(server: str, empty_url: str) -> Iterator[tuple[str, str]]:
    """An empty database that belongs to an account: its URL for that one, and for a superuser."""
    name = conninfo_to_dict(empty_url)["dbname"]
    owner = f"owner_{name}"
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute(f'CREATE ROLE "{owner}" LOGIN')  # type: ignore[call-overload]
        administrator.execute(f'ALTER DATABASE "{name}" OWNER TO "{owner}"')  # type: ignore[call-overload]
        yield empty_url.replace("//postgres:@", f"//{owner}@"), empty_url
        administrator.execute(f'ALTER DATABASE "{name}" OWNER TO postgres')  # type: ignore[call-overload]
        with psycopg.connect(empty_url, autocommit=True) as there:
            there.execute(f'DROP OWNED BY "{owner}" CASCADE')  # type: ignore[call-overload]
        administrator.execute(f'DROP ROLE "{owner}"')  # type: ignore[call-overload]
