"""One row that is answered as if the caller were refused: the others go, and it is named."""

from pathlib import Path
from typing import Any

import pytest

from connectors.errors import RowsUnsent, ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.workspace import Workspace
from tests.examples import in_long
from tests.push.conftest import towards
from tests.push.deliveries import payments, row_of, tones
from tests.service.faulty_server import OK, RESET, FaultyServer, Reply, status

ROWS = 20
BLOCKED = Reply(403, (("Content-Type", "text/html"),), "<html>Request blocked</html>")
MOVED = status(307, headers=(("Location", "/login"),))
NO_KEY = {"ResponseStatus": {"ErrorCode": "NotFound", "Message": "No action with this ApiKey"}}
UNKNOWN = Reply(404, (), NO_KEY)


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "answer", "place", "concurrency"),
    [
        (payments, BLOCKED, 1, 1),
        (payments, BLOCKED, 3, 1),
        (payments, BLOCKED, ROWS, 8),
        (payments, MOVED, 3, 8),
        (tones, BLOCKED, 1, 8),
        (tones, BLOCKED, 3, 8),
        (tones, BLOCKED, ROWS, 1),
        (tones, MOVED, ROWS, 1),
    ],
)
def test_the_others_go_and_it_is_named_until_it_is_set_aside(
    workspace: Workspace,
    sent: Any,
    tmp_path: Path,
    made: Any,
    answer: Reply,
    place: int,
    concurrency: int,
) -> None:
    import_delivery(workspace, [made(tmp_path / "a.csv", ROWS)], DEFAULT)
    others = dict.fromkeys(set(range(1, ROWS + 1)) - {place}, "acknowledged")
    row = f"a.csv:record:{place}"
    with FaultyServer(lambda seen: answer if row_of(seen.body) == place else OK) as server:
        there = towards(workspace, server.url, concurrency=concurrency)
        for _ in range(2):
            with pytest.raises(ServiceUnusable) as stopped:
                push_batch(there, 1)
            assert sent(1) == others | {place: "unsent"}
            assert f"({answer.status})" in str(stopped.value)
            assert f"`recon resolve 1 --row {row} --as abandon" in str(stopped.value)
        chosen = ChosenSends(rows=(row,))
        resolve(there, 1, chosen, SendDecision.ABANDON, by="a", reason="always blocked")
        requests = len(server.requests)
        push_batch(there, 1)
        assert len(server.requests) == requests
        assert server.twice() == []
    assert sent(1) == others | {place: "abandoned"}


@pytest.mark.long
@pytest.mark.parametrize("place", [1, 3, ROWS])
def test_a_record_that_is_missing_is_refused_whatever_the_answer_calls_it(
    workspace: Workspace, sent: Any, tmp_path: Path, place: int
) -> None:
    """Nobody has shown an API key."""
    import_delivery(workspace, [payments(tmp_path / "a.csv", ROWS)], DEFAULT)
    with FaultyServer(lambda seen: UNKNOWN if row_of(seen.body) == place else OK) as server:
        push_batch(towards(workspace, server.url, concurrency=1), 1)
    assert sent(1) == dict.fromkeys(range(1, ROWS + 1), "acknowledged") | {place: "refused"}


@pytest.mark.long
def test_what_the_service_says_moves_no_cursor(workspace: Workspace, tmp_path: Path) -> None:
    """A terminal, a log and other databases are to hold it."""
    import_delivery(workspace, [payments(tmp_path / "a.csv", 1)], DEFAULT)
    said = {"ErrorCode": "Later", "Message": "\x1b[2J\0 \ud800 again", "Errors": []}
    answer = Reply(429, (), {"ResponseStatus": said})
    with FaultyServer(lambda _: answer) as server, pytest.raises(ServiceUnusable) as stopped:
        push_batch(towards(workspace, server.url, attempts=1), 1)
    assert str(stopped.value).startswith("\\x1b[2J\\x00 \\ud800 again. 1 row of batch 1")


LOSSES = [
    # answer to every PUT, what ends the run, what it says
    (RESET, ServiceUnusable, r"The connection was .* 2 rows of batch 1 are unsent .*mended\.$"),
    in_long(
        status(503), RowsUnsent, r"answered 503 without saying why\. 2 rows .*:record:\d\. Where"
    ),
]


@pytest.mark.parametrize(("answer", "ends", "said"), LOSSES, ids=["reset", "503"])
def test_a_few_rows_say_why_they_are_unsent(
    workspace: Workspace, sent: Any, tmp_path: Path, answer: Reply, ends: type[Exception], said: str
) -> None:
    """Too few for the circuit breaker; and one that is answered may be the cause itself."""
    import_delivery(workspace, [payments(tmp_path / "a.csv", 2)], DEFAULT)
    with FaultyServer(lambda _: answer) as server, pytest.raises(ends, match=said) as stopped:
        push_batch(towards(workspace, server.url, attempts=2), 1)
    assert type(stopped.value) is ends
    assert set(sent(1).values()) == {"unsent"}


PLACES = [
    # rows that the service answers with 404 and no reason, runs until they come to their end
    ({3}, 1),
    ({1, 2, 9}, 2),
    ({*range(4, 10)}, 2),
]


@pytest.mark.long
@pytest.mark.parametrize(("unknown", "runs"), PLACES)
def test_a_record_that_is_unknown_is_refused_where_others_are_taken_around_it(
    workspace: Workspace, sent: Any, tmp_path: Path, unknown: set[int], runs: int
) -> None:
    """Several in a row could be a wrong path; the next run asks for others first."""
    import_delivery(workspace, [payments(tmp_path / "a.csv", ROWS)], DEFAULT)
    bare = status(404, body="404")
    with FaultyServer(lambda seen: bare if row_of(seen.body) in unknown else OK) as server:
        there = towards(workspace, server.url, concurrency=1)
        for _ in range(runs - 1):
            with pytest.raises(ServiceUnusable, match="without saying why"):
                push_batch(there, 1)
            assert "refused" not in sent(1).values()
        push_batch(there, 1)
    known = dict.fromkeys(range(1, ROWS + 1), "acknowledged")
    assert sent(1) == known | dict.fromkeys(unknown, "refused")


@pytest.mark.long
def test_the_last_record_is_named_where_nothing_is_taken_behind_it(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [payments(tmp_path / "a.csv", 2)], DEFAULT)
    bare = status(404, body="404")
    with FaultyServer(lambda seen: bare if row_of(seen.body) == 2 else OK) as server:
        for _ in range(2):
            with pytest.raises(ServiceUnusable) as stopped:
                push_batch(towards(workspace, server.url, concurrency=1), 1)
            assert sent(1) == {1: "acknowledged", 2: "unsent"}
            assert "RECON_SERVICE_URL" in str(stopped.value)
            assert "`recon resolve 1 --row a.csv:record:2 --as abandon" in str(stopped.value)


@pytest.mark.long
@pytest.mark.parametrize(("code", "named"), [(403, True), (404, True), (401, False)])
def test_a_caller_who_is_refused_stops_the_run(
    workspace: Workspace, sent: Any, tmp_path: Path, code: int, named: bool
) -> None:
    """Whoever is not known at all is told of no row: it would be the remedy of another fault."""
    import_delivery(workspace, [payments(tmp_path / "a.csv", ROWS)], DEFAULT)
    with FaultyServer(lambda _: status(code)) as server:
        with pytest.raises(ServiceUnusable) as stopped:
            push_batch(towards(workspace, server.url, concurrency=1), 1)
        assert len(server.requests) <= 2
    assert set(sent(1).values()) == {"unsent"}
    assert f"{ROWS} rows of batch 1 are unsent" in str(stopped.value)
    assert ("--as abandon" in str(stopped.value)) is named
