"""A rejected row whose repair was taken in ends as corrected, and only as long as that is true."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError, CorrectionError
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.postgres.auditing.audit import verify
from connectors.postgres.batches.corrections import matched_by_key, unrepaired
from connectors.postgres.batches.findings import count_notes, notes
from connectors.postgres.batches.ledger import Batch, State, find_batch
from connectors.postgres.batches.overview import list_overview
from connectors.postgres.batches.repair_places import DeliveredPlace, repaired_row, repairs_of
from flows.commands.deliver import show_ended
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.rows.rejects import attempts_after, repaired_elsewhere, write_rejects
from flows.stages.sequence import (
    discard_batch,
    import_delivery,
    look,
    push_batch,
    release_batch,
    run_batch,
)
from flows.stages.undo import undo_batch, why_not_undone
from flows.stages.workspace import Workspace
from flows.steps.batch_report import BatchReport
from flows.steps.rules.rules import Rules
from schemas.breaks import BREAKS
from tests.conftest import Once
from tests.push.conftest import towards
from tests.service.faulty_server import FaultyServer
from tests.stages.payments import HEADER, line, write

REPAIRS = f"ReconRow,{HEADER}"
REPAIRED_BY = "1 row not written: repaired by batch {}."
UNLIKE = (
    "SELECT extract_id, record_number FROM insert_batch_data "
    """WHERE "HasError" <> ("ErrorData" IS NOT NULL)"""
)
"""Rows with an error that is not told, or told of no error."""


@pytest.fixture
def first(workspace: Workspace, tmp_path: Path, once: Once) -> Batch:
    """A batch of five rows: one clean, two rejected, two of one key in conflict."""

    def build() -> None:
        lines = [line(1), line(2, amount="ten"), line(3, amount="x")]
        conflict = [line(4, amount="4"), line(4, amount="5")]
        import_delivery(workspace, [write(tmp_path / "a.csv", *lines, *conflict)], DEFAULT)

    once(build)
    with workspace.database.connect() as connection:
        batch = find_batch(connection, 1)
    assert batch.state is State.COMPLETE_WITH_ERRORS
    return batch


@pytest.fixture
def correct(workspace: Workspace, tmp_path: Path, first: Any) -> Any:
    """Deliver rows under the names of those they repair: `correct({2: line(2)})`."""
    count = 0

    def deliver(repaired: dict[int, str], corrects: int | None = first.id, extract: int = 1) -> Any:
        nonlocal count
        count += 1
        path = tmp_path / f"repair-{count}.csv"
        named = {number: f"{extract}:{number}" if number else "" for number in repaired}
        rows = [f"{named[number]},{text}" for number, text in repaired.items()]
        path.write_text("\n".join([REPAIRS, *rows]) + "\n")
        return import_delivery(workspace, [str(path)], DEFAULT, corrects=corrects)

    return deliver


def left_out(workspace: Workspace, batch: int) -> list[str]:
    return repaired_elsewhere(attempts_after(workspace, batch))


def states(rows: Any, batch: int = 1) -> dict[int, str]:
    return dict(
        rows("SELECT record_number, state FROM staged_row WHERE batch_id = %s ORDER BY 1", [batch])
    )


def counted(report: BatchReport) -> dict[str, int]:
    (chain,) = report.chains
    assert chain.ties, chain.lines
    return {state: totals.rows for state, totals in chain.states.items()}


BEFORE = {1: "inserted", 2: "rejected", 3: "rejected", 4: "conflict", 5: "conflict"}


@pytest.mark.long(but=("0000000000001:2",))
@pytest.mark.parametrize("name", ["01:02", "1:002", "0000000000001:2"])
def test_a_name_that_a_spreadsheet_put_zeros_before_is_that_name(
    workspace: Workspace, rows: Any, tmp_path: Path, first: Any, name: str
) -> None:
    path = tmp_path / "repair.csv"
    path.write_text(f"{REPAIRS}\n{name},{line(2)}\n")
    repair = import_delivery(workspace, [str(path)], DEFAULT, corrects=first.id)
    assert repair.batch.state is State.COMPLETE
    assert states(rows) == BEFORE | {2: "corrected"}
    with workspace.database.connect() as connection:
        (place,) = repairs_of(connection, first.id, 1, 2)
        of = repaired_row(connection, 2, name)
    assert (place.batch_id, of and of.record_number) == (2, 2)


@pytest.mark.long
def test_a_repaired_row_ends_as_corrected_and_is_offered_no_more(
    workspace: Workspace, rows: Any, tmp_path: Path, correct: Any
) -> None:
    assert states(rows) == BEFORE
    repair = correct({2: line(2, amount="10"), 4: line(4, amount="5")})
    assert repair.batch.state is State.COMPLETE
    assert states(rows) == BEFORE | {2: "corrected", 4: "corrected"}
    report = look(workspace, 1).report
    assert counted(report) == {"rejected": 1, "conflict": 1, "corrected": 2, "inserted": 1}
    assert (report.errors, report.verdict, report.files[0].rejected) == (
        2,
        "complete_with_errors",
        2,
    )
    assert sum(reason.rows for reason in report.reasons) == 2
    ((path, offered),) = write_rejects(workspace, 1, tmp_path / "out", with_secrets=False).items()
    assert offered == 2
    assert [row.split(",")[0] for row in path.read_text().splitlines()] == [
        "ReconRow",
        "1:3",
        "1:5",
    ]
    flags = rows(
        'SELECT "HasError", "Merged", count(*) FROM insert_batch_data WHERE "BatchId" = 1 '
        "GROUP BY 1, 2 ORDER BY 1, 2"
    )
    assert flags == [(False, False, 2), (False, True, 1), (True, False, 2)]
    assert not rows(UNLIKE)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "1:99",
        "2:2",
        "1:0",
        "1",
        "\u0661:\u0662",
        ":2",
        "1:2:3",
        "one:two",
        "1:99999999999999999999",
    ],
)
def test_a_row_that_names_no_row_of_the_batch_is_rejected(
    workspace: Workspace, rows: Any, tmp_path: Path, first: Any, name: str
) -> None:
    """A name that a spreadsheet counted on, or one of another batch, repairs nothing unseen."""
    path = tmp_path / "repair.csv"
    path.write_text(f"{REPAIRS}\n{name},{line(2)}\n ,{line(9)}\n1:3,{line(3)}\n1:1,{line(1)}\n")
    repair = import_delivery(workspace, [str(path)], DEFAULT, corrects=first.id)
    assert repair.batch.state is State.COMPLETE_WITH_ERRORS
    told = rows(
        "SELECT record_number, error_data::json -> 0 ->> 'Message' FROM outcome "
        "WHERE batch_id = 2 AND error_data IS NOT NULL"
    )
    said = f"'ReconRow' {name} names no row of its kind in the batch that the delivery corrects."
    assert told == [(1, said)]
    assert states(rows) == BEFORE | {3: "corrected"}


@pytest.mark.long
def test_repairs_come_in_a_delivery_that_says_what_it_corrects(
    workspace: Workspace, rows: Any, correct: Any
) -> None:
    """With a key typed wrong, one would write over a good record of any delivery."""
    with pytest.raises(CorrectionError, match=r"repair-1\.csv: its column ReconRow .* --corrects"):
        correct({2: line(1, amount="77")}, corrects=None)
    assert rows("SELECT count(*) FROM batch") == [(1,)]
    assert states(rows) == BEFORE
    assert correct({2: line(2)}).batch.state is State.COMPLETE


def test_bytes_that_were_taken_otherwise_are_no_correction_unseen(
    workspace: Workspace, rows: Any, tmp_path: Path, first: Any
) -> None:
    """Said too late that it is one: nothing would be corrected, and nobody told."""
    path = write(tmp_path / "again.csv", line(2), line(3))
    taken = import_delivery(workspace, [path], DEFAULT)
    assert taken.batch.state is State.COMPLETE
    with pytest.raises(
        CorrectionError, match=r"batch 2 as again\.csv.* `recon undo 2 --reason ...` and import"
    ):
        import_delivery(workspace, [path], DEFAULT, corrects=first.id)
    assert states(rows) == BEFORE
    own = import_delivery(workspace, [path], DEFAULT, corrects=taken.batch.id)
    assert own.batch.id == taken.batch.id, "its own file corrects nothing, and is known"
    other = import_delivery(workspace, [path], DEFAULT, record="invoice_file")
    assert "which differ in record" in " ".join(other.messages)


@pytest.mark.long
def test_a_batch_whose_every_error_is_corrected_is_complete(
    workspace: Workspace, rows: Any, tmp_path: Path, correct: Any
) -> None:
    correct({2: line(2), 3: line(3), 4: line(4), 5: line(4)})
    # The second row of key 4 repeats the first: it is taken, though another row counts for it.
    assert states(rows, 2) == {1: "inserted", 2: "inserted", 3: "inserted", 4: "superseded"}
    assert set(states(rows).values()) == {"inserted", "corrected"}
    ended = look(workspace, 1)
    assert (ended.report.verdict, ended.exit_code, ended.report.errors) == ("complete", 0, 0)
    assert write_rejects(workspace, 1, tmp_path / "out", with_secrets=False) == {}
    again = run_batch(workspace, 1)
    assert counted(again.report) == {"corrected": 4, "inserted": 1}


@pytest.mark.long
def test_a_repair_that_is_rejected_itself_corrects_nothing_until_it_is_repaired(
    rows: Any, correct: Any
) -> None:
    correct({2: line(2, amount="eleven")})
    assert states(rows) == BEFORE
    correct({1: line(2, amount="11")}, corrects=2, extract=2)
    assert states(rows, 2) == {1: "corrected"}
    assert states(rows) == BEFORE | {2: "corrected"}


@pytest.mark.long
def test_what_was_delivered_again_is_offered_once_and_by_the_last_batch(
    workspace: Workspace, tmp_path: Path, correct: Any
) -> None:
    count = 0

    def offered(batch: int) -> list[str]:
        nonlocal count
        count += 1
        written = write_rejects(workspace, batch, tmp_path / str(count), with_secrets=False)
        rows = (row for path in written for row in path.read_text().splitlines()[1:])
        return [row.split(",")[0] for row in rows]

    assert (offered(1), left_out(workspace, 1)) == (["1:2", "1:3", "1:4", "1:5"], [])
    correct({2: line(2, amount="eleven"), 3: line(3)})
    again = "1 row not written: delivered again in batch 2 and in error there."
    assert (offered(1), offered(2)) == (["1:4", "1:5"], ["2:1"])
    left, repaired = left_out(workspace, 1)
    assert repaired == "1 row not written: repaired by batch 2."
    assert left.startswith(again)
    # Whoever repairs the row under its first name settles the second one too.
    correct({2: line(2, amount="11")})
    assert (offered(1), offered(2)) == (["1:4", "1:5"], [])
    assert left_out(workspace, 2) == ["1 row not written: repaired by batch 3."]
    undo_batch(workspace, 3, by=None, reason="a mistake")
    assert (offered(1), offered(2)) == (["1:4", "1:5"], ["2:1"])
    # By its key, or under its last name, it is repaired all the same.
    correct({1: line(2, amount="12")}, corrects=2, extract=2)
    assert (offered(1), offered(2)) == (["1:4", "1:5"], [])
    assert "repaired by batch 4" in left_out(workspace, 1)[1]
    import_delivery(
        workspace, [write(tmp_path / "k.csv", line(4, amount="6"))], DEFAULT, corrects=1
    )
    assert (offered(1), left_out(workspace, 1)) == (
        [],
        [f"{rows} not written: repaired by batch {by}."
         for rows, by in (("1 row", 2), ("1 row", 4), ("2 rows", 5))],
    )  # fmt: skip


def test_only_rows_in_error_are_told_as_left_out(workspace: Workspace, correct: Any) -> None:
    """A repair may name one that is in no error, or one that is not there."""
    correct({1: line(1, amount="9"), 2: line(2), 3: line(3, amount="y"), 99: line(9)})
    repaired, again = sorted(left_out(workspace, 1), key=len)
    assert repaired == "1 row not written: repaired by batch 2."
    assert again.startswith("1 row not written: delivered again in batch 2 and in error there.")


@pytest.mark.long
def test_a_row_whose_repair_is_held_is_not_offered_meanwhile(
    workspace: Workspace, tmp_path: Path, first: Any
) -> None:
    path = tmp_path / "repair.csv"
    path.write_text(f"{REPAIRS}\n1:2,{line(2)}\n1:3,{line(3, amount='y')}\n")
    strict = replace(DEFAULT, budget_errors=0)
    held = import_delivery(workspace, [str(path)], strict, corrects=first.id)
    assert held.batch.state is State.HELD
    waits = [one for one in left_out(workspace, 1) if "not come to its end" in one]
    assert len(waits) == 1
    ((_, offered),) = write_rejects(workspace, 1, tmp_path / "a", with_secrets=False).items()
    assert offered == 2
    discard_batch(workspace, 2, by=None, reason="a test")
    assert left_out(workspace, 1) == []
    ((_, offered),) = write_rejects(workspace, 1, tmp_path / "b", with_secrets=False).items()
    assert offered == 4


@pytest.mark.long
def test_a_repair_older_than_the_database_settles_its_row(
    workspace: Workspace, rows: Any, tmp_path: Path, correct: Any
) -> None:
    import_delivery(workspace, [write(tmp_path / "newer.csv", line(3, day=9))], DEFAULT)
    correct({3: line(3, amount="3", day=1)})
    assert states(rows, 3) == {1: "stale"}
    assert states(rows) == BEFORE | {3: "corrected"}


def why(rows: Any, batch: int) -> Any:
    return rows(
        "SELECT record_number, error_data::json -> 0 ->> 'ErrorCode', "
        "error_data::json -> 0 ->> 'Message' FROM outcome "
        "WHERE batch_id = %s AND error_data IS NOT NULL ORDER BY 1",
        [batch],
    )


@pytest.mark.long
def test_equal_rows_that_are_two_things_are_one_record_only_where_that_is_said(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Two withdrawals of a day that a bank does not number: neither is applied in silence."""
    apart = replace(DEFAULT, feed="bank", repeats="conflict")
    bank = write(tmp_path / "bank.csv", line(1), line(1), line(2))
    assert import_delivery(workspace, [bank], apart).batch.state is State.COMPLETE_WITH_ERRORS
    assert states(rows) == {1: "conflict", 2: "conflict", 3: "inserted"}
    told = "Another row of this delivery says the same (1, 7), and the feed profile does not take"
    assert [(row, code, said.startswith(told)) for row, code, said in why(rows, 1)] == [
        (1, "EqualRows", True),
        (2, "EqualRows", True),
    ]

    def repair(profile: Profile, *repaired: str, amount: str = "10.50") -> dict[int, str]:
        path = tmp_path / "repairs.csv"
        told = (f"1:{row},{line(1, amount=amount)}" for row in repaired)
        path.write_text("\n".join([REPAIRS, *told]) + "\n")
        batch = import_delivery(workspace, [str(path)], profile, corrects=1).batch
        return states(rows, batch.id)

    assert repair(DEFAULT, "1", "2") == {1: "conflict", 2: "conflict"}
    # A profile of its own says how the file is written, and not that they are one.
    form = replace(DEFAULT, feed="bank", thousands="'")
    assert repair(form, "1", "2", amount="10.5000") == {1: "conflict", 2: "conflict"}
    assert repair(DEFAULT, "1") == {1: "inserted"}
    assert repair(DEFAULT, "2") == {1: "rejected"}
    assert why(rows, 5)[0][1] == "KeyOfAnother"
    merged = replace(apart, repeats="superseded")
    assert repair(merged, "2", amount="10.500") == {1: "unchanged"}
    assert states(rows) == {1: "corrected", 2: "corrected", 3: "inserted"}


@pytest.mark.long
def test_a_row_that_names_none_does_not_repair_several_that_say_the_same(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """One of two equal withdrawals that comes so is one of them: the other is not in the books."""
    apart = replace(DEFAULT, feed="bank", repeats="conflict")
    bank = write(tmp_path / "bank.csv", line(1), line(1), line(2, amount="x"))
    import_delivery(workspace, [bank], apart)
    again = write(tmp_path / "again.csv", line(1), line(2))
    assert import_delivery(workspace, [again], DEFAULT, corrects=1).batch.state is State.COMPLETE
    assert states(rows, 2) == {1: "inserted", 2: "inserted"}
    assert states(rows) == {1: "conflict", 2: "conflict", 3: "corrected"}
    assert look(workspace, 1).exit_code == 1
    one = write(tmp_path / "one.csv", line(1, amount="10.500"))
    merged = replace(apart, repeats="superseded")
    assert import_delivery(workspace, [one], merged, corrects=1).batch.state is State.COMPLETE
    assert states(rows) == dict.fromkeys((1, 2, 3), "corrected")
    with workspace.database.connect() as connection:
        assert [*unrepaired(connection)] == []


@pytest.mark.long
def test_a_repair_does_not_become_another_row_of_its_delivery(
    workspace: Workspace, rows: Any, correct: Any
) -> None:
    """A key typed wrong would write over a good record; in one delivery both would conflict."""
    ended = correct({2: line(1, amount="77"), 3: line(3)})
    assert ended.batch.state is State.COMPLETE_WITH_ERRORS
    assert rows('SELECT "Id", "PaidAmount"::text FROM payment ORDER BY 1') == [
        (1, "10.50"),
        (3, "10.50"),
    ]
    said = (
        "Line 2 of a.csv in batch 1 has the same key (1, 7), "
        "and is not the row that this one repairs."
    )
    assert why(rows, 2) == [(1, "KeyOfAnother", said)]
    assert states(rows, 2) == {1: "rejected", 2: "inserted"}
    assert states(rows) == BEFORE | {3: "corrected"}
    # Nor one that another correction repaired, whichever batch of the delivery it corrects.
    correct({1: line(3, amount="78")}, corrects=2, extract=2)
    assert [row[:2] for row in why(rows, 3)] == [(1, "KeyOfAnother")]
    # What it says now is said of the row by its right key.
    correct({1: line(2, amount="79")}, corrects=3, extract=3)
    assert states(rows) == BEFORE | {2: "corrected", 3: "corrected"}
    assert look(workspace, 4).exit_code == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("repaired", "expected"),
    [
        ({2: line(1)}, {1: "unchanged"}),  # A repeat.
        ({1: line(1, amount="77")}, {1: "updated"}),  # The good row itself is to change.
        ({2: line(5), 3: line(5, amount="77")}, {1: "conflict", 2: "conflict"}),
        ({4: line(4, amount="77")}, {1: "inserted"}),  # Both of the key are in conflict.
        ({2: line(1, tenant=8, amount="77")}, {1: "inserted"}),  # Another key.
    ],
)
def test_what_is_no_key_of_another_row(
    rows: Any, correct: Any, repaired: Any, expected: Any
) -> None:
    correct(repaired)
    assert states(rows, 2) == expected


Repairs = dict[int, str]
SEVERAL: dict[str, tuple[list[tuple[int, int, Repairs]], dict[int, str]]] = {
    # name: corrections (what they correct, the extract they name rows of, repairs), the last states
    "the mistake of another row was mended": (
        [(1, 1, {2: line(3, amount="77")}), (1, 1, {2: line(2)}), (1, 1, {3: line(3)})],
        {1: "updated"},
    ),
    "two rows change places": (
        [
            (1, 1, {4: line(4), 5: line(5)}),
            (1, 1, {4: line(5, amount="7"), 5: line(4, amount="8")}),
        ],
        {1: "updated", 2: "updated"},
    ),
    "both of a repeat": (
        [
            (1, 1, {4: line(4)}),
            (1, 1, {5: line(4)}),
            (1, 1, {4: line(4, day=2), 5: line(4, day=2)}),
        ],
        {1: "updated", 2: "superseded"},
    ),
    "a good row does not become another record": (
        [(1, 1, {1: line(9)}), (1, 1, {2: line(1, amount="7")})],
        {1: "rejected"},
    ),
    "the key of a mistake": (
        [(1, 1, {2: line(3, amount="77")}), (1, 1, {3: line(3)})],
        {1: "rejected"},
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SEVERAL)
def test_of_several_repairs_the_last_one_counts(rows: Any, correct: Any, name: str) -> None:
    corrections, expected = SEVERAL[name]
    for corrects, extract, repaired in corrections:
        ended = correct(repaired, corrects=corrects, extract=extract)
    assert states(rows, ended.batch.id) == expected


REPAIRED_AGAIN: dict[str, tuple[list[tuple[int, int, dict[int, str]]], list[Any]]] = {
    # corrections as above, and what is noted of the last one: the batch of the other record, rows
    "another key": ([(1, 1, {2: line(8), 3: line(3)}), (1, 1, {2: line(2)})], [("2", 1)]),
    "the same key": ([(1, 1, {2: line(2)}), (1, 1, {2: line(2, amount="11")})], []),
    "by a row that names none": ([(1, 0, {0: line(2)}), (1, 1, {2: line(8)})], [("2", 1)]),
    "over one between": (
        [(1, 1, {2: line(2, amount="no")}), (2, 2, {1: line(2)}), (1, 1, {2: line(8)})],
        [("3", 1)],
    ),
}


@pytest.mark.long(but=("another key",))
@pytest.mark.parametrize("name", REPAIRED_AGAIN)
def test_it_is_said_where_a_row_is_two_records(
    workspace: Workspace, rows: Any, correct: Any, tmp_path: Path, capsys: Any, name: str
) -> None:
    """What it was repaired to first stays, and its money is there twice."""
    corrections, expected = REPAIRED_AGAIN[name]
    for corrects, extract, repaired in corrections:
        ended = correct(repaired, corrects=corrects, extract=extract)
    codes = [(one.value, one.rows) for one in ended.report.notes if one.code == "SecondRecord"]
    assert codes == expected
    show_ended(ended, tmp_path, as_json=False)
    told = capsys.readouterr().out
    for batch, _ in expected:
        assert f"payment: 1 row repairs what batch {batch} had repaired with another key" in told
        undo_batch(workspace, int(batch), by=None, reason="it is no record")
    assert rows('SELECT count(*) FROM payment WHERE "Id" IN (2, 8)') == [(1,)]
    with workspace.database.connect() as connection:
        noted = notes(connection, ended.batch.id, 9)
        assert count_notes(connection, ended.batch.id) == len(noted)
    assert "SecondRecord" not in {one.code for one in noted}, "one of them is none any more"


@pytest.mark.long
def test_a_batch_is_not_undone_while_a_correction_of_it_stands(
    workspace: Workspace, rows: Any, correct: Any
) -> None:
    """The row would be two rejects, and be repaired twice, with other values."""
    correct({2: line(2, amount="no")})
    correct({1: line(2, amount="x")}, corrects=2, extract=2)
    for batch, by in ((1, 2), (2, 3)):
        with pytest.raises(BatchStateError, match=f"batch {by} corrects it. Undo batch {by} first"):
            undo_batch(workspace, batch, by=None, reason="test")
        assert f"batch {by} corrects it" in why_not_undone(workspace, batch)
    for batch in (3, 2, 1):
        undo_batch(workspace, batch, by=None, reason="test")
    assert not rows(UNLIKE)
    assert rows("SELECT count(*) FROM payment") == [(0,)]


@pytest.mark.long
def test_a_batch_ends_with_errors_once_more_when_its_correction_is_undone(
    workspace: Workspace, tmp_path: Path, rows: Any
) -> None:
    """It had ended as complete: its push came to its end while its reject was repaired."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        import_delivery(place, [write(tmp_path / "a.csv", line(1), line(2, amount="x"))], DEFAULT)
        repair = tmp_path / "b.csv"
        repair.write_text(f"{REPAIRS}\n1:2,{line(2)}\n")
        import_delivery(place, [str(repair)], DEFAULT, corrects=1)
        assert push_batch(place, 1).batch.state is State.COMPLETE
    undo_batch(workspace, 2, by=None, reason="test")
    with workspace.database.connect() as connection:
        (summary,) = list_overview(connection, 1, only=1)
        assert verify(connection).broken is None
    assert (summary.state, summary.errors) == (State.COMPLETE_WITH_ERRORS, 1)
    last = (
        "SELECT what, reason FROM event WHERE batch_id = 1 AND what LIKE 'batch %' "
        "ORDER BY id DESC LIMIT 1"
    )
    said = ("batch complete_with_errors", "what repaired its rows was taken back")
    assert rows(last) == [said]
    undo_batch(workspace, 1, by=None, reason="nothing of it is wanted")


def test_a_batch_stays_complete_when_its_rows_are_repaired_by_another_row(
    workspace: Workspace, tmp_path: Path, rows: Any, correct: Any
) -> None:
    """It was said to have errors again: one repair outweighed the other."""
    by_key = write(tmp_path / "by-key.csv", line(2), line(3), line(4))
    import_delivery(workspace, [by_key], DEFAULT, corrects=1)
    with workspace.database.connect() as connection:
        for state in (State.MERGED, State.COMPLETE):
            connection.execute("UPDATE batch SET state = %s WHERE id = 1", [state])
    correct({2: line(2, day=2)})
    assert rows("SELECT state FROM batch WHERE id = 1") == [("complete",)]
    undo_batch(workspace, 3, by=None, reason="test")
    assert rows("SELECT state FROM batch WHERE id = 1") == [("complete",)]
    undo_batch(workspace, 2, by=None, reason="test")
    assert rows("SELECT state FROM batch WHERE id = 1") == [("complete_with_errors",)]


@pytest.mark.long
def test_a_repair_between_that_was_undone_still_leads_back(
    workspace: Workspace, rows: Any, correct: Any
) -> None:
    """An earlier version undid what a correction stood upon."""
    correct({2: line(2, amount="no")})
    correct({1: line(2, amount="7")}, corrects=2, extract=2)
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET state = 'undone' WHERE id = 2")
    correct({2: line(2, amount="8")})
    assert states(rows, 4) == {1: "updated"}


@pytest.mark.long
def test_a_row_of_another_record_kind_repairs_nothing(
    workspace: Workspace, rows: Any, tmp_path: Path, first: Any
) -> None:
    path = tmp_path / "currency_rates.csv"
    top = "ReconRow,Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
    path.write_text(f"{top}\n1:2,9,7,1,2,1.5,2026-01-01T00:00:00\n")
    import_delivery(workspace, [str(path)], DEFAULT, corrects=first.id)
    assert (states(rows), states(rows, 2)) == (BEFORE, {1: "rejected"})


@pytest.mark.long
def test_a_name_of_blanks_is_none(
    workspace: Workspace, rows: Any, tmp_path: Path, first: Any
) -> None:
    path = tmp_path / "repair.csv"
    path.write_text(f'{REPAIRS}\n"",{line(2)}\n" ",{line(3)}\n')
    import_delivery(workspace, [str(path)], DEFAULT, corrects=first.id)
    assert states(rows) == BEFORE | {2: "corrected", 3: "corrected"}


@pytest.mark.long
def test_a_row_is_repaired_again_under_its_key(
    workspace: Workspace, rows: Any, tmp_path: Path, correct: Any
) -> None:
    correct({2: line(2, amount="10"), 3: line(3, amount="no")})
    correct({2: line(2, amount="11")})  # The same row, by its first name.
    correct({1: line(2, amount="12")}, corrects=3, extract=3)  # And by its last one.
    assert states(rows, 3) == states(rows, 4) == {1: "updated"}
    # Without ReconRow a row is known by its key: it is that record, and newer.
    path = write(tmp_path / "by-key.csv", line(1, amount="13"), line(2, amount="14"))
    import_delivery(workspace, [path], DEFAULT, corrects=1)
    assert states(rows, 5) == {1: "updated", 2: "updated"}
    correct({2: line(2, amount="15")})  # It repairs what that one repaired by its key,
    correct({3: line(2, amount="16")})  # and this repairs another row.
    assert (states(rows, 6), states(rows, 7)) == ({1: "updated"}, {1: "rejected"})


@pytest.mark.long
def test_the_last_row_of_a_key_wins_where_the_feed_says_so(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    last_wins = replace(DEFAULT, duplicate="last_wins")
    path = write(tmp_path / "a.csv", line(1), line(2, amount="ten"))
    import_delivery(workspace, [path], last_wins)
    repair = tmp_path / "repair.csv"
    repair.write_text(f"{REPAIRS}\n1:2,{line(1, amount='77')}\n")
    import_delivery(workspace, [str(repair)], last_wins, corrects=1)
    assert states(rows, 2) == {1: "updated"}


@pytest.mark.long
def test_a_key_is_free_again_once_its_batch_was_undone(
    workspace: Workspace, rows: Any, correct: Any
) -> None:
    repair = correct({2: line(9)})
    undo_batch(workspace, repair.batch.id, by=None, reason="a mistake")
    correct({3: line(9, amount="77")})
    assert states(rows, 3) == {1: "inserted"}


@pytest.mark.long
def test_a_batch_of_which_nothing_is_applied_is_not_corrected(
    workspace: Workspace, first: Batch, rows: Any, correct: Any
) -> None:
    undo_batch(workspace, first.id, by=None, reason="wrong month")
    with pytest.raises(CorrectionError, match=r"Batch 1 was undone: .* Import its files again"):
        correct({2: line(2)})
    assert rows("SELECT count(*) FROM payment") == [(0,)]


@pytest.mark.long
def test_a_row_that_is_not_in_error_is_not_corrected(rows: Any, correct: Any) -> None:
    assert correct({1: line(1, amount="9")}).batch.state is State.COMPLETE
    assert states(rows) == BEFORE
    assert states(rows, 2) == {1: "updated"}


@pytest.mark.long
def test_a_row_that_is_applied_does_not_become_a_second_record(rows: Any, correct: Any) -> None:
    """Its record would stay beside the other one, and the money would be there twice."""
    assert correct({1: line(9), 2: line(2)}).batch.state is State.COMPLETE_WITH_ERRORS
    assert states(rows, 2) == {1: "rejected", 2: "inserted"}
    said = (
        "Line 2 of a.csv in batch 1, which this one names ('ReconRow' 1:1), is applied with "
        "another key: this one would be a second record beside it."
    )
    assert why(rows, 2) == [(1, "AppliedOtherwise", said)]
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (2,)]
    assert correct({1: line(1, amount="9")}).batch.state is State.COMPLETE


@pytest.mark.long
def test_what_a_break_says_about_a_wrong_tenant_can_be_done(
    workspace: Workspace, rows: Any, tmp_path: Path, correct: Any
) -> None:
    """The row is in the corrections of a report, and its tenant is not to be corrected there."""
    assert correct({1: line(1, tenant=8)}).batch.state is State.COMPLETE_WITH_ERRORS
    for code in ("TENANT_CROSS", "REFERENCE_TENANT", "RATE_TENANT"):
        assert "undo its batch and import its files corrected" in BREAKS[code].action
    for batch in (2, 1):
        undo_batch(workspace, batch, by=None, reason="a wrong tenant")
    import_delivery(workspace, [write(tmp_path / "b.csv", line(1, tenant=8))], DEFAULT)
    assert rows('SELECT "Id", "TenantsId" FROM payment') == [(1, 8)]


@pytest.mark.long
def test_undoing_the_repair_brings_the_error_back_unless_another_repair_stands(
    workspace: Workspace, rows: Any, correct: Any
) -> None:
    correct({2: line(2), 3: line(3)})
    correct({3: line(3, amount="33", day=3)})
    assert states(rows) == BEFORE | {2: "corrected", 3: "corrected"}
    undo_batch(workspace, 3, by=None, reason="test")
    assert states(rows) == BEFORE | {2: "corrected", 3: "corrected"}
    undo_batch(workspace, 2, by=None, reason="test")
    assert states(rows) == BEFORE
    assert look(workspace, 1).report.errors == 4
    correct({2: line(2, amount="2")})
    assert states(rows) == BEFORE | {2: "corrected"}


@pytest.mark.long
def test_a_held_repair_corrects_when_it_is_released(
    workspace: Workspace, rows: Any, tmp_path: Path, first: Any
) -> None:
    path = tmp_path / "repair.csv"
    path.write_text(f"{REPAIRS}\n1:2,{line(2)}\n1:3,{line(3, amount='still')}\n")
    strict = replace(DEFAULT, budget_errors=0)
    held = import_delivery(workspace, [str(path)], strict, corrects=1)
    assert held.batch.state is State.HELD
    assert states(rows) == BEFORE
    release_batch(workspace, held.batch.id, by="A. Meyer", reason="half is better than none")
    assert states(rows) == BEFORE | {2: "corrected"}


@pytest.mark.long
def test_a_discarded_repair_corrects_nothing(
    workspace: Workspace, rows: Any, tmp_path: Path, first: Any
) -> None:
    path = tmp_path / "repair.csv"
    path.write_text(f"{REPAIRS}\n1:2,{line(2)}\n1:3,{line(3, amount='still')}\n")
    held = import_delivery(workspace, [str(path)], replace(DEFAULT, budget_errors=0), corrects=1)
    discard_batch(workspace, held.batch.id, by=None, reason="test")
    assert states(rows) == BEFORE
    assert states(rows, held.batch.id) == {1: "discarded", 2: "discarded"}


@pytest.mark.long
def test_a_row_inside_insert_batch_data_is_corrected_where_it_was_staged(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = tmp_path / "insert_batch_data.csv"
    head = "Data,HasError,Merged,BatchId,Jsondata,ErrorData"
    path.write_text(f"{head}\nnothing,false,false,5,,\n")
    first = import_delivery(workspace, [str(path)], DEFAULT, record="insert_batch_data")
    assert states(rows) == {1: "rejected"}
    assert first.report.chains[0].record == "insert_batch_data"
    repair = tmp_path / "repair.csv"
    repair.write_text(f"{REPAIRS}\n1:1,{line(2)}\n")
    import_delivery(workspace, [str(repair)], DEFAULT, corrects=1)
    assert states(rows) == {1: "corrected"}
    assert counted(look(workspace, 1).report) == {"corrected": 1}


@pytest.mark.long
def test_a_row_names_its_repair_and_the_repair_names_its_row(
    workspace: Workspace, rows: Any, correct: Any
) -> None:
    correct({2: line(2, amount="still wrong")})
    correct({2: line(2, amount="10"), 9: line(9)})
    with workspace.database.connect() as connection:
        assert repairs_of(connection, 1, 1, 2) == [
            DeliveredPlace(2, 2, "repair-1.csv", 1, 2, "rejected"),
            DeliveredPlace(3, 3, "repair-2.csv", 1, 2, "inserted"),
        ]
        assert repairs_of(connection, 1, 1, 1) == []
        assert repaired_row(connection, 3, "1:2") == DeliveredPlace(
            1, 1, "a.csv", 2, 3, "corrected"
        )
        # A name that leads nowhere, or is none, or is of a batch this one does not correct.
        for batch, name in ((3, "1:9"), (3, "x"), (3, "2:1"), (1, "1:2")):
            assert repaired_row(connection, batch, name) is None


@pytest.mark.long
def test_a_repair_that_names_no_row_is_matched_by_its_key(
    workspace: Workspace, rows: Any, tmp_path: Path, first: Any
) -> None:
    def deliver(name: str, *lines: str, **terms: Any) -> Any:
        return import_delivery(workspace, [write(tmp_path / name, *lines)], DEFAULT, **terms)

    deliver("unrelated.csv", line(3, amount="3"))
    assert states(rows) == BEFORE  # It does not say that it repairs anything.
    repair = deliver("repair.csv", line(2, amount="10"), line(4, amount="5"), line(9), corrects=1)
    assert repair.batch.state is State.COMPLETE
    assert states(rows) == BEFORE | {2: "corrected", 4: "corrected", 5: "corrected"}
    with workspace.database.connect() as connection:
        assert "matched by key" in str(matched_by_key(connection, 1, 2))
        assert matched_by_key(connection, 1, 1) is None
    done = reconcile(workspace, Asked(Scope(), date(2026, 2, 1), Rules()))
    ruled = {one.rule: one.rows for one in done.report.excluded}
    assert ruled["corrected, matched by key"] == 3
    assert {one.line for one in done.report.breaks if one.code == "REJECTED"} == {4}
    undo_batch(workspace, repair.batch.id, by=None, reason="test")
    assert states(rows) == BEFORE


@pytest.mark.long
def test_a_row_is_matched_by_key_to_a_batch_that_stands(
    workspace: Workspace, tmp_path: Path, first: Any
) -> None:
    """Two older versions of a record settle its row, and the one that was named is undone."""
    import_delivery(workspace, [write(tmp_path / "new.csv", line(2, day=9))], DEFAULT)
    for name, day in (("b.csv", 2), ("c.csv", 3)):
        path = write(tmp_path / name, line(2, day=day))
        import_delivery(workspace, [path], DEFAULT, corrects=first.id)
    assert left_out(workspace, 1) == [REPAIRED_BY.format(3)]
    undo_batch(workspace, 3, by=None, reason="test")
    assert left_out(workspace, 1) == [REPAIRED_BY.format(4)]
    with workspace.database.connect() as connection:
        assert "A row of batch 4 has its key" in str(matched_by_key(connection, 1, 2))


@pytest.mark.long
def test_what_was_corrected_by_its_key_is_offered_by_no_batch(
    workspace: Workspace, tmp_path: Path, correct: Any
) -> None:
    """Nor is an attempt that names it, which would be taken in over what corrected it."""
    correct({2: line(2, amount="eleven")})
    path = write(tmp_path / "by-key.csv", line(2, amount="12"))
    import_delivery(workspace, [path], DEFAULT, corrects=1)
    assert left_out(workspace, 1) == left_out(workspace, 2) == [REPAIRED_BY.format(3)]
    assert write_rejects(workspace, 2, tmp_path / "rejects", with_secrets=False) == {}
    undo_batch(workspace, 3, by=None, reason="test")
    assert left_out(workspace, 2) == []
    # One with the key of the attempt repairs both.
    import_delivery(workspace, [path], DEFAULT, corrects=2)
    assert left_out(workspace, 1) == left_out(workspace, 2) == [REPAIRED_BY.format(4)]


@pytest.mark.long
def test_a_repair_that_names_its_row_outweighs_one_by_key(
    workspace: Workspace, rows: Any, tmp_path: Path, correct: Any
) -> None:
    path = write(tmp_path / "by-key.csv", line(2, amount="10", day=2))
    import_delivery(workspace, [path], DEFAULT, corrects=1)
    correct({2: line(2, amount="10", day=3)})
    with workspace.database.connect() as connection:
        assert matched_by_key(connection, 1, 2) is None
    undo_batch(workspace, 3, by=None, reason="test")
    assert states(rows) == BEFORE | {2: "corrected"}
    with workspace.database.connect() as connection:
        assert matched_by_key(connection, 1, 2)
