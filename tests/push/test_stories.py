"""What happens to rows on their way to the service, told as stories."""

import json
import logging
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError, ConservationError, ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from connectors.postgres.push.sends import SendDecision, waiting_batches
from flows.stages.chosen_sends import ChosenSends, sends_of
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, look, push_batch, run_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests.push.conftest import PUSHED, deliver, towards
from tests.push.deliveries import GATEWAYS, stored
from tests.service.faulty_server import (
    DROPPED,
    LOST,
    OK,
    FaultyServer,
    always,
    at,
    status,
)
from tests.stages.payments import line, write

SAMPLES = Path(__file__).parents[2] / "data_samples"


def gateways(path: Path, *numbers: int) -> Path:
    lines = [f"1,{number},gateway {number},key-canary,https://n,https://r" for number in numbers]
    path.write_text("\n".join([GATEWAYS, *lines]) + "\n")
    return path


def bodies(server: FaultyServer) -> dict[int, list[float]]:
    """Id -> the amounts the service was given for it, in order."""
    found: dict[int, list[float]] = {}
    for effect in server.effects:
        record = json.loads(effect.body)
        found.setdefault(record["Id"], []).append(record["PaidAmount"])
    return found


@pytest.mark.long
def test_every_applied_row_is_sent_once(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        path = write(tmp_path / "a.csv", line(1), line(2, amount="ten"), line(3))
        ended = deliver(place, path)
        assert sent(1) == {1: "acknowledged", 3: "acknowledged"}
        assert bodies(server) == {1: [10.5], 3: [10.5]}
        assert ended.batch.state is State.COMPLETE_WITH_ERRORS
        (pushed,) = ended.report.pushed
        assert pushed.ties
        assert pushed.planned.rows == 2
        view = rows(
            'SELECT record_number, "HasError", "Merged", state, sent FROM insert_batch_data '
            "ORDER BY 1"
        )
        assert view == [
            (1, False, True, "inserted", "acknowledged"),
            (2, True, False, "rejected", None),
            (3, False, True, "inserted", "acknowledged"),
        ]
        push_batch(place, 1)
        deliver(place, path)
        assert len(server.requests) == 2


@pytest.mark.long
def test_a_refusal_costs_one_row(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    error_entry = {
        "ErrorCode": "NotNull",
        "FieldName": "DebtsId",
        "Message": "'Debts Id' must not be empty.",
        "Meta": {},
    }
    with FaultyServer(_refusing("/payments/2", status(400, errors=[error_entry]))) as server:
        path = write(tmp_path / "a.csv", line(1), line(2), line(3))
        ended = deliver(towards(workspace, server.url), path)
    assert sent(1) == {1: "acknowledged", 2: "refused", 3: "acknowledged"}
    assert (ended.batch.state, ended.exit_code) == (State.COMPLETE_WITH_ERRORS, 1)
    (has_error, merged, state, error_data) = rows(
        'SELECT "HasError", "Merged", state, "ErrorData" FROM insert_batch_data '
        "WHERE record_number = 2"
    )[0]
    assert (has_error, merged, state) == (True, False, "inserted")
    (error,) = json.loads(error_data)
    assert (error["ErrorCode"], error["FieldName"]) == ("NotNull", "DebtsId")
    assert error["Meta"]["stage"] == "push"
    (reason,) = ended.report.reasons
    assert (reason.code, reason.field, reason.rows, reason.line) == ("NotNull", "DebtsId", 1, 3)
    assert ended.report.errors == 1


def _refusing(path: str, reply: Any) -> Any:
    return lambda seen: reply if seen.path == path else OK


def test_a_post_whose_answer_is_lost_is_never_sent_again_by_itself(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer(at({2: LOST})) as server:
        place = towards(workspace, server.url, concurrency=1)
        ended = deliver(place, gateways(tmp_path / "g.csv", 1, 2, 3))
        assert sent(1) == {1: "acknowledged", 2: "in_doubt", 3: "acknowledged"}
        assert ended.report.verdict == "complete_with_errors"
        push_batch(place, 1)
        assert len(server.requests) == 3
        (one,) = sends_of(place, 1, ChosenSends(states=("in_doubt",)))
        assert (one.file, one.record_number, one.line) == ("g.csv", 2, 3)
        assert "key-canary" not in str(one)
        assert json.loads(one.jsondata)["ServiceKey"] == "***"


@pytest.mark.long
@pytest.mark.parametrize(
    ("decision", "state", "requests", "batch_state"),
    [
        (SendDecision.CONFIRM, "acknowledged", 3, State.COMPLETE),
        (SendDecision.RESEND, "acknowledged", 4, State.COMPLETE),
        (SendDecision.ABANDON, "abandoned", 3, State.COMPLETE_WITH_ERRORS),
    ],
)
def test_what_is_in_doubt_is_settled_by_somebody(
    workspace: Workspace,
    rows: Any,
    sent: Any,
    tmp_path: Path,
    decision: SendDecision,
    state: str,
    requests: int,
    batch_state: State,
) -> None:
    with FaultyServer(at({2: DROPPED})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, gateways(tmp_path / "g.csv", 1, 2, 3))
        resolved = resolve(
            place,
            1,
            ChosenSends(("g.csv:record:2",)),
            decision,
            by="A. Meyer",
            reason="looked it up",
        )
        assert resolved.rows == 1
        ended = push_batch(place, 1)
        assert not ended.new, "the batch was there"
        assert sent(1) == {1: "acknowledged", 2: state, 3: "acknowledged"}
        assert ended.batch.state is batch_state
        assert len(server.requests) == requests
        assert all(one.ties for one in ended.report.pushed)
        keys = [seen.push_key for seen in server.requests if '"gateway 2"' in seen.body]
        assert len(set(keys)) == 1
    (by, reason, detail) = rows("SELECT by, reason, detail FROM event WHERE what = 'resolve'")[0]
    assert (by, reason) == ("A. Meyer", "looked it up")
    assert json.loads(detail)["counts"] == {"AddPaymentGateway": {"in_doubt": 1}}
    with pytest.raises(BatchStateError, match="nothing was changed"):
        resolve(place, 1, ChosenSends(states=("refused",)), decision, by=None, reason="again")


@pytest.mark.long
@pytest.mark.parametrize("code", [401, 403])
def test_a_service_that_refuses_us_stops_the_run_once(
    workspace: Workspace, sent: Any, tmp_path: Path, code: int
) -> None:
    path = write(tmp_path / "a.csv", *(line(number) for number in range(1, 201)))
    with FaultyServer(always(status(code))) as server:
        place = towards(workspace, server.url, concurrency=4)
        with pytest.raises(ServiceUnusable, match="200 rows of batch 1 are unsent") as stop:
            deliver(place, path)
        assert stop.value.exit_code == 2
        # It may be about one row: another is tried.
        assert len(server.requests) <= 4 + (code == 403)
        assert set(sent(1).values()) == {"unsent"}
    with FaultyServer() as server:
        with workspace.database.connect() as connection:
            connection.execute("UPDATE batch SET service = %s", [server.url])
        ended = push_batch(towards(workspace, server.url), 1)
        assert ended.batch.state is State.COMPLETE
        assert len(server.effects) == 200


@pytest.mark.long
def test_an_older_body_never_goes_after_a_newer_one(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        import_delivery(
            workspace, [write(tmp_path / "a.csv", line(1, amount="1"), line(2))], DEFAULT
        )
        second = deliver(place, write(tmp_path / "b.csv", line(1, amount="2", day=2)))
        first = push_batch(place, 1)
        assert sent(1) == {1: "superseded", 2: "acknowledged"}
        assert sent(2) == {1: "acknowledged"}
        assert bodies(server) == {1: [2], 2: [10.5]}
        assert first.batch.state is State.COMPLETE
        assert second.batch.state is State.COMPLETE


@pytest.mark.long
def test_the_same_content_delivered_again_is_not_posted_again(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer(at({2: LOST})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, gateways(tmp_path / "a.csv", 1, 2))
        again = deliver(place, gateways(tmp_path / "b.csv", 2, 1, 3))
        assert sent(again.batch.id) == {1: "in_doubt", 2: "acknowledged", 3: "acknowledged"}
        assert len(server.requests) == 3
        resolve(
            place, 1, ChosenSends(("a.csv:record:2",)), SendDecision.CONFIRM, by=None, reason="seen"
        )
        push_batch(place, again.batch.id)
        assert sent(again.batch.id) == dict.fromkeys((1, 2, 3), "acknowledged")
        assert len(server.requests) == 3


@pytest.mark.long
def test_a_row_found_unchanged_is_sent_where_nobody_sent_it(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        import_delivery(workspace, [str(gateways(tmp_path / "a.csv", 1, 2))], DEFAULT)
        deliver(place, gateways(tmp_path / "b.csv", 2))
        assert sent(2) == {1: "acknowledged"}
        push_batch(place, 1)
        assert sent(1) == {1: "acknowledged", 2: "acknowledged"}
        assert len(server.requests) == 2
        assert len(server.twice()) == 0


@pytest.mark.long
@pytest.mark.parametrize("undone", [False, True], ids=["unchanged", "undone"])
def test_what_another_row_sent_is_as_confirmed_as_that_one(
    workspace: Workspace, tmp_path: Path, undone: bool
) -> None:
    """Records that were delivered once more were told as accepted without an echo, all of them."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        path = gateways(tmp_path / "a.csv", 1, 2)
        deliver(place, path)
        if undone:
            undo_batch(place, 1, by=None, reason="test")
        else:
            path = gateways(tmp_path / "b.csv", 2, 1, 3)
        deliver(place, path)
        assert len(server.requests) == (2 if undone else 3)
    run = reconcile(workspace, Asked(Scope(), date(2026, 11, 1), Rules()))
    assert [one.code for one in run.report.breaks] == []


@pytest.mark.long
def test_undoing_a_pushed_batch_brings_the_service_back(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        deliver(place, write(tmp_path / "a.csv", line(1, amount="1"), line(2)))
        deliver(place, write(tmp_path / "b.csv", line(1, amount="2", day=2), line(3)))
        undo_batch(place, 2, by=None, reason="wrong month")
        (detail,) = rows("SELECT detail FROM event WHERE what = 'undo'")[0]
        assert json.loads(detail)["left_at_service"] == {"EditPayment": 2}
        assert sent(1) == {1: "unsent", 2: "acknowledged"}
        with workspace.database.connect() as connection:
            assert waiting_batches(connection, server.url) == [1]
        assert push_batch(place, 1).batch.state is State.COMPLETE
        assert bodies(server) == {1: [1, 2, 1], 2: [10.5], 3: [10.5]}


@pytest.mark.long
def test_what_was_posted_before_an_undo_is_not_posted_again(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer(at({2: LOST})) as server:
        place = towards(workspace, server.url, concurrency=1)
        path = gateways(tmp_path / "a.csv", 1, 2)
        deliver(place, path)
        undo_batch(place, 1, by=None, reason="wrong tenant")
        again = deliver(place, path)
        assert again.new
        assert sent(2) == {1: "acknowledged", 2: "in_doubt"}
        assert len(server.requests) == 2
        resolve(
            place,
            2,
            ChosenSends(("a.csv:record:2",)),
            SendDecision.RESEND,
            by=None,
            reason="not there",
        )
        push_batch(place, 2)
        assert len({seen.push_key for seen in server.requests if "gateway 2" in seen.body}) == 1


@pytest.mark.long
@pytest.mark.parametrize("undone", [True, False], ids=["undone", "two-feeds"])
def test_the_same_bytes_read_as_other_records_are_posted(
    workspace: Workspace, sent: Any, tmp_path: Path, undone: bool
) -> None:
    path = tmp_path / "tones.csv"
    path.write_text("AvatarsId,Name\n3,tone 1\n3,tone 2\n")
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        for tenant in (1, 2):
            feed = replace(
                PUSHED,
                feed="tones" if undone else f"tones{tenant}",
                record="message_tone",
                constants={"TenantsId": str(tenant)},
            )
            import_delivery(place, [str(path)], feed)
            if undone and tenant == 1:
                undo_batch(place, 1, by=None, reason="wrong tenant")
        told = [(body["TenantsId"], body["Name"]) for body in _effects(server)]
        assert sorted(told) == [(1, "tone 1"), (1, "tone 2"), (2, "tone 1"), (2, "tone 2")]
        assert sent(2) == {1: "acknowledged", 2: "acknowledged"}
        assert len({seen.push_key for seen in server.requests}) == 4


@pytest.mark.long
@pytest.mark.parametrize("undone", [True, False], ids=["undone", "unchanged"])
def test_what_another_service_was_sent_says_nothing_of_this_one(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path, undone: bool
) -> None:
    posted = gateways(tmp_path / "g.csv", 1, 2)
    files = [posted, write(tmp_path / "p.csv", line(1))]
    with FaultyServer() as first, FaultyServer() as second:
        deliver(towards(workspace, first.url), *files)
        if undone:
            undo_batch(workspace, 1, by=None, reason="a trial")
        else:
            gateways(posted, 2, 1)
            write(tmp_path / "p.csv", line(1), line(9))
        place = towards(workspace, second.url)
        deliver(place, *files)
        posts = ChosenSends(operation="AddPaymentGateway")
        told = list(sends_of(place, 2, posts))
        assert [one.state for one in told] == ["in_doubt", "in_doubt"]
        assert all(f"it was sent to {first.url}" in str(one.error_data) for one in told)
        assert bodies(second) == ({1: [10.5]} if undone else {1: [10.5], 9: [10.5]})
        push_batch(place, 2)
        assert [one.state for one in sends_of(place, 2, posts)] == ["in_doubt", "in_doubt"]
        resolve(place, 2, posts, SendDecision.RESEND, by=None, reason="another service")
        push_batch(place, 2)
        assert {one.state for one in sends_of(place, 2, ChosenSends())} == {"acknowledged"}
        assert len([body for body in _effects(second) if "ServiceKey" in body]) == 2


def _effects(server: FaultyServer) -> list[dict[str, Any]]:
    return [json.loads(effect.body) for effect in server.effects]


@pytest.mark.long
def test_an_amount_that_the_service_names_was_read(workspace: Workspace, tmp_path: Path) -> None:
    entry = {"ErrorCode": "NotNull", "FieldName": "PaidAmount", "Message": "no.", "Meta": {}}
    with FaultyServer(_refusing("/payments/2", status(400, errors=[entry]))) as server:
        path = write(tmp_path / "a.csv", line(1), line(2), line(3, amount="ten"))
        report = deliver(towards(workspace, server.url), path).report
    assert {(one.code, one.field) for one in report.reasons} == {
        ("Number", "PaidAmount"),
        ("NotNull", "PaidAmount"),
    }
    (told,) = report.unreadable(report.chains[0])
    assert told.startswith("1 rejected row has no readable PaidAmount")


@pytest.mark.long
def test_an_echo_that_differs_is_a_break_and_not_a_success(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer(_refusing("/payments/2", stored(2, 10.51))) as server:
        place = towards(workspace, server.url)
        ended = deliver(place, write(tmp_path / "a.csv", line(1), line(2)))
        assert sent(1) == {1: "acknowledged", 2: "differs"}
        assert (ended.report.verdict, ended.exit_code) == ("complete_with_errors", 1)
        assert not ended.report.unreadable(ended.report.chains[0])
        assert rows(
            'SELECT "HasError", "Merged" FROM insert_batch_data WHERE sent = %s', ["differs"]
        ) == [(True, False)]
        (one,) = sends_of(place, 1, ChosenSends(states=("differs",)))
        assert json.loads(one.echo or "")["PaidAmount"] == 10.51
        resolved = resolve(
            place,
            1,
            ChosenSends(operation="EditPayment"),
            SendDecision.RESEND,
            by=None,
            reason="mended",
        )
        assert resolved.detail["counts"] == {"EditPayment": {"differs": 1}}
        server.plan = always(OK)
        assert push_batch(place, 1).batch.state is State.COMPLETE


@pytest.mark.long
def test_a_put_that_finds_no_answer_stays_unsent_and_holds_nothing_up(
    workspace: Workspace, sent: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with FaultyServer(_refusing("/payments/2", status(503))) as server:
        place = towards(workspace, server.url, attempts=2)
        ended = deliver(place, write(tmp_path / "a.csv", line(1), line(2), line(3)))
        said = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
        assert "answered 503 without saying why. 1 row of batch 1 is unsent" in said[-1]
        assert "`recon resolve 1 --row a.csv:record:2 --as abandon" in said[-1]
        assert sent(1) == {1: "acknowledged", 2: "unsent", 3: "acknowledged"}
        assert (ended.batch.state, ended.exit_code) == (State.MERGED, 1)
        server.plan = always(OK)
        assert push_batch(place, 1).batch.state is State.COMPLETE


def test_a_service_that_is_not_there_stops_the_run_and_leaves_nothing_in_doubt(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        gone = server.url
    place = towards(workspace, gone, attempts=2, breaker=3)
    with pytest.raises(ServiceUnusable, match="40 rows of batch 1 are unsent"):
        deliver(place, gateways(tmp_path / "a.csv", *range(1, 41)))
    assert set(sent(1).values()) == {"unsent"}
    assert rows("SELECT state FROM batch") == [("merged",)]
    assert (place.settings.reports / "batch-1" / "report.html").is_file()


@pytest.mark.long
def test_a_send_that_is_missing_does_not_tie(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        deliver(place, write(tmp_path / "a.csv", line(1), line(2, amount="20")))
    with workspace.database.connect() as connection:
        connection.execute("DELETE FROM send WHERE record_number = 2")
    with pytest.raises(ConservationError, match="does not tie"):
        run_batch(place, 1)
    (pushed,) = look(place, 1).report.pushed
    assert pushed.residual.rows == 1
    assert str(pushed.residual.amounts["1"]["PaidAmount"]) == "20.00"


@pytest.mark.long
def test_an_undone_batch_is_not_pushed(workspace: Workspace, sent: Any, tmp_path: Path) -> None:
    with FaultyServer(always(status(401))) as server:
        place = towards(workspace, server.url)
        with pytest.raises(ServiceUnusable):
            deliver(place, write(tmp_path / "a.csv", line(1)))
        undo_batch(place, 1, by=None, reason="test")
        with pytest.raises(BatchStateError, match="is undone"):
            push_batch(place, 1)
