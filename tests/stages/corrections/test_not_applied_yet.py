"""A batch of which no row is applied is not corrected, and repairs nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError, CorrectionError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from flows.stages.receive import archived
from flows.stages.receiving.terms import StatedTerms
from flows.stages.rewind import rewind_batch
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import (
    discard_batch,
    import_delivery,
    look,
    release_batch,
    run_batch,
)
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.conftest import Once
from tests.stages.payments import HEADER, line, write
from tests.stages.corrections.test_corrected import REPAIRS, states

STRICT = replace(DEFAULT, budget_errors=0)


@pytest.fixture
def held(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    """Batch 1 is held: one good row, one in error."""

    def build() -> None:
        lines = line(1, amount="100"), line(2, amount="x")
        import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], STRICT)

    return once(build)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (State.HELD, "Batch 1 is held: .* Release it first .* or discard it"),
        (State.RECEIVED, "Batch 1 is received: .* `recon rerun 1` brings it to its end"),
        (State.STAGED, "Batch 1 is staged"),
        (State.CHECKED, "Batch 1 is checked"),
    ],
)
def test_what_is_not_applied_is_not_corrected(
    held: Workspace, rows: Any, tmp_path: Path, state: State, told: str
) -> None:
    """Its rows would go over those that repaired them."""
    with held.database.connect() as connection:
        connection.execute("UPDATE batch SET state = %s", [state])
    whole = write(tmp_path / "b.csv", line(1, amount="90"), line(2, amount="90"))
    with pytest.raises(CorrectionError, match=told):
        import_delivery(held, [whole], DEFAULT, corrects=1)
    assert rows("SELECT id FROM batch") == [(1,)]


def test_one_that_is_undone_meanwhile_is_not_corrected(
    held: Workspace, rows: Any, tmp_path: Path
) -> None:
    release_batch(held, 1, by=None, reason="a test")
    path = write(tmp_path / "b.csv", line(2))
    delivery = archived(held, [path], StatedTerms(corrects=1))
    undo_batch(held, 1, by=None, reason="a test")
    with held.database.connect() as connection, pytest.raises(CorrectionError, match="was undone"):
        delivery.register(connection)
    assert rows("SELECT id FROM batch") == [(1,)]


def test_a_correction_that_an_earlier_version_took_keeps_its_batch(
    held: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Without the batch it would be nobody's correction; applied, it would go over its repairs."""
    import_delivery(held, [write(tmp_path / "b.csv", line(2))], DEFAULT)
    with held.database.connect() as connection:
        connection.execute("UPDATE batch SET corrects = 1 WHERE id = 2")
    with pytest.raises(BatchStateError, match="cannot be released: batch 2 corrects it"):
        release_batch(held, 1, by=None, reason="a test")
    with pytest.raises(BatchStateError, match="cannot be discarded: batch 2 corrects it"):
        discard_batch(held, 1, by=None, reason="a test")
    with pytest.raises(BatchStateError, match="cannot be read from the start: batch 2 corrects"):
        rewind_batch(held, 1)
    assert rows("SELECT state FROM batch ORDER BY id") == [("held",), ("complete",)]
    with held.database.connect() as connection:
        connection.execute("UPDATE batch SET state = 'checked' WHERE id = 1")
    with pytest.raises(BatchStateError, match="cannot be applied: batch 2 corrects it"):
        run_batch(held, 1)
    assert rows('SELECT "Id", batch_id FROM payment') == [(2, 2)]
    with held.database.connect() as connection:
        connection.execute("UPDATE batch SET state = 'held' WHERE id = 1")
    undo_batch(held, 2, by=None, reason="a test")
    discard_batch(held, 1, by=None, reason="a test")


@pytest.mark.long
@pytest.mark.parametrize("decided", ["discarded", "released"])
def test_a_repair_counts_once_its_batch_is_applied(
    workspace: Workspace, rows: Any, tmp_path: Path, decided: str
) -> None:
    """What a check says of a row stands before anybody decides whether its batch is applied."""
    feed = replace(DEFAULT, leave_out={"DebtsId": ("99",)})
    wrong = [line(number, amount="x") for number in (2, 3, 4)]
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1), *wrong)], feed)
    before = {1: "inserted", 2: "rejected", 3: "rejected", 4: "rejected"}
    assert states(rows) == before

    def repair(name: str, profile: Any, *lines: str) -> State:
        path = tmp_path / name
        path.write_text("\n".join([REPAIRS, *lines]) + "\n")
        return import_delivery(workspace, [str(path)], profile, corrects=1).batch.state

    left_out = f"1:2,{line(2)}".replace(",1,2,2026", ",1,99,2026")
    strict = replace(feed, budget_errors=0)
    assert repair("b.csv", strict, left_out, f"1:3,{line(3, amount='y')}") is State.HELD
    assert states(rows, 2) == {1: "excluded", 2: "rejected"}
    repair("c.csv", feed, f"1:4,{line(4)}")
    assert states(rows) == before | {4: "corrected"}
    assert look(workspace, 1).report.errors == 2

    if decided == "released":
        release_batch(workspace, 2, by=None, reason="a test")
        assert states(rows) == before | {2: "corrected", 4: "corrected"}
        return
    discard_batch(workspace, 2, by=None, reason="a test")
    assert states(rows) == before | {4: "corrected"}
    ((path, offered),) = write_rejects(workspace, 1, tmp_path / "out", with_secrets=False).items()
    assert offered == 2
    assert [row.split(",")[0] for row in path.read_text().splitlines()[1:]] == ["1:2", "1:3"]


@pytest.mark.long
def test_what_an_earlier_version_took_for_repaired_is_in_error_once_that_is_discarded(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(2, amount="x"))], DEFAULT)
    path = tmp_path / "b.csv"
    path.write_text(f"{REPAIRS}\n1:1,{line(2)}\n,{HEADER}\n")
    import_delivery(workspace, [str(path)], STRICT, corrects=1)
    with workspace.database.connect() as connection:
        connection.execute("INSERT INTO outcome VALUES (1, 1, 1, 'corrected', NULL)")
    assert states(rows) == {1: "corrected"}
    discard_batch(workspace, 2, by=None, reason="a test")
    assert states(rows) == {1: "rejected"}
