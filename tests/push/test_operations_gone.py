"""Rows that are kept under an operation that no record kind has any more."""

from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError
from connectors.postgres.push.decisions import count_unsettled, list_unsettled
from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.resolve import resolve
from flows.stages.undo import undo_and_tell
from flows.stages.workspace import Workspace
from tests.push.conftest import deliver, towards
from tests.push.deliveries import by_row, tones
from tests.service.faulty_server import DROPPED, FaultyServer


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path) -> Workspace:
    """Three tones, of which nobody knows whether the first was posted, by what is gone since."""
    with FaultyServer(by_row({1: DROPPED})) as server:
        deliver(towards(workspace, server.url), tones(tmp_path / "tones.csv", 3))
    with workspace.database.connect() as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE send SET operation = 'AddRefund'")
    return workspace


def test_no_decision_is_taken_about_them_and_it_is_said(place: Workspace, rows: Any) -> None:
    with place.database.connect() as connection:
        assert count_unsettled(connection, 1) == {("AddRefund", "in_doubt"): 1}
        (shown,) = list_unsettled(connection, 1, "AddRefund", "in_doubt", after=0, most=9)
        assert (shown.sent, shown.row["record_number"]) == (None, 1)
    chosen = ChosenSends(states=("in_doubt",))
    for decision in SendDecision:
        with pytest.raises(BatchStateError, match=r"batch 1 .* AddRefund, an operation that no"):
            resolve(place, 1, chosen, decision, by="otto", reason="looked at it")
    assert rows("SELECT DISTINCT state FROM send ORDER BY 1") == [("acknowledged",), ("in_doubt",)]


def test_an_undo_says_that_the_service_keeps_them(place: Workspace) -> None:
    told = undo_and_tell(place, 1, by="otto", reason="test").lines
    assert "3 of AddRefund" in told[1]
    assert "but for what was posted before" in told[1]
