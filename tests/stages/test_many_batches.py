"""What a batch costs does not grow with the batches before it, nor does what is asked of a few."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.auditing.audit import list_events
from connectors.postgres.auditing.evidence import altered_ledger
from connectors.postgres.auditing.trail_search import TrailSearch, search_trail
from connectors.postgres.batches.corrections import unrepaired
from connectors.postgres.batches.overview import list_overview
from connectors.postgres.runs.acceptance_rules import list_rules
from connectors.postgres.runs.listings import last_sent, newest_listings
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.stages.payments import HEADER, line, write

GROWING = ("batch", "extract", "receipt", "event", "event_chain", "note", "send")
"""Tables of the ledger with rows of every batch."""

OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
"""A session says what it has read before it is gone."""


def rows_read(connection: psycopg.Connection) -> dict[str, int]:
    """How many rows of each of them were read up to now, by sessions that have all ended."""
    while connection.execute(OTHERS).fetchone() != (0,):
        connection.commit()
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.commit()
    rows = connection.execute(
        "SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables "
        "WHERE relname = ANY(%s)",
        [[*GROWING]],
    )
    return dict(rows)


def use_indexes(connection: psycopg.Connection) -> None:
    """Where there is an index it is used, however small the table is, by all who come from now."""
    name = connection.execute("SELECT current_database()").fetchone()
    assert name is not None
    connection.execute(f'ALTER DATABASE "{name[0]}" SET enable_seqscan = off')
    connection.commit()


@pytest.mark.long
def test_as_many_rows_of_the_ledger_are_read_for_the_sixth_batch_as_for_the_third(
    workspace: Workspace, tmp_path: Path
) -> None:
    with workspace.database.connect() as connection:
        use_indexes(connection)
        read = [rows_read(connection)]
        for number in range(6):
            rows = line(2 * number + 1), line(2 * number + 2, amount="x")
            import_delivery(workspace, [write(tmp_path / f"{number}.csv", *rows)], DEFAULT)
            read.append(rows_read(connection))
    of_each = [
        {name: after[name] - before[name] for name in GROWING} for before, after in pairwise(read)
    ]
    assert of_each[5] == of_each[2]


ASKED: dict[str, Callable[[psycopg.Connection], object]] = {
    "the latest batches": lambda connection: list_overview(connection, 2),
    "one batch": lambda connection: list_overview(connection, 1, only=1),
    "the latest events": lambda connection: list_events(connection, 2),
    "a page of the trail": lambda connection: [*search_trail(connection, TrailSearch(), 2)],
    "rules of acceptance": list_rules,
    "listings of the service": lambda connection: newest_listings(connection, None),
    "when a listing has to be newer": lambda connection: last_sent(connection, [1]),
    "whether a batch is as it was": lambda connection: altered_ledger(connection, [1]),
    "whether its repairs are there": lambda connection: [*unrepaired(connection, [1])],
}
A_FEW = 10
"""Rows that another plan may read more, of hundreds that came."""
BY_JOINS = (
    *("the latest batches", "one batch"),
    *("whether a batch is as it was", "whether its repairs are there"),
)
"""Of so few batches any plan will do that reads no table from its beginning to its end."""


def read_whole(connection: psycopg.Connection) -> dict[str, int]:
    """How often each table was read from its beginning to its end, up to `rows_read`."""
    rows = connection.execute("SELECT relname, seq_scan FROM pg_stat_user_tables").fetchall()
    return {name: int(scans) for name, scans in rows if name in {*GROWING, "outcome"}}


@pytest.mark.long
def test_what_is_asked_of_a_few_reads_nothing_of_the_others(
    workspace: Workspace, tmp_path: Path
) -> None:
    """However many batches there were before them, some corrected by another one."""

    def deliver(number: int) -> None:
        bad, repaired = line(number, amount="x"), line(number)
        path = write(tmp_path / f"{number}.csv", bad, line(number + 1))
        batch = import_delivery(workspace, [path], DEFAULT).batch.id
        repair = tmp_path / f"{number} repaired.csv"
        repair.write_text(f"ReconRow,{HEADER}\n{batch}:1,{repaired}\n")
        import_delivery(workspace, [str(repair)], DEFAULT, corrects=batch)

    def asked(connection: psycopg.Connection) -> dict[str, dict[str, int]]:
        read = {}
        connection.execute("ANALYZE")  # The server may do so at any moment, or not.
        connection.commit()
        for name, ask in ASKED.items():
            before, whole = rows_read(connection), read_whole(connection)
            with workspace.database.connect() as asking:
                ask(asking)
            after = rows_read(connection)
            assert read_whole(connection) == whole, name
            if name not in BY_JOINS:
                read[name] = {table: after[table] - before[table] for table in GROWING}
        return read

    for number in range(3):
        deliver(10 * number)
    with workspace.database.connect() as connection:
        use_indexes(connection)
        few = asked(connection)
        for number in range(3, 8):
            deliver(10 * number)
        many = asked(connection)
    more = {name: max(many[name][one] - few[name][one] for one in GROWING) for name in many}
    assert max(more.values()) <= A_FEW, more
