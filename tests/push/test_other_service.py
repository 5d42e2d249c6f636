"""A batch goes to the service that is set, until one may have a row of it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError, ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.auditing.audit import verify
from connectors.postgres.auditing.evidence import altered_ledger
from connectors.postgres.push.sends import SendDecision, waiting_batches
from flows.stages.chosen_sends import ChosenSends
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.push.conftest import deliver, towards
from tests.push.deliveries import GATEWAYS, applied, payments, tones
from tests.service.faulty_server import (
    LOST,
    OK,
    FaultyServer,
    Plan,
    Reply,
    always,
    scripted,
    status,
)
from tests.stages.payments import line, write

NOTHING_THERE: dict[str, Plan] = {
    "a wrong path": always(status(404)),
    "a wrong account": always(status(401)),
    "too many": always(Reply(429, (("Retry-After", "0"),), applied=False)),
}


@pytest.mark.long
@pytest.mark.parametrize("made", [tones, payments])
@pytest.mark.parametrize("case", NOTHING_THERE)
def test_a_batch_that_no_service_has_goes_to_the_one_that_is_set(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path, made: Any, case: str
) -> None:
    """An operator mistyped the address; what went to the right one before is still known there."""
    with FaultyServer() as right, FaultyServer(NOTHING_THERE[case]) as wrong:
        place = towards(workspace, right.url)
        deliver(place, made(tmp_path / "a.csv", 1))
        for url in ("http://127.0.0.1:9", wrong.url):
            with pytest.raises(ServiceUnusable):
                deliver(towards(workspace, url, attempts=2), made(tmp_path / "b.csv", 3))
        assert push_batch(place, 2).batch.service == right.url
        assert sent(2) == dict.fromkeys((1, 2, 3), "acknowledged")
        assert {row: len(bodies) for row, bodies in applied(right).items()} == {1: 1, 2: 1, 3: 1}
        assert rows("SELECT DISTINCT service FROM batch") == [(right.url,)]
        with workspace.database.connect() as connection:
            assert verify(connection).broken is None
            assert altered_ledger(connection, [1, 2]) == ()


NOWHERE = "http://127.0.0.1:9"
BY_OTHERS = {
    # What is done with a batch whose rows another one had sent to the right service.
    "nothing": "",
    "sent all the same": "resend",
    "tried all the same": "resend, push",
}


@pytest.mark.long
@pytest.mark.parametrize("first", ["undone", "there"])
@pytest.mark.parametrize("case", BY_OTHERS)
def test_what_others_sent_elsewhere_binds_no_batch_to_a_service_that_was_never_met(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path, first: str, case: str
) -> None:
    """It is in doubt whether the mistyped address is one more name of that service."""
    with FaultyServer() as right:
        place, nowhere = towards(workspace, right.url), towards(workspace, NOWHERE, attempts=2)
        deliver(place, tones(tmp_path / "a.csv", 4))
        if first == "undone":
            undo_batch(place, 1, by=None, reason="wrong month")
        deliver(nowhere, tones(tmp_path / "b.csv", 3))
        assert sent(2) == dict.fromkeys((1, 2, 3), "in_doubt")
        for step in filter(None, BY_OTHERS[case].split(", ")):
            match step:
                case "resend":
                    chosen = ChosenSends(states=("in_doubt",))
                    resolve(nowhere, 2, chosen, SendDecision.RESEND, by=None, reason="not there")
                case "push":
                    with pytest.raises(ServiceUnusable):
                        push_batch(nowhere, 2)
        with workspace.database.connect() as connection:
            assert waiting_batches(connection, right.url) == ([] if case == "nothing" else [2])
        assert push_batch(place, 2).batch.service == right.url
        assert sent(2) == dict.fromkeys((1, 2, 3), "acknowledged")
        assert len(right.requests) == len(right.effects) == 4
        with workspace.database.connect() as connection:
            assert verify(connection).broken is None
            assert altered_ledger(connection, [1, 2]) == ()


@pytest.mark.long
def test_a_batch_that_all_ended_as_others_stays_where_these_are(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    with FaultyServer() as right, FaultyServer() as other:
        for count in (3, 2):
            deliver(towards(workspace, right.url), payments(tmp_path / f"{count}.csv", count))
        assert rows("SELECT max(attempts) FROM send WHERE batch_id = 2") == [(0,)]
        push_batch(towards(workspace, other.url), 2)
        assert other.requests == []
        assert rows("SELECT DISTINCT service FROM batch") == [(right.url,)]


@pytest.mark.long
@pytest.mark.parametrize("told", [True, False])
def test_a_doubt_of_its_own_binds_a_batch_however_it_is_tried_again(
    workspace: Workspace, rows: Any, tmp_path: Path, told: bool
) -> None:
    """Also where others had told of one before."""
    plan = scripted([LOST], then=status(404))
    with FaultyServer() as right, FaultyServer(plan) as other:
        place = towards(workspace, right.url)
        there = towards(workspace, other.url, attempts=1, health_attempts=1)
        deliver(place, tones(tmp_path / "a.csv", 2) if told else payments(tmp_path / "a.csv", 2))
        with suppress(ServiceUnusable):
            deliver(there, tones(tmp_path / "b.csv", 1))
        chosen = ChosenSends(states=("in_doubt",))
        for _ in range(1 + told):
            resolve(there, 2, chosen, SendDecision.RESEND, by=None, reason="not there")
            with suppress(ServiceUnusable):
                push_batch(there, 2)
        assert rows("SELECT state FROM send WHERE batch_id = 2") == [("unsent",)]
        with pytest.raises(BatchStateError, match="has rows of it or may have them"):
            push_batch(place, 2)


@pytest.mark.long
@pytest.mark.parametrize("decision", ["confirm", "abandon"])
def test_what_somebody_decided_of_such_rows_binds_the_batch(
    workspace: Workspace, tmp_path: Path, decision: str
) -> None:
    with FaultyServer() as right:
        place, nowhere = towards(workspace, right.url), towards(workspace, NOWHERE)
        deliver(place, tones(tmp_path / "a.csv", 2))
        deliver(nowhere, tones(tmp_path / "b.csv", 1))
        chosen = ChosenSends(states=("in_doubt",))
        resolve(nowhere, 2, chosen, SendDecision(decision), by=None, reason="looked it up")
        assert push_batch(place, 2).batch.service == NOWHERE
        assert len(right.requests) == 2


@pytest.mark.long(but=("payments",))
@pytest.mark.parametrize("made", ["payments", "gateways"])
def test_an_undo_of_a_later_batch_binds_none_to_a_service_that_was_never_met(
    workspace: Workspace, rows: Any, tmp_path: Path, made: str
) -> None:
    """What is kept of a row that is to be sent once more proves no more than it did before."""
    path = tmp_path / "a.csv"
    with FaultyServer() as right:
        nowhere = towards(workspace, NOWHERE, attempts=2)
        for number in (1, 2):
            if made == "payments":
                write(path, line(1, amount=f"{number}.25"))
            else:
                path.write_text(f"{GATEWAYS}\n{GATEWAY.format(number)}\n")
            import_delivery(nowhere, [str(path)], DEFAULT)
            with suppress(ServiceUnusable):
                push_batch(nowhere, 1)
        assert rows("SELECT state, attempts > 0 FROM send") == [("superseded", True)]
        undo_batch(nowhere, 2, by=None, reason="wrong month")
        assert rows("SELECT state, attempts > 0 FROM earlier_send") == [("superseded", True)]
        assert push_batch(towards(workspace, right.url), 1).batch.service == right.url
        assert rows("SELECT state FROM send") == [("acknowledged",)]
        assert len(right.effects) == 1


GATEWAY = "1,1,gateway,key,https://{},https://r"


@pytest.mark.long(but=("0",))
@pytest.mark.parametrize("turns", [0, 1, 2])
def test_that_an_earlier_version_is_in_doubt_is_said_of_the_service_it_went_to(
    workspace: Workspace, rows: Any, tmp_path: Path, turns: int
) -> None:
    """And once, however often a batch goes to another one and back."""
    path, said = tmp_path / "g.csv", "SELECT value FROM note WHERE code = 'InDoubt'"
    plan = scripted([LOST], then=status(404))
    with FaultyServer(plan) as first, FaultyServer(NOTHING_THERE["a wrong path"]) as other:
        places = [
            towards(workspace, server.url, attempts=1, health_attempts=1)
            for server in (first, other)
        ]
        for host in ("n", "m"):
            path.write_text(f"{GATEWAYS}\n{GATEWAY.format(host)}\n")
            with suppress(ServiceUnusable):
                deliver(places[0], path)
        assert rows(said) == [("batch 1",)]
        for turn in range(turns):
            with pytest.raises(ServiceUnusable):
                push_batch(places[1 - turn], 2)
        there = places[turns % 2].settings.service.url
        assert rows("SELECT service FROM batch WHERE id = 2") == [(there,)]
        assert rows(said) == ([] if turns == 1 else [("batch 1",)])
        with workspace.database.connect() as connection:
            assert verify(connection).broken is None
            assert altered_ledger(connection, [1, 2]) == ()


THERE: dict[str, Plan] = {
    "lost": always(LOST),
    "refused": always(status(400, error_code="NotNull")),
    "taken": always(OK),
}


@pytest.mark.long
@pytest.mark.parametrize("made", [tones, payments])
@pytest.mark.parametrize("case", THERE)
def test_a_batch_stays_with_the_service_that_may_have_a_row_of_it(
    workspace: Workspace, rows: Any, tmp_path: Path, made: Any, case: str
) -> None:
    """Also where a row of it was never tried, or somebody decided about one."""
    with FaultyServer(THERE[case]) as one, FaultyServer() as other:
        place = towards(workspace, one.url, attempts=2, health_attempts=1, concurrency=1)
        import_delivery(place, [made(tmp_path / "a.csv", 2)], DEFAULT)
        with suppress(ServiceUnusable):
            push_batch(place, 1, most=1)
        with pytest.raises(BatchStateError, match="has rows of it or may have them"):
            push_batch(towards(workspace, other.url), 1)
        assert other.requests == []
        assert rows("SELECT service FROM batch") == [(one.url,)]
