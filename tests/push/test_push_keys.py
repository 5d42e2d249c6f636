"""Keys of writes: one for each effect that is asked for, whoever sends it and however often."""

from pathlib import Path
from typing import Any

from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends, sends_of
from flows.stages.resolve import resolve
from flows.stages.sequence import push_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.push.conftest import deliver, towards
from tests.push.deliveries import row_of
from tests.service.faulty_server import OK, FaultyServer, Reply, always, status
from tests.stages.payments import line, write


def test_a_put_of_a_content_that_was_overwritten_since_is_another_effect(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A host that honours keys would answer as it did the first time, and change nothing."""
    one, other = line(1, amount="1"), line(1, amount="2")
    second = write(tmp_path / "b.csv", other)
    with FaultyServer() as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, write(tmp_path / "a.csv", one))
        deliver(place, second)
        deliver(place, write(tmp_path / "c.csv", one, line(2)))
        # What was overwritten is sent again.
        undo_batch(place, 3, by=None, reason="wrong month")
        push_batch(place, 2)
        undo_batch(place, 2, by=None, reason="wrong month")
        push_batch(place, 1)
        # The very file once more.
        deliver(place, second)
        assert [row_of(seen.body) for seen in server.requests] == [1, 1, 1, 2, 1, 1, 1]
        assert len({*keys(server)}) == 7
        (shown,) = sends_of(place, 4, ChosenSends())
        assert shown.push_key == keys(server)[-1]


def test_a_put_keeps_its_key_until_its_row_is_sent_anew(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """Attempts and runs do not change it; who says `resend` asks for it anew."""
    wrong = Reply(body={"Id": 1, "PaidAmount": 99.0})
    with FaultyServer(lambda seen: status(503) if seen.number <= 7 else wrong) as server:
        place = towards(workspace, server.url, attempts=2)
        deliver(place, write(tmp_path / "a.csv", line(1)))
        while sent(1) == {1: "unsent"}:
            push_batch(place, 1)
        assert sent(1) == {1: "differs"}
        assert len({*keys(server)}) == 1
        server.plan = always(OK)
        differing = ChosenSends(states=("differs",))
        resolve(place, 1, differing, SendDecision.RESEND, by=None, reason="it was mended there")
        push_batch(place, 1)
        assert sent(1) == {1: "acknowledged"}
        assert len({*keys(server)}) == 2


def keys(server: FaultyServer) -> list[str]:
    return [seen.push_key for seen in server.requests]
