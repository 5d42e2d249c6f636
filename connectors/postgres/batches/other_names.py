"""Other names of a file: its bytes came again under these, and were taken only once."""

from collections.abc import Iterable

import psycopg

from connectors.postgres.trail import add_event

CAME_AGAIN = "bytes delivered again"
FILE_NAMES = f"""(SELECT batch_id, id, name FROM extract
    UNION ALL SELECT batch_id, NULL, detail::json ->> 'name' FROM event
    WHERE what = '{CAME_AGAIN}' AND batch_id IS NOT NULL)"""
"""SQL for the names of the files of batches; `id` is NULL for names that came later."""


def note_names(connection: psycopg.Connection, came: Iterable[tuple[int, str, str]]) -> None:
    """Note once that a batch's bytes came under other names: batch, SHA-256 and name."""
    for batch_id, sha256, name in came:
        if sha256 not in came_as(connection, batch_id, name):
            detail = {"name": name, "sha256": sha256}
            add_event(connection, CAME_AGAIN, batch_id=batch_id, detail=detail)


def came_as(connection: psycopg.Connection, batch_id: int, name: str) -> dict[str, int]:
    """Events saying that a batch's bytes came again under a name, by SHA-256."""
    rows = connection.execute(
        "SELECT detail::json ->> 'sha256', min(id) FROM event WHERE what = %s AND batch_id = %s "
        "AND detail::json ->> 'name' = %s GROUP BY 1",
        [CAME_AGAIN, batch_id, name],
    )
    return dict(rows.fetchall())
