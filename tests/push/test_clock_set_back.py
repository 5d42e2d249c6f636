"""A clock that was set back, or two that differ: no row is sent twice, and none is left out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.workspace import Workspace
from tests.push.conftest import Copy, deliver, towards
from tests.push.deliveries import applied, payments, tones
from tests.service.faulty_server import OK, FaultyServer, always, status

SetBack = Callable[[Workspace], None]
ROWS = 4


def times(server: FaultyServer) -> dict[int, int]:
    """Row -> how often it took effect."""
    return {row: len(bodies) for row, bodies in sorted(applied(server).items())}


@pytest.mark.long
def test_what_a_restored_database_has_as_unsent_is_in_doubt(
    workspace: Workspace, copied: Copy, tmp_path: Path, clock_set_back: SetBack
) -> None:
    with FaultyServer() as server:
        now = towards(workspace, server.url, concurrency=1)
        import_delivery(now, [tones(tmp_path / "tones.csv", ROWS)], DEFAULT)
        push_batch(now, 1, most=1)
        old = copied(now)
        push_batch(now, 1)
        clock_set_back(old)
        went_on = go_on_after_restore(old, unsent="in_doubt", by="a", reason="restored")
        assert went_on.in_doubt == {"AddMessageTone": ROWS - 1}
        push_batch(old, 1)
        assert times(server) == dict.fromkeys(range(1, ROWS + 1), 1)


@pytest.mark.long
def test_a_twin_that_a_restore_put_in_doubt_stays_so(
    workspace: Workspace, copied: Copy, tmp_path: Path, clock_set_back: SetBack, sent: Any
) -> None:
    """The row that it followed was refused before the backup, so it was sent itself after that."""
    with FaultyServer() as server:
        now = towards(workspace, server.url, concurrency=1)
        for rows in (2, 3):
            import_delivery(now, [tones(tmp_path / f"{rows}.csv", rows)], DEFAULT)
        push_batch(now, 1, most=1)
        push_batch(now, 2)
        server.plan = always(status(400, error_code="NotNull"))
        push_batch(now, 1)
        server.plan = always(OK)
        assert (sent(1)[2], sent(2)[2]) == ("refused", "unsent")
        old = copied(now)
        push_batch(now, 2)
        clock_set_back(old)
        went_on = go_on_after_restore(old, unsent="in_doubt", by="a", reason="restored")
        assert went_on.in_doubt == {"AddMessageTone": 1}
        push_batch(old, 2)
        assert times(server) == {1: 1, 2: 1, 3: 1}


@pytest.mark.long(but=("payments",))
@pytest.mark.parametrize("deliveries", [tones, payments])
def test_what_was_answered_and_not_taken_is_tried_again(
    workspace: Workspace, tmp_path: Path, clock_set_back: SetBack, deliveries: Any
) -> None:
    with FaultyServer(always(status(403))) as server:
        place = towards(workspace, server.url)
        with pytest.raises(ServiceUnusable):
            deliver(place, deliveries(tmp_path / "rows.csv", ROWS))
        clock_set_back(place)
        server.plan = always(OK)
        push_batch(place, 1)
        assert times(server) == dict.fromkeys(range(1, ROWS + 1), 1)
