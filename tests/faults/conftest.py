"""Databases of their own on the embedded server, for cases that come by the dozen."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
import pytest

from tests.conftest import TEMPLATE

Fresh = Callable[[str], AbstractContextManager[str]]


@pytest.fixture(scope="session")
def fresh(server: str) -> Fresh:
    """A copy of the template, or of another database nobody is connected to; gives its name."""

    @contextmanager
    def copy(template: str = TEMPLATE) -> Iterator[str]:
        name = f"fault_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
        try:
            yield name
        finally:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    return copy


def named(server: str, database: str) -> str:
    """The URL of a database of this server."""
    return server.replace("/postgres?", f"/{database}?")
