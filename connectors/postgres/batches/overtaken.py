"""Rows overwritten by a batch that was received before theirs and applied after it.

The notes of batches say which of them wrote records of later batches
(`connectors.postgres.batches.written_over`).
"""

from collections.abc import Mapping, Sequence

import polars as pl
import psycopg

from connectors.postgres.batches.ledger import TAKEN_BACK, batch_span
from connectors.postgres.batches.written_over import LATER_BATCH, OF_LATER
from connectors.postgres.bulk.copy_out import Columns, copied
from connectors.postgres.trail import through_before
from schemas.derived.sql_names import SCHEMA, key_columns, listed, staged_name
from schemas.derived.views import APPLIED, STATE, apply_stage, of_batch, outcome_joins, quoted
from schemas.field import Table
from schemas.reasons import NOT_SHOWN


def written_late(connection: psycopg.Connection) -> dict[str, dict[int, list[str]]]:
    """By record kind, the batches that wrote records of later batches, and these batches' names."""
    found: dict[str, dict[int, list[str]]] = {}
    for record, batch_id, named in connection.execute(
        "SELECT n.record, n.batch_id, array_agg(n.value ORDER BY n.value) FROM note n "
        f"JOIN batch b ON b.id = n.batch_id AND b.state NOT IN ({listed(TAKEN_BACK)}) "
        "WHERE n.code = %s GROUP BY 1, 2 ORDER BY 1, 2",
        [LATER_BATCH],
    ):
        found.setdefault(record, {})[batch_id] = named
    return found


def overtaken(
    connection: psycopg.Connection, table: Table, late: Mapping[int, Sequence[str]]
) -> pl.DataFrame:
    """Rows whose record was written after them by a batch of `late`, received before theirs.

    Columns `batch_id`, `extract_id` and `row`. The trail says which batch was finished before
    another began; for batches applied side by side, the receipts say which range came first. The
    writer that a record names proves nothing: somebody may have restored its former content.
    """
    found = [pl.DataFrame(schema={name: dtype for name, (_, dtype) in _OVERTAKEN.items()})]
    return pl.concat([*found, *(_overtaken_by(connection, table, *one) for one in late.items())])


_OVERTAKEN: Columns = {
    "batch_id": ("x.batch_id", pl.Int32()),
    "extract_id": ("x.extract_id", pl.Int32()),
    "row": ("x.record_number", pl.Int64()),
}


def _overtaken_by(
    connection: psycopg.Connection, table: Table, batch_id: int, named: Sequence[str]
) -> pl.DataFrame:
    later = connection.execute(
        f"""SELECT r.batch_id, {through_before("r.batch_id", "%(batch)s")},
            min(r.extract_id), max(r.extract_id)
        FROM receipt r JOIN batch b ON b.id = r.batch_id
        WHERE r.batch_id > %(batch)s AND r.stage = %(stage)s
            AND b.state NOT IN ({listed(TAKEN_BACK)})
            AND NOT {through_before("%(batch)s", "r.batch_id")}
            AND (%(all)s OR r.batch_id::text = ANY(%(named)s))
        GROUP BY r.batch_id""",
        {
            "batch": batch_id,
            "stage": apply_stage(table),
            "named": list(named),
            "all": NOT_SHOWN in named,
        },
    ).fetchall()
    keys = [quoted(key) for key in key_columns(table)]
    staged = f"{SCHEMA}.{staged_name(table)}"
    # A batch writes each record once. The planner takes a state for rare unless coalesce hides
    # it, and would search the later batches for each row.
    rows = f"""(WITH written AS MATERIALIZED (
            SELECT {", ".join(f"s.{key}" for key in keys)}, r.written_at AS at
            FROM {staged} s {outcome_joins(table)}
            WHERE {of_batch("s")} AND coalesce({STATE} = 'updated', FALSE)
        )
        SELECT s.batch_id, s.extract_id, s.record_number
        FROM written w JOIN {staged} s ON {" AND ".join(f"s.{key} = w.{key}" for key in keys)}
        JOIN unnest(%(later)s::int[], %(before)s::bool[]) AS l (batch_id, before)
            ON l.batch_id = s.batch_id
        {outcome_joins(table, batch=False, among=OF_LATER)}
        WHERE {OF_LATER.format("s")} AND {STATE} IN ({listed(APPLIED)})
            AND (l.before OR r.written_at < w.at)) x"""
    parameters = {
        **batch_span(connection, batch_id),
        "later": [one for one, *_ in later],
        "before": [before for _, before, *_ in later],
        "first_later": min((first for *_, first, _ in later), default=0),
        "last_later": max((last for *_, last in later), default=0),
    }
    return copied(connection, _OVERTAKEN, rows, parameters)
