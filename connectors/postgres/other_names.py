"""Other names of a file: its bytes came under them once more, and were taken once."""

from collections.abc import Iterable

import psycopg

from connectors.postgres.ledger import Extract
from connectors.postgres.trail import add_event

CAME_AGAIN = "bytes delivered again"
FILE_NAMES = f"""(SELECT batch_id, id, name FROM extract
    UNION ALL SELECT batch_id, NULL, detail::json ->> 'name' FROM event
    WHERE what = '{CAME_AGAIN}' AND batch_id IS NOT NULL)"""
"""SQL for the names of the files of batches; `id` is that of the file that was taken."""


def note_names(connection: psycopg.Connection, came: Iterable[tuple[str, Extract]]) -> None:
    """Write down under which names the bytes of files came, each name once."""
    for name, taken in came:
        if event_of_name(connection, taken, name) is None:
            detail = {"name": name, "sha256": taken.sha256}
            add_event(connection, CAME_AGAIN, batch_id=taken.batch_id, detail=detail)


def event_of_name(connection: psycopg.Connection, extract: Extract, name: str) -> int | None:
    """The event that says that the bytes of a file came under a name, too; None: none does."""
    row = connection.execute(
        "SELECT min(id) FROM event WHERE what = %s AND batch_id = %s "
        "AND detail::json ->> 'sha256' = %s AND detail::json ->> 'name' = %s",
        [CAME_AGAIN, extract.batch_id, extract.sha256, name],
    ).fetchone()
    return None if row is None else row[0]
