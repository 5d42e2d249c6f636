"""A batch goes on as it was opened, never on terms that whoever imports it again did not state."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.lease import hold_batch
from flows.stages.receive import receive
from flows.stages.receiving.terms import StatedTerms
from flows.stages.sequence import import_delivery
from flows.stages.stage import stage
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.stages.payments import line, write

OPENED = replace(DEFAULT, tenant=7, budget_errors=0, budget_rate=0.5)
OTHER: Mapping[str, tuple[Any, str]] = {
    "tenant": (8, "tenant 8 (then: 7)"),
    "budget_errors": (5, "max-errors 5 (then: 0)"),
    "budget_rate": (0.25, "max-error-rate 0.25 (then: 0.5)"),
}


def received(workspace: Workspace, path: str) -> None:
    receive(workspace, [path], StatedTerms(OPENED))


def staged(workspace: Workspace, path: str) -> None:
    receive(workspace, [path], StatedTerms(OPENED))
    with workspace.database.connect() as connection, hold_batch(connection, 1) as lease:
        stage(workspace, lease)


def ended(workspace: Workspace, path: str) -> None:
    import_delivery(workspace, [path], OPENED)


STATES: Mapping[str, tuple[Callable[[Workspace, str], None], str]] = {
    "received": (received, "2"),
    "staged": (staged, "2"),
    "held": (ended, "x"),
    "complete": (ended, "2"),
}
LEDGER = "SELECT state, lease_epoch, (SELECT max(id) FROM event) FROM batch"


@pytest.mark.long(but=("held",))
@pytest.mark.parametrize("state", STATES)
def test_a_delivery_is_not_gone_on_with_on_other_terms_than_are_stated(
    workspace: Workspace, rows: Any, tmp_path: Path, state: str
) -> None:
    came_to, amount = STATES[state]
    path = write(tmp_path / "a.csv", line(1), line(2, amount=amount))
    came_to(workspace, path)
    before = rows(LEDGER)
    assert before[0][0] == state
    for key, (value, told) in OTHER.items():
        given = replace(DEFAULT, **{key: value})
        if state == "complete":
            (message,) = import_delivery(workspace, [path], given).messages
            assert f"It was opened on other terms than are stated now: {told}." in message
        else:
            with pytest.raises(BatchStateError) as refused:
                import_delivery(workspace, [path], given)
            assert f"which is {state}. It was opened on other terms" in str(refused.value)
            assert told in str(refused.value)
        assert rows(LEDGER) == before, key
    # What is not stated, or stated as it was, goes on.
    for given in (DEFAULT, OPENED):
        assert "other terms" not in " ".join(import_delivery(workspace, [path], given).messages)
    undo_batch(workspace, 1, by=None, reason="of another tenant")
    import_delivery(workspace, [path], replace(DEFAULT, tenant=8))
    assert rows("SELECT DISTINCT state FROM staged_row WHERE batch_id = 2") == [("rejected",)]
