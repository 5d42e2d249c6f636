"""Batches of which a part is carried out, and every answer there is to them: no POST twice.

Every sequence has its own seed: for each request how many rows the service carries out, how many
it says it did, and what it answers. Between two runs of a sequence every setting changes.
"""

import json
import random
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from connectors.errors import ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.workspace import Workspace
from tests.examples import seeds
from tests.push.conftest import towards
from tests.push.deliveries import tones
from tests.service.faulty_server import EVERY_LOSS, OK, FaultyServer, Plan, Reply, Seen, status

SOUPS = seeds(1, 200)
ROWS, BATCH, RUNS, SHARE = 60, 8, 60, 0.5
STOPPING = (301, 302, 303, 307, 401, 403)
OF_A_ROW = (400, 403, 404, 405, 409, 413, 415, 422)
UNDECIDED = (408, 429, 500, 502, 503, 504)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return [tones(tmp_path_factory.mktemp("delivery") / "tones.csv", ROWS)]


def test_whatever_is_answered_to_a_part_of_a_batch_no_post_is_sent_twice(
    workspace: Workspace, rows: Any, delivered: list[str]
) -> None:
    import_delivery(workspace, delivered, DEFAULT)
    for seed in SOUPS:
        with workspace.database.connect() as connection:
            connection.execute("TRUNCATE send")
            connection.execute("UPDATE push_lane SET held = NULL")
            connection.execute("UPDATE batch SET state = 'merged', service = NULL")
        try:
            _taste(workspace, rows, seed)
        except AssertionError as error:
            raise AssertionError(f"--only {seed}: {error}") from error


def _taste(workspace: Workspace, rows: Any, seed: int) -> None:
    chance = random.Random(seed)
    with FaultyServer(_plan(seed)) as server:
        for turn in range(RUNS):
            chosen: dict[str, Any] = {
                "batch": BATCH if turn < 2 else chance.choice((1, 2, BATCH, 200)),
                "concurrency": chance.choice((1, 2, 8)),
                "attempts": chance.choice((1, 2, 6)),
                "breaker": chance.choice((1, 1000)),
            }
            place = towards(workspace, server.url, seed=seed, **chosen)
            with suppress(ServiceUnusable):
                push_batch(place, 1, most=chance.choice((None, 7, BATCH)))
            applied = Counter(json.loads(effect.body)["Name"] for effect in server.effects)
            assert max(applied.values(), default=0) <= 1, f"run {turn}, {chosen}: {applied}"
            states = dict(rows("SELECT record_number, state FROM send"))
            for number, state in states.items():
                done = applied[f"tone {number}"]
                assert state != "acknowledged" or done == 1, f"run {turn}: {number} {state}"
                assert state not in ("refused", "unsent") or done == 0, f"run {turn}: {number}"
            if "unsent" not in states.values():
                break
        assert set(states.values()) <= {"acknowledged", "refused", "in_doubt"}
        assert len(states) == ROWS


def _plan(seed: int) -> Plan:
    """By the rows of the request and how often it came, whatever the order of arrival."""

    def decide(seen: Seen) -> Reply:
        chance = random.Random(f"{seed} {seen.body} {seen.attempt}")
        if chance.random() > SHARE:
            return OK
        batch = seen.path.endswith("%5B%5D")
        size = seen.push_key.count(",") + 1
        done = chance.randrange(size + 1) if batch else None
        code = chance.choice((*STOPPING, *OF_A_ROW, *UNDECIDED, 0))
        if code == 0:
            return chance.choice(EVERY_LOSS)
        says_why = (code not in STOPPING and chance.random() < 0.7) or code in OF_A_ROW
        made: dict[str, Any] = {"completed": done}
        if code in (408, 500, 502, 503, 504):
            # Nobody knows of the row that failed, nor of any where nothing is counted.
            if done is None:
                made["applied"] = chance.random() < 0.5
            else:
                made["executed"] = min(size, done + chance.randrange(2))
                made["counted"] = chance.random() < 0.5
        if batch and size > 1 and chance.random() < 0.3:
            # The number is lost on its way, of this answer alone.
            made["counted"] = False
        if code in (429, 503) and chance.random() < 0.5:
            made["retry_after"] = 0
        return status(code, error_code="Said" if says_why else None, **made)

    return decide
