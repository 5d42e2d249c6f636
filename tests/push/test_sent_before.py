"""What a batch posted before it was undone is not posted again, in whatever file it comes back."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.undo import undo_and_tell, undo_batch
from flows.stages.workspace import Workspace
from tests.push.conftest import PUSHED, deliver, towards
from tests.push.deliveries import GATEWAYS, row_of
from tests.service.faulty_server import LOST, OK, FaultyServer, Reply, Seen, status

CHANGED, NEW = 7, 8
ENDS = {
    # What became of a gateway in the batch that is undone, and what becomes of it when it is back.
    1: ("acknowledged", "acknowledged"),
    2: ("in_doubt", "in_doubt"),
    3: ("differs", "differs"),
    4: ("abandoned", "abandoned"),
    5: ("refused", "acknowledged"),
    6: ("sending", "in_doubt"),
    CHANGED: ("acknowledged", "acknowledged"),
}
POSTED_ANEW = (5, CHANGED, NEW)
SHAPES: dict[str, Callable[[list[int]], list[list[int]]]] = {
    "corrected": lambda rows: [rows],
    "reordered": lambda rows: [rows[::-1]],
    "split": lambda rows: [rows[:3], rows[3:]],
}


def gateways(path: Path, numbers: Sequence[int], *, changed: bool = False) -> Path:
    """Payment gateways; each is a POST."""
    lines = [
        f"1,{one},gateway {one},key,https://{'m' if changed and one == CHANGED else 'n'},https://r"
        for one in numbers
    ]
    path.write_text("\n".join([GATEWAYS, *lines]) + "\n")
    return path


def answer(seen: Seen) -> Reply:
    if seen.attempt > 1:
        return OK
    wrong = json.loads(seen.body) | {"NotifyUrl": "https://other"}
    faults = {2: LOST, 3: Reply(body=wrong), 4: LOST, 5: status(400, error_code="NotEmpty")}
    return OK if '"https://m"' in seen.body else faults.get(row_of(seen.body), OK)


@pytest.mark.long(but=("corrected",))
@pytest.mark.parametrize("shape", SHAPES)
def test_a_corrected_delivery_posts_only_what_the_undone_one_had_not(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path, shape: str
) -> None:
    with FaultyServer(answer) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, gateways(tmp_path / "a.csv", [*ENDS]))
        aside = ChosenSends(("a.csv:record:4",))
        resolve(place, 1, aside, SendDecision.ABANDON, by=None, reason="typo")
        # Its run died.
        rows("UPDATE send SET state = 'sending' WHERE record_number = 6 RETURNING 1")
        assert sent(1) == {row: before for row, (before, _) in ENDS.items()}
        told = undo_and_tell(place, 1, by=None, reason="row 7 is wrong").lines
        assert told[1].startswith("The service keeps what it was sent: 6 of AddPaymentGateway. ")
        assert "are unsent, but for what was posted before; `recon push` sends" in told[1]
        assert "is not posted again" in told[1]
        begun = len(server.requests)
        server.plan = lambda seen: OK
        files = SHAPES[shape]([*ENDS, NEW])
        for number, part in enumerate(files):
            deliver(place, gateways(tmp_path / f"b{number}.csv", part, changed=True))
        posted = [row_of(seen.body) for seen in server.requests[begun:]]
        assert sorted(posted) == [*POSTED_ANEW]
        ends = {
            row: sent(2 + number)[place_of]
            for number, part in enumerate(files)
            for place_of, row in enumerate(part, start=1)
        }
        assert ends == {row: after for row, (_, after) in ENDS.items()} | {NEW: "acknowledged"}
        # The doubt is there to be settled, in the batch that has the row now.
        for batch in range(2, 2 + len(files)):
            doubtful = [row for row, state in sent(batch).items() if state == "in_doubt"]
            if doubtful:
                chosen = ChosenSends(states=("in_doubt",))
                resolve(place, batch, chosen, SendDecision.RESEND, by=None, reason="not there")
                push_batch(place, batch)
        counted = Counter(row_of(seen.body) for seen in server.requests[begun:])
        assert counted == Counter([*POSTED_ANEW, 2, 6])


def test_a_row_without_a_key_is_posted_once_though_its_file_is_imported_again(
    workspace: Workspace, sent: Any, tmp_path: Path
) -> None:
    """The same in another file is a record of its own, as in any other batch."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        path = replies(tmp_path / "a.csv", ",,good,", "g,5,good,", ",,good,")
        deliver(place, path)
        undo_batch(place, 1, by=None, reason="wrong month")
        deliver(place, path)
        assert (sent(2), len(server.effects)) == (dict.fromkeys((1, 2, 3), "acknowledged"), 3)
        deliver(place, replies(tmp_path / "b.csv", ",,good,"))
        assert (sent(3), len(server.effects)) == ({1: "acknowledged"}, 4)


def replies(path: Path, *lines: str) -> Path:
    """Replies to forms; each is a POST."""
    head = "CommsGuid,CampaignActionsRequestsId,Comments,CampaignActionFiles"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


NEVER_THERE = {
    "imported only": (DEFAULT, OK),
    "refused": (PUSHED, status(400, error_code="NotEmpty")),
    "unsent": (PUSHED, status(401)),
}


@pytest.mark.long(but=("refused",))
@pytest.mark.parametrize("case", NEVER_THERE)
def test_a_record_that_is_put_back_before_the_service_had_another_is_posted_once(
    workspace: Workspace, sent: Any, tmp_path: Path, case: str
) -> None:
    profile, reply = NEVER_THERE[case]
    with FaultyServer(lambda seen: reply if '"https://m"' in seen.body else OK) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, gateways(tmp_path / "a.csv", [CHANGED, 1]))
        for number in (2, 3):
            # Each brings one of its own too.
            path = gateways(tmp_path / f"b{number}.csv", [CHANGED, number], changed=True)
            with suppress(ServiceUnusable):
                import_delivery(place, [str(path)], profile)
        deliver(place, gateways(tmp_path / "c.csv", [CHANGED, 4]))
        assert sent(4) == {1: "acknowledged", 2: "acknowledged"}
        # Nor by one that finds it put back by a batch that goes to no service.
        with suppress(ServiceUnusable):
            path = gateways(tmp_path / "d.csv", [CHANGED, 5], changed=True)
            import_delivery(place, [str(path)], profile)
        import_delivery(place, [str(gateways(tmp_path / "e.csv", [CHANGED, 6]))], DEFAULT)
        deliver(place, gateways(tmp_path / "f.csv", [CHANGED, 8]))
        assert sent(7) == {1: "acknowledged", 2: "acknowledged"}
        assert [row_of(effect.body) for effect in server.effects].count(CHANGED) == 1
