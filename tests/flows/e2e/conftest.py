"""One machine for all stories: a real server on the embedded PostgreSQL, a worker, deployments."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.e2e.machine import Machine, webhook

CANARY = "canary-0xC0FFEE"


@pytest.fixture(scope="package", autouse=True)
def prefect_home() -> None:
    """No harness: these stories have a server of their own."""


@pytest.fixture(autouse=True)
def environment() -> None:
    """Nor anything in this process's environment."""


@pytest.fixture(scope="package")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Up for all stories; its end is the story of Ctrl-C: nothing may be left running.

    Its home has a name that each part of it has to take as it is, and whoever starts it works with
    another Prefect server as well.
    """
    home = tmp_path_factory.mktemp("machine") / "Büro 50%25, $HOME #1"
    notices: list[bytes] = []
    with webhook(notices) as url:
        another = "http://127.0.0.1:9/api"
        one = Machine(home, notices, RECON_NOTIFY_URL=f"{url}/{CANARY}", PREFECT_API_URL=another)
        with one.up():
            yield one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder the worker can read, which is of the same user."""
    return tmp_path
