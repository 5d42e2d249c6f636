"""A desk on a socket over a database of its own, and browsers to open it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from connectors.postgres.database import Database
from flows.stages.workspace import Workspace
from tests.accounts.conftest import controller as controller  # noqa: PLC0414 -- the fixture.
from tests.desk.browser import Browser, desk_of


@pytest.fixture
def desk(workspace: Workspace) -> Iterator[str]:
    """Its address."""
    with desk_of(workspace) as url:
        yield url


@pytest.fixture
def browser(desk: str) -> Iterator[Callable[[], Browser]]:
    """Gives a new browser that nobody has logged in with."""
    opened: list[Browser] = []

    def new() -> Browser:
        opened.append(Browser(desk))
        return opened[-1]

    yield new
    for one in opened:
        one.client.close()


@pytest.fixture
def desk_as(workspace: Workspace) -> Iterator[Callable[[str], str]]:
    """Starts a desk that connects to the same database by another address; gives its own."""
    with ExitStack() as running:

        def start(url: str) -> str:
            place = replace(workspace, database=Database(url, 10))
            return running.enter_context(desk_of(place))

        yield start
