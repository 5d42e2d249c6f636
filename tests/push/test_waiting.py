"""Which batches are pushed when none is named, and that none of them keeps the others back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError, RowsUnsent, ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.push.sends import waiting_batches
from flows.stages.sequence import import_delivery, push_batch, push_waiting
from flows.stages.workspace import Workspace
from tests.push.conftest import deliver, towards
from tests.push.deliveries import payments, tones
from tests.push.test_crashes import recon
from tests.service.faulty_server import OK, FaultyServer, always, status
from tests.stages.payments import line, write


@pytest.mark.long
def test_a_batch_for_another_service_keeps_no_other_back(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """Its service may only be down: to the one that is set it goes where somebody names it."""
    refused = always(status(401))
    with FaultyServer(refused) as former, FaultyServer(refused) as server:
        for url, path in (
            (former.url, tones(tmp_path / "a.csv", 2)),
            (server.url, payments(tmp_path / "b.csv", 2)),
        ):
            with pytest.raises(ServiceUnusable):
                deliver(towards(workspace, url), path)
        server.plan = always(OK)
        pushed = recon(workspace, server.url, "push")
        assert pushed.returncode == 2
        assert f"Batch 1 goes to {former.url}, but" in pushed.stderr
        assert "by `recon push 1`" in pushed.stderr
        assert sent(1) == {1: "unsent", 2: "unsent"}
        assert sent(2) == {1: "acknowledged", 2: "acknowledged"}
        assert recon(workspace, server.url, "push", "1").returncode == 0
        assert sent(1) == {1: "acknowledged", 2: "acknowledged"}


@pytest.mark.long
def test_a_row_that_is_not_taken_keeps_no_other_batch_back(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """The service has taken others of its batch, so it is there."""
    with FaultyServer(always(status(401))) as server:
        there = towards(workspace, server.url)
        for made in (tones, payments):
            with pytest.raises(ServiceUnusable):
                deliver(there, made(tmp_path / f"{made.__name__}.csv", 3))
        server.plan = lambda seen: status(403) if "tone 2" in seen.body else OK
        told = [(number, one.exit_code) for number, one in push_waiting(there)]
    assert told == [(1, 2), (2, 0)]
    assert sent(1) == {1: "acknowledged", 2: "unsent", 3: "acknowledged"}
    assert set(sent(2).values()) == {"acknowledged"}


@pytest.mark.long
def test_the_batch_that_was_not_tried_for_longest_is_the_first(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Whoever takes only so many of them comes to all, whatever fails in the first ones."""
    with FaultyServer(always(status(503))) as server, FaultyServer(always(status(401))) as former:
        with pytest.raises(ServiceUnusable):
            deliver(towards(workspace, former.url), tones(tmp_path / "former.csv", 2))
        place = towards(workspace, server.url, attempts=1)
        for count in (2, 3, 4):
            with pytest.raises(RowsUnsent):
                deliver(place, payments(tmp_path / f"{count}.csv", count))

        def waiting() -> list[int]:
            with workspace.database.connect() as connection:
                return waiting_batches(connection, server.url)

        assert waiting() == [2, 3, 4, 1]
        with pytest.raises(RowsUnsent):
            push_batch(place, 2)
        assert waiting() == [3, 4, 2, 1]
        with pytest.raises(RowsUnsent):
            push_batch(place, 3)
        assert waiting() == [4, 2, 3, 1]


def test_a_push_of_a_held_batch_is_told_who_has_to_decide(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A rerun would leave it held."""
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    import_delivery(workspace, [path], replace(DEFAULT, budget_errors=0))
    with pytest.raises(BatchStateError) as refused:
        push_batch(workspace, 1)
    assert "recon release 1 --reason" in str(refused.value)
    assert "recon rerun" not in str(refused.value)
