"""What cannot be read may hold a secret: it is told why, and never shown."""

from pathlib import Path

import pytest

from connectors.extracts.profile import DEFAULT
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

HEADER = "Data,HasError,Merged,BatchId,Jsondata,ErrorData\n"
UNREADABLE = {
    "no object": "EMail=a@example.com;Password=canary-7",
    "no known record": '{"Password":"canary-7","Colour":"red"}',
    "cut short": '{"EMail":"a@example.com","Password":"canary-7"',
    "a field twice": '{"Password":"canary-7","Password":"canary-7"}',
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_insert_batch_data_is_not_quoted(
    workspace: Workspace, tmp_path: Path, data: str
) -> None:
    path = tmp_path / "batch.csv"
    quoted = data.replace('"', '""')
    path.write_text(f'{HEADER}"{quoted}",False,False,1,,\n')
    ended = import_delivery(workspace, [str(path)], DEFAULT)
    assert ended.report.errors == 1
    folder = workspace.settings.reports / f"batch-{ended.batch.id}"
    for file in folder.iterdir():
        assert "canary-7" not in file.read_text(), file.name
    with workspace.database.connect() as connection:
        told = connection.execute("SELECT error_data FROM staged_row").fetchall()
    assert "canary-7" not in str(told)
    assert "InnerRecord" in str(told)
