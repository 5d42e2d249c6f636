"""What goes to one process of pytest-xdist: a file, a share of a test that takes minutes, and the
tests that use one Prefect server."""

import re
from typing import Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

TOGETHER = ("tests/flows/e2e/", "tests/flows/")
"""Tests of these folders share what takes long to start; begun first, as they take longest."""


SHARE = re.compile(r"share \d+ of \d+")
"""As `examples.shares` names them."""


class Files(LoadScopeScheduling):
    """Files in the order they were found in."""

    def _split_scope(self, nodeid: str) -> str:
        if SHARE.search(nodeid):
            return nodeid
        return next((one for one in TOGETHER if nodeid.startswith(one)), nodeid.split("::", 1)[0])

    def _reschedule(self, node: WorkerController) -> None:
        """More for a process, or word that there is no more.

        It begins a test once it knows which one is next: one that takes the place of a killed one
        would wait for ever with a single test.
        """
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


def scheduler(config: pytest.Config, log: Any) -> Files:
    config.option.loadscopereorder = False
    return Files(config, log)


def begun(item: pytest.Item) -> int:
    """Where a test stands in the order of a run."""
    places = (number for number, one in enumerate(TOGETHER) if item.nodeid.startswith(one))
    return next(places, len(TOGETHER))


def sendable(told: Any) -> Any:
    """What is told of a test, without the halves of characters that no channel carries."""
    match told:
        case str():
            return told.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {name: sendable(value) for name, value in told.items()}
        case list() | tuple():
            return type(told)(map(sendable, told))
    return told
