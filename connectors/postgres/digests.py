"""Digests of what the database keeps of a batch: its staged rows, and what became of them.

Receipts say what an extract adds up to; a date, a reference or a text can change without changing
that. So the database hashes every staged row once all of them are there, and again before they are
compared. The digests are receipts, and a hash of these stands in the audit trail, which is chained.
Numbers that the database gives (of batch and extract) are in none: a lost run has used up some, and
the same delivery has the same digests whatever went wrong meanwhile.
"""

import hashlib
import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

import psycopg
from psycopg import sql

from connectors.postgres.lease import Lease
from connectors.postgres.ledger import ENDED, Receipt, State, batch_span
from connectors.postgres.trail import said_by
from schemas.derived.sql_names import SCHEMA, staged_columns, staged_name
from schemas.derived.views import CORRECTED, of_batch
from schemas.field import Table
from schemas.guards.batch_states import PREFIX
from schemas.tables import EXTRACTS

KEEP = "keep "
"""Of the stage whose receipts have the digests, before the name of the record kind."""
NUMBERED = frozenset({"batch_id", "extract_id"})
ROWS, ENDS = "rows", "ends"
"""Of the detail of an event that ends a stage."""
_RECEIVED = PREFIX + State.RECEIVED
_STAGED = PREFIX + State.STAGED
_ENDS = tuple(PREFIX + state for state in (*ENDED, State.FAILED))
"""Events that tell of the rows of a batch, and no others do, whoever wrote them."""


class Digest(NamedTuple):
    """The rows of one extract that were staged as one record kind."""

    rows: int
    sum: str | None
    """The sum of the 64-bit hashes of the rows: their order says nothing.

    None: other columns were hashed than there are now, as versions add some.
    """


Digests = dict[tuple[int, str], Digest]
"""By extract and record kind."""


class Recorded(NamedTuple):
    """What the audit trail says of a batch; None: an earlier version took it in."""

    rows: str | None = None
    ends: str | None = None


def row_digests(connection: psycopg.Connection, table: Table, batches: Collection[int]) -> Digests:
    """Every staged row of some batches hashed: place, text, reasons and all values."""
    found = connection.execute(_digests_of(table), {"batches": list(batches)})
    return {(one, table.name): Digest(rows, total) for one, rows, total, *_ in found}


def keep_digests(lease: Lease, tables: Iterable[Table]) -> dict[str, object]:
    """Write the receipts of what is staged of its batch; what the event says that ends the stage.

    Call it inside the transaction that ends it.
    """
    for table in tables:
        # Read first: of a statement that writes, the server reads with one process alone.
        found = lease.connection.execute(_digests_of(table), {"batches": [lease.batch_id]})
        lease.add_receipts(
            Receipt(
                batch_id=lease.batch_id,
                extract_id=extract,
                stage=KEEP + table.name,
                chunk=0,
                first_record=first,
                last_record=last,
                counts={"rows": rows},
                totals={},
                sha256=f"{_form(table)} {total}",
            )
            for extract, rows, total, first, last in found.fetchall()
        )
    receipts = _hash_of_receipts(lease.connection, [lease.batch_id])
    return {ROWS: receipts.get(lease.batch_id, "")}


def kept_digests(connection: psycopg.Connection, batches: Collection[int]) -> Digests:
    """What the receipts say of the rows of some batches."""
    rows = connection.execute(
        f"SELECT extract_id, stage, counts, sha256 FROM receipt WHERE stage LIKE '{KEEP}%%' "
        "AND batch_id = ANY(%s)",
        [list(batches)],
    )
    found: Digests = {}
    for extract, stage, counts, text in rows:
        record = stage.removeprefix(KEEP)
        form, _, total = text.partition(" ")
        known = record in EXTRACTS and form == _form(EXTRACTS[record])
        found[extract, record] = Digest(json.loads(counts)["rows"], total if known else None)
    return found


def ends_detail(connection: psycopg.Connection, batch_id: int) -> dict[str, object] | None:
    """What the event says that ends a batch; None: one before it has said it.

    It is said once. What was changed since then would be said as if it had always been so.
    """
    if recorded(connection, [batch_id])[batch_id].ends is not None:
        return None
    return {ENDS: ends_digest(connection, batch_id)}


def ends_digest(connection: psycopg.Connection, batch_id: int) -> str:
    """What became of the rows of a batch, by the receipts of applying and by outcomes of rows.

    That a row was corrected is left out: the batches behind this one say so, and take it back.
    """
    row = connection.execute(
        f"""WITH e AS (
                SELECT id, row_number() OVER (ORDER BY id) AS place
                FROM extract WHERE batch_id = %(batch)s)
            SELECT
            (SELECT count(*) || ' ' || coalesce(sum(hash_record_extended(
                ROW(e.place, o.record_number, o.verdict, o.error_data), 0)), 0)
            FROM outcome o JOIN e ON e.id = o.extract_id
            WHERE {of_batch("o")} AND o.verdict <> '{CORRECTED}'),
            (SELECT count(*) || ' ' || coalesce(sum(hash_record_extended(
                ROW(e.place, r.stage, r.first_record, r.last_record, r.verdict), 0)), 0)
            FROM receipt r JOIN e ON e.id = r.extract_id
            WHERE r.batch_id = %(batch)s AND r.stage LIKE 'apply %%')""",
        batch_span(connection, batch_id),
    ).fetchone()
    assert row is not None
    return " ".join(row)


def recorded(connection: psycopg.Connection, batches: Collection[int]) -> dict[int, Recorded]:
    """What the audit trail says of each batch since it was last read.

    Of its rows the first word counts that was said since then, and of its end the first one at all.
    """
    found = dict.fromkeys(batches, Recorded())
    for batch, what, detail in connection.execute(
        "SELECT batch_id, what, detail FROM event WHERE batch_id = ANY(%s) AND what = ANY(%s) "
        "ORDER BY id",
        [list(batches), [_RECEIVED, _STAGED, *_ENDS]],
    ):
        told, known = said_by(detail), found[batch]
        if what == _RECEIVED:
            found[batch] = known._replace(rows=None)
        elif what == _STAGED and known.rows is None:
            found[batch] = known._replace(rows=told.get(ROWS))
        elif what in _ENDS and known.ends is None:
            found[batch] = known._replace(ends=told.get(ENDS))
    return found


def changed_receipts(connection: psycopg.Connection, told: dict[int, Recorded]) -> list[int]:
    """The batches whose receipts of staged rows are not those the audit trail tells of."""
    said = {batch: one.rows for batch, one in told.items() if one.rows is not None}
    there = _hash_of_receipts(connection, said)
    return sorted(batch for batch, rows in said.items() if there.get(batch, "") != rows)


def _hash_of_receipts(connection: psycopg.Connection, batches: Collection[int]) -> dict[int, str]:
    found: dict[int, list[str]] = {}
    for batch, *told in connection.execute(
        f"SELECT batch_id, stage, counts, sha256 FROM receipt "
        f"WHERE stage LIKE '{KEEP}%%' AND batch_id = ANY(%s) "
        'ORDER BY extract_id, stage COLLATE "C"',
        [list(batches)],
    ):
        found.setdefault(batch, []).append(json.dumps(told))
    return {
        batch: hashlib.sha256("\n".join(lines).encode()).hexdigest()
        for batch, lines in found.items()
    }


def _digests_of(table: Table) -> sql.Composed:
    """SQL for the digests by extract; the range of extracts is what the range indexes know."""
    return sql.SQL(
        "SELECT s.extract_id, count(*), sum(hash_record_extended(ROW({}), 0))::text, "
        "min(s.record_number), max(s.record_number) FROM {} s "
        "WHERE s.batch_id = ANY(%(batches)s) AND s.extract_id "
        "BETWEEN (SELECT min(id) FROM extract WHERE batch_id = ANY(%(batches)s)) "
        "AND (SELECT max(id) FROM extract WHERE batch_id = ANY(%(batches)s)) GROUP BY 1"
    ).format(
        sql.SQL(", ").join(sql.Identifier("s", name) for name in _hashed(table)),
        sql.Identifier(SCHEMA, staged_name(table)),
    )


def _form(table: Table) -> str:
    """Which columns are hashed."""
    return hashlib.sha256("\n".join(_hashed(table)).encode()).hexdigest()[:16]


def _hashed(table: Table) -> list[str]:
    return [name for name in staged_columns(table) if name not in NUMBERED]
