"""What an inbox took is imported as it was taken, whatever the ledger came to know meanwhile."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import EvidenceBroken
from connectors.files.incoming.inbox import Inbox, Waiting
from flows.stages.inbox import Started, Watch, import_here
from flows.stages.receiving.terms import StatedTerms
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.stages.payments import line, write

WRONG = "0" * 64


class Queue:
    """An inbox whose imports wait until somebody runs them."""

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.waiting: list[Waiting] = []
        self._watch = Watch(workspace, Inbox(folder), StatedTerms(), self._start)
        self._import = import_here(workspace, StatedTerms())

    def _start(self, waiting: Waiting) -> Started:
        if waiting.run:
            return Started("a run that waits", run=waiting.run, became="waiting")
        self.waiting.append(waiting)
        return Started("a run that waits", run=1)

    def deliver(self, stated: dict[str, Any] | None = None, **files: int) -> None:
        """Payments of these numbers by file, with what a manifest says of each."""
        for name, number in files.items():
            write(self.folder / f"{name}.csv", line(number))
        if stated is not None:
            manifest = {"files": {f"{name}.csv": said for name, said in stated.items()}}
            (self.folder / "manifest.json").write_text(json.dumps(manifest))
        self._watch.look(0)

    def states(self) -> list[str]:
        """What a further look says of what it started."""
        return [one.became for one in self._watch.look(0)]

    def run(self, order: Sequence[int]) -> list[str]:
        return [self._import(self.waiting[number]).detail for number in order]


@pytest.fixture
def queue(workspace: Workspace, tmp_path: Path) -> Queue:
    return Queue(workspace, tmp_path / "inbox")


@pytest.mark.long
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_deliveries_that_share_a_refused_file_are_imported_in_any_order(
    queue: Queue, rows: Any, order: Sequence[int]
) -> None:
    """Its bytes are refused with the first, and taken from the second."""
    queue.deliver({"good": {"rows": 1}, "bad": {"sha256": WRONG}}, good=1, bad=2)
    queue.deliver(bad=2)
    assert queue.states() == ["waiting", "waiting"]
    queue.run(order)
    assert queue.states() == []
    taken = rows("SELECT name FROM extract WHERE refused IS NULL ORDER BY name")
    assert taken == [("bad.csv",), ("good.csv",)]
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (2,)]


@pytest.mark.long
def test_an_undo_between_a_look_and_its_run_alters_no_file(
    workspace: Workspace, queue: Queue, rows: Any
) -> None:
    queue.deliver(bad=2)
    queue.run([0])
    queue.deliver({"good": {"rows": 1}, "bad": {"sha256": WRONG}}, good=1, bad=2)
    undo_batch(workspace, 1, by=None, reason="test")
    queue.run([1])
    assert rows("SELECT name, refused FROM extract WHERE batch_id = 2 ORDER BY name") == [
        ("bad.csv", "incomplete_file"),
        ("good.csv", None),
    ]
    assert rows('SELECT "Id" FROM payment') == [(1,)]


@pytest.mark.parametrize("name", ["good", "bad"])
def test_a_file_that_is_altered_stops_the_run_whether_it_is_refused_or_not(
    queue: Queue, rows: Any, name: str
) -> None:
    queue.deliver({"good": {"rows": 1}, "bad": {"sha256": WRONG}}, good=1, bad=2)
    (taken,) = queue.waiting
    write(taken.folder / f"{name}.csv", line(3))
    with pytest.raises(EvidenceBroken, match="were changed after the inbox took them"):
        queue.run([0])
    assert rows("SELECT count(*) FROM batch") == [(0,)]
