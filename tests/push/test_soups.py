"""Soups of faults: every call fails in some way with probability 0.2, every soup by its own seed.

However it went, the records end as in a run without faults, and exactly the POSTs whose answer
the service did not give are in doubt.
"""

import json
from collections import Counter
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.push import PASSES
from flows.stages.resolve import resolve
from flows.stages.sequence import Ended, import_delivery, push_batch
from flows.stages.workspace import Workspace
from schemas.operations import OPERATIONS
from tests.examples import seeds
from tests.push.conftest import towards
from tests.push.deliveries import applied, payments, row_of, tones
from tests.service.faulty_server import (
    CLOSE_AFTER,
    EVERY_LOSS,
    OK,
    FaultyServer,
    Plan,
    Reply,
    seeded,
    status,
)

SOUPS = seeds(1, 200)
ROWS, SHARE = 250, 0.2
"""Rows of each kind: 250 POSTs and 250 PUTs."""
HARMLESS = (status(429, retry_after=0), CLOSE_AFTER)
FAULTS = (
    *EVERY_LOSS,
    *HARMLESS,
    *(status(code, applied=was) for code in (500, 502, 503) for was in (True, False)),
    Reply(body=b"<html>busy</html>", headers=(("Content-Type", "text/html"),)),
    Reply(body=b""),
)
POST = next(one.path for one in OPERATIONS if one.request == "message_tone")


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("delivery")
    return [tones(folder / "tones.csv", ROWS), payments(folder / "payments.csv", ROWS)]


def test_whatever_fails_nothing_is_lost_and_nothing_is_done_twice(
    workspace: Workspace, rows: Any, delivered: list[str]
) -> None:
    import_delivery(workspace, delivered, DEFAULT)
    for seed in SOUPS:
        try:
            _taste(workspace, rows, seed)
        except AssertionError as error:
            raise AssertionError(f"--only {seed}: {error}") from error


def _taste(workspace: Workspace, rows: Any, seed: int) -> None:
    with workspace.database.connect() as connection:
        # What a send had come to before is only ever added to.
        connection.execute("SET session_replication_role = replica")
        connection.execute("TRUNCATE send, earlier_send")
        connection.execute("UPDATE push_lane SET held = NULL")
        connection.execute("UPDATE batch SET state = 'merged', service = NULL")
    plan = seeded(seed, FAULTS, SHARE)
    with FaultyServer(plan) as server:
        place = towards(workspace, server.url, seed=seed, breaker=1000)
        ended = _pushed(place)
        doubtful = _without_answer(server, plan) | _never_arrived(server, rows)
        states = _states(rows)
        assert {key for key, state in states.items() if state != "acknowledged"} == doubtful
        assert {states[key] for key in doubtful} <= {"in_doubt"}
        assert all(one.ties for one in ended.report.pushed)
        assert _twice(server) == []
        known = applied(_posts(server))
        server.plan = lambda seen: OK
        doubted = {row for _, row in doubtful}
        _settle(place, doubted & set(known), SendDecision.CONFIRM)
        _settle(place, doubted - set(known), SendDecision.RESEND)
        ended = push_batch(place, 1)
        assert ended.batch.state is State.COMPLETE
        posts = applied(_posts(server))
        assert sorted(posts) == list(range(1, ROWS + 1))
        assert all(len(bodies) == 1 for bodies in posts.values())
        puts = applied(_puts(server))
        assert {row: json.loads(bodies[-1])["PaidAmount"] for row, bodies in puts.items()} == {
            row: row + 0.25 for row in range(1, ROWS + 1)
        }


def _pushed(place: Workspace) -> Ended:
    """Pushed as often as an operator would: until nothing is unsent."""
    for _ in range(PASSES):
        ended = push_batch(place, 1)
        if not any(one.waits for one in ended.report.pushed):
            break
    return ended


def _settle(place: Workspace, numbers: set[int], decision: SendDecision) -> None:
    chosen = ChosenSends(tuple(f"tones.csv:record:{number}" for number in sorted(numbers)))
    if numbers:
        resolved = resolve(place, 1, chosen, decision, by=None, reason="looked it up")
        assert resolved.rows == len(numbers)


def _without_answer(server: FaultyServer, plan: Plan) -> set[tuple[str, int]]:
    """The POSTs that the service's own ledger says got no answer that can be believed."""
    last = {seen.push_key: seen for seen in server.requests if seen.path == POST}
    return {
        ("AddMessageTone", row_of(seen.body))
        for seen in last.values()
        if plan(seen) not in (OK, *HARMLESS)
    }


def _never_arrived(server: FaultyServer, rows: Any) -> set[tuple[str, int]]:
    """POSTs written to a connection that the service closed meanwhile: it never saw them."""
    seen = Counter(row_of(one.body) for one in server.requests if one.path == POST)
    tried = rows(
        "SELECT record_number, attempts FROM send "
        "WHERE operation = 'AddMessageTone' AND state = 'in_doubt'"
    )
    return {("AddMessageTone", row) for row, attempts in tried if attempts > seen[row]}


def _states(rows: Any) -> dict[tuple[str, int], str]:
    return {
        (name, row): state
        for name, row, state in rows("SELECT operation, record_number, state FROM send")
    }


class _Part:
    def __init__(self, server: FaultyServer, *, posts: bool) -> None:
        self.effects = [one for one in server.effects if (one.path == POST) is posts]


def _posts(server: FaultyServer) -> Any:
    return _Part(server, posts=True)


def _puts(server: FaultyServer) -> Any:
    return _Part(server, posts=False)


def _twice(server: FaultyServer) -> list[int]:
    return [row for row, bodies in applied(_posts(server)).items() if len(bodies) > 1]
