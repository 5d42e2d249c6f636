"""From one delivered row to all that was decided about it, and to the reports that told of it."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.push.sends import SendDecision
from connectors.postgres.runs.breaks import Decision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.sign import prepare
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from schemas.life import Choice
from tests.governance.conftest import Ran
from tests.governance.runs import found, reconcile
from tests.push.conftest import deliver, towards
from tests.push.deliveries import by_row, tones
from tests.service.faulty_server import LOST, FaultyServer
from tests.stages.payments import line, write

Recon = Callable[..., Ran]


@pytest.fixture
def shown(recon: Recon) -> Callable[[int], Any]:
    """What is said of a record of batch 1."""

    def show(record: int) -> Any:
        ran = recon("row", "1", "a.csv", "--record", str(record), "--json")
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)["rows"][0]

    return show


def said(decisions: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(one["what"], one["by"], one["reason"]) for one in decisions]


def test_a_row_tells_who_decided_about_it(
    workspace: Workspace, recon: Recon, shown: Callable[[int], Any], tmp_path: Path
) -> None:
    """What a person said of it is not what the service answered, and an undo takes neither away."""
    with FaultyServer(by_row({1: LOST})) as server:
        place = towards(workspace, server.url)
        deliver(place, tones(tmp_path / "a.csv", 2))
        chosen = ChosenSends(rows=("a.csv:record:1",))
        resolve(place, 1, chosen, SendDecision.CONFIRM, by="ann", reason="seen there")
    decided = shown(1)
    assert (decided["sent"], decided["state_before"]) == ("acknowledged", None)
    assert said(decided["decisions"]) == [("resolve as confirm", "ann", "seen there")]
    # To be read, it stands beside what it is about, once.
    read = recon("row", "1", "a.csv", "--record", "1").stdout
    assert read.count("seen there") == read.count("decided: confirm by ann") == 1
    answered = shown(2)
    assert (answered["sent"], answered["decisions"], answered["next"]) == ("acknowledged", [], [])

    undo_batch(workspace, 1, by="cy", reason="wrong month")
    undone = shown(1)
    assert (undone["state"], undone["state_before"], undone["sent"]) == (
        "undone",
        "inserted",
        "acknowledged",
    )
    assert said(undone["decisions"])[1:] == [("undo", "cy", "wrong month")]
    assert "The service has, or may have, what was sent of this row" in undone["next"][0]
    text = recon("row", "1", "a.csv", "--record", "1").stdout
    assert "state_before  inserted" in text
    assert "decisions  undo by cy on " in text
    assert " UTC: wrong month" in text


def test_a_row_tells_which_reports_told_a_break_of_it(
    workspace: Workspace, recon: Recon, shown: Callable[[int], Any], tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2))], DEFAULT)
    one = found("1/7", file="a.csv", line=2, batch_id=1)
    reconcile(workspace, one)
    accepted = Decision(Choice.ACCEPT, "agreed", "ann", until=date(2026, 12, 31))
    decide_breaks(workspace, None, Chosen((one["id"][0],)), accepted)
    prepare(workspace, reconcile(workspace, one).id, by="bo", comment="")
    (told,) = shown(1)["breaks"]
    assert (told["code"], told["break_id"], told["state"]) == ("AMOUNT", one["id"][0], "ACCEPTED")
    assert [(run["run"], run["state"], run["signed"]) for run in told["runs"]] == [
        (2, "ACCEPTED", {"prepared": "bo"}),
        (1, "NEW", {}),
    ]
    assert said(told["decisions"]) == [("accept", "ann", "agreed")]
    assert shown(2)["breaks"] == []
    text = recon("row", "1", "a.csv", "--record", "1").stdout
    assert (
        "ACCEPTED; reconciliations 2 as of 2026-01-31 (ACCEPTED, prepared by bo), 1 as of" in text
    )


@pytest.mark.long
def test_the_trail_of_one_batch_is_listed(
    workspace: Workspace, recon: Recon, tmp_path: Path
) -> None:
    for number in (1, 2):
        import_delivery(workspace, [write(tmp_path / f"{number}.csv", line(number))], DEFAULT)
    events = json.loads(recon("audit", "list", "--batch", "2", "--json").stdout)["events"]
    assert {one["batch_id"] for one in events} == {2}
    assert events[0]["what"] == "batch complete"
    refused = recon("audit", "list", "--batch", "9")
    assert refused.returncode == 2
    assert "There is no batch 9. `recon status` lists the batches." in refused.stderr
