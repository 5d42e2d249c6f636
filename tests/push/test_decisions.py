"""What somebody decided is no answer of the service, and may be taken back until it is acted on."""

import itertools
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError, ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from connectors.postgres.push.sends import SendDecision, left_at_service
from flows.stages.chosen_sends import ChosenSends
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.resolve import next_text, resolve
from flows.stages.sequence import import_delivery, push_batch, push_waiting, waiting_to_push
from flows.stages.undo import undo_and_tell
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests.push.conftest import deliver, towards
from tests.push.deliveries import GATEWAYS, applied, payments, row_of, stored, tones
from tests.service.faulty_server import (
    CUT,
    DROPPED,
    EVERY_LOSS,
    LOST,
    OK,
    FaultyServer,
    Reply,
    Seen,
    always,
    at,
    status,
)
from tests.stages.payments import line, write

NOT_SAYING: dict[str, Reply] = {
    "a page": Reply(200, (("Content-Type", "text/html"),), "<html>login</html>", applied=False),
    "no content": Reply(204, body="", applied=False),
    "two records": Reply(body='[{"Id": 1}, {"Id": 2}]', applied=False),
    "another record": Reply(body={"Id": 9, "Name": "tone 99"}, applied=False),
    "errors without a name": Reply(
        body={"ResponseStatus": {"Errors": [{"Message": "no"}]}}, applied=False
    ),
    "half of it": CUT,
    "a failure": status(502),
    "nothing": DROPPED,
}
"""Answers to a POST that do not say that it was carried out as it was sent."""


def breaks(place: Workspace, batch: int = 1) -> dict[int, set[str]]:
    """Record number -> code and field of its breaks about what the service said."""
    found: dict[int, set[str]] = {}
    scope = Scope(batches=(batch,))
    for one in reconcile(place, Asked(scope, date(2026, 11, 28), Rules())).report.breaks:
        if one.code in ("ECHO", "IN_DOUBT", "NOT_SENT", "UNCONFIRMED"):
            found.setdefault(one.line - 1, set()).add(f"{one.code} {one.field}".strip())
    return found


def settle(place: Workspace, decision: SendDecision, batch: int = 1, **chosen: Any) -> int:
    chosen = chosen or {"states": ("in_doubt", "differs")}
    settled = resolve(place, batch, ChosenSends(**chosen), decision, by=None, reason="looked at")
    return settled.rows


@pytest.mark.long
def test_what_is_confirmed_stays_a_break_whatever_was_answered(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """Behind each of these answers comes a good one, so that the push goes on."""
    faults = {2 * number: reply for number, reply in enumerate(NOT_SAYING.values(), start=1)}
    with FaultyServer(lambda seen: faults.get(row_of(seen.body), OK)) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 2 * len(faults) + 1))
        assert {row for row, state in sent(1).items() if state != "acknowledged"} == set(faults)
        assert settle(place, SendDecision.CONFIRM) == len(faults)
        assert set(sent(1).values()) == {"acknowledged"}
        # A row that says the same once more knows no better.
        deliver(place, tones(tmp_path / "b.csv", 2 * len(faults) + 2))
        assert set(sent(2).values()) == {"acknowledged"}
        for batch in (1, 2):
            found = breaks(place, batch)
            assert set(found) == set(faults)
            assert found[2] in ({"UNCONFIRMED"}, {"ECHO"})


@pytest.mark.long
def test_an_echo_that_differs_stays_a_break_whoever_confirms_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Until the row is sent once more and the answer shows what was sent.

    A number of which the service shows 15 digits does not differ.
    """
    rows = [line(1), line(2, amount="0.30000000000000004"), line(3)]
    other = stored(2, 0.3)
    other = replace(other, body={**other.body, "DebtsId": 9})
    with FaultyServer(at({2: other})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, write(tmp_path / "a.csv", *rows))
        settle(place, SendDecision.CONFIRM)
        assert breaks(place) == {2: {"ECHO DebtsId"}}
        settle(place, SendDecision.RESEND, rows=("a.csv:record:2",))
        push_batch(place, 1)
        assert breaks(place) == {}


def test_every_decision_may_be_followed_by_every_other(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    ends = {
        SendDecision.CONFIRM: ("acknowledged", {"UNCONFIRMED"}, 1),
        SendDecision.RESEND: ("acknowledged", None, 2),
        SendDecision.ABANDON: ("abandoned", {"IN_DOUBT"}, 1),
    }
    pairs = dict(zip(range(2, 14, 2), itertools.permutations(SendDecision, 2), strict=True))
    with FaultyServer(
        lambda seen: LOST if row_of(seen.body) in pairs and seen.attempt == 1 else OK
    ) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 13))
        for which in (0, 1):
            for row, decisions in pairs.items():
                assert settle(place, decisions[which], rows=(f"a.csv:record:{row}",)) == 1
        push_batch(place, 1)
        found, effects = breaks(place), applied(server)
        for row, (_, last) in pairs.items():
            assert (sent(1)[row], found.get(row), len(effects[row])) == ends[last], pairs[row]
        for decision in SendDecision:
            with pytest.raises(BatchStateError, match="nothing was changed"):
                settle(place, decision, rows=("a.csv:record:1",))
        # Of rows that are named each is settled, or none.
        aside = next(row for row, (_, last) in pairs.items() if last is SendDecision.ABANDON)
        with pytest.raises(BatchStateError, match="record:1 cannot be settled by resend"):
            settle(place, SendDecision.RESEND, rows=(f"a.csv:record:{aside}", "a.csv:record:1"))
        assert sent(1)[aside] == "abandoned"


@pytest.mark.long
def test_a_confirmation_is_taken_back_only_where_it_is_named(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """And a row that says the same once more follows what then becomes of it."""
    with FaultyServer(at({2: DROPPED, 4: DROPPED})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 5))
        settle(place, SendDecision.CONFIRM, rows=("a.csv:record:2",))
        deliver(place, tones(tmp_path / "b.csv", 6))
        assert settle(place, SendDecision.ABANDON, operation="AddMessageTone") == 1
        assert (sent(1)[2], sent(1)[4]) == ("acknowledged", "abandoned")
        assert settle(place, SendDecision.RESEND, states=("acknowledged",)) == 1
        push_batch(place, 1)
        assert {row: len(bodies) for row, bodies in applied(server).items()} == dict.fromkeys(
            (1, 2, 3, 5, 6), 1
        )
        assert 2 not in breaks(place, 2)


@pytest.mark.long
@pytest.mark.parametrize("made", [tones, payments])
@pytest.mark.parametrize("end", ["refused", "set aside", "acknowledged"])
def test_what_followed_a_confirmation_that_is_taken_back_ends_as_its_row_does(
    workspace: Workspace, sent: Any, tmp_path: Path, made: Any, end: str
) -> None:
    """A row that was refused is sent by the other one, as any that has nobody to follow."""
    with FaultyServer(at({2: DROPPED if made is tones else stored(2, 9.0)})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, made(tmp_path / "a.csv", 3))
        settle(place, SendDecision.CONFIRM, rows=("a.csv:record:2",))
        deliver(place, made(tmp_path / "b.csv", 4))
        assert (sent(1)[2], sent(2)[2]) == ("acknowledged", "acknowledged")
        requests = len(server.requests)
        taken_back = SendDecision.ABANDON if end == "set aside" else SendDecision.RESEND
        chosen = ChosenSends(("a.csv:record:2",))
        settled = resolve(place, 1, chosen, taken_back, by=None, reason="looked again")
        if end == "refused":
            server.plan = always(status(400, error_code="NotNull"))
        assert waiting(place) == ([2] if end == "set aside" else [1, 2])
        push_batch(place, 1)
        assert waiting(place) == ([] if end == "acknowledged" else [2])
        server.plan = always(OK)
        push_batch(place, 2)
        assert waiting(place) == []
        again = made is payments and end == "set aside"
        states = {"refused": ("refused", "acknowledged"), "set aside": ("abandoned", "abandoned")}
        assert (sent(1)[2], sent(2)[2]) == (
            ("abandoned", "acknowledged") if again else states.get(end, ("acknowledged",) * 2)
        )
        tries = {"refused": 2, "set aside": int(again), "acknowledged": 1}
        assert len(server.requests) - requests == tries[end]
        # It has nothing more to do, and whoever asks for it once more changes nothing.
        assert push_batch(place, 2).batch.state in (State.COMPLETE, State.COMPLETE_WITH_ERRORS)
        assert len(server.requests) - requests == tries[end]
        assert "`recon push 2` lets them end as these do" in next_text(1, settled.detail)


@pytest.mark.long
@pytest.mark.parametrize(
    ("decision", "answer", "end"),
    [
        (SendDecision.CONFIRM, OK, "acknowledged"),
        (SendDecision.ABANDON, OK, "abandoned"),
        (SendDecision.RESEND, OK, "acknowledged"),
        (SendDecision.RESEND, status(400, error_code="NotNull"), "acknowledged"),
        (SendDecision.RESEND, DROPPED, "in_doubt"),
    ],
)
def test_what_is_in_doubt_by_another_row_ends_as_that_does(
    workspace: Workspace, sent: Any, tmp_path: Path, decision: SendDecision, answer: Reply, end: str
) -> None:
    """Its batch is named, and a push of all takes it; a refused row is sent by the other one."""
    with FaultyServer(at({2: DROPPED})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 3))
        deliver(place, tones(tmp_path / "b.csv", 4))
        assert (sent(1)[2], sent(2)[2], waiting(place)) == ("in_doubt", "in_doubt", [])
        chosen = ChosenSends(("a.csv:record:2",))
        settled = resolve(place, 1, chosen, decision, by=None, reason="looked")
        assert "`recon push 2` lets them end as these do" in next_text(1, settled.detail)
        if decision is SendDecision.RESEND:
            server.plan = always(answer)
            push_batch(place, 1)
            server.plan = always(OK)
        pushed = [number for number, _ in push_waiting(place)]
        assert pushed == ([] if answer is DROPPED else [2])
        assert (sent(2)[2], waiting(place)) == (end, [])
        assert server.twice() == []


def waiting(place: Workspace) -> list[int]:
    """The batches that a push of all takes."""
    return sorted(waiting_to_push(place))


def gateways(path: Path, url: str) -> Path:
    """A gateway for each loss, and one that is answered behind each: each is a POST."""
    count = 2 * len(EVERY_LOSS) + 1
    lines = [f"1,{number},gateway {number},key,{url},https://r" for number in range(1, count)]
    path.write_text("\n".join([GATEWAYS, *lines]) + "\n")
    return path


def changed_payments(path: Path, url: str) -> Path:
    """A payment for each loss, with an amount that changes with `url`: each is a PUT."""
    amount = f"{len(url)}.25"
    count = len(EVERY_LOSS) + 1
    write(path, *(line(number, amount=amount) for number in range(1, count)))
    return path


@pytest.mark.long(but=("changed_payments-waits",))
@pytest.mark.parametrize("end", ["waits", "abandoned", "superseded"])
@pytest.mark.parametrize("made", [changed_payments, gateways])
def test_what_the_service_may_have_is_never_told_as_less(
    workspace: Workspace, sent: Any, tmp_path: Path, made: Any, end: str
) -> None:
    """After every way to lose an answer, whatever becomes of the row that has none."""

    def lossy(seen: Seen) -> Reply:
        row = row_of(seen.body)
        if made is gateways:
            return OK if row % 2 else EVERY_LOSS[row // 2 - 1]
        return EVERY_LOSS[row - 1]

    with FaultyServer(lossy) as server:
        place = towards(workspace, server.url, concurrency=1, attempts=2)
        with suppress(ServiceUnusable):
            deliver(place, made(tmp_path / "a.csv", "https://n"))
        states = ("unsent", "in_doubt")
        if end == "abandoned":
            settle(place, SendDecision.ABANDON, states=states)
        elif end == "superseded":
            if made is gateways:
                settle(place, SendDecision.RESEND, states=states)
            newer = made(tmp_path / "b.csv", "https://newer")
            import_delivery(place, [str(newer)], DEFAULT)
            push_batch(place, 1)
            assert "superseded" in sent(1).values()
        with place.database.connect() as connection:
            (left,) = left_at_service(connection, 1).values()
    assert left >= len(applied(server)) > 0
    if end != "superseded":
        lost = {row for row, state in sent(1).items() if state != "acknowledged"}
        assert breaks(place) == {row: {"IN_DOUBT"} for row in lost}
        assert str(left) in undo_and_tell(place, 1, by=None, reason="wrong month").lines[1]


@pytest.mark.long
def test_what_was_proved_unsent_is_not_told_as_more(workspace: Workspace, tmp_path: Path) -> None:
    with FaultyServer(always(status(401))) as server:
        place = towards(workspace, server.url, concurrency=1)
        with suppress(ServiceUnusable):
            deliver(place, payments(tmp_path / "a.csv", 2))
    assert breaks(place) == {1: {"NOT_SENT"}, 2: {"NOT_SENT"}}
    assert len(undo_and_tell(place, 1, by=None, reason="wrong month").lines) == 1


@pytest.mark.long
def test_a_newer_post_beside_one_in_doubt_is_noted_and_the_old_one_is_not_promised(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    with FaultyServer(at({2: LOST, 4: LOST})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, gateways(tmp_path / "a.csv", "https://n"))
        newer = gateways(tmp_path / "b.csv", "https://newer")
        newer.write_text("\n".join(newer.read_text().splitlines()[:3]) + "\n")
        (note,) = deliver(place, newer).report.notes
        assert (note.value, note.rows, note.line) == ("batch 1", 1, 3)
        assert "posted by batch 1 and was in doubt there" in note.message
        for rows, told in {
            ("a.csv:record:2",): "None is sent: a later batch has written the same record since",
            ("a.csv:record:2", "a.csv:record:4"): "sends them, but for 1: a later batch",
            ("a.csv:record:4",): "`recon push 1` sends them.",
        }.items():
            chosen = ChosenSends(rows)
            said = resolve(place, 1, chosen, SendDecision.RESEND, by=None, reason="not there")
            assert told in next_text(1, said.detail)
            settle(place, SendDecision.ABANDON, rows=rows)
        settle(place, SendDecision.RESEND, states=("abandoned",))
        push_batch(place, 1)
        assert (sent(1)[2], sent(1)[4]) == ("superseded", "acknowledged")
