"""A key that is absent, or lacks a part, is equal to nothing: its row stands for itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.examining.examine import examine
from flows.stages.reconcile.as_of import today
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.tables import EXTRACTS

# By record kind: the file, and its rows, each with the state that it ends in.
KINDS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "form_reply": (
        "CommsGuid,CampaignActionsRequestsId,Comments,CampaignActionFiles",
        [
            (",,one,", "inserted"),
            (",,two,", "inserted"),
            (",,one,", "inserted"),
            ("g,,one,", "inserted"),
            ("g,,two,", "inserted"),
            (",7,one,", "inserted"),
            (",7,one,", "inserted"),
            ("g,7,one,", "inserted"),
            ("g,7,one,", "superseded"),
            ("h,7,one,", "conflict"),
            ("h,7,two,", "conflict"),
        ],
    ),
    "client_registration": (
        "EMail,FirstName,LastName,Password,ConfirmPassword,Company",
        [
            (",A,A,p,p,X", "inserted"),
            (",B,B,p,p,Y", "inserted"),
            (",A,A,p,p,X", "inserted"),
            ("c@example.com,A,A,p,p,X", "inserted"),
        ],
    ),
    "user_account": (
        "Id,UserName",
        [(",a", "inserted"), (",b", "inserted"), (",a", "inserted"), ("1,a", "inserted")],
    ),
}


@pytest.mark.long(but=("user_account",))
@pytest.mark.parametrize("record", KINDS)
def test_rows_without_a_key_meet_nobody(
    record: str,
    workspace: Workspace,
    tmp_path: Path,
    rows: Callable[..., list[tuple[Any, ...]]],
) -> None:
    header, delivered = KINDS[record]
    path = tmp_path / f"{record}s.csv"
    path.write_text("\n".join([header, *(line for line, _ in delivered)]) + "\n")
    [verdict] = examine(workspace.settings, [str(path)], DEFAULT)
    assert verdict.refused is None, verdict.message
    bad = [n for n, (_, state) in enumerate(delivered, 1) if state in ("rejected", "conflict")]
    assert [one.record_number for one in verdict.rejects] == bad
    import_delivery(workspace, [str(path)], DEFAULT)
    states = rows("SELECT state FROM staged_row ORDER BY record_number")
    assert [state for (state,) in states] == [state for _, state in delivered]
    # The rows of a later delivery are no repeats of those of an earlier one either.
    path.write_text("\n".join([header, *(line for line, _ in reversed(delivered))]) + "\n")
    import_delivery(workspace, [str(path)], DEFAULT)
    lacking = {"form_reply": 7, "client_registration": 3, "user_account": 3}[record]
    where = " OR ".join(f'"{name}" IS NULL' for name in EXTRACTS[record].key)
    assert rows(f"SELECT count(*) FROM {record} WHERE {where}") == [(2 * lacking,)]
    # Each record of the database is that of the row that wrote it.
    done = reconcile(workspace, Asked(Scope(), today(ZoneInfo("UTC")), Rules()))
    codes = {one.code for one in done.report.breaks}
    of_matching = {"MISSING_IN_TARGET", "MISSING_IN_EXTRACT", "DUPLICATE", "CHANGED"}
    assert codes & of_matching == ({"DUPLICATE"} if record == "form_reply" else set())
    assert not done.report.self_test.missed
