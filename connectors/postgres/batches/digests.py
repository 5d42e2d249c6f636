"""Digests of the staged rows of a batch.

Receipts state the totals of an extract, but a date, a reference or a text can change without
changing these. So the database hashes every staged row once all are staged, and again before they
are compared. The digests are receipts, and a hash of these is in the audit trail, which is chained.
Numbers that the database assigns (of batch and extract) are not hashed: a lost run has used up
some, and the same delivery must have the same digests whatever went wrong meanwhile.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Receipt, State
from connectors.postgres.database import planned
from connectors.postgres.schema.own_kinds import defined_so_far
from connectors.postgres.trail import read_detail
from schemas.derived.sql_names import SCHEMA, staged_columns, staged_name
from schemas.field import Table
from schemas.guards.batch_states import PREFIX
from schemas.kinds import stored_names
from schemas.tables import EXTRACTS, OWN

KEEP = "keep "
"""Stage of the receipts with digests, followed by the name of the record kind."""
NUMBERED = frozenset({"batch_id", "extract_id"})
ROWS, CLUES = "rows", "clues"
"""Keys in the event that ends staging: hashes of the receipts of rows, and of chunks' clues."""
_RECEIVED = PREFIX + State.RECEIVED
STAGED = PREFIX + State.STAGED
"""The only events that tell of a batch's rows, whoever wrote them."""
BYTES, FIELDS = "bytes", ""
_ROW_HASHES = {
    BYTES: "hash_record_extended(ROW(record_send(ROW({}))), 0)",
    # The hash of a record adds up those of its fields. So if two rows exchange values, half the
    # time the sum over all rows stays the same.
    FIELDS: "hash_record_extended(ROW({}), 0)",
}
"""How a row is hashed: all its bytes at once, or field by field as in an earlier version."""
SPAN = 65_536
"""Record numbers per receipt; a span is small enough to verify a row with few others."""


class Digest(NamedTuple):
    """The rows of one extract that were staged as one record kind."""

    rows: int
    sum: str | None
    """The sum of the 64-bit hashes of the rows, each of which includes its record number.

    None if other columns were hashed than exist now, since versions add columns. The former columns
    of our own record kinds are known from their earlier definitions.
    """


Digests = dict[tuple[int, str], Digest]
"""Digests by extract and record kind."""


class RecordSpan(NamedTuple):
    """A range of an extract's records: their first and last number."""

    extract: int
    first: int
    last: int


def row_digests(
    connection: psycopg.Connection,
    table: Table,
    batches: Collection[int],
    within: RecordSpan | None = None,
) -> Digests:
    """Hash every staged row of these batches, or of a span: place, text, reasons, values.

    Each batch is hashed in the form in which it was staged, also by an earlier version or under an
    earlier definition of one of our own kinds.
    """
    kept: dict[str, set[int]] = {}
    for batch, form in connection.execute(
        "SELECT DISTINCT batch_id, split_part(sha256, ' ', 1) FROM receipt "
        "WHERE stage = %s AND batch_id = ANY(%s)",
        [KEEP + table.name, list(batches)],
    ):
        kept.setdefault(form, set()).add(batch)
    forms = _forms(connection, table, kept)
    known = {form: kept[form] for form in kept.keys() & forms.keys()}
    others = {*batches}.difference(*known.values())
    return _added_up(
        (extract, table.name, rows, total)
        for hashed, of in ((_now(table), others), *((forms[one], known[one]) for one in known))
        if of
        for extract, _, rows, total, *_ in _digests_of(connection, table, hashed, of, within)
    )


def keep_digests(lease: Lease, tables: Iterable[Table]) -> dict[str, object]:
    """Write receipts with the digests of a batch's staged rows; gives the detail for the event.

    Call it inside the transaction that ends the stage.
    """
    for table in tables:
        # Read first: PostgreSQL does not parallelise a statement that writes.
        found = _digests_of(lease.connection, table, _now(table), [lease.batch_id])
        lease.add_receipts(
            Receipt(
                batch_id=lease.batch_id,
                extract_id=extract,
                stage=KEEP + table.name,
                chunk=span,
                first_record=first,
                last_record=last,
                counts={"rows": rows},
                totals={},
                sha256=f"{_form(BYTES, _hashed(table))} {total}",
            )
            for extract, span, rows, total, first, last in found
        )
    receipts = _hash_of_receipts(lease.connection, [lease.batch_id])
    clues = clues_digests(lease.connection, [lease.batch_id])
    return {ROWS: receipts.get(lease.batch_id, ""), CLUES: clues.get(lease.batch_id, "")}


def clues_digests(connection: psycopg.Connection, batches: Collection[int]) -> dict[int, str]:
    """Hash of the clues of each batch's chunks; batches without clues are left out."""
    rows = connection.execute(
        "SELECT batch_id, encode(sha256(convert_to(string_agg(clues, E'\\n' "
        "ORDER BY extract_id, chunk), 'UTF8')), 'hex') FROM receipt "
        "WHERE stage = 'stage' AND clues IS NOT NULL AND batch_id = ANY(%s) GROUP BY 1",
        [list(batches)],
    )
    return dict(rows.fetchall())


def kept_digests(connection: psycopg.Connection, batches: Collection[int]) -> Digests:
    """The digests in the receipts of these batches."""
    return _stated(
        connection,
        connection.execute(
            "SELECT extract_id, stage, counts, sha256 FROM receipt "
            f"WHERE stage LIKE '{KEEP}%%' AND batch_id = ANY(%s)",
            [list(batches)],
        ),
    )


def _stated(
    connection: psycopg.Connection, receipts: Iterable[tuple[int, str, str, str]]
) -> Digests:
    """The digests in these receipts, added up by extract and record kind."""
    stated = [
        (extract, stage.removeprefix(KEEP), counts, text.partition(" ")[::2])
        for extract, stage, counts, text in receipts
    ]
    forms: dict[str, set[str]] = {}
    for _, record, _, (form, _) in stated:
        forms.setdefault(record, set()).add(form)
    known = {
        (record, form)
        for record, kept in forms.items()
        if record in EXTRACTS
        for form in _forms(connection, EXTRACTS[record], kept)
    }
    return _added_up(
        (extract, record, json.loads(counts)["rows"], total if (record, form) in known else None)
        for extract, record, counts, (form, total) in stated
    )


def _added_up(spans: Iterable[tuple[int, str, int, str | None]]) -> Digests:
    """Add up spans by extract and record kind; the sum is None if that of any span is unknown."""
    found: Digests = {}
    for extract, record, rows, total in spans:
        before = found.get((extract, record), Digest(0, "0"))
        both = None if before.sum is None or total is None else _added(before.sum, total)
        found[extract, record] = Digest(before.rows + rows, both)
    return found


def _added(one: str, other: str) -> str:
    try:
        return str(int(one) + int(other))
    except ValueError:
        return f"{one} {other}"  # Not written by us, so it must equal no sum of rows.


def differing(
    then: Digests, now: Digests
) -> Iterator[tuple[tuple[int, str], tuple[Digest, Digest]]]:
    """Extracts and record kinds whose rows differ from those hashed, with both digests.

    If other columns were hashed then, only the number of rows is compared.
    """
    for of in sorted({*then, *now}):
        before, after = (one.get(of, Digest(0, "")) for one in (then, now))
        if before.sum is None:
            after = after._replace(sum=None)
        if before != after:
            yield of, (before, after)


def is_as_staged(
    connection: psycopg.Connection, table: Table, batch_id: int, extract_id: int, number: int
) -> bool | None:
    """Whether the rows around a record of an extract are still those hashed with it.

    None if nothing is kept to compare with: staging is under way, an earlier version staged them,
    or other columns were hashed than exist now.
    """
    hashes = recorded(connection, [batch_id])
    if hashes[batch_id] is None:
        return None
    receipts = connection.execute(
        "SELECT extract_id, stage, counts, sha256, first_record, last_record FROM receipt "
        "WHERE extract_id = %s AND stage = %s AND %s BETWEEN first_record AND last_record",
        [extract_id, KEEP + table.name, number],
    ).fetchall()
    first, last = receipts[0][-2:] if receipts else (number, number)
    then = _stated(connection, (one[:-2] for one in receipts))
    now = row_digests(connection, table, [batch_id], RecordSpan(extract_id, first, last))
    if [*differing(then, now)] or changed_receipts(connection, hashes):
        return False
    return None if any(one.sum is None for one in then.values()) else True


def recorded(connection: psycopg.Connection, batches: Collection[int]) -> dict[int, str | None]:
    """The hash of each batch's row receipts according to the audit trail.

    The first event since the batch was last received counts. None if an earlier version staged it.
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
            found[batch] = read_detail(detail).get(ROWS)
    return found


def changed_receipts(connection: psycopg.Connection, hashes: dict[int, str | None]) -> list[int]:
    """The batches whose receipts of staged rows differ from what the audit trail says."""
    known = {batch: rows for batch, rows in hashes.items() if rows is not None}
    there = _hash_of_receipts(connection, known)
    return sorted(batch for batch, rows in known.items() if there.get(batch, "") != rows)


def _hash_of_receipts(connection: psycopg.Connection, batches: Collection[int]) -> dict[int, str]:
    found: dict[int, list[str]] = {}
    for batch, *receipt in connection.execute(
        f"SELECT batch_id, stage, counts, sha256 FROM receipt "
        f"WHERE stage LIKE '{KEEP}%%' AND batch_id = ANY(%s) "
        'ORDER BY extract_id, stage COLLATE "C", chunk',
        [list(batches)],
    ):
        found.setdefault(batch, []).append(json.dumps(receipt))
    return {
        batch: hashlib.sha256("\n".join(lines).encode()).hexdigest()
        for batch, lines in found.items()
    }


def _digests_of(
    connection: psycopg.Connection,
    table: Table,
    hashed: sql.Composed,
    batches: Collection[int],
    within: RecordSpan | None = None,
) -> list[tuple[Any, ...]]:
    """The digests of staged rows by extract and span, with the first and last record number.

    The query tells the planner how many rows and spans to expect, so that it runs in parallel.
    """
    values: dict[str, object] = {"batches": sorted(batches)}
    only = ""
    if within is None:
        # A range found by a subquery of the same statement would make it expect few rows.
        values["first_extract"], values["last_extract"], values["last_record"] = (
            connection.execute(
                "SELECT min(e.id), max(e.id), (SELECT max(r.last_record) FROM receipt r "
                "WHERE r.batch_id = ANY(%(batches)s) AND r.stage = 'stage') "
                "FROM extract e WHERE e.batch_id = ANY(%(batches)s)",
                values,
            ).fetchone()
            or (None,) * 3
        )
    else:
        values |= {"first_extract": within.extract, "last_extract": within.extract}
        values |= {"first_record": within.first, "last_record": within.last}
        only = "AND s.record_number BETWEEN %(first_record)s AND %(last_record)s "
    asked = sql.SQL(
        f"SELECT s.extract_id, (min(s.record_number) / {SPAN})::int, count(*), sum({{}})::text, "
        # A span computed without this join would make it expect one group for every row.
        "min(s.record_number), max(s.record_number) FROM {} s "
        f"LEFT JOIN generate_series(0, %(last_record)s::bigint / {SPAN}) span "
        f"ON span = s.record_number / {SPAN} WHERE s.batch_id = ANY(%(batches)s) "
        f"AND s.extract_id BETWEEN %(first_extract)s AND %(last_extract)s {only}"
        "GROUP BY s.extract_id, span"
    ).format(hashed, sql.Identifier(SCHEMA, staged_name(table)))
    # There are few groups, yet without statistics, which not every role may gather, it would sort.
    with connection.transaction(), planned(connection, "enable_sort", on=False):
        return connection.execute(asked, values).fetchall()


def _forms(
    connection: psycopg.Connection, table: Table, asked: Iterable[str]
) -> dict[str, sql.Composed]:
    """SQL for the hash of a staged row in each known form; earlier forms only if `asked`."""
    now = _hashed(table)
    forms = {_form(how, now): _hash_of(how, map(_column, now)) for how in _ROW_HASHES}
    if forms.keys() >= {*asked} or table.name not in OWN.tables:
        return forms
    for then in defined_so_far(connection, table.name):
        for how in _ROW_HASHES:
            names = _hashed(then)
            forms.setdefault(_form(how, names), _as_defined(table, then, how))
    return forms


def _now(table: Table) -> sql.Composed:
    return _hash_of(BYTES, map(_column, _hashed(table)))


def _as_defined(table: Table, then: Table, how: str) -> sql.Composed:
    """SQL for the hash of a row that was staged under an earlier definition of its kind.

    A column is removed only if no row has a value in it, so it is hashed as NULL. Earlier rows have
    no values in new columns, so the hash of a row that has one is changed.
    """
    # Definitions rarely change, and no other command should wait for this import.
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415

    from schemas.derived.sql import sql_columns  # noqa: PLC0415

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    kinds = {name: of.kind for name, of in table.by_name.items()}
    gone = {
        name: kind.compile(dialect=dialect)
        for of in then.delivered
        if kinds.get(of.name) is not of.kind
        for name, kind in sql_columns(of).items()
    }
    columns = [
        sql.SQL(f"NULL::{gone[name]}") if name in gone else _column(name) for name in _hashed(then)
    ]
    kept = {name for of in then.delivered for name in stored_names(of)} - gone.keys()
    new = [name for of in table.delivered for name in stored_names(of) if name not in kept]
    hashed = _hash_of(how, columns)
    if not new:
        return hashed
    return sql.SQL("({}::numeric + (NOT ROW({}) IS NULL)::int)").format(
        hashed, sql.SQL(", ").join(map(_column, new))
    )


def _hash_of(how: str, columns: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(_ROW_HASHES[how]).format(sql.SQL(", ").join(columns))


def _column(name: str) -> sql.Composable:
    return sql.Identifier("s", name)


def _form(how: str, columns: Iterable[str]) -> str:
    """Short hash of which columns are hashed, and how."""
    parts = filter(None, [how, *columns])
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _hashed(table: Table) -> list[str]:
    return [name for name in staged_columns(table) if name not in NUMBERED]
