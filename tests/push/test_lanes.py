"""Who may send: one run per batch and per operation, and nobody who was taken over."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import (
    BatchHeldElsewhere,
    BatchStateError,
    OperationBusy,
    ServiceUnusable,
    SettingsError,
)
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.push.lane import hold_lane
from connectors.postgres.push.plan import plan_sends
from connectors.postgres.push.window import claim, next_rows, record_answers
from connectors.service import Answer, Verdict
from flows.stages.receiving.batch_service import ask_for_service
from flows.stages.sequence import import_delivery, push_batch, push_waiting
from flows.stages.workspace import Workspace
from schemas.operations import PUSHES
from schemas.tables import MESSAGE_TONE, PAYMENT
from tests.push.conftest import deliver, towards
from tests.push.deliveries import applied, claimed, payments, tones
from tests.service.faulty_server import FaultyServer, Reply, at
from tests.stages.payments import line, write

ROWS = range(1, 6)
TONES, PAYMENTS = PUSHES["message_tone"], PUSHES["payment"]


def test_a_run_waits_for_its_turn_and_reports_what_is_unsent(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url, turn_seconds=0.01)
        import_delivery(workspace, [tones(tmp_path / "a.csv", 2)], DEFAULT)
        with workspace.database.connect() as connection, hold_batch(connection, 1) as lease:
            ask_for_service(place, lease)
            with (
                hold_lane(lease, TONES, wait_seconds=1),
                pytest.raises(OperationBusy, match=r"pushed for batch 1 by .*pid \d+") as held,
            ):
                deliver(place, tones(tmp_path / "b.csv", 4))
        assert held.value.exit_code == 3
        assert "`recon push 2` sends it" in str(held.value)
        assert server.requests == []
        # All of it is applied and told: nobody has to look for what became of the batch.
        assert sent(2) == dict.fromkeys(range(1, 5), "unsent")
        report = (workspace.settings.reports / "batch-2" / "report.txt").read_text()
        assert "Push what is unsent." in report
        push_batch(place, 1)
        push_batch(place, 2)
        assert server.twice() == []
        assert len(server.effects) == 4


@pytest.mark.long
def test_a_busy_operation_keeps_no_batch_of_another_from_being_pushed(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """It is waited for once, and what keeps its batches is told beside what was pushed."""
    with FaultyServer() as server:
        place = towards(workspace, server.url, turn_seconds=0.01)
        for rows, made in enumerate((tones, tones, payments), 2):
            import_delivery(workspace, [made(tmp_path / f"{rows}.csv", rows)], DEFAULT)
        for batch in (1, 2, 3):
            with workspace.database.connect() as connection, hold_batch(connection, batch) as lease:
                ask_for_service(place, lease)
        with (
            workspace.database.connect() as connection,
            hold_batch(connection, 1) as lease,
            hold_lane(lease, TONES, wait_seconds=1),
        ):
            told = dict(push_waiting(place))
        assert isinstance(told[1], BatchHeldElsewhere)
        assert isinstance(told[2], OperationBusy)
        assert told[3].exit_code == 0
        assert set(sent(3).values()) == {"acknowledged"}
        assert {number: one.exit_code for number, one in push_waiting(place)} == {1: 0, 2: 0}


def test_a_service_that_is_down_is_the_last_that_is_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    place = towards(workspace, "http://127.0.0.1:9")
    for rows in (2, 3):
        import_delivery(workspace, [tones(tmp_path / f"{rows}.csv", rows)], DEFAULT)
    for batch in (1, 2):
        with workspace.database.connect() as connection, hold_batch(connection, batch) as lease:
            ask_for_service(place, lease)
    ((number, told),) = push_waiting(place)
    assert (number, isinstance(told, ServiceUnusable), told.exit_code) == (1, True, 2)


@pytest.mark.long
def test_a_run_goes_on_as_soon_as_its_turn_comes(
    workspace: Workspace, sent: Any, rows: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        import_delivery(workspace, [tones(tmp_path / "a.csv", 2)], DEFAULT)
        with (
            ThreadPoolExecutor(1) as threads,
            workspace.database.connect() as connection,
            hold_batch(connection, 1) as lease,
        ):
            ask_for_service(place, lease)
            with hold_lane(lease, TONES, wait_seconds=1):
                second = threads.submit(deliver, place, tones(tmp_path / "b.csv", 4))
                while not (second.done() or waits(rows)):
                    pass
                assert not second.done()
                assert server.requests == []
            assert second.result().report.verdict == "complete"
        assert set(sent(2).values()) == {"acknowledged"}


def waits(rows: Any) -> bool:
    """Whether a session asks over and over whether it is its turn."""
    return bool(
        rows(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
            "AND query LIKE '%FROM keep_push(%' AND pid <> pg_backend_pid()"
        )
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("operation", "table", "left"),
    [(TONES, MESSAGE_TONE, "in_doubt"), (PAYMENTS, PAYMENT, "unsent")],
)
def test_a_run_that_was_taken_over_writes_nothing_about_its_rows(
    workspace: Workspace,
    sent: Any,
    tmp_path: Path,
    operation: Any,
    table: Any,
    left: str,
) -> None:
    made = tones if table is MESSAGE_TONE else payments
    import_delivery(workspace, [made(tmp_path / "a.csv", 3)], DEFAULT)
    place = towards(workspace, "http://127.0.0.1:9")
    with claimed(place, table, 2) as lane:
        assert sent(1) == {1: "sending", 2: "sending", 3: "unsent"}
        # A lease is free without its session; what goes on in a frozen process does not.
        lane.lease.connection.execute("SELECT pg_advisory_unlock_all()")
        with workspace.database.connect() as other, hold_batch(other, 1) as taken:
            with hold_lane(taken, operation, wait_seconds=1):
                pass
            assert sent(1) == {1: left, 2: left, 3: "unsent"}
            with pytest.raises(BatchHeldElsewhere, match="taken over"), lane.transaction():
                record_answers(lane, [Answer(1, Verdict.ACKNOWLEDGED, 1, 200)])
        assert sent(1) == {1: left, 2: left, 3: "unsent"}


@pytest.mark.long
def test_a_run_that_lost_its_session_sends_nothing_behind_who_took_over(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Its lease was free at that moment, and renewed a moment before."""

    taken_over = threading.Event()

    def take_over() -> None:
        try:
            rows("SELECT pg_terminate_backend(pid, 10000) FROM lease WHERE name = 'batch 1'")
            newer = (line(number, amount="9") for number in ROWS)
            deliver(place, write(tmp_path / "b.csv", *newer))
        finally:
            taken_over.set()

    with FaultyServer(at({2: Reply(hold=take_over)})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, payments(tmp_path / "a.csv", ROWS[-1]))
        assert taken_over.wait(60)  # The older run may end before the newer one has sent.
        assert {
            row: json.loads(bodies[-1])["PaidAmount"] for row, bodies in applied(server).items()
        } == (dict.fromkeys(ROWS, 9))


@pytest.mark.long
def test_what_another_batch_left_on_its_way_is_settled_first(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        import_delivery(workspace, [tones(tmp_path / "a.csv", 3)], DEFAULT)
        with claimed(place, MESSAGE_TONE, 1):
            pass
        deliver(place, tones(tmp_path / "b.csv", 5))
        assert sent(1)[1] == "in_doubt"
        (error,) = json.loads(rows("SELECT error_data FROM send WHERE state = 'in_doubt'")[0][0])
        assert error["ErrorCode"] == "InDoubt"
        # Rows 2 and 3 of the second delivery wait for those of the first, which nobody pushed yet.
        assert sent(2) == {
            1: "in_doubt",
            2: "unsent",
            3: "unsent",
            4: "acknowledged",
            5: "acknowledged",
        }
        push_batch(place, 1)
        push_batch(place, 2)
        assert sent(2)[2] == "acknowledged"
        assert server.twice() == []
        assert len(server.effects) == 4


def test_an_answer_is_recorded_for_no_row_but_its_own(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [tones(tmp_path / "a.csv", 5)], DEFAULT)
    place = towards(workspace, "http://127.0.0.1:9")
    with workspace.database.connect() as connection, hold_batch(connection, 1) as lease:
        ask_for_service(place, lease)
        with lease.transaction():
            plan_sends(lease, MESSAGE_TONE)
        with hold_lane(lease, TONES, wait_seconds=1) as lane:
            requests = [row.request for row in next_rows(lane, 0, 4)]
            assert len({request.push_key for request in requests}) == 4
            with lane.transaction():
                claim(lane, requests)
            with lane.transaction():
                record_answers(
                    lane,
                    [
                        Answer(1, Verdict.ACKNOWLEDGED, 1, 200),
                        Answer(3, Verdict.ACKNOWLEDGED, 2, 200, service_id="x"),
                        # A number that was never claimed changes nothing.
                        Answer(5, Verdict.ACKNOWLEDGED, 1, 200),
                    ],
                )
    assert sent(1) == {
        1: "acknowledged",
        2: "sending",
        3: "acknowledged",
        4: "sending",
        5: "unsent",
    }


def test_a_batch_belongs_to_one_service(workspace: Workspace, tmp_path: Path) -> None:
    with FaultyServer() as one, FaultyServer() as other:
        deliver(towards(workspace, one.url), tones(tmp_path / "a.csv", 2))
        with workspace.database.connect() as connection:
            connection.execute("UPDATE send SET state = 'unsent'")
        with pytest.raises(BatchStateError, match="Its records belong to the first"):
            push_batch(towards(workspace, other.url), 1)
        assert other.requests == []


def test_without_a_service_nothing_is_asked_for(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="RECON_SERVICE_URL"):
        deliver(workspace, tones(tmp_path / "a.csv", 2))
    import_delivery(workspace, [str(tmp_path / "a.csv")], DEFAULT)
    with pytest.raises(SettingsError, match="RECON_SERVICE_URL"):
        push_batch(workspace, 1)


@pytest.mark.long
def test_text_of_the_service_that_no_database_holds(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [tones(tmp_path / "a.csv", 1)], DEFAULT)
    place = towards(workspace, "http://127.0.0.1:9")
    hostile = {"ErrorCode": "X", "FieldName": "", "Message": "a\0b\ud800c\\u0000", "Meta": {}}
    with claimed(place, MESSAGE_TONE, 4) as lane, lane.transaction():
        record_answers(lane, [Answer(1, Verdict.REFUSED, 1, 400, (hostile,), service_id="\0")])
    assert push_batch(place, 1).report.reasons[0].code == "X"
    assert rows("SELECT error_data::json -> 0 ->> 'ErrorCode' FROM send") == [("X",)]
