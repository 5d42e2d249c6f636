"""A push that ends early: only what may have reached the service without an answer is in doubt."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus as Status

from connectors.files.profiles.profile import DEFAULT
from connectors.service import Service, sending
from connectors.service.contract import Answer, Request
from connectors.service.waiting_rows import SentRow, sent_row
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.workspace import Workspace
from tests.examples import in_long
from tests.push.conftest import towards
from tests.push.deliveries import tones
from tests.recon import Run
from tests.service.faulty_server import LOST, OK, SILENT, FaultyServer, Reply, Seen, status

STOPPED = 130
IN_FLIGHT = [
    # most requests in flight, rows of one
    (1, 1),
    (1, 50),
    (1, 200),
    (32, 1),
    (8, 50),
    (32, 200),
    (128, 1),
    (128, 50),
]


def names(seen: Seen) -> set[str]:
    body = json.loads(seen.body)
    return {one["Name"] for one in (body if isinstance(body, list) else [body])}


def some_more(concurrency: int, batch: int) -> int:
    """Rows behind those in flight and those that are claimed next."""
    return 3 * concurrency * batch + 40


@pytest.mark.long
@pytest.mark.parametrize("name", ["INT", "TERM"])
@pytest.mark.parametrize(("concurrency", "batch"), IN_FLIGHT)
@pytest.mark.parametrize("answer", [OK, LOST, SILENT], ids=["good", "lost", "none"])
def test_stopped_while_posts_are_on_their_way(
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    name: str,
    concurrency: int,
    batch: int,
    answer: Reply,
) -> None:
    """Answers that come are written down, and what was not sent is unsent, whoever had claimed it.

    Where answers are lost, the others are held and the service is asked whether it is back.
    """
    count = some_more(concurrency, batch)
    import_delivery(workspace, [tones(tmp_path / "a.csv", count)], DEFAULT)
    stop_at = 2 + concurrency if answer is SILENT else 3
    last_good = 0 if answer is LOST and batch == 1 else 2
    settings = workspace.settings
    assert settings.database_url is not None

    def stop() -> None:
        run.send_signal(signal.Signals[f"SIG{name}"])

    def plan(seen: Seen) -> Reply:
        if seen.number == stop_at and answer is not LOST:
            stop()
        return OK if seen.number <= last_good else answer

    def down(_: Seen) -> Reply:
        stop()
        return status(503)

    with FaultyServer(plan, health=down) as server:
        run = Run(
            settings.database_url,
            settings.home,
            *("push", "1"),
            RECON_SERVICE_URL=server.url,
            RECON_SERVICE_FORMAT="json",
            RECON_SERVICE_CONCURRENCY=str(concurrency),
            RECON_SERVICE_BATCH=str(batch),
            RECON_SERVICE_BACKOFF_SECONDS="20",
        )
        out, told = run.communicate()
    assert run.returncode == STOPPED, out + told
    answered = [seen for seen in server.requests if seen.number <= last_good or answer is OK]
    lost = set().union(*map(names, server.requests)) - set().union(*map(names, answered))
    found = states(rows)
    assert {name for name, state in found.items() if state == "in_doubt"} == lost
    assert Counter(found.values()) == +Counter(
        acknowledged=sum(len(names(seen)) for seen in answered),
        in_doubt=len(lost),
        unsent=count - sum(len(names(seen)) for seen in server.requests),
    )
    held = rows("SELECT coalesce(held, FALSE) FROM push_lane")
    assert held == [(bool(lost),)]


@pytest.mark.long(but=("4",))
@pytest.mark.parametrize("torn", [3, 4, *map(in_long, (1, 2, 5, 6, 7, 8))])
def test_a_statement_that_is_torn_by_a_stop_holds_up_no_answer(
    workspace: Workspace, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: int
) -> None:
    """Its connection can say nothing more, and would keep what it has locked."""
    import_delivery(workspace, [tones(tmp_path / "a.csv", 9)], DEFAULT)
    wait, left = psycopg.Connection.wait, [torn]

    def torn_wait(self: psycopg.Connection, statement: Any, *given: Any) -> Any:
        if len(server.requests) > 1 and self.info.transaction_status is Status.INTRANS:
            left[0] -= 1
            if not left[0]:
                next(statement)  # The server has it, and nobody reads its answer.
                raise KeyboardInterrupt
        return wait(self, statement, *given)

    with FaultyServer() as server:
        monkeypatch.setattr(psycopg.Connection, "wait", torn_wait)
        with pytest.raises(KeyboardInterrupt):
            push_batch(towards(workspace, server.url, concurrency=1, batch=1), 1)
    assert left[0] <= 0
    taken = len(server.effects)
    assert Counter(states(rows).values()) == {"acknowledged": taken, "unsent": 9 - taken}


@pytest.mark.long
def test_a_stop_while_a_row_is_handed_over_leaves_none_as_being_sent(
    workspace: Workspace, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gives it has given it, and whoever takes it has not: one of the two has it still."""
    import_delivery(workspace, [tones(tmp_path / "a.csv", 9)], DEFAULT)

    def torn_row(request: Request) -> SentRow:
        if request.number == 5:
            raise KeyboardInterrupt
        return sent_row(request)

    def torn_answers(self: Service, *given: Any, **named: Any) -> Iterator[Answer]:
        with closing(send(self, *given, **named)) as answers:
            for number, answer in enumerate(answers, 1):
                if number == 2:
                    raise KeyboardInterrupt
                yield answer

    send = Service.send
    with FaultyServer() as server:
        for place, name, torn in (
            (sending, "sent_row", torn_row),
            (Service, "send", torn_answers),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(place, name, torn)
                with pytest.raises(KeyboardInterrupt):
                    push_batch(towards(workspace, server.url, concurrency=1, batch=1), 1)
            taken = len(server.effects)
            assert Counter(states(rows).values()) == {"acknowledged": taken, "unsent": 9 - taken}
    assert 4 <= taken < 9


@pytest.mark.long
@pytest.mark.parametrize(("concurrency", "batch"), IN_FLIGHT)
def test_the_connection_to_the_database_is_lost_while_posts_are_on_their_way(
    workspace: Workspace, rows: Any, tmp_path: Path, concurrency: int, batch: int
) -> None:
    """Their answers are written down when it is back, and the push goes on."""
    count = some_more(concurrency, batch)
    import_delivery(workspace, [tones(tmp_path / "a.csv", count)], DEFAULT)

    def plan(seen: Seen) -> Reply:
        if seen.number == 3:
            end_sessions(workspace)
        return OK

    with FaultyServer(plan) as server:
        push_batch(towards(workspace, server.url, concurrency=concurrency, batch=batch), 1)
        assert server.twice() == []
    assert Counter(states(rows).values()) == {"acknowledged": count}


def end_sessions(workspace: Workspace) -> None:
    with psycopg.connect(str(workspace.settings.database_url), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def states(rows: Any) -> dict[str, str]:
    """Name of each tone -> its state at the service."""
    return dict(
        rows(
            'SELECT s."Name", x.state FROM send x '
            "JOIN staged_message_tone s USING (extract_id, record_number)"
        )
    )
