"""The recount: what the target holds of a batch, counted from its own rows, however large it is."""

from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.finish import DOES_NOT_TIE, build_report
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.stages.payments import line, write

ROWS = range(1000, 1010)
BESIDE = {"most of the target": 0, "a small part of the target": 200}
"""Rows of other batches: beside few the target is read, among many each row is looked for."""

ALTERED = {
    "a row removed": 'DELETE FROM payment WHERE "Id" = 1003',
    "all rows removed": 'DELETE FROM payment WHERE "Id" >= 1000',
    "a cent more": 'UPDATE payment SET "PaidAmount" = "PaidAmount" + 0.01 WHERE "Id" = 1003',
    "another currency": 'UPDATE payment SET "CurrenciesId" = 2 WHERE "Id" = 1003',
    "a key moved": 'UPDATE payment SET "Id" = 5000 WHERE "Id" = 1003',
    "two keys moved, their sum the same": """UPDATE payment
        SET "Id" = CASE "Id" WHEN 1003 THEN 5000 ELSE 1003 + 1004 - 5000 END
        WHERE "Id" IN (1003, 1004)""",
    "a row of its own twice, for another": """UPDATE payment SET ("PaidAmount", record_number) =
        (SELECT "PaidAmount", record_number FROM payment WHERE "Id" = 1004) WHERE "Id" = 1003""",
}


@pytest.fixture(params=BESIDE)
def batch(request: pytest.FixtureRequest, workspace: Workspace, tmp_path: Path) -> int:
    """A batch of which every row has an amount of its own, one updates what was there before."""
    beside = BESIDE[request.param]
    others = [line(number) for number in range(beside)]
    import_delivery(workspace, [write(tmp_path / "a" / "a.csv", line(1000), *others)], DEFAULT)
    own = [line(number, amount=f"{number}.25") for number in ROWS]
    return import_delivery(workspace, [write(tmp_path / "b" / "b.csv", *own)], DEFAULT).batch.id


def counted(workspace: Workspace, batch: int) -> tuple[str, list[tuple[str, int]]]:
    with workspace.database.connect() as connection:
        report = build_report(workspace, connection, batch)
    (chain,) = report.chains
    return report.verdict, [(one.stage, one.totals.rows) for one in chain.lines[-2:]]


@pytest.mark.long(but=("most of the target",))
def test_what_was_written_is_held(workspace: Workspace, batch: int) -> None:
    assert counted(workspace, batch) == ("complete", [("written", 10), ("in the database", 10)])


@pytest.mark.long
@pytest.mark.parametrize("how", ALTERED)
def test_a_target_that_was_altered_does_not_tie(workspace: Workspace, batch: int, how: str) -> None:
    with workspace.database.connect() as connection:
        connection.execute(ALTERED[how])
    assert counted(workspace, batch)[0] == DOES_NOT_TIE


@pytest.mark.long
def test_what_a_later_batch_has_written_counts_as_it_was(
    workspace: Workspace, batch: int, tmp_path: Path
) -> None:
    later = [line(1003, amount="7.00"), line(1004, amount=f"{1004}.25")]
    import_delivery(workspace, [write(tmp_path / "c" / "c.csv", *later)], DEFAULT)
    assert counted(workspace, batch) == ("complete", [("written", 10), ("in the database", 10)])


@pytest.mark.long
@pytest.mark.parametrize("how", ALTERED)
def test_what_a_batch_found_there_is_read_back(
    workspace: Workspace, batch: int, tmp_path: Path, how: str
) -> None:
    """It wrote nothing, so that nothing in the target names it."""
    own = [line(number, amount=f"{number}.25") for number in (*ROWS, 2000)]
    again = import_delivery(workspace, [write(tmp_path / "c" / "c.csv", *own)], DEFAULT).batch.id
    assert counted(workspace, again) == ("complete", [("written", 1), ("in the database", 1)])
    with workspace.database.connect() as connection:
        connection.execute(ALTERED[how])
    assert counted(workspace, again)[0] == DOES_NOT_TIE


@pytest.mark.long
def test_what_a_batch_found_there_may_be_written_by_a_later_one(
    workspace: Workspace, tmp_path: Path
) -> None:
    """And is as it was when that is undone; nothing of ours writes it and leaves the writer."""
    for name, amount in (("a", "1"), ("b", "1"), ("c", "2")):
        rows = [line(1, amount=amount), line(ord(name))]
        import_delivery(workspace, [write(tmp_path / f"{name}.csv", *rows)], DEFAULT)
    assert counted(workspace, 2)[0] == "complete"
    undo_batch(workspace, 3, by=None, reason="wrong month")
    assert counted(workspace, 2)[0] == "complete"
    with workspace.database.connect() as connection:
        connection.execute('UPDATE payment SET "PaidAmount" = 3 WHERE "Id" = 1')
    assert counted(workspace, 2)[0] == DOES_NOT_TIE
