"""Thousands of rows against a service that fails at dozens of them: nothing twice, all told."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flows.stages.chosen_sends import ChosenSends, sends_of
from flows.stages.workspace import Workspace
from tests.push.conftest import deliver, towards
from tests.push.deliveries import applied, by_row, payments, tones
from tests.service.faulty_server import CUT, LOST, RESET, FaultyServer, Reply, status

ROWS, SEED = 2_000, 5
LOST_ANSWERS, REFUSED, PAUSED = 39, 7, 30
COMPLAINT = {
    "ErrorCode": "NotEmpty",
    "FieldName": "Name",
    "Message": "'Name' should not be empty.",
    "Meta": {"PropertyName": "Name"},
}


def faults() -> tuple[dict[int, Reply], set[int], set[int]]:
    """Fault by row; the rows whose answer is lost, and those that are refused."""
    chosen = random.Random(SEED).sample(range(1, ROWS + 1), LOST_ANSWERS + REFUSED + PAUSED)
    lost, refused = chosen[:LOST_ANSWERS], chosen[LOST_ANSWERS : LOST_ANSWERS + REFUSED]
    ways = (LOST, RESET, CUT, status(503, applied=True), status(500, applied=True))
    plan = {row: ways[place % len(ways)] for place, row in enumerate(lost)}
    plan |= {row: status(400, errors=[COMPLAINT]) for row in refused}
    plan |= {row: status(429, retry_after=0) for row in chosen[LOST_ANSWERS + REFUSED :]}
    return plan, set(lost), set(refused)


@pytest.mark.long
def test_two_thousand_posts_one_run_none_twice(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    plan, lost, refused = faults()
    with FaultyServer(by_row(plan)) as server:
        place = towards(workspace, server.url, breaker=1000)
        ended = deliver(place, tones(tmp_path / "tones.csv", ROWS))
    states = sent(1)
    assert Counter(states.values()) == {
        "acknowledged": ROWS - LOST_ANSWERS - REFUSED,
        "in_doubt": LOST_ANSWERS,
        "refused": REFUSED,
    }
    assert {row for row, state in states.items() if state == "in_doubt"} == lost
    assert {row for row, state in states.items() if state == "refused"} == refused
    assert server.twice() == []
    effects = applied(server)
    assert set(effects) == set(range(1, ROWS + 1)) - refused
    assert all(len(bodies) == 1 for bodies in effects.values())
    listed = list(sends_of(place, 1, ChosenSends(states=("in_doubt",))))
    assert {one.record_number for one in listed} == lost
    (pushed,) = ended.report.pushed
    assert pushed.ties
    assert {state: totals.rows for state, totals in pushed.states.items()} == Counter(
        states.values()
    )
    told = {(reason.code, reason.rows) for reason in ended.report.reasons}
    assert ("NotEmpty", REFUSED) in told
    assert sum(rows for code, rows in told if code != "NotEmpty") == LOST_ANSWERS


@pytest.mark.long
def test_two_thousand_puts_end_exact(workspace: Workspace, sent: Any, tmp_path: Path) -> None:
    plan, _, refused = faults()
    with FaultyServer(by_row(plan)) as server:
        place = towards(workspace, server.url, breaker=1000)
        ended = deliver(place, payments(tmp_path / "payments.csv", ROWS))
    assert Counter(sent(1).values()) == {"acknowledged": ROWS - REFUSED, "refused": REFUSED}
    effects = applied(server)
    assert set(effects) == set(range(1, ROWS + 1)) - refused
    for row, sent_bodies in effects.items():
        assert {json.loads(body)["PaidAmount"] for body in sent_bodies} == {row + 0.25}
    assert all(one.ties for one in ended.report.pushed)
    assert server.most_in_flight_of_a_path == 1


def test_rows_that_share_a_request_are_each_told_of(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url, batch=7)
        deliver(place, tones(tmp_path / "tones.csv", 100))
    assert set(sent(1).values()) == {"acknowledged"}
    assert len(server.effects) == 100
