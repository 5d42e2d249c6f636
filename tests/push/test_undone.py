"""What an undo does to the rows that own their records again, also while they are pushed."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.batches.ledger import State
from connectors.postgres.push.lane import hold_lane
from connectors.postgres.push.plan import plan_sends
from connectors.postgres.push.restores import Restore, declare
from connectors.postgres.push.sends import (
    SendDecision,
    is_unsettled,
    left_at_service,
    waiting_batches,
)
from connectors.postgres.push.window import claim, next_rows, supersede
from flows.stages.chosen_sends import ChosenSends
from flows.stages.receiving.batch_service import ask_for_service
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.undo import undo_and_tell, undo_batch
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.workspace import Workspace
from schemas.field import Table
from schemas.operations import PUSHES
from schemas.tables import PAYMENT, PAYMENT_GATEWAY
from tests.push.conftest import PUSHED, Copy, deliver, towards
from tests.push.deliveries import GATEWAYS, row_of, stored
from tests.service.faulty_server import LOST, OK, FaultyServer, Plan, Reply, always, at, status
from tests.stages.payments import line, write

STORIES: dict[str, tuple[str, Plan]] = {
    # An amount is imported, or delivered and pushed too, each in a batch; a batch is undone.
    "the undone batch sent it": ("deliver 1, deliver 2, undo 2", at({})),
    "another one delivered it too and sent it": (
        "deliver 1, import 2, deliver 2, undo 3, undo 2",
        at({}),
    ),
    "one that was undone before sent a third": (
        "deliver 1, import 2, import 3, deliver 4, undo 4, undo 3, undo 2",
        at({}),
    ),
    "not the writer sent the first": ("import 1, deliver 1, deliver 2, undo 3", at({})),
    "the first was refused": ("deliver 1, deliver 2, undo 2", at({1: status(400)})),
    "the first was stored otherwise": (
        "deliver 1, deliver 2, undo 2",
        at({1: stored(1, 9.0)}),
    ),
    "the writer sent it elsewhere": (
        "elsewhere, deliver 1, here, deliver 1, deliver 2, undo 3",
        at({}),
    ),
    "who sent the first was undone": (
        "import 1, deliver 1, undo 2, deliver 2, undo 3, push 1",
        at({}),
    ),
    "who sent the first was undone, and it is delivered again": (
        "import 1, deliver 1, undo 2, deliver 2, undo 3, deliver 1",
        at({}),
    ),
    "the writer's run ended between plan and first byte": (
        "import 1, deliver 1, plan 1, deliver 2, undo 3",
        at({}),
    ),
    "nobody had planned it when it was overwritten": (
        "import 1, import 1, deliver 2, push 2, undo 3",
        at({}),
    ),
    "a restored database does not know that the newer was sent": (
        "deliver 1, import 2, plan 2, back up, push 2, restore, undo 2",
        at({}),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("story", STORIES)
def test_the_service_is_brought_back_whoever_sent_the_newer_body(
    workspace: Workspace, copied: Copy, tmp_path: Path, story: str
) -> None:
    steps, plan = STORIES[story]
    with FaultyServer(plan) as server, FaultyServer() as other:
        place = here = towards(workspace, server.url, concurrency=1)
        kept = here
        for number, step in enumerate(steps.split(", ")):
            what, _, which = step.partition(" ")
            match what:
                case "import" | "deliver":
                    # Another payment makes a file of its own out of the same content.
                    lines = line(1, amount=which), line(100 + number)
                    path = write(tmp_path / f"{number}.csv", *lines)
                    given = PUSHED if what == "deliver" else DEFAULT
                    import_delivery(place, [path], given)
                case "undo":
                    undo_batch(place, int(which), by=None, reason="wrong month")
                case "push":
                    push_batch(place, int(which))
                case "plan":
                    with (
                        place.database.connect() as connection,
                        hold_batch(connection, int(which)) as lease,
                        planned(place, lease, PAYMENT),
                    ):
                        pass
                case "elsewhere":
                    place = towards(workspace, other.url)
                case "here":
                    place = here
                case "back":
                    kept = copied(place)
                case "restore":
                    place = kept
                    go_on_after_restore(place, unsent="in_doubt", by="a", reason="restored")
        with place.database.connect() as connection:
            waiting = waiting_batches(connection, None)
        for batch in waiting:
            push_batch(place, batch)
        assert amounts(server)[-1] == 1


def amounts(server: FaultyServer) -> list[float]:
    """What took effect for payment 1, in order."""
    bodies = [json.loads(effect.body) for effect in server.effects]
    return [body["PaidAmount"] for body in bodies if body["Id"] == 1]


ROWS, OVERWRITTEN = 18, 17


def gateways(path: Path, numbers: range, notified: str) -> str:
    """Payment gateways; each is a POST that a later delivery may change."""
    lines = [f"1,{number},gateway {number},key,{notified},https://r" for number in numbers]
    path.write_text("\n".join([GATEWAYS, *lines]) + "\n")
    return str(path)


def overwritten(place: Workspace, tmp_path: Path) -> None:
    """Two batches that wait: the second one has written a record of the first."""
    first = gateways(tmp_path / "a.csv", range(1, ROWS + 1), "https://n")
    import_delivery(place, [first], DEFAULT)
    again = gateways(tmp_path / "b.csv", range(OVERWRITTEN, OVERWRITTEN + 1), "https://m")
    import_delivery(place, [again], DEFAULT)


@pytest.mark.long
def test_an_undo_while_an_earlier_batch_is_pushed_has_its_rows_sent_too(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    turn = threading.Lock()
    undone: list[object] = []

    def undo() -> None:
        with turn:
            if not undone:
                undone.append(undo_batch(workspace, 2, by=None, reason="wrong month"))

    with FaultyServer(lambda seen: Reply(hold=undo)) as server:
        place = towards(workspace, server.url, concurrency=3)
        overwritten(place, tmp_path)
        push_batch(place, 1)
        assert sent(1) == dict.fromkeys(range(1, ROWS + 1), "acknowledged")
        assert len(server.effects) == ROWS


@pytest.mark.long
def test_a_row_that_owns_its_record_again_since_it_was_read_is_not_superseded(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        overwritten(place, tmp_path)
        with (
            workspace.database.connect() as connection,
            hold_batch(connection, 1) as lease,
            planned(place, lease) as lane,
        ):
            old = [row for row in next_rows(lane, 0, ROWS) if not row.current]
            assert [row.request.number for row in old] == [OVERWRITTEN]
            undo_batch(place, 2, by=None, reason="wrong month")
            with lane.transaction():
                supersede(lane, old)
        assert sent(1)[OVERWRITTEN] == "unsent"
        push_batch(place, 1)
        assert sent(1) == dict.fromkeys(range(1, ROWS + 1), "acknowledged")


@pytest.mark.long
def test_a_row_that_is_given_back_while_the_last_one_is_sent_is_sent_too(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """As many are left as before, and nothing was in the way of any."""
    with FaultyServer(always(status(403))) as server:
        place = towards(workspace, server.url)
        with pytest.raises(ServiceUnusable):
            deliver(place, write(tmp_path / "a.csv", line(1, amount="1"), line(2)))
        import_delivery(place, [write(tmp_path / "b.csv", line(1, amount="2"))], DEFAULT)
        with pytest.raises(ServiceUnusable):
            push_batch(place, 1)
        assert sent(1) == {1: "superseded", 2: "unsent"}

        def undo() -> None:
            undo_batch(workspace, 2, by=None, reason="wrong month")

        server.plan = lambda seen: Reply(hold=undo) if row_of(seen.body) == 2 else OK
        push_batch(place, 1)
        assert sent(1) == {1: "acknowledged", 2: "acknowledged"}


@pytest.mark.long
def test_a_row_that_was_put_in_doubt_since_it_was_read_is_not_claimed(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    place = towards(workspace, "http://127.0.0.1:9")
    overwritten(place, tmp_path)
    with (
        workspace.database.connect() as connection,
        hold_batch(connection, 1) as lease,
        planned(place, lease) as lane,
    ):
        window = [row.request for row in next_rows(lane, 0, 3)]
        with workspace.database.connect() as other, other.transaction():
            declare(other, Restore("in_doubt", by=None, reason="restored"))
        with lane.transaction():
            assert claim(lane, window) == []
        # Nothing was sent of them from here, and the service may have all of them.
        assert left_at_service(lane.lease.connection, 1) == {"AddPaymentGateway": ROWS}
    assert set(sent(1).values()) == {"in_doubt"}


@pytest.mark.long
def test_what_was_overwritten_while_it_is_in_doubt_waits_for_no_push(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """A host that honours the key is not sent the older body, so a push has nothing to do."""
    with FaultyServer(at({1: LOST})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, gateways(tmp_path / "a.csv", range(1, 2), "https://n"))
        import_delivery(place, [gateways(tmp_path / "b.csv", range(1, 2), "https://m")], DEFAULT)
        place = towards(workspace, server.url, idempotent=True)
        assert push_batch(place, 1).batch.state is State.COMPLETE_WITH_ERRORS
        with workspace.database.connect() as connection:
            assert waiting_batches(connection, server.url, repeatable=True) == []
            assert not is_unsettled(connection, 1, repeatable=True)
        assert sent(1) == {1: "in_doubt"}
        assert len(server.requests) == 1


def test_a_carried_out_row_that_was_set_aside_is_left_at_the_service(
    workspace: Workspace, tmp_path: Path
) -> None:
    refused = status(400, error_code="NotNull")
    plan = at({1: stored(1, 9.0), 2: refused})
    with FaultyServer(plan) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, write(tmp_path / "a.csv", line(1), line(2)))
        aside = ChosenSends(states=("differs", "refused"))
        resolve(place, 1, aside, SendDecision.ABANDON, by=None, reason="left as it is")
    assert undo_and_tell(place, 1, by=None, reason="wrong month").left == {"EditPayment": 1}


def planned(place: Workspace, lease: Any, table: Table = PAYMENT_GATEWAY) -> Any:
    """The turn at the operation, with the rows of the batch planned."""
    ask_for_service(place, lease)
    with lease.transaction():
        plan_sends(lease, table)
    return hold_lane(lease, PUSHES[table.name], wait_seconds=1)
