"""Databases of their own on the embedded server, for cases that come by the dozen."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
import pytest
from _pytest.mark import ParameterSet

from tests.conftest import TEMPLATE

WHERE = os.environ.get("RECON_TEST_FAULTS", "")
"""Of every cut and case "all" of them, or these messages; a sample where it is not set."""


def slow(*values: object) -> ParameterSet:
    """A case for RECON_TEST_FAULTS=all."""
    left_out = pytest.mark.skipif(not WHERE, reason="RECON_TEST_FAULTS=all runs it")
    return pytest.param(*values, marks=left_out)


Fresh = Callable[[str], AbstractContextManager[str]]


@pytest.fixture(scope="session")
def fresh(server: str) -> Fresh:
    """A copy of the template, or of another database nobody is connected to; gives its name."""

    @contextmanager
    def copy(template: str = TEMPLATE) -> Iterator[str]:
        name = f"fault_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        try:
            yield name
        finally:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    return copy


def named(server: str, database: str) -> str:
    """The URL of a database of this server."""
    return server.replace("/postgres?", f"/{database}?")
