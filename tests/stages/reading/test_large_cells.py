"""Cells larger than Python's reader of CSV takes by itself, and within the limits of ours."""

import csv
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.draft.profile import draft_profile
from flows.stages.rows.locate import locate
from flows.stages.rows.made_of import made_fields
from flows.stages.rows.rejects import write_rejects
from flows.stages.rows.spots import Spot
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

LARGE = "=" + "x, " * 100_000
"""300,000 bytes, quoted, with a sign in front that a spreadsheet would run."""
GUID = "0a46beef-12a4-500f-89d9-4ba53232ac10"
HEADER = ["CommsGuid", "CampaignActionsRequestsId", "Comments", "CampaignActionFiles"]


def written(path: Path, request: str, header: list[str] = HEADER) -> str:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, [GUID, request, LARGE, "[]"]])
    return str(path)


@pytest.mark.long
def test_a_row_with_a_large_cell_is_shown_written_out_and_corrected(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [written(tmp_path / "replies.csv", "none")], DEFAULT)
    with workspace.database.connect() as connection:
        (row,) = locate(workspace, connection, 1, "replies.csv", Spot(line=2))
        made = made_fields(workspace, connection, row, row.data)
    assert [one.delivered for one in made if one.field == "Comments"] == [LARGE]
    (rejects,) = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False)
    rejects.write_text(rejects.read_text().replace("none", "8000"))
    import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    told = rows(
        'SELECT "CampaignActionsRequestsId", "Comments" FROM staged_form_reply WHERE batch_id = 2'
    )
    assert told == [(8000, LARGE)]


def test_a_profile_is_drafted_of_a_file_with_a_large_cell(still: Workspace, tmp_path: Path) -> None:
    path = written(tmp_path / "replies.csv", "8000", ["Guid", *HEADER[1:]])
    assert '"Guid"' in draft_profile(still.settings, path, "replies", "form_reply")
