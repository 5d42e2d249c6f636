"""What a row had come to at the service stays to be read when it is sent again, and whose word."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ServiceUnusable
from connectors.postgres.auditing.batch_hashes import answers_detail
from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.resolve import resolve
from flows.stages.sequence import push_batch
from flows.stages.undo import undo_batch
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.workspace import Workspace
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.push.conftest import deliver, towards
from tests.push.deliveries import tones
from tests.service.faulty_server import LOST, FaultyServer, Reply, always, attempts, status
from tests.stages.payments import line, write

BLOCKED = status(
    400, errors=[{"ErrorCode": "Blocked", "FieldName": "", "Message": "Treasury blocked it"}]
)
FIRST: dict[str, tuple[Reply, list[str], list[str]]] = {
    # first answer -> the decisions behind it, and what is to be read behind the second answer
    "refused": (
        BLOCKED,
        ["resend"],
        ["refused", "HTTP 400", "Treasury blocked it", "resend by ann"],
    ),
    "in doubt": (
        LOST,
        ["confirm", "resend"],
        ["InDoubt", "decided: confirm by ann", "resend by ann"],
    ),
}


def decided(place: Workspace, decision: str, *rows: str, by: str = "ann") -> None:
    chosen = ChosenSends(rows)
    resolve(place, 1, chosen, SendDecision(decision), by=by, reason="looked at it")


def shown(recon: Callable[..., Any], row: str = "a.csv --record 1") -> list[str]:
    """What `recon sends` and `recon row` say of a row of batch 1, in one line each."""
    told = recon("sends", "1"), recon("row", "1", *row.split())
    return [" ".join(one.stdout.split()) for one in told]


@pytest.mark.long
@pytest.mark.parametrize("first", FIRST)
def test_what_was_answered_is_read_behind_the_next_answer(
    workspace: Workspace, recon: Callable[..., Any], tmp_path: Path, first: str
) -> None:
    answer, decisions, words = FIRST[first]
    with FaultyServer(attempts([answer])) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 1))
        for one in decisions:
            decided(place, one, "a.csv:record:1")
        push_batch(place, 1)
    for text in shown(recon):
        assert "acknowledged" in text
        assert [word for word in words if word not in text] == [], text
    assert recon("audit", "verify").returncode == 0


@pytest.mark.long
def test_the_key_of_a_put_is_read_behind_an_undo(
    workspace: Workspace, recon: Callable[..., Any], tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, write(tmp_path / "a.csv", line(1)))
        deliver(place, write(tmp_path / "b.csv", line(1, amount="9")))
        undo_batch(place, 2, by="ben", reason="wrong month")
        push_batch(place, 1)
    first, _, last = [one.push_key for one in server.requests]
    for text in shown(recon):
        assert last in text
        assert first in text
        assert "undo of batch 2 by ben" in text
    assert recon("audit", "verify").returncode == 0


def test_what_was_to_be_sent_again_before_a_restore_is_read_behind_it(
    workspace: Workspace, recon: Callable[..., Any], tmp_path: Path
) -> None:
    """Said twice of the same database, too."""
    with FaultyServer(attempts([BLOCKED])) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 1))
        decided(place, "resend", "a.csv:record:1")
    for _ in range(2):
        go_on_after_restore(place, unsent="in_doubt", by="otto", reason="restored")
        decided(place, "resend", "a.csv:record:1", by="ben")
    assert len(server.requests) == 1
    for text in shown(recon):
        assert "Treasury blocked it" in text
        assert "unsent, 1 attempt, HTTP 400, decided: resend by ann on" in text
        assert text.count("until restored") == text.count("until resend by ben") == 2
    assert recon("audit", "verify").returncode == 0


@pytest.mark.long
def test_whose_word_each_of_many_rows_is(
    workspace: Workspace, recon: Callable[..., Any], tmp_path: Path
) -> None:
    """More rows than an event names, and two people."""
    rows = 1_500
    with FaultyServer(always(status(503))) as server:
        place = towards(workspace, server.url, concurrency=1)
        with pytest.raises(ServiceUnusable):
            deliver(place, tones(tmp_path / "a.csv", rows))
    for by, first in ("ann", 1), ("ben", 2):
        chosen = ChosenSends(places=tuple((1, row) for row in range(first, rows + 1, 2)))
        resolve(place, 1, chosen, SendDecision.ABANDON, by=by, reason="looked at it")
    for row, by in {1: "ann", 2: "ben", 1499: "ann", 1500: "ben"}.items():
        _, told = shown(recon, f"a.csv --record {row}")
        assert f"decided: abandon by {by}" in told, told
    assert recon("audit", "verify").returncode == 0


ALTERED = (
    "UPDATE earlier_send SET error_data = '[]'",
    "UPDATE earlier_send SET epoch = epoch + 1",
    "UPDATE earlier_send SET ended_number = 2",
    "DELETE FROM earlier_send",
    "UPDATE send SET decision_number = 1 WHERE record_number = 2",
    "UPDATE send SET earlier = NULL WHERE record_number = 1",
)


@pytest.mark.long
def test_what_is_altered_of_it_is_found(
    workspace: Workspace, recon: Callable[..., Any], tmp_path: Path
) -> None:
    with FaultyServer(attempts([BLOCKED])) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 2))
        decided(place, "resend", "a.csv:record:1")
        push_batch(place, 1)
        decided(place, "abandon", "a.csv:record:2")
    assert recon("audit", "verify").returncode == 0
    with place.database.connect() as connection:
        for statement in ("UPDATE earlier_send SET number = 2", "DELETE FROM earlier_send"):
            with pytest.raises(Exception, match="only ever added to"):
                connection.execute(statement)  # type: ignore[call-overload]
            connection.rollback()
        before = answers_detail(connection, 1)
        for statement in ALTERED:
            with connection.transaction(force_rollback=True):
                connection.execute("SET LOCAL session_replication_role = replica")
                assert connection.execute(statement).rowcount  # type: ignore[call-overload]
                assert answers_detail(connection, 1) != before, statement
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            connection.execute("UPDATE earlier_send SET error_data = NULL")
    assert "the answers of the service (table send)" in recon("audit", "verify").stdout
