"""What is taken back with a batch, and what stands against it: nothing else may go with it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from connectors.postgres.batches.undo import take_back
from flows.commands.deliver import show_ended
from flows.stages.sequence import import_delivery, release_batch
from flows.stages.undo import undo_batch, why_not_undone
from flows.stages.workspace import Workspace
from schemas.tables import EXTRACTS
from tests.stages.payments import line, write

RECORDS = 'SELECT "Id", "PaidAmount"::text, batch_id FROM payment ORDER BY 1'


@pytest.fixture
def take(workspace: Workspace, tmp_path: Path) -> Any:
    """Import these payments as a batch."""

    def deliver(name: str, *lines: str, **terms: Any) -> Any:
        return import_delivery(workspace, [write(tmp_path / name, *lines)], DEFAULT, **terms)

    return deliver


def undo(workspace: Workspace, batch: int) -> dict[str, int]:
    return undo_batch(workspace, batch, by=None, reason="test")


@pytest.mark.long
@pytest.mark.parametrize(
    "there", [line(1, day=2), line(1, amount="9", day=1)], ids=["unchanged", "stale"]
)
def test_what_another_batch_found_there_is_not_taken_away(
    workspace: Workspace, rows: Any, take: Any, there: str
) -> None:
    """It delivered the record as well, and wrote nothing because there was nothing to write."""
    take("a.csv", line(1, day=2), line(2))
    take("b.csv", there, line(5))
    before = rows(RECORDS)
    told = "batch 2 delivered 1 of its payment rows too, .* Undo batch 2 first"
    with pytest.raises(BatchStateError, match=told):
        undo(workspace, 1)
    assert "batch 2 delivered 1" in why_not_undone(workspace, 1)
    assert rows(RECORDS) == before
    # Both are taken back from the last one on, and what the last one delivered is imported anew.
    assert undo(workspace, 2) == {"deleted": 1, "restored": 0}
    assert undo(workspace, 1) == {"deleted": 2, "restored": 0}
    assert take("b.csv", there, line(5)).new
    assert [(key, batch) for key, _, batch in rows(RECORDS)] == [(1, 3), (5, 3)]


@pytest.mark.long
def test_what_was_found_before_the_batch_wrote_it_stands_against_nothing(
    workspace: Workspace, rows: Any, take: Any
) -> None:
    take("a.csv", line(1))
    take("b.csv", line(1), line(2))
    before = rows(RECORDS)
    take("c.csv", line(1, amount="11", day=2))
    assert undo(workspace, 3) == {"deleted": 0, "restored": 1}
    assert rows(RECORDS) == before


@pytest.mark.long(but=("clock set back",))
@pytest.mark.parametrize("is_set_back", [False, True], ids=["", "clock set back"])
def test_a_batch_that_was_applied_after_a_later_one_rests_on_that(
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    take: Any,
    clock_set_back: Callable[[Workspace], None],
    is_set_back: bool,
) -> None:
    path = write(tmp_path / "held.csv", line(1), line(2, amount="x"))
    held = import_delivery(workspace, [path], replace(DEFAULT, budget_errors=0))
    assert held.batch.state is State.HELD
    take("b.csv", line(1))
    if is_set_back:
        clock_set_back(workspace)
    release_batch(workspace, 1, by="ann", reason="one row is no matter")
    with pytest.raises(BatchStateError, match="batch 1 delivered 1 of its payment rows too"):
        undo(workspace, 2)


@pytest.mark.long
def test_a_later_batch_that_was_applied_before_one_that_was_held_does_not_rest_on_it(
    workspace: Workspace, rows: Any, tmp_path: Path, take: Any
) -> None:
    take("a.csv", line(1))
    before = rows(RECORDS)
    path = write(tmp_path / "held.csv", line(1, amount="11", day=2), line(2, amount="x"))
    import_delivery(workspace, [path], replace(DEFAULT, budget_errors=0))
    take("c.csv", line(1), line(3))
    release_batch(workspace, 2, by="ann", reason="one row is no matter")
    assert undo(workspace, 2) == {"deleted": 0, "restored": 1}
    assert rows(RECORDS)[:1] == before


def test_a_batch_that_is_released_says_what_later_ones_had_delivered(
    workspace: Workspace, rows: Any, tmp_path: Path, take: Any, capsys: Any
) -> None:
    """What was written over, and what was found as it was; nobody would see that it is older."""
    take("a.csv", line(2))
    lines = (line(1, amount="1"), line(2, amount="2"), line(3), line(4, amount="x"))
    held = write(tmp_path / "held.csv", *lines, line(5, amount="5"))
    import_delivery(workspace, [held], replace(DEFAULT, budget_errors=0))
    take("c.csv", line(1), line(2), line(3), line(5, day=2))
    before = rows(RECORDS)
    ended = release_batch(workspace, 2, by="ann", reason="one row is no matter")
    show_ended(ended, tmp_path, as_json=False)
    told = "payment: 2 of 2 updated records were delivered by batch 3 too"
    out = capsys.readouterr().out.splitlines()
    assert f"{told}, which was received after this one" in out
    older = "1 row not applied: the database has its record with a later PaymentDate"
    assert f"payment: {older}" in out
    undo(workspace, 2)
    assert rows(RECORDS) == before


@pytest.mark.long
def test_a_lost_record_without_a_number_is_brought_back(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """What tells such records apart is a hash beside their own columns."""
    path = tmp_path / "gateways.csv"
    for url in ("a", "b"):
        path.write_text(f"TenantsId,PaymentActionsId,Name,NotifyUrl\n7,1,Stripe,https://{url}\n")
        import_delivery(workspace, [str(path)], DEFAULT, record="payment_gateway")
    there = "SELECT to_jsonb(p) FROM payment_gateway p"
    with workspace.database.connect() as connection:
        connection.execute("DELETE FROM payment_gateway")
    taken = undo_batch(workspace, 2, by=None, reason="test", over_changes=True)
    assert taken == {"deleted": 0, "restored": 1}
    ((back,),) = rows(there)
    assert (back["NotifyUrl"], back["batch_id"]) == ("https://a", 1)
    # It is the record that it was: found by its key, and not written beside.
    path.write_text("TenantsId,PaymentActionsId,Name,NotifyUrl\n7,1,Stripe,https://c\n")
    import_delivery(workspace, [str(path)], DEFAULT, record="payment_gateway")
    ((now,),) = rows(there)
    assert now == back | {"NotifyUrl": "https://c", "batch_id": 3, "extract_id": 3}


def test_what_others_wrote_over_is_not_looked_through_for_each_row(
    workspace: Workspace, take: Any
) -> None:
    """The planner knows nothing of the rows of a batch that have just been given back to it."""
    count = 300
    take("a.csv", *map(line, range(count)))
    take("b.csv", *(line(number, amount="9") for number in range(count)))
    with workspace.database.connect() as connection:
        connection.execute("ANALYZE before_image")
    assert undo(workspace, 2) == {"deleted": 0, "restored": count}
    with workspace.database.connect() as connection, connection.transaction():
        assert take_back(connection, EXTRACTS["payment"], 1) == {"deleted": count, "restored": 0}
        read = connection.execute(
            "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables "
            "WHERE relname = 'before_image'"
        ).fetchone()
    assert read is not None
    assert read[0] <= count
