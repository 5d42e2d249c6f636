"""A desk on a socket over a database of its own, and browsers to open it."""

from collections.abc import Callable, Iterator

import pytest

from flows.stages.workspace import Workspace
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
