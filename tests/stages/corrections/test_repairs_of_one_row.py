"""One delivered row becomes one record, however many rows of a correction say they repair it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.attempts import (
    AttemptRow,
    counted_elsewhere,
    delivered_again,
    standing_batches,
)
from connectors.postgres.batches.corrections import unrepaired
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery, look
from flows.stages.workspace import Workspace
from tests.conftest import Once
from tests.stages.payments import HEADER, line, write

CLEAN, WRONG, TWO_IN_ONE = "1:1", "1:2", "1:3"
"""A row without an error, one with a wrong amount, and one that lost its line end."""

Deliver = Callable[..., dict[int, str]]
Offered = Callable[[int], list[str]]


@pytest.fixture
def deliver(workspace: Workspace, rows: Any, tmp_path: Path, once: Once) -> Deliver:
    """`deliver((WRONG, line(2)), corrects=1)` corrects a batch; what became of each row."""

    def build() -> None:
        lines = [line(1), line(2, amount="ten"), f"{line(3)},{line(4)}"]
        import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT)

    once(build)

    def correct(*repairs: tuple[str, str], corrects: int = 1) -> dict[int, str]:
        path = tmp_path / "repairs.csv"
        lines = [f"ReconRow,{HEADER}", *(f"{name},{text}" for name, text in repairs)]
        path.write_text("\n".join(lines) + "\n")
        made = import_delivery(workspace, [str(path)], DEFAULT, corrects=corrects).batch.id
        found = rows("SELECT record_number, state FROM staged_row WHERE batch_id = %s", [made])
        return dict(sorted(found))

    return correct


@pytest.fixture
def offered(workspace: Workspace, tmp_path: Path) -> Offered:
    """`offered(2)`: the rows that rejects of a batch offer, by the names repairs have for them."""

    def names(batch: int) -> list[str]:
        with TemporaryDirectory(dir=tmp_path) as folder:
            written = write_rejects(workspace, batch, Path(folder), with_secrets=False)
            texts = [text for path in written for text in path.read_text().splitlines()[1:]]
        return [text.split(",")[0] for text in texts]

    return names


def why(rows: Any, batch: int = 2) -> list[tuple[int, str, str]]:
    """Record number, code and message of the rows in error."""
    found = rows(
        "SELECT record_number, error_data::json -> 0 ->> 'ErrorCode', "
        "error_data::json -> 0 ->> 'Message' FROM outcome "
        "WHERE batch_id = %s AND error_data IS NOT NULL ORDER BY 1",
        [batch],
    )
    return [(int(number), code, message) for number, code, message in found]


@pytest.mark.long
def test_two_keys_for_one_row_are_told_of_each_other(rows: Any, deliver: Deliver) -> None:
    """Nobody but the sender knows which of them is the record, and none is invented."""
    states = deliver((WRONG, line(2)), (WRONG, line(9)), (WRONG, line(8)), ("", line(7)))
    assert states == {1: "rejected", 2: "rejected", 3: "rejected", 4: "inserted"}
    said = "Line {} of repairs.csv repairs the same row ('ReconRow' 1:2) with another key."
    assert why(rows) == [
        (1, "RepairedTwice", said.format(3)),
        (2, "RepairedTwice", said.format(2)),
        (3, "RepairedTwice", said.format(2)),
    ]
    assert rows("SELECT state FROM staged_row WHERE batch_id = 1 AND record_number = 2") == [
        ("rejected",)
    ]
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (7,)]


@pytest.mark.long
def test_all_rows_that_are_told_of_each_other_are_offered(
    offered: Offered, deliver: Deliver
) -> None:
    """One is to be chosen, so that all have to be seen; once one is taken in, none is left."""

    deliver((WRONG, line(2)), (WRONG, line(9)))
    assert (offered(1), offered(2)) == ([TWO_IN_ONE], ["2:1", "2:2"])
    deliver(("2:1", line(2)), corrects=2)
    assert (offered(1), offered(2)) == ([TWO_IN_ONE], [])


TOGETHER: dict[str, tuple[list[tuple[str, str]], dict[int, str]]] = {
    # name: the rows of a correction, what becomes of them
    "the same key and content is a repeat": (
        [(WRONG, line(2)), (WRONG, line(2))],
        {1: "inserted", 2: "superseded"},
    ),
    "the same key with other content is a conflict": (
        [(WRONG, line(2)), (WRONG, line(2, amount="7"))],
        {1: "conflict", 2: "conflict"},
    ),
    "a repeat beside another key": (
        [(WRONG, line(2)), (WRONG, line(2)), (WRONG, line(9))],
        {1: "rejected", 2: "rejected", 3: "rejected"},
    ),
    "a tenant is a part of the key": (
        [(WRONG, line(2)), (WRONG, line(2, tenant=8))],
        {1: "rejected", 2: "rejected"},
    ),
    "one of the two cannot be read": (
        [(WRONG, line(2)), (WRONG, line(9, amount="nine"))],
        {1: "inserted", 2: "rejected"},
    ),
    "a row without an error is one record too": (
        [(CLEAN, line(1, amount="7")), (CLEAN, line(9))],
        {1: "rejected", 2: "rejected"},
    ),
    "a broken line may have been several records": (
        [(TWO_IN_ONE, line(3)), (TWO_IN_ONE, line(4)), (WRONG, line(2))],
        {1: "inserted", 2: "inserted", 3: "inserted"},
    ),
    "rows that name none are records of their own": (
        [("", line(8)), ("", line(9))],
        {1: "inserted", 2: "inserted"},
    ),
    "rows that name nothing are told that": (
        [("1:99", line(8)), ("1:99", line(9))],
        {1: "rejected", 2: "rejected"},
    ),
}


@pytest.mark.long(but=("a broken line may have been several records",))
@pytest.mark.parametrize("name", TOGETHER)
def test_rows_that_repair_one_row(deliver: Deliver, name: str) -> None:
    repairs, expected = TOGETHER[name]
    assert deliver(*repairs) == expected


@pytest.mark.long
def test_rows_that_repair_one_row_over_another_correction(rows: Any, deliver: Deliver) -> None:
    """Each names a row of its own, and both of these stand for the same delivered one."""
    deliver((WRONG, line(2)), (WRONG, line(9)))
    again = deliver(("2:1", line(2)), ("2:2", line(9)), corrects=2)
    assert (again, {code for _, code, _ in why(rows, 3)}) == (
        {1: "rejected", 2: "rejected"},
        {"RepairedTwice"},
    )
    assert deliver(("3:2", line(9)), corrects=3) == {1: "inserted"}
    assert rows("SELECT state FROM staged_row WHERE batch_id = 1 AND record_number = 2") == [
        ("corrected",)
    ]


@pytest.mark.long
def test_a_row_of_insert_batch_data_is_a_record_of_one_kind(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = tmp_path / "insert_batch_data.csv"
    path.write_text("Data,HasError,Merged,BatchId,Jsondata,ErrorData\nnothing,false,false,5,,\n")
    import_delivery(workspace, [str(path)], DEFAULT, record="insert_batch_data")
    payment, rate = tmp_path / "payment.csv", tmp_path / "currency_rate.csv"
    payment.write_text(f"ReconRow,{HEADER}\n1:1,{line(2)}\n")
    top = "ReconRow,Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
    rate.write_text(f"{top}\n1:1,2,7,1,2,1.5,2026-01-01T00:00:00\n")
    import_delivery(workspace, [str(payment), str(rate)], DEFAULT, corrects=1)
    assert {code for _, code, _ in why(rows)} == {"RepairedTwice"}
    assert rows("SELECT state FROM staged_row WHERE batch_id = 2") == [("rejected",)] * 2


@pytest.mark.long
def test_what_a_broken_line_was_made_into_is_one_record_each(deliver: Deliver) -> None:
    wrong = deliver((TWO_IN_ONE, line(3, amount="x")), (TWO_IN_ONE, line(4, amount="y")))
    assert set(wrong.values()) == {"rejected"}
    repairs = [("2:1", line(3)), ("2:2", line(4)), ("2:2", line(9))]
    assert deliver(*repairs, corrects=2) == {1: "inserted", 2: "rejected", 3: "rejected"}


@pytest.mark.long
def test_one_of_the_records_of_a_broken_line_may_be_left(
    workspace: Workspace, offered: Offered, deliver: Deliver
) -> None:
    """Of two rows made of one line the second is in error again: it is no attempt at the first."""

    def counted() -> list[int]:
        with workspace.database.connect() as connection:
            again = delivered_again(connection, [1])
            left = connection.execute(
                "SELECT batch_id, extract_id, record_number FROM staged_row "
                "WHERE state = 'rejected' AND batch_id = ANY(%s)",
                [standing_batches(connection, 1)],
            )
            return sorted(batch for batch, *place in left if AttemptRow(batch, *place) not in again)

    deliver((TWO_IN_ONE, line(3)), (TWO_IN_ONE, line(4, amount="four")))
    assert (offered(1), offered(2), counted()) == ([WRONG], ["2:2"], [1, 2])
    deliver(("2:2", line(4, amount="4x")), corrects=2)
    assert (offered(1), offered(2), offered(3)) == ([WRONG], [], ["3:1"])
    assert counted() == [1, 3]
    deliver(("3:1", line(4)), corrects=3)
    assert (offered(2), offered(3), counted()) == ([], [], [1])


@pytest.mark.long
def test_no_record_of_a_broken_line_is_taken_for_another_one_of_a_later_correction(
    offered: Offered, deliver: Deliver
) -> None:
    """Nobody knows which of the records each of them is, and none gets lost."""
    deliver((TWO_IN_ONE, line(3, amount="x")), (TWO_IN_ONE, line(4, amount="y")))
    assert (offered(1), offered(2)) == ([WRONG], ["2:1", "2:2"])
    deliver((TWO_IN_ONE, line(4, amount="z")))
    assert (offered(1), offered(2), offered(3)) == ([WRONG], ["2:1", "2:2"], ["3:1"])
    deliver(("3:1", line(4)), corrects=3)
    assert (offered(1), offered(2), offered(3)) == ([WRONG], ["2:1", "2:2"], [])
    # What is the same record in the end is a repeat.
    deliver(("2:1", line(3)), ("2:2", line(4)), corrects=2)
    assert (offered(1), offered(2), offered(3)) == ([WRONG], [], [])


@pytest.mark.long
@pytest.mark.parametrize("policy", ["conflict", "last_wins"])
def test_a_repeat_of_a_repair_in_error_repairs_nothing(
    workspace: Workspace, rows: Any, tmp_path: Path, offered: Offered, policy: str
) -> None:
    """It stands as the row that counts for it does: until that is taken in, both are in error."""
    strict = replace(DEFAULT, reference="reject", duplicate=policy)

    def deliver(*lines: str, corrects: int | None = None) -> int:
        path = tmp_path / "a.csv"
        path.write_text("\n".join(lines) + "\n")
        return import_delivery(workspace, [str(path)], strict, corrects=corrects).batch.id

    def corrected(batch: int = 1) -> set[str]:
        found = rows("SELECT state FROM staged_row WHERE batch_id = %s", [batch])
        return {state for (state,) in found}

    assert deliver(HEADER, line(1), line(2), line(3), line(5)) == 1  # None of them has its rate.
    repairs = [f"1:1,{line(1)}", f"1:1,{line(1)}", f"1:2,{line(4)}", f"1:3,{line(4)}"]
    repairs += [f",{line(5)}"] * 2
    top = f"ReconRow,{HEADER}"
    assert deliver(top, *repairs, corrects=1) == 2
    assert corrected(2) == {"rejected", "superseded"}
    assert corrected() == {"rejected"}
    counts = (1, 3, 5) if policy == "conflict" else (2, 4, 6)
    other = "1:3" if policy == "conflict" else "1:2"
    assert (offered(1), offered(2)) == ([other, "1:4"], [f"2:{number}" for number in counts])
    with workspace.database.connect() as connection:
        assert [counted_elsewhere(connection, batch) for batch in (1, 2)] == [2, 0]
        assert [*unrepaired(connection)] == []
    rates = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
    deliver(rates, "9,7,1,2,1.5,2026-01-01T00:00:00")
    repaired = zip(counts, (line(1), line(4), line(5)), strict=True)
    deliver(top, *(f"2:{number},{text}" for number, text in repaired), corrects=2)
    assert corrected() == {"corrected"}
    assert (offered(1), offered(2)) == ([], [])
    assert [look(workspace, batch).report.errors for batch in (1, 2)] == [0, 0]
    with workspace.database.connect() as connection:
        assert [*unrepaired(connection)] == []
