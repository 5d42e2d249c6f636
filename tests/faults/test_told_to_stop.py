"""SIGTERM, a second one, Ctrl-C: a command stops in order, says so, and goes on when run again."""

import signal
import time
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.faults.commands import command, ended
from tests.faults.waits import standing, until
from tests.push.deliveries import tones
from tests.recon import Run
from tests.service.faulty_server import OK, FaultyServer, Reply, Seen
from tests.stages.payments import line, write

STOPPED = 130
DEADLINE = 30
"""Seconds that a command may take to end what it has under way."""
ROWS = 2_000
PLACES = {
    "stage": "BEFORE INSERT ON recon.staged_payment",
    "check": "BEFORE INSERT ON recon.outcome",
    "apply": "BEFORE INSERT ON recon.payment",
    "undo": "BEFORE DELETE ON recon.payment",
}


@pytest.fixture
def delivery(tmp_path: Path) -> str:
    lines = [line(number) for number in range(1, ROWS + 1)]
    return write(tmp_path / "payments.csv", *lines, line(1))


@pytest.mark.long(but=("stage-signals0",))
@pytest.mark.parametrize(
    ("place", "signals"),
    [
        ("stage", ["INT"]),
        ("apply", ["TERM"]),
        ("stage", ["TERM"]),
        ("stage", ["TERM", "TERM"]),
        ("stage", ["INT", "INT"]),
        ("check", ["TERM"]),
        ("check", ["INT"]),
        ("apply", ["INT"]),
        ("apply", ["TERM", "TERM"]),
        ("apply", ["INT", "INT"]),
        ("undo", ["TERM"]),
        ("undo", ["INT"]),
    ],
)
def test_it_stops_and_goes_on(
    database_url: str, tmp_path: Path, delivery: str, place: str, signals: list[str]
) -> None:
    home = tmp_path / "home"
    asked = ("import", delivery)
    if place == "undo":
        assert command(database_url, home, *asked)[0] == 0
        asked = ("undo", "1", "--reason", "wrong")
    with standing(database_url, PLACES[place]) as stand, ExitStack() as opened:
        run = opened.enter_context(Run(database_url, home, *asked))
        opened.callback(run.kill)
        until(lambda: run.poll() is not None or stand.reached())
        before = time.monotonic()
        for name in signals:
            run.send_signal(signal.Signals[f"SIG{name}"])
        code, told = ended(run)
        assert code == STOPPED, told
        assert len(signals) == 2 or "stopped" in told
        # The deadline is the product's promise; a stand is only left by stopping.
        assert time.monotonic() - before < 2 * DEADLINE
        until(lambda: not stand.reached())
        stand.let_go()
    assert command(database_url, home, *asked)[0] == 0
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT count(*) FROM recon.payment").fetchone()
        assert rows == (0 if place == "undo" else ROWS,)
        states = connection.execute("SELECT state FROM recon.batch").fetchall()
        assert states == [("undone" if place == "undo" else "complete",)]


@pytest.mark.long
@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_push_that_is_stopped_sends_no_post_twice(
    database_url: str, tmp_path: Path, name: str
) -> None:
    stopped_at, count = 30, 60

    def plan(seen: Seen) -> Reply:
        if len(server.effects) == stopped_at:
            run.send_signal(signal.Signals[f"SIG{name}"])
        return OK

    home, asked = tmp_path / "home", ("push", "1")
    assert command(database_url, home, "import", tones(tmp_path / "tones.csv", count))[0] == 0
    with FaultyServer(plan) as server:
        service = {"RECON_SERVICE_URL": server.url, "RECON_SERVICE_FORMAT": "json"}
        run = Run(database_url, home, *asked, **service)
        code, told = ended(run)
        assert code == STOPPED, told
        again, _ = command(database_url, home, *asked, **service)
    assert server.twice() == []
    with psycopg.connect(database_url) as connection:
        states = dict(
            connection.execute("SELECT state, count(*) FROM recon.send GROUP BY 1").fetchall()
        )
    assert set(states) <= {"acknowledged", "in_doubt"}
    assert sum(states.values()) == count
    assert again == (1 if "in_doubt" in states else 0)
    assert len(server.effects) + states.get("in_doubt", 0) >= count


SAME = "run the same command again."
GOES_ON = "`recon rerun 1` goes on."


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "asked", "place", "told"),
    [
        pytest.param(
            [], "import {delivery}", "BEFORE INSERT ON recon.batch", SAME,
            id="an import before its batch",
        ),
        pytest.param(
            [], "import {delivery}", "BEFORE INSERT ON recon.staged_payment", GOES_ON,
            id="an import of its batch",
        ),
        pytest.param(
            [], "watch {inbox} --every 0 --settle 0 --once", "BEFORE INSERT ON recon.batch", SAME,
            id="a watch before a batch",
        ),
        pytest.param(
            [], "watch {inbox} --every 0 --settle 0 --once", "BEFORE INSERT ON recon.payment",
            GOES_ON, id="a watch of a batch",
        ),
        pytest.param(
            ["import {delivery} --max-errors 0"], "release 1 --reason known",
            "BEFORE UPDATE ON recon.batch", SAME, id="a release before it is decided",
        ),
        pytest.param(
            ["import {delivery} --max-errors 0"], "release 1 --reason known",
            "BEFORE INSERT ON recon.payment", GOES_ON, id="a release that is decided",
        ),
    ],
)  # fmt: skip
def test_what_it_says_goes_on_goes_on(
    database_url: str, tmp_path: Path, before: list[str], asked: str, place: str, told: str
) -> None:
    """`recon rerun` without a batch, or a release of one that is not held any more, does not."""
    inbox = tmp_path / "inbox"
    delivery = write(inbox / "payments.csv", line(1), line(2, amount="ten"))
    home, fill = tmp_path / "home", {"delivery": delivery, "inbox": inbox}
    for one in before:
        command(database_url, home, *one.format(**fill).split())
    words = asked.format(**fill).split()
    with standing(database_url, place) as stand, ExitStack() as opened:
        run = opened.enter_context(Run(database_url, home, *words))
        opened.callback(run.kill)
        until(lambda: run.poll() is not None or stand.reached())
        run.send_signal(signal.SIGINT)
        assert ended(run) == (STOPPED, f"recon: stopped. What was done before stands; {told}\n")
        until(lambda: not stand.reached())
        stand.let_go()
    way_on = words if told == SAME else told.split("`")[1].split()[1:]
    code, said = command(database_url, home, *way_on)
    assert code == 1, said
    with psycopg.connect(database_url) as connection:
        states = connection.execute("SELECT state FROM recon.batch").fetchall()
        assert states == [("complete_with_errors",)]
        assert connection.execute('SELECT "Id" FROM recon.payment').fetchall() == [(1,)]
