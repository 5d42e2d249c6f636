"""An undo that is done again after a restore posts nothing twice."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.undo import undo_batch
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.workspace import Workspace
from tests.push.conftest import Copy, towards
from tests.push.deliveries import GATEWAYS
from tests.service.faulty_server import FaultyServer

STORIES = {
    # A gateway is imported with an address, each time in a batch; a batch is undone or pushed. At
    # the end the first address is in doubt in the batch that is named last, and was posted once.
    "it was superseded in the backup": (
        "import n, import m, push 1, back up, undo 2, push 1, restore, undo 2, push 1"
    ),
    "a later delivery says it again": (
        "import n, back up, push 1, restore, import n, import m, push 2, undo 3, push 2"
    ),
    "nobody had pushed it, and another file says it again": (
        "import n, back up, push 1, restore, undo 1, import n, push 2"
    ),
}


@pytest.mark.long(but=tuple(STORIES)[::2])
@pytest.mark.parametrize("story", STORIES)
def test_what_an_undo_gives_back_may_have_been_posted_in_the_lost_time(
    workspace: Workspace, sent: Any, copied: Copy, tmp_path: Path, story: str
) -> None:
    with FaultyServer() as server:
        place = kept = towards(workspace, server.url)
        which, steps = "", STORIES[story].split(", ")
        for number, step in enumerate(steps):
            what, _, which = step.partition(" ")
            match what:
                case "import":
                    path = tmp_path / f"{number}.csv"
                    lines = [
                        f"1,{one},gate,key,https://{which},https://r" for one in (1, 100 + number)
                    ]
                    path.write_text("\n".join([GATEWAYS, *lines]) + "\n")
                    import_delivery(place, [str(path)], DEFAULT)
                case "push":
                    push_batch(place, int(which))
                case "undo":
                    undo_batch(place, int(which), by=None, reason="wrong month")
                case "back":
                    kept = copied(place)
                case "restore":
                    place = kept
                    go_on_after_restore(place, unsent="in_doubt", by="a", reason="restored")

        assert posted(server)[1, "https://n"] == 1
        resolve(
            place, int(which), ChosenSends(states=("in_doubt",)), SendDecision.RESEND,
            by=None, reason="not there",
        )  # fmt: skip
        push_batch(place, int(which))
        assert posted(server)[1, "https://n"] == 2


def posted(server: FaultyServer) -> Counter[tuple[int, str]]:
    """Gateway and address -> how often it took effect."""
    bodies = [json.loads(effect.body) for effect in server.effects]
    return Counter((body["PaymentActionsId"], body["NotifyUrl"]) for body in bodies)
