"""Two and eight runs of one thing at once: one works, the others say who does, with exit code 3."""

from pathlib import Path
from typing import Any

import pytest

from tests.faults.commands import command, ended
from tests.faults.waits import standing, until
from tests.push.deliveries import payments
from tests.recon import Run
from tests.stages.payments import HEADER, line, write

HELD, KILLED = 3, -9


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


@pytest.mark.long
def test_of_two_corrections_of_one_moment_with_one_key_one_wins(
    database_url: str, tmp_path: Path, rows: Any
) -> None:
    """Both are staged, and both are about to look at what the other one has."""
    home = tmp_path / "home"
    bad = write(tmp_path / "a.csv", line(1, amount="x"), line(2, amount="y"))
    assert command(database_url, home, "import", bad)[0] == 1
    for number in (1, 2):
        path = tmp_path / f"repair-{number}.csv"
        path.write_text(f"ReconRow,{HEADER}\n1:{number},{line(9, amount=f'{number}0.00')}\n")
        asked = "import", str(path), "--corrects", "1"
        assert command(database_url, home, *asked, CRASH_AT="stage")[0] == KILLED
    with standing(database_url, "BEFORE INSERT ON recon.outcome") as stand:
        runs = [Run(database_url, home, "rerun", batch) for batch in ("2", "3")]
        until(lambda: stand.waiting() == len(runs))
        stand.let_go()
        codes = [ended(run)[0] for run in runs]
    assert sorted(codes) == [0, 1]
    won, lost = (2, 3) if codes == [0, 1] else (3, 2)
    assert rows('SELECT "Id", "PaidAmount"::text FROM payment') == [(9, f"{won - 1}0.00")]
    told = rows(
        "SELECT error_data::json -> 0 ->> 'ErrorCode', error_data::json -> 0 ->> 'Message' "
        "FROM outcome WHERE batch_id = %s AND verdict = 'rejected'",
        [lost],
    )
    ((code, said),) = told
    assert code == "KeyOfAnother"
    assert f"Line 2 of repair-{won - 1}.csv in batch {won} has the same key" in said
    # It is repaired as any other row then.
    path = tmp_path / "again.csv"
    path.write_text(f"ReconRow,{HEADER}\n{lost}:1,{line(lost - 1, amount='5.00')}\n")
    assert command(database_url, home, "import", str(path), "--corrects", str(lost))[0] == 0
    states = "SELECT state FROM staged_row WHERE batch_id = 1"
    assert rows(states) == [("corrected",), ("corrected",)]


@pytest.mark.long
def test_what_is_staged_and_never_looks_is_met_by_a_repair(
    database_url: str, tmp_path: Path, rows: Any
) -> None:
    """A row of a correction that names none it repairs, and was not checked yet."""
    home = tmp_path / "home"
    texts = {
        "a.csv": f"{HEADER}\n{line(3)}\n{line(2, amount='x')}\n",
        "b.csv": f"ReconRow,{HEADER}\n,{line(1)}\n",
        "c.csv": f"ReconRow,{HEADER}\n1:2,{line(1, amount='77')}\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    def taken(name: str, *more: str, **environment: str) -> int:
        return command(database_url, home, "import", str(tmp_path / name), *more, **environment)[0]

    assert taken("a.csv") == 1
    assert taken("b.csv", "--corrects", "1", CRASH_AT="stage") == KILLED
    assert taken("c.csv", "--corrects", "1") == 1
    told = "SELECT error_data::json -> 0 ->> 'ErrorCode' FROM outcome WHERE batch_id = %s"
    assert rows(told, [3]) == [("KeyOfAnother",)]
    command(database_url, home, "rerun", "2")
    assert ("10.50",) in rows('SELECT "PaidAmount"::text FROM payment WHERE "Id" = 1')
    assert rows("SELECT state FROM staged_row WHERE batch_id = 1 AND record_number = 2") == [
        ("rejected",)
    ]
