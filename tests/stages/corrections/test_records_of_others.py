"""A repair with the key of a record of another delivery is told, and changes nothing by itself."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import CorrectionError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from flows.stages.sequence import Ended, import_delivery, release_batch
from flows.stages.workspace import Workspace
from tests.conftest import Once
from tests.recon import run
from tests.stages.payments import HEADER, line, write
from tests.stages.corrections.test_corrected import REPAIRS, states, why

CHANGE = replace(DEFAULT, change_records=True)
UNREADABLE = line(9).replace("9,", "nine,", 1)


@pytest.fixture
def theirs(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    """Batch 1 with two rows in error, one by its key; batch 2 of another delivery."""

    def build() -> None:
        lines = line(1), line(2, amount="ten"), UNREADABLE
        import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT)
        import_delivery(workspace, [write(tmp_path / "b.csv", line(2), line(9))], DEFAULT)

    return once(build)


def repair(workspace: Workspace, path: Path, corrects: int, *rows: str, change: bool) -> Ended:
    path.write_text("\n".join([REPAIRS, *rows]) + "\n")
    profile = CHANGE if change else DEFAULT
    return import_delivery(workspace, [str(path)], profile, corrects=corrects)


@pytest.mark.long
@pytest.mark.parametrize(
    ("row", "alone", "flagged"),
    [
        (f"1:2,{line(9, amount='77')}", "rejected", "updated"),
        (f"1:2,{line(9)}", "unchanged", "unchanged"),  # The same content is no harm.
        (f"1:2,{line(2, amount='77')}", "updated", "updated"),  # Its own key.
        (f"1:2,{line(5, amount='77')}", "inserted", "inserted"),  # Nobody's.
        (f"1:3,{line(9, amount='77')}", "rejected", "updated"),  # What key it had nobody knows.
        (f",{line(9, amount='77')}", "updated", "updated"),  # It says that it is this record.
    ],
)
@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("policy", ["conflict", "last_wins"])
def test_what_a_repair_may_change(
    theirs: Workspace,
    rows: Any,
    tmp_path: Path,
    row: str,
    alone: str,
    flagged: str,
    change: bool,
    policy: str,
) -> None:
    if policy == "last_wins":
        with theirs.database.connect() as connection:
            connection.execute(
                "UPDATE batch SET profile = jsonb_set(profile::jsonb, '{duplicate}', %s)::text",
                ['"last_wins"'],
            )
    repair(theirs, tmp_path / "r.csv", 1, row, change=change)
    expected = flagged if change else alone
    assert states(rows, 3) == {1: expected}
    amounts = dict(rows('SELECT "Id", "PaidAmount"::text FROM payment'))
    key = int(row.partition(",")[2].partition(",")[0])
    new = "10.50" if "77" not in row or expected == "rejected" else "77"
    assert amounts == {1: "10.50", 2: "10.50", 9: "10.50"} | {key: new}
    assert (states(rows)[2 if row.startswith("1:2") else 3] == "corrected") == (
        expected != "rejected" and row[0] != ","
    )


def test_it_is_told_where_both_are(theirs: Workspace, rows: Any, tmp_path: Path) -> None:
    ended = repair(theirs, tmp_path / "r.csv", 1, f"1:2,{line(9, amount='77')}", change=False)
    assert ended.batch.state is State.COMPLETE_WITH_ERRORS
    assert why(rows, 3) == [
        (
            1,
            "RecordOfAnother",
            "Record 2 of b.csv in batch 2 has the same key (9, 7) with other content. It is of "
            "another delivery, and record 2 of a.csv in batch 1, which this one repairs, does not "
            "have this key.",
        )
    ]


@pytest.mark.long
@pytest.mark.parametrize("change", [False, True])
def test_a_record_that_came_while_a_repair_was_held_is_told_too(
    theirs: Workspace, rows: Any, tmp_path: Path, change: bool
) -> None:
    held = replace(CHANGE if change else DEFAULT, budget_errors=0)
    path = tmp_path / "r.csv"
    path.write_text(f"{REPAIRS}\n1:2,{line(7, amount='77')}\n1:3,{line(5, amount='x')}\n")
    assert import_delivery(theirs, [str(path)], held, corrects=1).batch.state is State.HELD
    import_delivery(theirs, [write(tmp_path / "c.csv", line(7))], DEFAULT)
    ended = release_batch(theirs, 3, by="Ann", reason="seen")
    assert ended.batch.state is State.COMPLETE_WITH_ERRORS
    assert states(rows, 3) == {1: "updated" if change else "rejected", 2: "rejected"}
    amount = rows('SELECT "PaidAmount"::text FROM payment WHERE "Id" = 7')
    assert amount == [("77" if change else "10.50",)]
    if not change:
        assert [code for _, code, _ in why(rows, 3)].count("RecordOfAnother") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("row", "becomes", "amount"),
    [
        (f",{line(5)}", "rejected", "10.50"),  # The record of another row.
        (f",{line(5, amount='77')}", "unchanged", "77"),  # It says the same.
        (f"1:2,{line(5)}", "updated", "77"),  # The same row once more.
    ],
)
def test_so_is_a_row_of_its_delivery_that_came_meanwhile(
    theirs: Workspace, rows: Any, tmp_path: Path, row: str, becomes: str, amount: str
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"{REPAIRS}\n1:2,{line(5, amount='77')}\n1:3,{line(8, amount='x')}\n")
    held = replace(DEFAULT, budget_errors=0)
    assert import_delivery(theirs, [str(path)], held, corrects=1).batch.state is State.HELD
    repair(theirs, tmp_path / "n.csv", 1, row, change=False)
    release_batch(theirs, 3, by="Ann", reason="seen")
    assert states(rows, 3) == {1: becomes, 2: "rejected"}
    assert rows('SELECT "PaidAmount"::text FROM payment WHERE "Id" = 5') == [(amount,)]
    assert ("KeyOfAnother" in {code for _, code, _ in why(rows, 3)}) == (becomes == "rejected")


@pytest.mark.long
def test_two_rows_change_places_both_or_neither(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """The key of a row is free only if what moves it away is taken in."""
    strict = replace(DEFAULT, reference="reject")
    rates = tmp_path / "rates.csv"
    top = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
    rates.write_text(f"{top}\n9,7,1,2,1.5,2026-01-01T00:00:00\n")
    wrong = write(tmp_path / "a.csv", line(1, amount="x"), line(2, amount="x"))
    import_delivery(workspace, [str(rates), wrong], strict)
    one, other = line(2, amount="7"), line(1, amount="8").replace(",1,9", ",1,5")
    for first, second in ((line(1), line(2)), (one, other)):
        path = tmp_path / "r.csv"
        path.write_text(f"{REPAIRS}\n1:1,{first}\n1:2,{second}\n")
        import_delivery(workspace, [str(path)], strict, corrects=1)
    assert states(rows, 3) == {1: "rejected", 2: "rejected"}
    assert {code for _, code, _ in why(rows, 3)} == {"KeyOfAnother", "ReferenceMissing"}
    assert {amount for (amount,) in rows('SELECT "PaidAmount"::text FROM payment')} == {"10.50"}


@pytest.mark.long
def test_what_was_typed_wrong_once_is_no_key_of_the_row(
    theirs: Workspace, rows: Any, tmp_path: Path
) -> None:
    repair(theirs, tmp_path / "a.csv", 1, f"1:2,{line(9, amount='77')}", change=False)
    repair(theirs, tmp_path / "b.csv", 3, f"3:1,{line(9, amount='78')}", change=False)
    assert states(rows, 4) == {1: "rejected"}
    repair(theirs, tmp_path / "c.csv", 4, f"4:1,{line(2, amount='79')}", change=False)
    assert states(rows, 5) == {1: "updated"}
    assert states(rows)[2] == "corrected"


@pytest.mark.long
def test_it_is_said_of_one_correction_by_command(
    theirs: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"{REPAIRS}\n1:2,{line(9, amount='77')}\n1:3,{line(5, amount='x')}\n")
    url, home = str(theirs.settings.database_url), theirs.settings.home
    asked = "import", str(path), "--corrects", "1", "--change-records"
    assert run(url, home, *asked).returncode == 1  # By the row that is still in error.
    assert states(rows, 3) == {1: "updated", 2: "rejected"}
    # The record is one of this delivery now, and another one is not by what was said before.
    import_delivery(theirs, [write(tmp_path / "d.csv", line(7))], DEFAULT)
    repair(theirs, tmp_path / "e.csv", 3, f"3:2,{line(7, amount='77')}", change=False)
    assert states(rows, 5) == {1: "rejected"}


def test_a_delivery_that_repairs_nothing_does_not_say_it(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1))
    assert HEADER in (tmp_path / "a.csv").read_text()
    with pytest.raises(CorrectionError, match="--change-records is about rows that repair others"):
        import_delivery(workspace, [path], CHANGE)
    assert rows("SELECT count(*) FROM batch") == [(0,)]
