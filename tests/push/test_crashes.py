"""Killed at any step of a push and run again: no POST twice, no PUT lost, what is in doubt told."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from connectors.service import ServiceSettings
from flows.stages.workspace import Workspace
from tests.push.conftest import USER
from tests.push.deliveries import payments, row_of, tones
from tests.recon import Run, run
from tests.service.faulty_server import FaultyServer
from tests.service.faulty_server import status as answer

PUTS, POSTS = 600, 60
CONCURRENCY = ServiceSettings().concurrency

# The PUTs come first.
POINTS = [
    "push-plan",
    "push-sending",
    "push-sending:2",
    "push-sending:3",
    "push-sending:5",
    "push-sent",
    f"push-sent:{PUTS // 2}",
    f"push-sent:{PUTS}",
    f"push-sent:{PUTS + 1}",
    f"push-sent:{PUTS + POSTS // 2}",
    f"push-sent:{PUTS + POSTS}",
    "push-recorded",
    "push-recorded:2",
    "push-recorded:7",
    "report",
    "finish",
]


@pytest.fixture(scope="module")
def delivery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("delivery")
    payments(folder / "payments.csv", PUTS)
    tones(folder / "tones.csv", POSTS)
    return folder


def recon(
    workspace: Workspace, url: str, *arguments: str, crash_at: str = ""
) -> subprocess.CompletedProcess[str]:
    assert workspace.settings.database_url is not None
    known = {
        "RECON_SERVICE_URL": url,
        "RECON_SERVICE_FORMAT": "json",
        "RECON_SERVICE_USER": USER.name,
        "RECON_SERVICE_PASSWORD": USER.password,
        "CRASH_AT": crash_at,
    }
    settings = workspace.settings
    return run(settings.database_url, settings.home, *arguments, **known)


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_push_goes_on(workspace: Workspace, rows: Any, delivery: Path, point: str) -> None:
    command = ("import", str(delivery), "--push")
    with FaultyServer() as server:
        killed = recon(workspace, server.url, *command, crash_at=point)
        assert killed.returncode == -signal.SIGKILL, (point, killed.stderr)
        unanswered = _posts(rows, "sending")
        again = recon(workspace, server.url, *command)
    doubtful = _posts(rows, "in_doubt")
    assert again.returncode == (1 if doubtful else 0), (point, again.stderr)
    assert doubtful == unanswered
    # On the wire, claimed next, and answered but not yet written down.
    assert len(doubtful) <= 3 * CONCURRENCY
    posts = _bodies(server, "POST")
    assert all(len(bodies) == 1 for bodies in posts.values()), point
    assert set(range(1, POSTS + 1)) - doubtful <= set(posts), point
    puts = _bodies(server, "PUT")
    assert set(puts) == set(range(1, PUTS + 1)), point
    assert all(len(set(bodies)) == 1 for bodies in puts.values()), point
    assert rows("SELECT count(*) FROM send WHERE state NOT IN ('acknowledged', 'in_doubt')") == [
        (0,)
    ]
    assert rows("SELECT state FROM batch") == [
        ("complete_with_errors" if doubtful else "complete",)
    ]


def test_a_service_that_refuses_us_is_told_by_the_exit_code(
    workspace: Workspace, delivery: Path
) -> None:
    with FaultyServer(lambda seen: answer(401)) as server:
        stopped = recon(workspace, server.url, "import", str(delivery), "--push")
        assert stopped.returncode == 2
        assert f"{PUTS + POSTS} rows of batch 1 are unsent" in stopped.stderr
        assert USER.password not in stopped.stderr + stopped.stdout
        assert len(server.requests) <= CONCURRENCY
        waiting = recon(workspace, server.url, "status")
    assert "recon push 1" in waiting.stdout


@pytest.mark.long
def test_eight_pushes_at_once_are_one(workspace: Workspace, rows: Any, delivery: Path) -> None:
    with FaultyServer() as server:
        assert recon(workspace, server.url, "import", str(delivery)).returncode == 0
        assert workspace.settings.database_url is not None
        settings = workspace.settings
        service = {"RECON_SERVICE_URL": server.url, "RECON_SERVICE_FORMAT": "json"}
        runs = [Run(settings.database_url, settings.home, "push", "1", **service) for _ in range(8)]
        codes = [(one.communicate()[1], one.returncode) for one in runs]
    assert {code for _, code in codes} <= {0, 3}, codes
    assert 0 in {code for _, code in codes}
    assert all("is being worked on by" in told for told, code in codes if code == 3)
    assert all(len(bodies) == 1 for bodies in _bodies(server, "POST").values())
    assert rows("SELECT DISTINCT state FROM send") == [("acknowledged",)]


def _posts(rows: Any, state: str) -> set[int]:
    return {
        number
        for (number,) in rows(
            "SELECT record_number FROM send WHERE state = %s AND operation = 'AddMessageTone'",
            [state],
        )
    }


def _bodies(server: FaultyServer, method: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for effect in server.effects:
        if effect.method == method:
            found.setdefault(row_of(effect.body), []).append(effect.body)
    return found
