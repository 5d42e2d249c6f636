"""Digests of the rows that are staged of a batch.

Receipts say what an extract adds up to; a date, a reference or a text can change without changing
that. So the database hashes every staged row once all of them are there, and again before they are
compared. The digests are receipts, and a hash of these stands in the audit trail, which is chained.
Numbers that the database gives (of batch and extract) are in none: a lost run has used up some, and
the same delivery has the same digests whatever went wrong meanwhile.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import psycopg
from psycopg import sql

from connectors.postgres.lease import Lease
from connectors.postgres.ledger import Receipt, State
from connectors.postgres.trail import said_by
from schemas.derived.sql_names import SCHEMA, staged_columns, staged_name
from schemas.field import Table
from schemas.guards.batch_states import PREFIX
from schemas.tables import EXTRACTS

KEEP = "keep "
"""Of the stage whose receipts have the digests, before the name of the record kind."""
NUMBERED = frozenset({"batch_id", "extract_id"})
ROWS, CLUES = "rows", "clues"
"""Of the detail of the event that ends staging: hashes of what is kept of rows, and of chunks."""
_RECEIVED = PREFIX + State.RECEIVED
STAGED = PREFIX + State.STAGED
"""Events that tell of the rows of a batch, and no others do, whoever wrote them."""
BYTES, FIELDS = "bytes", ""
_ROW_HASHES = {
    BYTES: "hash_record_extended(ROW(record_send(ROW({}))), 0)",
    # The hash of a record adds up those of its fields: of the sum of rows, values that two rows
    # exchange are no change, half the time.
    FIELDS: "hash_record_extended(ROW({}), 0)",
}
"""What is hashed of a row: all bytes of it at once; in an earlier version, each field."""


class Digest(NamedTuple):
    """The rows of one extract that were staged as one record kind."""

    rows: int
    sum: str | None
    """The sum of the 64-bit hashes of the rows, each of which has the number of its record.

    None: other columns were hashed than there are now, as versions add some.
    """


Digests = dict[tuple[int, str], Digest]
"""By extract and record kind."""


def row_digests(connection: psycopg.Connection, table: Table, batches: Collection[int]) -> Digests:
    """Every staged row of some batches hashed: place, text, reasons and all values.

    A batch that an earlier version staged is hashed as that one did.
    """
    earlier = _hashed_by_fields(connection, table, batches)
    return {
        (one, table.name): Digest(rows, total)
        for how, of in ((BYTES, {*batches} - earlier), (FIELDS, earlier))
        if of
        for one, rows, total, *_ in connection.execute(
            _digests_of(table, how), {"batches": sorted(of)}
        )
    }


def _hashed_by_fields(
    connection: psycopg.Connection, table: Table, batches: Collection[int]
) -> set[int]:
    rows = connection.execute(
        "SELECT DISTINCT batch_id FROM receipt WHERE stage = %s AND batch_id = ANY(%s) "
        "AND starts_with(sha256, %s)",
        [KEEP + table.name, list(batches), f"{_form(table, FIELDS)} "],
    )
    return {batch for (batch,) in rows}


def keep_digests(lease: Lease, tables: Iterable[Table]) -> dict[str, object]:
    """Write the receipts of what is staged of its batch; what the event says that ends the stage.

    Call it inside the transaction that ends it.
    """
    for table in tables:
        # Read first: of a statement that writes, the server reads with one process alone.
        found = lease.connection.execute(_digests_of(table, BYTES), {"batches": [lease.batch_id]})
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
                sha256=f"{_form(table, BYTES)} {total}",
            )
            for extract, rows, total, first, last in found.fetchall()
        )
    receipts = _hash_of_receipts(lease.connection, [lease.batch_id])
    clues = clues_digests(lease.connection, [lease.batch_id])
    return {ROWS: receipts.get(lease.batch_id, ""), CLUES: clues.get(lease.batch_id, "")}


def clues_digests(connection: psycopg.Connection, batches: Collection[int]) -> dict[int, str]:
    """What the chunks of some batches say beside their counts, hashed; of none that say nothing."""
    rows = connection.execute(
        "SELECT batch_id, encode(sha256(convert_to(string_agg(clues, E'\\n' "
        "ORDER BY extract_id, chunk), 'UTF8')), 'hex') FROM receipt "
        "WHERE stage = 'stage' AND clues IS NOT NULL AND batch_id = ANY(%s) GROUP BY 1",
        [list(batches)],
    )
    return dict(rows.fetchall())


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
        known = record in EXTRACTS and form in {_form(EXTRACTS[record], how) for how in _ROW_HASHES}
        found[extract, record] = Digest(json.loads(counts)["rows"], total if known else None)
    return found


def differing(
    then: Digests, now: Digests
) -> Iterator[tuple[tuple[int, str], tuple[Digest, Digest]]]:
    """Extracts and record kinds whose rows are not those that were hashed: then and now.

    Rows that were hashed over other columns are counted.
    """
    for of in sorted({*then, *now}):
        before, after = (one.get(of, Digest(0, "")) for one in (then, now))
        if before.sum is None:
            after = after._replace(sum=None)
        if before != after:
            yield of, (before, after)


def are_as_staged(
    connection: psycopg.Connection, table: Table, batch_id: int, extract_id: int
) -> bool | None:
    """Whether the rows of an extract are those that were hashed once all were staged.

    None: nothing is kept to tell by. They are being staged, or an earlier version staged them, or
    other columns were hashed than there are now.
    """
    told = recorded(connection, [batch_id])
    if told[batch_id] is None:
        return None
    of = extract_id, table.name
    then = kept_digests(connection, [batch_id]).get(of, Digest(0, ""))
    now = row_digests(connection, table, [batch_id]).get(of, Digest(0, ""))
    altered = next(differing({of: then}, {of: now}), None)
    if altered is not None or changed_receipts(connection, told):
        return False
    return None if then.sum is None else True


def recorded(connection: psycopg.Connection, batches: Collection[int]) -> dict[int, str | None]:
    """What the audit trail says of the rows of each batch since it was last read.

    The first word counts that was said since then. None: an earlier version took it in.
    """
    found: dict[int, str | None] = dict.fromkeys(batches)
    for batch, what, detail in connection.execute(
        "SELECT batch_id, what, detail FROM event WHERE batch_id = ANY(%s) AND what = ANY(%s) "
        "ORDER BY id",
        [list(batches), [_RECEIVED, STAGED]],
    ):
        if what == _RECEIVED:
            found[batch] = None
        elif found[batch] is None:
            found[batch] = said_by(detail).get(ROWS)
    return found


def changed_receipts(connection: psycopg.Connection, told: dict[int, str | None]) -> list[int]:
    """The batches whose receipts of staged rows are not those the audit trail tells of."""
    said = {batch: rows for batch, rows in told.items() if rows is not None}
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


def _digests_of(table: Table, how: str) -> sql.Composed:
    """SQL for the digests by extract; the range of extracts is what the range indexes know."""
    columns = sql.SQL(", ").join(sql.Identifier("s", name) for name in _hashed(table))
    return sql.SQL(
        "SELECT s.extract_id, count(*), sum({})::text, "
        "min(s.record_number), max(s.record_number) FROM {} s "
        "WHERE s.batch_id = ANY(%(batches)s) AND s.extract_id "
        "BETWEEN (SELECT min(id) FROM extract WHERE batch_id = ANY(%(batches)s)) "
        "AND (SELECT max(id) FROM extract WHERE batch_id = ANY(%(batches)s)) GROUP BY 1"
    ).format(sql.SQL(_ROW_HASHES[how]).format(columns), sql.Identifier(SCHEMA, staged_name(table)))


def _form(table: Table, how: str) -> str:
    """Which columns are hashed, and how."""
    told = filter(None, [how, *_hashed(table)])
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _hashed(table: Table) -> list[str]:
    return [name for name in staged_columns(table) if name not in NUMBERED]
