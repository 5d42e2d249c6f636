"""New rows are inserted over two connections side by side, and the ledger tells it as one."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.apply import NOT_NEW, add_rows
from connectors.postgres.batches.ranges import Range
from connectors.postgres.database import Database
from connectors.settings import Limits
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.guards.roles import LOADER, MERGER, statements
from schemas.tables import PAYMENT
from tests.stages.payments import line, write

SAMPLES = Path(__file__).parents[2] / "data_samples"
ROWS = 4_000
RECEIPTS = """SELECT first_record, last_record, verdict FROM receipt
    WHERE stage = 'apply payment' ORDER BY extract_id, chunk"""
SMALL = Limits(block_bytes=16 * 1024, strict_bytes=0)
WAITING = "SELECT count(*) FROM pg_locks WHERE relation = 'payment'::regclass AND NOT granted"

PIDS = "SELECT pid FROM pg_locks WHERE relation = 'payment'::regclass AND NOT granted"


@pytest.fixture
def small(workspace: Workspace) -> Workspace:
    """The workspace, with chunks of a few hundred rows."""
    return replace(workspace, settings=replace(workspace.settings, limits=SMALL))


@pytest.mark.long
@pytest.mark.parametrize("step", [1, -1], ids=["rising keys", "falling keys"])
def test_an_extract_of_several_chunks_is_two_even_portions(
    small: Workspace, tmp_path: Path, rows: Any, step: int
) -> None:
    keys = range(1, ROWS + 1)[::step]
    ended = import_delivery(small, [write(tmp_path / "a.csv", *map(line, keys))], DEFAULT)
    assert ended.exit_code == 0
    (first, second) = rows(RECEIPTS)
    assert (first[0], second[1]) == (1, ROWS)
    assert second[0] == first[1] + 1
    assert abs(first[1] - ROWS // 2) < 400
    assert {first[2], second[2]} == {"inserted"}
    assert rows('SELECT count(*), sum("Id") FROM payment') == [(ROWS, sum(keys))]


@pytest.mark.long
def test_a_row_that_somebody_else_writes_meanwhile_is_judged(
    small: Workspace, tmp_path: Path, rows: Any
) -> None:
    """Both portions are on their way when one of their keys is written by another hand."""
    delivered = write(tmp_path / "a.csv", *map(line, range(1, ROWS + 1)))
    other = write(tmp_path / "b.csv", line(ROWS - 7, amount="99", day=9))
    import_delivery(small, [other], DEFAULT)
    with small.database.connect() as connection, ThreadPoolExecutor(1) as beside:
        ((image,),) = connection.execute("DELETE FROM payment RETURNING payment::text").fetchall()
        with connection.transaction():
            connection.execute("LOCK TABLE payment IN SHARE ROW EXCLUSIVE MODE")
            run = beside.submit(import_delivery, small, [delivered], DEFAULT)
            until(lambda: run.done() or rows(WAITING) == [(2,)])
            connection.execute("INSERT INTO payment SELECT (%s::payment).*", [image])
        ended = run.result()
    assert ended.exit_code == 0
    assert rows("SELECT state, count(*) FROM staged_row WHERE batch_id = 2 GROUP BY 1") == [
        ("inserted", ROWS - 1),
        ("stale", 1),
    ]
    assert [verdict for *_, verdict in rows(RECEIPTS)[1:]] == ["inserted", "inserted"]


@pytest.mark.long
def test_rows_that_are_taken_for_new_and_are_not_are_refused(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Whoever wrote them before the range is looked at: nothing of it is skipped in silence."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2))], DEFAULT)
    with (
        workspace.database.connect() as connection,
        pytest.raises(NOT_NEW),
        connection.transaction(),
    ):
        add_rows(connection, PAYMENT, Range(1, 1, 1, 2), ())


@pytest.mark.long(but=("that of the lease",))
@pytest.mark.parametrize("holds", ["NOT", ""], ids=["the second connection", "that of the lease"])
def test_a_connection_that_is_lost_takes_no_portion_along(
    small: Workspace, tmp_path: Path, rows: Any, holds: str
) -> None:
    delivered = write(tmp_path / "a.csv", *map(line, range(1, ROWS + 1)))
    with small.database.connect() as connection, ThreadPoolExecutor(1) as beside:
        with connection.transaction():
            connection.execute("LOCK TABLE payment IN SHARE ROW EXCLUSIVE MODE")
            run = beside.submit(import_delivery, small, [delivered], DEFAULT)
            until(lambda: run.done() or rows(WAITING) == [(2,)])
            first = rows(PIDS)
            ended = rows(
                "SELECT pg_terminate_backend(pid) FROM pg_locks "
                "WHERE relation = 'payment'::regclass AND NOT granted AND "
                f"{holds} pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
            )
            assert ended == [(True,)]
            if not holds:
                # The other one does not wait for the lock in vain: the run begins anew at once.
                until(lambda: run.done() or not {*first} & {*rows(PIDS)})
        assert run.result().exit_code == 0
    assert rows('SELECT count(*), count(DISTINCT "Id") FROM payment') == [(ROWS, ROWS)]
    assert rows("SELECT DISTINCT state FROM staged_row") == [("inserted",)]
    assert len(rows(RECEIPTS)) == 2


@pytest.mark.long
def test_where_no_second_connection_is_left_one_does_it_all(
    small: Workspace, tmp_path: Path, rows: Any
) -> None:
    delivered = write(tmp_path / "a.csv", *map(line, range(1, ROWS + 1)))
    # A record kind with secrets: a correction looks for those that it leaves out.
    secret = str(SAMPLES / "clean" / "payment_gateways.csv")
    user = f"narrow_{uuid.uuid4().hex[:8]}"
    url = str(small.settings.database_url).replace("//postgres:@", f"//{user}@")
    assert user in url
    narrow = replace(small, database=Database(url, small.database.wait_seconds))
    with small.database.connect() as owner:
        for statement in statements():
            owner.execute(statement)  # type: ignore[call-overload]
        owner.execute(f"CREATE ROLE {user} LOGIN CONNECTION LIMIT 1 IN ROLE {LOADER}, {MERGER}")
        try:
            ended = import_delivery(narrow, [delivered], DEFAULT)
            assert import_delivery(narrow, [secret], DEFAULT).exit_code == 0
        finally:
            owner.execute(f"DROP ROLE {user}")
    assert ended.exit_code == 0
    assert rows("SELECT count(*) FROM payment") == [(ROWS,)]
    assert len(rows(RECEIPTS)) == 2


def until(done: Callable[[], bool]) -> None:
    """Ask again until it is so; the server ends every statement long before the test would."""
    while not done():
        pass
