"""Killed at any named step and run again: every step that the code names has such a test."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.faults.commands import command
from tests.push.conftest import USER, sandbox_at
from tests.push.deliveries import payments, tones
from tests.service.faulty_server import OK, FaultyServer
from tests.service.faulty_server import status as answer

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL
PROVED_HERE = ("undo", "resolved", "pulled")


def test_every_named_step_has_a_test_that_dies_there() -> None:
    code = [path for room in ("flows", "connectors") for path in (ROOT / room).rglob("*.py")]
    named = {
        step for path in code for step in re.findall(r'\breach\("([\w-]+)"\)', path.read_text())
    }
    assert len(named) > 20
    tests = [
        path.read_text()
        for path in (ROOT / "tests").rglob("*.py")
        if "CRASH_AT" in path.read_text()
    ]
    tested = {step for text in tests for step in re.findall(r'"([\w-]+)(?::\d+)?"', text)}
    tested |= {f"inbox-{step}" for step in tested}
    tested |= {"housekeeping", "rewind"} & tested
    assert sorted(named - tested - set(PROVED_HERE)) == []


@pytest.mark.long
def test_an_undo_that_was_killed_did_nothing(database_url: str, tmp_path: Path, rows: Any) -> None:
    home, asked = tmp_path / "home", ("undo", "1", "--reason", "wrong month")
    assert command(database_url, home, "import", payments(tmp_path / "payments.csv", 9))[0] == 0
    assert command(database_url, home, *asked, CRASH_AT="undo")[0] == KILLED
    assert rows("SELECT count(*) FROM payment") == [(9,)]
    assert command(database_url, home, *asked)[0] == 0
    assert rows("SELECT count(*) FROM payment") == [(0,)]


@pytest.mark.long
def test_a_decision_that_was_killed_stands(database_url: str, tmp_path: Path, rows: Any) -> None:
    home = tmp_path / "home"
    delivery = tones(tmp_path / "tones.csv", 3)
    with FaultyServer(lambda seen: answer(503) if "tone 2" in seen.body else OK) as server:
        service = {
            "RECON_SERVICE_URL": server.url,
            "RECON_SERVICE_FORMAT": "json",
            "RECON_SERVICE_BACKOFF_SECONDS": "0.01",
        }
        assert command(database_url, home, "import", delivery, "--push", **service)[0] == 1
        assert rows("SELECT count(*) FROM send WHERE state = 'in_doubt'") == [(1,)]
        asked = ("resolve", "1", "--state", "in_doubt", "--as", "confirm", "--reason", "seen")
        assert command(database_url, home, *asked, CRASH_AT="resolved", **service)[0] == KILLED
        assert rows("SELECT state FROM batch") == [("merged",)]
        assert command(database_url, home, "rerun", "1", **service)[0] == 0
    assert rows("SELECT DISTINCT state FROM send") == [("acknowledged",)]
    assert rows("SELECT state FROM batch") == [("complete",)]


@pytest.mark.parametrize("listing", ["avatars"])
def test_a_pull_that_was_killed_took_nothing(
    database_url: str, tmp_path: Path, rows: Any, listing: str
) -> None:
    home = tmp_path / "home"
    with sandbox_at(database_url) as (sandbox, url):
        sandbox.load("avatar", ROOT / "data_samples" / "clean" / "avatars.csv")
        service = {
            "RECON_SERVICE_URL": url,
            "RECON_SERVICE_USER": USER.name,
            "RECON_SERVICE_PASSWORD": USER.password,
        }
        asked = ("pull", listing)
        assert command(database_url, home, *asked, CRASH_AT="pulled", **service)[0] == KILLED
        assert rows("SELECT count(*) FROM batch") == [(0,)]
        assert command(database_url, home, *asked, **service)[0] == 0
    assert rows("SELECT state FROM batch") == [("complete",)]
