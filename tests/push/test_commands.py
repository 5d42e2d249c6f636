"""`recon push`, `sends`, `resolve` and `pull` as people and scripts call them."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.stages.workspace import Workspace
from tests.push.conftest import USER, sandbox_at
from tests.push.deliveries import tones
from tests.push.test_crashes import recon
from tests.service.faulty_server import DROPPED, FaultyServer, Plan, Reply, Seen, status

SAMPLES = Path(__file__).parents[2] / "data_samples"
COMPLAINT = {
    "ErrorCode": "NotEmpty",
    "FieldName": "Name",
    "Message": "'Name' should not be empty.",
    "Meta": {},
}


def plan(**faults: Reply) -> Plan:
    """By the name of the tone, at the first attempt."""

    def decide(seen: Seen) -> Reply:
        name = json.loads(seen.body)["Name"].replace(" ", "_")
        return faults.get(name, Reply()) if seen.attempt == 1 else Reply()

    return decide


def test_from_import_to_the_last_decision(workspace: Workspace, tmp_path: Path) -> None:
    path = tones(tmp_path / "tones.csv", 4)
    faults = plan(tone_2=DROPPED, tone_3=status(400, errors=[COMPLAINT]))
    with FaultyServer(faults) as server:

        def run(*arguments: str) -> Any:
            return recon(workspace, server.url, *arguments)

        assert run("import", path).returncode == 0
        assert server.requests == []
        pushed = run("push", "1", "--json")
        assert pushed.returncode == 1, pushed.stderr
        (batch,) = json.loads(pushed.stdout)["batches"]
        assert batch["pushed"] == {
            "AddMessageTone": {"acknowledged": 2, "refused": 1, "in_doubt": 1}
        }
        assert {(one["ErrorCode"], one["rows"]) for one in batch["reasons"]} >= {("NotEmpty", 1)}
        listed = run("sends", "1", "--state", "in_doubt", "--state", "refused", "--json")
        told = json.loads(listed.stdout)
        assert told["not_listed"] == {}
        sends = told["sends"]
        assert [
            (one["file"], one["record_number"], one["line"], one["state"]) for one in sends
        ] == [
            ("tones.csv", 2, 3, "in_doubt"),
            ("tones.csv", 3, 4, "refused"),
        ]
        assert json.loads(listed.stdout)["not_listed"] == {}
        assert "no more" not in run("sends", "1").stdout
        shown = run("sends", "1", "--row", "tones.csv:record:2")
        assert "tones.csv:line:3 (record 2) AddMessageTone in doubt" in shown.stdout
        assert sends[0]["push_key"] in shown.stdout
        assert run("push").returncode == 0
        resent = run(
            "resolve", "1", "--state", "in_doubt", "--as", "resend", "--reason", "not there"
        )
        assert resent.returncode == 1, resent.stderr
        assert "1 row of batch 1: resend. `recon push 1` sends them." in resent.stdout
        given_up = run(
            *("resolve", "1", "--row", "tones.csv:line:4", "--as", "abandon", "--reason", "typo"),
            *("--by", "A. Meyer", "--json"),
        )
        assert json.loads(given_up.stdout)["resolved"]["counts"] == {
            "AddMessageTone": {"refused": 1}
        }
        last = run("push")
        assert "3 acknowledged" not in last.stderr
        assert last.returncode == 1
        assert "At the service".upper() in last.stdout
        assert len(server.effects) == 3
        assert run("push").stdout == "Nothing is unsent.\n"


@pytest.mark.long(
    but=(
        "arguments4-2-Its files: tones.csv",
        "arguments8-2-Say which rows",
    )
)
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("push", "7"), 2, "There is no batch 7"),
        (("sends", "7"), 2, "There is no batch 7"),
        (("sends", "1", "--operation", "EditAll"), 2, "no operation 'EditAll'"),
        (("sends", "1", "--state", "lost"), 2, "is no state of a send"),
        (("sends", "1", "--row", "other.csv:record:1"), 2, "Its files: tones.csv"),
        (("sends", "1", "--row", "tones.csv:1"), 2, "tones.csv:line:1 or tones.csv:record:1"),
        (("sends", "1", "--row", "tones.csv:line:1"), 2, "recon row 1 tones.csv --line 1"),
        (("sends", "1", "--row", "tones.csv"), 2, "is no FILE:line:LINE"),
        (("resolve", "1", "--as", "confirm", "--reason", "x"), 2, "Say which rows"),
        (
            ("resolve", "1", "--state", "in_doubt", "--as", "confirm", "--reason", "x"),
            2,
            "nothing was changed",
        ),
        (("pull", "payments"), 2, "There is no listing 'payments'"),
        (("pull", "avatars", "--compare"), 2, "reads insert_batch_data only, and not 'avatars'"),
        (
            ("pull", "avatars"),
            2,
            "Once the service gives it whole, pull it again: recon pull avatars",
        ),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    workspace: Workspace, rows: Any, tmp_path: Path, arguments: Any, code: int, told: str
) -> None:
    from connectors.files.profiles.profile import DEFAULT
    from flows.stages.sequence import import_delivery

    import_delivery(workspace, [tones(tmp_path / "tones.csv", 1)], DEFAULT)
    run = recon(workspace, "http://127.0.0.1:9", *arguments)
    assert (run.returncode, told in run.stderr) == (code, True), run.stderr
    assert USER.password not in run.stderr
    assert rows("SELECT count(*) FROM send") == [(0,)]


@pytest.mark.long
def test_listings_are_pulled_and_compared(
    workspace: Workspace, rows: Any, database_url: str
) -> None:
    with sandbox_at(database_url) as (sandbox, url):
        sandbox.load("avatar", SAMPLES / "clean" / "avatars.csv")
        pulled = recon(workspace, url, "pull", "avatars", "avatars", "--json")
        assert pulled.returncode == 0, pulled.stderr
        (listing,) = json.loads(pulled.stdout)["listings"]
        assert (listing["name"], listing["rows"]) == ("avatars", 15)
        again = recon(workspace, url, "pull", "avatars")
        assert "was taken in batch 1" in again.stdout
        compared = recon(workspace, url, "pull", "--compare")
        assert compared.returncode == 0
        assert compared.stdout.startswith("The service lists no insert-batch data, and none was")
    assert rows("SELECT count(*) FROM avatar") == [(0,)]
