"""Two and eight runs of one thing at once: one works, the others say who does, with exit code 3."""

from pathlib import Path
from typing import Any

import pytest

from tests.faults.commands import command, ended
from tests.faults.waits import standing, until
from tests.push.deliveries import payments
from tests.recon import Run

HELD = 3


@pytest.mark.long(but=("undo-2",))
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize(
    ("asked", "when", "said"),
    [
        (("reconcile", "--as-of", "2026-03-31"), "recon.reconciliation", "the same scope"),
        (("undo", "1", "--reason", "wrong"), "recon.payment", "is being worked on by"),
    ],
    ids=["reconcile", "undo"],
)
def test_one_works_and_the_others_say_so(
    database_url: str,
    tmp_path: Path,
    rows: Any,
    asked: tuple[str, ...],
    when: str,
    said: str,
    count: int,
) -> None:
    home = tmp_path / "home"
    assert command(database_url, home, "import", payments(tmp_path / "payments.csv", 20))[0] == 0
    verb = "DELETE" if asked[0] == "undo" else "INSERT"
    with standing(database_url, f"BEFORE {verb} ON {when}") as stand:
        first = Run(database_url, home, *asked)
        until(lambda: first.poll() is not None or stand.reached())
        others = [Run(database_url, home, *asked) for _ in range(count - 1)]
        for code, told in map(ended, others):
            assert code == HELD, told
            assert said in told
        stand.let_go()
        assert ended(first)[0] == (0 if asked[0] == "undo" else 1)
    if asked[0] == "undo":
        assert rows("SELECT state FROM batch") == [("undone",)]
        assert rows("SELECT count(*) FROM event WHERE what = 'undo'") == [(1,)]
    else:
        assert rows("SELECT count(*) FROM reconciliation") == [(1,)]
