"""What is read back from the database is what was delivered, to the last digit and byte."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest
from polars.testing import assert_frame_equal

from connectors.errors import DatabaseLost
from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches.ledger import list_extracts
from connectors.postgres.bulk import page_columns
from connectors.postgres.bulk.page_columns import texts_fit
from connectors.postgres.one_moment import aside, in_turn, one_moment, others_at_it
from connectors.postgres.runs import sources
from flows.stages.rows.batch_rows import delivered_batch_rows
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.frames.sources import DELIVERED, LINEAGE, record_schema
from flows.steps.reconcile.countable import unfit as unfit_rows
from schemas.tables import EXTRACTS, TABLES
from tests.faults.waits import until
from tests.stages.payments import line, write


def database_rows(*asked: Any) -> pl.DataFrame:
    """All of them at once."""
    (truth,) = sources.database_rows(*asked)
    return truth


def extract_rows(*asked: Any) -> pl.DataFrame:
    """All of them at once."""
    (truth,) = sources.extract_rows(*asked)
    return truth


HOSTILE = 'tab\there, "quotes", back\\slash, \\N, \\t, line\nend, \r, é, '


def places(rows: Any) -> pl.DataFrame:
    return pl.DataFrame(
        rows("SELECT id, name FROM extract"),
        schema={"extract_id": pl.Int32, "file": pl.String},
        orient="row",
    )


@pytest.mark.long
def test_texts_come_back_as_delivered(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    path = tmp_path / "invoices.csv"
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    path.write_text(f'Id,TenantsId,DebtsId,InvoiceUrl\n1,7,2,{quoted}\n2,7,2,""\n', newline="")
    batch = import_delivery(workspace, [str(path)], DEFAULT).batch.id
    with workspace.database.connect() as connection:
        found = database_rows(connection, TABLES["invoice_file"]).sort("Id")
        expected = extract_rows(connection, TABLES["invoice_file"], [batch], places(rows))
    assert found["InvoiceUrl"].to_list() == [HOSTILE, ""]
    assert expected["InvoiceUrl"].to_list() == [HOSTILE, ""]
    assert expected["file"].unique().to_list() == ["invoices.csv"]


def test_insert_batch_rows_are_read_as_their_feed_writes_them(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    told = ["{Id:1,TenantsId:7,DebtsId:2,InvoiceUrl:u};nein;-;-", "x;ja;-;why", "y;perhaps;-;NA"]
    path.write_text("\n".join(["Data;Fehler;Jsondata;ErrorData", *told, "broken;;;;"]) + "\n")
    profile = read_profile(
        {
            "feed": "words",
            "record": "insert_batch_data",
            "delimiter": ";",
            "columns": {"Fehler": "HasError"},
            "constants": {"BatchId": "5"},
            "null": ["-", "NA"],
            "true": ["ja"],
            "false": ["nein"],
        }
    )
    batch = import_delivery(workspace, [str(path)], profile).batch.id
    with workspace.database.connect() as connection:
        extracts = list_extracts(connection, batch)
        found = delivered_batch_rows(workspace, connection, extracts)
    asked = ("HasError", "BatchId", "Jsondata", "ErrorData", "state")
    assert [*found.select(asked).iter_rows()] == [
        (False, 5, None, None, "inserted"),
        (True, 5, None, "why", "rejected"),
        (None, 5, None, None, "rejected"),
        (None, 5, None, None, "rejected"),
    ]


@pytest.mark.long(but=("1e20-None-1",))
@pytest.mark.parametrize(
    ("delivered", "read", "unfit"),
    [
        ("0.01", "0.01", 0),
        ("9007199254740993", "9007199254740993", 0),
        ("0.30000000000000004", "0.30000000000000004", 0),
        ("1e-18", "0.000000000000000001", 0),
        ("1e-19", None, 1),
        ("1e20", None, 1),
        ("99999999999999980000", "99999999999999980000", 0),
    ],
)
def test_an_amount_is_exact_or_told_as_unfit(
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    delivered: str,
    read: str | None,
    unfit: int,
) -> None:
    # The database may hold what no extract may deliver.
    import_delivery(workspace, [write(tmp_path / "p.csv", line(1))], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute('UPDATE payment SET "PaidAmount" = %s', [Decimal(delivered)])
        truth = database_rows(connection, TABLES["payment"])
    assert unfit_rows(TABLES["payment"], truth) == unfit
    assert truth["PaidAmount"].to_list() == [None if read is None else Decimal(read)]


@pytest.mark.long
def test_times_keep_their_instant_and_their_offset(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "p.csv", line(1, day=3))], DEFAULT)
    with workspace.database.connect() as connection:
        frame = database_rows(connection, TABLES["payment"])
    assert frame["PaymentDate"].to_list() == [datetime(2026, 1, 3, 9, tzinfo=UTC)]
    assert frame["PaymentDate_offset"].to_list() == [60]


@pytest.mark.long
def test_many_rows_come_whole_and_in_order(
    workspace: Workspace, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks end between rows, wherever the server's bytes were cut on their way."""
    monkeypatch.setattr("connectors.postgres.bulk.copy_out.BLOCK_BYTES", 1000)
    monkeypatch.setattr("connectors.postgres.bulk.page_columns.PAGES", 1)
    lines = [line(number) for number in range(1, 2001)]
    batch = import_delivery(workspace, [write(tmp_path / "p.csv", *lines)], DEFAULT).batch.id
    with workspace.database.connect() as connection:
        expected = extract_rows(connection, TABLES["payment"], [batch], places(rows))
        found = database_rows(connection, TABLES["payment"])
    assert expected["Id"].to_list() == [*range(1, 2001)]
    assert sorted(found["Id"]) == [*range(1, 2001)]


@pytest.mark.long
def test_rows_of_a_batch_are_read_behind_those_of_others(
    workspace: Workspace, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages without one of them come before, between and behind."""
    monkeypatch.setattr("connectors.postgres.bulk.page_columns.PAGES", 1)
    for batch in range(1, 6):
        lines = [line(number) for number in range(batch * 1000, batch * 1000 + 300)]
        import_delivery(workspace, [write(tmp_path / f"{batch}.csv", *lines)], DEFAULT)
    with workspace.database.connect() as connection:
        found = extract_rows(connection, TABLES["payment"], [2, 4], places(rows))
    expected = [batch * 1000 + number for batch in (2, 4) for number in range(300)]
    assert sorted(found["Id"]) == expected


@pytest.mark.long
def test_rows_read_by_columns_are_those_read_one_by_one(
    workspace: Workspace, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nulls, words that differ, and what no column holds, each on some pages and not on others."""
    monkeypatch.setattr("connectors.postgres.bulk.page_columns.PAGES", 1)
    lines = [line(number) for number in range(1, 501)]
    lines[100:150] = [line(number, amount="x") for number in range(101, 151)]
    batch = import_delivery(workspace, [write(tmp_path / "p.csv", *lines)], DEFAULT).batch.id
    table = TABLES["payment"]
    with workspace.database.connect() as connection:
        for change in (
            """"PaymentDate_offset" = NULL WHERE "Id" BETWEEN 1 AND 3 OR "Id" > 480""",
            """"PaidAmount" = 'NaN' WHERE "Id" = 200""",
            """"PaidAmount" = -0.0000000000000000001 WHERE "Id" = 201""",
            """"DiscountAmount" = 1e20 WHERE "Id" = 499""",
            """"PaymentDate" = '0001-01-01 00:00:00.000001+00' WHERE "Id" = 7""",
            """"PaymentDate" = '294000-12-31 23:59:59.999999+00' WHERE "Id" = 8""",
        ):
            connection.execute(f"UPDATE payment SET {change}")
        read = [
            (
                database_rows(connection, table),
                extract_rows(connection, table, [batch], places(rows)),
            )
            for _ in by_columns_and_by_rows(monkeypatch)
        ]
    for one, other in zip(*read, strict=True):
        assert_frame_equal(one.sort("row"), other.sort("row"))
    assert unfit_rows(table, read[0][0]) == 3
    assert set(read[0][1]["state"]) == {"inserted", "rejected"}


def by_columns_and_by_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    monkeypatch.setattr(page_columns, "texts_fit", lambda *_: False)
    yield


@pytest.mark.long
def test_texts_that_might_not_fit_a_message_are_read_one_by_one(workspace: Workspace) -> None:
    """Packed they take little room, and a message has them unpacked."""
    columns = {"t": ('l."t"', pl.String())}
    with workspace.database.connect() as connection:
        connection.execute("CREATE TABLE long_text (t text)")
        assert texts_fit(connection, "long_text l", "l", columns)
        half = page_columns.MOST_TEXT // 2
        connection.execute("INSERT INTO long_text SELECT repeat('x', %s)", [half])
        assert texts_fit(connection, "long_text l", "l", columns)
        connection.execute("INSERT INTO long_text SELECT repeat('x', %s)", [half + 1])
        assert not texts_fit(connection, "long_text l", "l", columns)
        assert texts_fit(connection, "long_text l", "l", {"n": ("1", pl.Int32())})


def test_a_reading_that_fails_halfway_leaves_the_connection_usable(
    workspace: Workspace, tmp_path: Path
) -> None:
    lines = [line(number) for number in range(1, 2001)]
    import_delivery(workspace, [write(tmp_path / "p.csv", *lines)], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute('ALTER TABLE payment ALTER "ActionsId" TYPE text')
        connection.execute("""UPDATE payment SET "ActionsId" = 'none' WHERE "Id" = 1999""")
        with pytest.raises(psycopg.Error, match="none"), connection.transaction():
            database_rows(connection, TABLES["payment"])
        connection.execute('DELETE FROM payment WHERE "Id" = 1999')
        assert database_rows(connection, TABLES["payment"]).height == 1999


@pytest.mark.long
def test_several_connections_read_what_one_reads(
    workspace: Workspace, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same order, and as it was when the first of them looked."""
    monkeypatch.setattr("connectors.postgres.bulk.page_columns.PAGES", 1)
    lines = [line(number) for number in range(1, 1001)]
    batch = import_delivery(workspace, [write(tmp_path / "p.csv", *lines)], DEFAULT).batch.id
    table, read = TABLES["payment"], []
    with workspace.database.connect() as connection, one_moment(connection):
        connection.execute("SELECT")
        with workspace.database.connect() as elsewhere:
            elsewhere.execute('DELETE FROM payment WHERE "Id" < 500')
            elsewhere.execute("DELETE FROM staged_payment WHERE record_number > 500")
        for most in (0, 2):
            with others_at_it(connection, workspace.database, most) as others:
                assert len(others) == most
                read.append(
                    (
                        database_rows(connection, table, others),
                        extract_rows(connection, table, [batch], places(rows), others),
                    )
                )
    for one, other in zip(*read, strict=True):
        assert one.height == 1000
        assert_frame_equal(one, other)


def test_another_connection_that_is_lost_is_told_as_a_lost_one(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the run is done again, as where its own is lost."""
    monkeypatch.setattr("connectors.postgres.bulk.page_columns.PAGES", 1)
    lines = [line(number) for number in range(1, 1001)]
    import_delivery(workspace, [write(tmp_path / "p.csv", *lines)], DEFAULT)
    with (
        workspace.database.connect() as connection,
        one_moment(connection),
        others_at_it(connection, workspace.database, 1) as others,
    ):
        connection.execute("SELECT pg_terminate_backend(%s, 10000)", [others[0].info.backend_pid])
        with pytest.raises(DatabaseLost):
            database_rows(connection, TABLES["payment"], others)


@pytest.mark.parametrize("which", ["the first", "another one"])
def test_no_connection_is_left_while_somebody_reads_by_it(workspace: Workspace, which: str) -> None:
    """Whatever ends the block: closing one that a thread reads by ended the process."""
    begun, read = threading.Event(), list[object]()

    def slowly(connection: psycopg.Connection, _: object = None) -> None:
        begun.set()
        with suppress(psycopg.errors.QueryCanceled):
            connection.execute("SELECT pg_sleep(60)")
        connection.execute("ROLLBACK")
        read.extend(connection.execute("SELECT 1").fetchone() for _ in range(20))

    with workspace.database.connect() as connection:
        with (
            suppress(ZeroDivisionError),
            one_moment(connection),
            others_at_it(connection, workspace.database, 1) as others,
        ):
            if which == "the first":
                turns = in_turn([connection], slowly, ["once"])
                threading.Thread(target=list, args=(turns,)).start()
            else:
                aside(connection, others, slowly)
            assert begun.wait(60)
            raise ZeroDivisionError
        assert read == [(1,)] * 20


@contextmanager
def waiting_for(workspace: Workspace, table: str) -> Iterator[None]:
    """Somebody waits for a lock of a table that keeps all others out."""
    with (
        workspace.database.connect() as elsewhere,
        workspace.database.connect() as watching,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(elsewhere.execute, f"VACUUM FULL {table}")
        queued = "SELECT 1 FROM pg_locks WHERE pid = %s AND NOT granted"
        until(lambda: watching.execute(queued, [elsewhere.info.backend_pid]).fetchone())
        try:
            yield
        finally:
            elsewhere.cancel_safe()
            with suppress(psycopg.errors.QueryCanceled):
                asked.result()


@pytest.mark.long
def test_whoever_waits_for_a_table_stops_none_of_those_who_read(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Two of them would wait for each other through us, where no database sees it."""
    import_delivery(workspace, [write(tmp_path / "p.csv", line(1))], DEFAULT)
    with workspace.database.connect() as connection, one_moment(connection):
        connection.execute("SET LOCAL lock_timeout = '5s'")
        with others_at_it(connection, workspace.database, 1) as others:
            others[0].execute("SELECT FROM payment")
            with waiting_for(workspace, "payment"):
                assert database_rows(connection, TABLES["payment"], others).height == 1
                # Who comes later is behind it, and is done without.
                with others_at_it(connection, workspace.database, 1) as later:
                    assert later == []


@pytest.mark.long
def test_another_connection_that_was_cut_and_is_asked_nothing_is_no_loss(
    workspace: Workspace,
) -> None:
    with workspace.database.connect() as connection, one_moment(connection):
        with others_at_it(connection, workspace.database, 1) as others:
            pid = others[0].info.backend_pid
            connection.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("record", sorted(set(EXTRACTS) - {"insert_batch_data"}))
def test_frames_have_the_columns_the_judgements_expect(workspace: Workspace, record: str) -> None:
    table = EXTRACTS[record]
    nowhere = pl.DataFrame(schema={"extract_id": pl.Int32, "file": pl.String})
    with workspace.database.connect() as connection:
        found = database_rows(connection, table)
        expected = extract_rows(connection, table, [], nowhere)
    assert dict(found.schema) == record_schema(table) | LINEAGE
    assert set(expected.columns) == set(record_schema(table) | DELIVERED)
    assert all(expected.schema[name] == dtype for name, dtype in DELIVERED.items())
