"""The demonstration: its story holds, and holds again in the same folder."""

import subprocess
import sys
from typing import Any

import pytest

from flows.ops.demo import LISTED, find_samples, tell
from flows.stages.workspace import Workspace
from schemas.operations import OPERATIONS, PUSHES

pytestmark = pytest.mark.flows


def test_every_listing_of_the_service_has_a_sample_and_nothing_else_has() -> None:
    assert LISTED.keys() == {one.response for one in OPERATIONS if one.returns_list}
    assert all((find_samples() / "clean" / name).is_file() for name in LISTED.values())


@pytest.mark.long
def test_the_story_is_proven_each_time_unless_the_database_differs(
    workspace: Workspace, rows: Any
) -> None:
    first: list[str] = []
    assert tell(workspace.settings, find_samples(), first.append)
    batches = rows("SELECT id, feed, corrects, state FROM batch ORDER BY id")
    assert batches == [
        (1, "demo", None, "complete_with_errors"),
        (2, "demo", 1, "complete"),
        (3, "demo", None, "complete"),
        (4, "service-listing", None, "complete"),
    ]
    sent = rows("SELECT batch_id, state, attempts, count(*) FROM send GROUP BY 1, 2, 3 ORDER BY 1")
    again: list[str] = []
    assert tell(workspace.settings, find_samples(), again.append)
    assert sum("This delivery was taken in batch" in one for one in again) == 4
    assert rows("SELECT id, feed, corrects, state FROM batch ORDER BY id") == batches
    assert sent == [
        (1, "acknowledged", 1, 6_119),
        (2, "acknowledged", 1, 68),
        (3, "acknowledged", 0, 6_183),
    ]
    assert sent == rows(
        "SELECT batch_id, state, attempts, count(*) FROM send GROUP BY 1, 2, 3 ORDER BY 1"
    )
    told = "\n".join(first)
    assert "6,601 rows: 14 conflict, 6,502 inserted, 64 rejected, 21 superseded" in told
    assert "75 rows: 71 inserted, 4 updated" in told
    assert "6,585 rows: 12 superseded, 6,573 unchanged" in told
    assert "at the service: 6,183 acknowledged before, not sent again" in told
    assert told.count(": equal") == len(PUSHES)
    folder = workspace.settings.reports / "reconciliation-1"
    assert f"open breaks\n   report: {folder}/report.html" in told
    assert (folder / "report.html").is_file()
    assert rows("SELECT DISTINCT scope FROM reconciliation") == [("batches 1, 2, 4",)]
    assert "Incomplete:" not in told
    assert "Proven" in told
    for batch in (1, 2, 3):
        report = workspace.settings.reports / f"batch-{batch}" / "report.html"
        assert f"report: {report}" in told
        assert report.is_file()

    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET state = 'undone' WHERE id = 3")
        connection.execute('UPDATE payment SET "DebtsId" = 1 WHERE "Id" = 48000001')
    other: list[str] = []
    assert not tell(workspace.settings, find_samples(), other.append)
    assert "1 updated" in "\n".join(other)
    assert "did not end as it should" in other[-2]


@pytest.mark.long
def test_the_commands_and_the_demo_are_imported_without_prefect() -> None:
    code = "import sys, flows.__main__, flows.ops.demo; sys.exit('prefect' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
