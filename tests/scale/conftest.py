"""Workspaces to compare: each with a database and a home of its own, so that ids are the same."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from connectors.settings import Limits, Settings
from flows.stages.workspace import Workspace
from tests.conftest import Databases, workspace_of

NewWorkspace = Callable[..., Workspace]


@pytest.fixture
def new_workspace(databases: Databases, tmp_path: Path) -> Iterator[NewWorkspace]:
    numbers = count(1)
    with ExitStack() as opened:

        def new(block_bytes: int = 64 * 1024) -> Workspace:
            url = opened.enter_context(databases.new())
            home = (tmp_path / f"home-{next(numbers)}").resolve()
            settings = Settings(home, url, limits=Limits(block_bytes=block_bytes, strict_bytes=0))
            return workspace_of(settings)

        yield new
