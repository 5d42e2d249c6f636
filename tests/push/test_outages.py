"""Outages over several runs, hosts that honour the key, and what a kill has done again."""

import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from connectors.errors import BatchStateError, ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from connectors.postgres.push.sends import SendDecision
from flows.stages import push as push_stage
from flows.stages.chosen_sends import ChosenSends
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.workspace import Workspace
from schemas.tables import MESSAGE_TONE
from tests.push.conftest import towards
from tests.push.deliveries import claimed, payments, posted_kinds, row_of, tones
from tests.service.faulty_server import LOST, OK, FaultyServer, Reply, Seen, always, status

DOWN = status(502, applied=True)


@pytest.mark.long
@pytest.mark.parametrize(("concurrency", "batch"), [(1, 1), (8, 1), (2, 8)])
def test_an_outage_over_several_runs_and_batches_costs_what_was_in_flight_once(
    workspace: Workspace, rows: Any, tmp_path: Path, concurrency: int, batch: int
) -> None:
    import_delivery(workspace, [tones(tmp_path / "a.csv", 200)], DEFAULT)
    other = tmp_path / "b.csv"
    other.write_text("TenantsId,AvatarsId,Name\n" + "".join(f"7,4,b {n}\n" for n in range(9)))
    import_delivery(workspace, [str(other)], DEFAULT)
    count = "SELECT state, count(*) FROM send GROUP BY 1"
    with FaultyServer(lambda seen: OK if seen.number <= 5 else DOWN) as server:
        server.health = always(DOWN)
        place = towards(
            workspace, server.url, concurrency=concurrency, batch=batch, health_attempts=3
        )
        for run in range(3):
            with pytest.raises(ServiceUnusable, match="does not say at /auth that it is back"):
                push_batch(place, 1 + run % 2)
            doubtful = dict(rows(count))["in_doubt"]
            assert doubtful <= concurrency * batch, f"run {run}"
            if run == 0:
                once, sent = doubtful, len(server.requests)
        assert (doubtful, len(server.requests)) == (once, sent)
        server.plan = server.health = always(OK)
        for number in (1, 2):
            push_batch(place, number)
        assert dict(rows(count)) == {"acknowledged": 209 - once, "in_doubt": once}
        assert server.twice() == []
        asked = len(server.asked)
        # The outage is over and forgotten.
        rows("UPDATE send SET state = 'unsent' WHERE batch_id = 2 RETURNING 1")
        push_batch(place, 2)
        assert len(server.asked) == asked


@pytest.mark.long
@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "in a batch each"])
def test_an_outage_costs_what_was_in_flight_whatever_is_posted_next(
    workspace: Workspace, rows: Any, tmp_path: Path, together: bool
) -> None:
    files = posted_kinds(tmp_path, 3)
    for paths in [files] if together else [[path] for path in files]:
        import_delivery(workspace, paths, DEFAULT)
    batches = (1,) if together else (1, 2, 3)
    with FaultyServer(always(LOST), health=always(DOWN)) as server:
        place = towards(workspace, server.url, concurrency=3, health_attempts=2)
        for number in batches:
            with suppress(ServiceUnusable):
                push_batch(place, number)
        count = "SELECT state, count(*) FROM send GROUP BY 1"
        assert dict(rows(count)) == {"in_doubt": 3, "unsent": 6}
        server.plan = server.health = always(OK)
        for number in batches:
            push_batch(place, number)
        assert dict(rows(count)) == {"in_doubt": 3, "acknowledged": 6}
        assert len(server.requests) == 9
        # The outage is over and forgotten.
        asked = len(server.asked)
        rows("UPDATE send SET state = 'unsent' WHERE state = 'acknowledged' RETURNING 1")
        for number in batches:
            push_batch(place, number)
        assert (len(server.requests), len(server.asked)) == (15, asked)


@pytest.mark.long
def test_what_is_posted_well_does_not_let_an_operation_go_that_loses_every_row(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Each run costs it one row, whatever is posted between them."""
    lost, *others = posted_kinds(tmp_path, 9)
    for path in (lost, *others):
        import_delivery(workspace, [path], DEFAULT)
    count = "SELECT count(*) FROM send WHERE batch_id = 1 AND state = 'in_doubt'"
    with FaultyServer(lambda seen: LOST if "tone" in seen.body else OK) as server:
        place = towards(workspace, server.url, concurrency=3)
        doubtful = []
        for other in (2, 3):
            with pytest.raises(ServiceUnusable):
                push_batch(place, 1)
            push_batch(place, other)
            doubtful += rows(count)
        assert doubtful[1][0] - doubtful[0][0] == 1


def test_a_run_that_stops_at_its_last_row_says_what_is_left_to_do(
    workspace: Workspace, tmp_path: Path
) -> None:
    import_delivery(workspace, [tones(tmp_path / "a.csv", 1)], DEFAULT)
    with FaultyServer(always(LOST)) as server:
        place = towards(workspace, server.url, breaker=1)
        with pytest.raises(ServiceUnusable) as stopped:
            push_batch(place, 1)
    told = str(stopped.value)
    assert told.endswith("No row of batch 1 is unsent; see `recon sends 1`."), told


@pytest.mark.long
@pytest.mark.parametrize("made", [payments, tones])
def test_a_row_that_is_always_answered_500_is_named_and_can_be_set_aside(
    workspace: Workspace,
    sent: Any,
    tmp_path: Path,
    made: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A rerun gets past one row at most; whoever sets them aside has the rest through at once."""
    poisoned, keyed = {2, 3, 4}, made is payments

    def plan(seen: Seen) -> Reply:
        return status(500) if row_of(seen.body) in poisoned else OK

    import_delivery(workspace, [made(tmp_path / "a.csv", 9)], DEFAULT)
    with FaultyServer(plan) as server:
        place = towards(workspace, server.url, concurrency=1, attempts=2)
        if keyed:
            push_batch(place, 1)
        else:
            with pytest.raises(ServiceUnusable) as stopped:
                push_batch(place, 1)
        told = caplog.text if keyed else str(stopped.value)
        named = r"recon resolve 1 --row (a.csv:record:[234]) --as abandon"
        (row,) = re.findall(named, told)
        assert "sets it aside" in told
        states = sent(1)
        left = tuple(f"a.csv:record:{n}" for n in poisoned)
        assert states[int(row.rpartition(":")[2])] == ("unsent" if keyed else "in_doubt")
        resolve(
            place, 1, ChosenSends(rows=(row,)), SendDecision.ABANDON, by="a", reason="always 500"
        )
        assert sent(1)[int(row.rpartition(":")[2])] == "abandoned"
        resolve(place, 1, ChosenSends(rows=left), SendDecision.ABANDON, by="a", reason="always 500")
        requests = len(server.requests)
        push_batch(place, 1)
        assert not any(row_of(one.body) in poisoned for one in server.requests[requests:])
        assert sent(1) == {
            n: "abandoned" if n in poisoned else "acknowledged" for n in range(1, 10)
        }
        assert keyed or server.twice() == []


@pytest.mark.long
@pytest.mark.parametrize("operation", ["AddMessageTone", "EditPayment"])
def test_the_row_that_fails_is_named_by_its_operation(
    workspace: Workspace, tmp_path: Path, operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each operation numbers its rows from 1; what went through since is no longer named."""
    files = [tones(tmp_path / "t.csv", 3), payments(tmp_path / "p.csv", 3)]
    posted = operation == "AddMessageTone"

    def fails(seen: Seen) -> bool:
        return row_of(seen.body) == 2 and ("Name" in seen.body) is posted

    import_delivery(workspace, files, DEFAULT)
    with FaultyServer(lambda seen: status(503) if fails(seen) else OK) as server:
        place = towards(workspace, server.url, concurrency=1, attempts=2, health_attempts=1)
        if posted:
            server.health = always(DOWN)
            with pytest.raises(ServiceUnusable) as stopped:
                push_batch(place, 1)
            told = str(stopped.value)
        else:
            push_batch(place, 1)
            told = caplog.text
    assert f"--row {'t' if posted else 'p'}.csv:record:2 --as abandon" in told


def test_a_row_that_went_through_at_last_is_not_named_to_be_set_aside(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [payments(tmp_path / "p.csv", 3)], DEFAULT)

    def plan(seen: Seen) -> Reply:
        """The first fails in the first pass and no other; the second is always told to wait."""
        if row_of(seen.body) == 1:
            return status(503) if seen.attempt <= 2 else OK
        return status(429, retry_after=0) if row_of(seen.body) == 2 else OK

    with FaultyServer(plan) as server:
        place = towards(workspace, server.url, concurrency=1, attempts=2)
        with pytest.raises(ServiceUnusable) as stopped:
            push_batch(place, 1)
    assert sent(1) == {1: "acknowledged", 2: "unsent", 3: "acknowledged"}
    assert "abandon" not in str(stopped.value)


@pytest.mark.long
def test_after_a_run_that_was_killed_the_service_is_asked_first(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [tones(tmp_path / "a.csv", 5)], DEFAULT)
    with FaultyServer(health=always(DOWN)) as server:
        place = towards(workspace, server.url, health_attempts=2)
        with claimed(place, MESSAGE_TONE, 2):
            pass
        for _ in range(2):
            with pytest.raises(ServiceUnusable):
                push_batch(place, 1)
        assert server.requests == []
        server.health = always(OK)
        push_batch(place, 1)
    states = {1: "in_doubt", 2: "in_doubt"} | dict.fromkeys((3, 4, 5), "acknowledged")
    assert sent(1) == states


@pytest.mark.long
def test_a_host_that_honours_the_key_is_sent_what_is_in_doubt_once_more(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    """Only where the setting says so, and only what the host knows under the row's own key."""
    import_delivery(workspace, [tones(tmp_path / "a.csv", 6)], DEFAULT)
    lost = {2, 5}

    def plan(seen: Seen) -> Any:
        return LOST if row_of(seen.body) in lost else OK

    with FaultyServer(plan) as server:
        plain = towards(workspace, server.url)
        honoured = towards(workspace, server.url, idempotent=True, batch=8)
        push_batch(plain, 1)
        push_batch(plain, 1)
        assert {row for row, state in sent(1).items() if state == "in_doubt"} == lost
        assert server.twice() == []
        first = {row_of(one.body): one.push_key for one in server.effects}
        # Also where nothing but the setting changes: no answer yet, so still in doubt.
        push_batch(towards(workspace, server.url, idempotent=True, attempts=2), 1)
        assert {row for row, state in sent(1).items() if state == "in_doubt"} == lost
        server.plan = lambda seen: OK
        ended = push_batch(honoured, 1)
        assert ended.batch.state is State.COMPLETE
        again = {row_of(one.body): one.push_key for one in server.effects}
        assert again == first
        assert {row_of(one.body) for one in server.effects if one.push_key in server.twice()} == (
            lost
        )
    assert set(sent(1).values()) == {"acknowledged"}


@pytest.mark.long
def test_what_is_in_doubt_stays_so_until_it_is_sent_once_more(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """A run that does not come to a row has proved nothing of it, whatever ends it."""
    import_delivery(workspace, [tones(tmp_path / "a.csv", 6)], DEFAULT)
    lost = {2, 3, 5}
    with FaultyServer(lambda seen: LOST if row_of(seen.body) in lost else OK) as server:
        plain = towards(workspace, server.url)
        honoured = towards(workspace, server.url, idempotent=True)
        push_batch(plain, 1)

        def doubtful() -> set[int]:
            return {row for row, state in sent(1).items() if state == "in_doubt"}

        assert doubtful() == lost
        push_batch(honoured, 1, most=0)
        assert doubtful() == lost
        with pytest.raises(BatchStateError, match="RECON_SERVICE_URL names"):
            push_batch(towards(workspace, "http://127.0.0.1:9", idempotent=True), 1)
        assert doubtful() == lost
        server.plan = always(status(401))
        with pytest.raises(ServiceUnusable):
            push_batch(honoured, 1)
        assert doubtful() == lost
        server.plan = always(OK)
        push_batch(honoured, 1, most=1)
        assert doubtful() == {3, 5}
        requests = len(server.requests)
        push_batch(plain, 1)
        assert len(server.requests) == requests
    assert sent(1) == {n: "in_doubt" if n in {3, 5} else "acknowledged" for n in range(1, 7)}


@pytest.mark.long
def test_what_was_sent_in_a_batch_is_never_sent_once_more_by_itself(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [tones(tmp_path / "a.csv", 8)], DEFAULT)
    with FaultyServer(always(LOST)) as server:
        push_batch(towards(workspace, server.url, batch=8), 1)
        server.plan = always(OK)
        push_batch(towards(workspace, server.url, idempotent=True), 1)
        assert server.twice() == []
    assert Counter(sent(1).values()) == {"in_doubt": 8}


@pytest.mark.long
def test_a_conflict_behind_a_lost_answer_of_an_earlier_run_is_in_doubt(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """A host that only says that it honours the key refuses what it has already."""
    import_delivery(workspace, [tones(tmp_path / "a.csv", 1)], DEFAULT)
    with FaultyServer(always(LOST)) as server:
        push_batch(towards(workspace, server.url), 1)
        server.plan = always(status(409, error_code="Conflict"))
        push_batch(towards(workspace, server.url, idempotent=True), 1)
    assert sent(1) == {1: "in_doubt"}


@pytest.mark.long
def test_a_conflict_behind_a_lost_answer_is_in_doubt_however_often_it_is_answered(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [tones(tmp_path / "a.csv", 1)], DEFAULT)

    def plan(seen: Seen) -> Reply:
        return LOST if seen.attempt == 1 else status(409, error_code="Conflict")

    with FaultyServer(plan) as server:
        for run in range(3):
            push_batch(towards(workspace, server.url, idempotent=True), 1)
            assert sent(1) == {1: "in_doubt"}, f"run {run}"
            ((told,),) = rows("SELECT error_data FROM send")
            assert [one["ErrorCode"] for one in json.loads(told)] == ["InDoubt", "Conflict"]
        assert len(server.requests) == 4


@pytest.mark.long
def test_a_kill_has_seconds_of_work_done_again(
    workspace: Workspace, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are written down while a window of PUTs is still on its way."""
    monkeypatch.setattr(push_stage, "WRITE_SECONDS", 0.05)
    import_delivery(workspace, [payments(tmp_path / "a.csv", 200)], DEFAULT)
    written: list[int] = []

    def look() -> None:
        written.append(rows("SELECT count(*) FROM send WHERE state = 'acknowledged'")[0][0])

    def plan(seen: Seen) -> Any:
        return status(429, retry_after=0, hold=look) if seen.number == 150 else OK_SLOW

    with FaultyServer(plan) as server:
        push_batch(towards(workspace, server.url, concurrency=1), 1)
    assert written[0] >= 75
    assert push_stage.PUT_WINDOW > 200


@pytest.mark.long
def test_an_answer_is_written_down_while_no_other_comes(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """A run that is killed in a long pause knows what was done before it."""
    import_delivery(workspace, [tones(tmp_path / "a.csv", 2)], DEFAULT)
    written: list[object] = []

    def look() -> None:
        deadline = monotonic() + 10
        while "acknowledged" not in sent(1).values() and monotonic() < deadline:
            sleep(0.05)
        written.append(sorted(sent(1).values()))

    slow = lambda seen: Reply(hold=look) if seen.number == 1 else OK  # noqa: E731
    with FaultyServer(slow) as server:
        push_batch(towards(workspace, server.url, concurrency=2), 1)
    assert written == [["acknowledged", "sending"]]


OK_SLOW = status(200, applied=True, delay=0.005)
