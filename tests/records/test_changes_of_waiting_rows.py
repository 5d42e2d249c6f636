"""A record kind is defined otherwise while rows of it wait: what would be made of them."""

from pathlib import Path
from typing import Any

import pytest

from tests.records.test_own_kinds import REFERENCE, REFUND, ROWS, TOP, Run, define, write
from tests.records.test_own_kinds import run as run  # noqa: PLC0414 -- the fixture.

VERSION = "version = true\n"
ROUND = '\n[fields.Round]\ntype = "integer"\nrequired = true\n'
BY_TIME = REFUND + ROUND
BY_ROUND = REFUND.replace(VERSION, "") + ROUND + VERSION
LAST_WINS = 'feed = "careful"\n[policy]\nduplicate = "last_wins"\n[budget]\nerrors = 0\n'


@pytest.mark.long
def test_what_tells_the_newer_row_stays_while_rows_wait_that_were_told_apart_by_it(
    run: Run, rows: Any, tmp_path: Path
) -> None:
    """Else the older one of a delivery, by either definition, becomes the record."""
    define(tmp_path, BY_TIME)
    (tmp_path / "careful.toml").write_text(LAST_WINS)
    late = "2,7,1,1,1,2026-01-06T10:00:00Z,newer by time,1"
    soon = "2,7,1,2,1,2026-01-05T10:00:00Z,newer by round,2"
    delivered = write(tmp_path, late, soon, f"3{soon[1:].replace('1,2,1', '1,two,1')}",
                      top=f"{TOP},Round")  # fmt: skip
    assert run("import", delivered, "--profile", str(tmp_path / "careful.toml")).returncode == 1
    assert rows("SELECT state FROM batch") == [("held",)]
    define(tmp_path, BY_ROUND)
    done = run("release", "1", "--reason", "known")
    assert (done.returncode, rows('SELECT "Reason" FROM refund')) == (2, [])
    file = tmp_path / "records" / "refund.toml"
    for said in ("RefundedAt told which of two versions is newer", "Round did not tell which"):
        about = f"{file}: the record kind refund is defined otherwise than in the database"
        assert f"{about}: {said}" in done.stderr
    assert done.stderr.count("batch 1 has waiting rows that were checked by the former") == 2
    define(tmp_path, BY_TIME)
    assert run("release", "1", "--reason", "known").returncode == 1
    assert rows('SELECT "Reason" FROM refund') == [("newer by time",)]
    # None waits any more.
    define(tmp_path, BY_ROUND)
    again = write(tmp_path, soon.replace("2,1,2026", "5,1,2026"), top=f"{TOP},Round", name="b.csv")
    done = run("import", again)
    assert done.returncode == 0, done.stderr
    assert rows('SELECT "Reason", "Amount"::text FROM refund') == [("newer by round", "5")]


@pytest.mark.long
def test_rows_refer_to_what_they_were_checked_by(run: Run, rows: Any, tmp_path: Path) -> None:
    """Else a record refers to nothing although its feed rejects such rows."""
    define(tmp_path, REFUND.replace(REFERENCE, ""))
    (tmp_path / "careful.toml").write_text(
        'feed = "careful"\n[policy]\nreference = "reject"\n[budget]\nerrors = 0\n'
    )
    delivered = write(tmp_path, *ROWS)
    assert run("import", delivered, "--profile", str(tmp_path / "careful.toml")).returncode == 1
    assert rows("SELECT state FROM batch") == [("held",)]
    define(tmp_path, REFUND)
    done = run("release", "1", "--reason", "known")
    assert (done.returncode, rows("SELECT count(*) FROM refund")) == (2, [(0,)])
    assert (
        "PaymentsId did not refer to payment.Id; batch 1 has waiting rows that were" in done.stderr
    )
    assert run("discard", "1", "--reason", "known").returncode == 2
    define(tmp_path, REFUND.replace(REFERENCE, ""))
    assert run("discard", "1", "--reason", "to be checked").returncode == 0
    define(tmp_path, REFUND)
    assert run("import", delivered, "--profile", str(tmp_path / "careful.toml")).returncode == 1
    held = rows("SELECT held_because FROM batch WHERE id = 2")
    assert held == [("3 of 3 rows have errors; the budget allows 0 rows",)]


SCORE = '\n[fields.Score]\ntype = "integer"\n'
SCORED = f"{TOP},Score"
CLEAN = "1,7,1,10.50,1,2026-01-05T10:00:00Z,broken,"
ASIDE = {
    # what stands there: row
    "a value that is none": f"2{CLEAN[1:]}high",
    "a value beside another fault": f"2{CLEAN[1:]}5".replace("10.50", "ten"),
    "a line without cells": f"2{CLEAN[1:]}high,too",
}


@pytest.mark.long
@pytest.mark.parametrize("row", ASIDE.values(), ids=ASIDE)
def test_a_field_stays_while_a_row_in_error_has_something_in_it(
    run: Run, rows: Any, tmp_path: Path, row: str
) -> None:
    """Else it cannot be corrected as its file has it."""
    define(tmp_path, REFUND + SCORE)
    assert run("import", write(tmp_path, CLEAN, row, top=SCORED)).returncode == 1
    define(tmp_path, REFUND)
    done = run("status")
    assert (done.returncode, rows("SELECT count(*) FROM refund")) == (2, [(1,)])
    assert "it had the field Score; " in done.stderr
    if "high" in row:
        assert "record 2 of refunds.csv, batch 1, is in error" in done.stderr
    define(tmp_path, REFUND + SCORE)
    assert run("rejects", "1", "--out", str(tmp_path / "rejects")).returncode == 0
    (rejects,) = (tmp_path / "rejects").glob("*.csv")
    rejects.write_text(
        rejects.read_text().replace("high", "").replace(",too", "").replace("ten", "10.50")
    )
    done = run("import", str(rejects), "--corrects", "1")
    assert done.returncode == 0, done.stdout
    define(tmp_path, REFUND)
    # What was corrected to nothing is no value.
    assert run("status").returncode == (0 if "high" in row else 2)


@pytest.mark.long
def test_a_row_in_error_of_a_batch_that_was_undone_keeps_no_field(
    run: Run, rows: Any, tmp_path: Path
) -> None:
    define(tmp_path, REFUND + SCORE)
    row = ASIDE["a value that is none"]
    assert run("import", write(tmp_path, row, top=SCORED)).returncode == 1
    assert run("undo", "1", "--reason", "test").returncode == 0
    define(tmp_path, REFUND)
    done = run("status")
    assert done.returncode == 0, done.stderr
