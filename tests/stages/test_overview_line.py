"""`recon status`: one of something is no plural, columns stay in line, and a cut list says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.commands.batches import overview_line
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.recon import run
from tests.stages.payments import line as payment
from tests.stages.payments import write


@pytest.mark.parametrize("number", [0, 1, 2, 1000])
def test_one_of_something_is_no_plural(number: int) -> None:
    line = overview_line(
        {"batch": 1, "opened": "2026-01-01", "state": "complete", "next": "nothing"}
        | dict.fromkeys(("files", "rows", "errors"), number)
    )
    assert len(line) == len("     1  2026-01-01  complete              ") + 53
    ending = "" if number == 1 else "s"
    for noun in ("file", "row", "error"):
        assert f" {number:,} {noun}{ending} " in line


@pytest.mark.long
def test_a_list_of_the_latest_says_that_there_are_older_ones(
    workspace: Workspace, tmp_path: Path
) -> None:
    for number in (1, 2):
        path = write(tmp_path / f"{number}.csv", payment(number))
        import_delivery(workspace, [path], DEFAULT)

    def told(*command: str) -> str:
        url = str(workspace.settings.database_url)
        return run(url, workspace.settings.home, *command).stdout

    def whole(*command: str) -> Any:
        return json.loads(told(*command, "--json"))

    older = "There are older ones: --most 2 lists more."
    for command, name in (("status", "batches"), ("audit list", "events")):
        asked = command.split()
        assert told(*asked, "--most", "1").splitlines()[-1] == older
        cut = whole(*asked, "--most", "1")
        assert (len(cut[name]), cut["older"]) == (1, True)
        every = whole(*asked)
        assert (len(every[name]) > 1, every["older"]) == (True, False)
        assert "older ones" not in told(*asked)
