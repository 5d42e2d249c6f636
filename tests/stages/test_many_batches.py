"""What a batch costs does not grow with the batches before it."""

from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

from connectors.files.profile import DEFAULT
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.stages.payments import line, write

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


@pytest.mark.long
def test_as_many_rows_of_the_ledger_are_read_for_the_sixth_batch_as_for_the_third(
    workspace: Workspace, tmp_path: Path
) -> None:
    with workspace.database.connect() as connection:
        name = connection.execute("SELECT current_database()").fetchone()
        assert name is not None
        # Where there is an index it is used, however small the table is.
        connection.execute(f'ALTER DATABASE "{name[0]}" SET enable_seqscan = off')
        connection.commit()
        read = [rows_read(connection)]
        for number in range(6):
            rows = line(2 * number + 1), line(2 * number + 2, amount="x")
            import_delivery(workspace, [write(tmp_path / f"{number}.csv", *rows)], DEFAULT)
            read.append(rows_read(connection))
    of_each = [
        {name: after[name] - before[name] for name in GROWING} for before, after in pairwise(read)
    ]
    assert of_each[5] == of_each[2]
