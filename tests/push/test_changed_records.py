"""What somebody changed in the database: records, which no row ends against, or staged rows."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ConservationError, EvidenceBroken
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.postgres.auditing.evidence import altered_ledger
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.push.plan import plan_sends
from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.receiving.batch_service import ask_for_service
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from schemas.tables import PAYMENT
from tests.push.conftest import PUSHED, deliver, towards
from tests.push.deliveries import GATEWAYS
from tests.push.test_undone import amounts
from tests.service.faulty_server import FaultyServer
from tests.stages.payments import line, write


def test_a_put_is_sent_where_only_the_database_was_made_to_say_the_same(
    workspace: Workspace, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        deliver(place, write(tmp_path / "a.csv", line(1, amount="1")))
        _change(workspace, "payment", "PaidAmount", 2)
        deliver(place, write(tmp_path / "b.csv", line(1, amount="2")))
        assert amounts(server) == [1, 2]


@pytest.mark.long
def test_an_older_put_of_a_changed_record_never_follows(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path
) -> None:
    """Neither one that waited, nor after the undo of what was delivered last."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        for name, amount in (("a.csv", "1"), ("b.csv", "1")):
            path = write(tmp_path / name, line(1, amount=amount), line(ord(name[0])))
            import_delivery(place, [path], DEFAULT)
        with place.database.connect() as connection, hold_batch(connection, 1) as lease:
            ask_for_service(place, lease)
            with lease.transaction():
                plan_sends(lease, PAYMENT)
        _change(workspace, "payment", "PaidAmount", 2)
        import_delivery(place, [write(tmp_path / "c.csv", line(1, amount="2"))], DEFAULT)
        for batch in (3, 1, 2):
            with suppress(ConservationError):  # What batch 1 wrote is changed.
                push_batch(place, batch)
        assert amounts(server) == [2]
        deliver(place, write(tmp_path / "d.csv", line(1, amount="3")))
        undo_batch(place, 4, by=None, reason="wrong month")
        for batch in (3, 1, 2):
            with suppress(ConservationError):
                push_batch(place, batch)
        assert amounts(server) == [2, 3, 2]
        assert rows("SELECT batch_id, state FROM send WHERE record_number = 1 ORDER BY 1") == [
            (1, "superseded"),
            (2, "superseded"),
            (3, "acknowledged"),
            (4, "acknowledged"),
        ]
        with workspace.database.connect() as connection:
            assert altered_ledger(connection, [1, 2, 3, 4]) == ()


@pytest.mark.long
def test_a_row_follows_its_writer_where_the_record_was_changed_behind_both(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        import_delivery(place, [write(tmp_path / "a.csv", line(1, amount="1"))], DEFAULT)
        again = write(tmp_path / "b.csv", line(1, amount="1"), line(2))
        import_delivery(place, [again], DEFAULT)
        _change(workspace, "payment", "PaidAmount", 2)
        with suppress(ConservationError):
            push_batch(place, 2)
        assert sent(2) == {1: "acknowledged", 2: "acknowledged"}
        assert amounts(server) == [1]


@pytest.mark.long
def test_a_post_of_a_changed_record_is_in_doubt_until_somebody_says(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        deliver(place, _gateway(tmp_path / "a.csv", "https://a"))
        _change(workspace, "payment_gateway", "NotifyUrl", "https://b")
        deliver(place, _gateway(tmp_path / "b.csv", "https://b"))
        push_batch(place, 2)
        assert (sent(2), len(server.effects)) == ({1: "in_doubt"}, 1)
        chosen = ChosenSends(states=("in_doubt",))
        resolve(place, 2, chosen, SendDecision.RESEND, by="a", reason="not there")
        push_batch(place, 2)
        assert sent(2) == {1: "acknowledged"}
        assert ["https://b" in effect.body for effect in server.effects] == [False, True]


ALTERED = {
    "a reference": (
        'UPDATE staged_payment SET "DebtsId" = 9',
        'UPDATE staged_payment SET "DebtsId" = 2',
    ),
    "what became of a row": (
        "INSERT INTO outcome VALUES (1, 1, 2, 'stale', NULL)",
        "DELETE FROM outcome",
    ),
    "that it was repaired": (
        "INSERT INTO outcome VALUES (1, 1, 2, 'corrected', NULL)",
        "DELETE FROM outcome",
    ),
    "what became of all": (
        "UPDATE receipt SET verdict = 'stale' WHERE stage = 'apply payment'",
        "UPDATE receipt SET verdict = 'inserted' WHERE stage = 'apply payment'",
    ),
}


@pytest.mark.long(but=("a reference",))
@pytest.mark.parametrize("what", ALTERED)
def test_what_somebody_altered_behind_the_import_is_not_sent(
    workspace: Workspace, tmp_path: Path, what: str
) -> None:
    """Whoever loads files may write these tables, and sends nothing."""
    with FaultyServer() as server, workspace.database.connect() as connection:
        place = towards(workspace, server.url)
        import_delivery(place, [write(tmp_path / "a.csv", line(1), line(2))], DEFAULT)
        alter, put_back = ALTERED[what]
        connection.execute(alter)
        with pytest.raises(EvidenceBroken, match="omebody altered"):
            push_batch(place, 1)
        assert server.requests == []
        connection.execute(put_back)
        assert push_batch(place, 1).report.verdict == "complete"
        assert len(server.effects) == 2


def _change(workspace: Workspace, table: str, column: str, value: object) -> None:
    """As somebody does it beside all batches."""
    with workspace.database.connect() as connection:
        connection.execute(f'UPDATE {table} SET "{column}" = %s', [value])


def _gateway(path: Path, notify: str, end: str = "") -> str:
    path.write_text(f"{GATEWAYS}\n7,1,main,,{notify},\n{end}")
    return str(path)


@pytest.mark.parametrize("first", [PUSHED, DEFAULT])
def test_a_post_is_sent_once_where_its_record_was_changed_in_between(
    workspace: Workspace, sent: Any, tmp_path: Path, first: Profile
) -> None:
    """The whole is delivered each night: it puts back what somebody changed, and is not new."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        import_delivery(place, [_gateway(tmp_path / "a.csv", "https://a")], first)
        deliver(place, _gateway(tmp_path / "b.csv", "https://a", "\n"))
        assert len(server.effects) == 1
        _change(workspace, "payment_gateway", "NotifyUrl", "https://b")
        deliver(place, _gateway(tmp_path / "c.csv", "https://a", "\n\n"))
        assert (sent(3), len(server.effects)) == ({1: "acknowledged"}, 1)
