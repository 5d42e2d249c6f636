"""What keeps a database from following another definition of a record kind, and what to do."""

from collections.abc import Iterator, Mapping

import psycopg

from connectors.postgres.batches.lease import worked_on
from connectors.postgres.batches.ledger import NOTHING_APPLIED, TAKEN_BACK, State
from connectors.postgres.query import one_value
from connectors.postgres.schema.own_kinds import KeptKind, hash_of
from connectors.printable import shown
from schemas.derived.sql_names import SCHEMA, listed
from schemas.derived.views import CORRECTED, ENDS, IS_UNDIVIDED, quoted
from schemas.field import Rule, Table
from schemas.own_checks import INSERT_BATCH_DATA
from schemas.own_definition import Asks, Change, changes, definition_of, table_of
from schemas.own_tables import FOLDER
from schemas.tables import OWN

_NOTHING_THERE = (Rule.NOT_NULL, Rule.NOT_EMPTY)
"""Reasons against a row that say that a field has no value."""
_POSSIBLE = {
    Asks.NO_RECORDS: "that is possible while the database has no record of the kind",
    Asks.UNHELD: "that is possible while no row has a value of it",
    Asks.NO_ROWS: "rows are there by that. Define it so again, or give the new kind another name",
}


def all_hindrances(
    connection: psycopg.Connection, there: Mapping[str, KeptKind], *, asked: bool
) -> Iterator[str]:
    for name in sorted(there.keys() - OWN.tables.keys()):
        yield _no_file(connection, name, asked=asked)
    for name in sorted(there.keys() & OWN.tables.keys()):
        yield from _hindrances(connection, name, there[name], asked=asked)


def _no_file(connection: psycopg.Connection, name: str, *, asked: bool) -> str:
    """Why a kind must not be without a file; empty if it can be removed."""
    if is_used(connection, name):
        return (
            f"The database has the record kind {name}, which is not defined here, and batches have "
            f"rows of it. Set {FOLDER} to the folder with its definition, or write that with "
            "`recon records export`."
        )
    if asked:
        why = _being_read(connection, name)
        return f"The record kind {name} cannot be removed: {why}." if why else ""
    return (
        f"The database has the record kind {name}, which is not defined here. Set {FOLDER} to the "
        "folder with its definition, write that with `recon records export`, or remove the kind "
        "with `recon records apply`: it was never delivered."
    )


def _hindrances(
    connection: psycopg.Connection, name: str, kept: KeptKind, *, asked: bool
) -> Iterator[str]:
    """Yield why the database cannot follow a definition."""
    definition = definition_of(OWN.tables[name])
    if kept.definition == definition:
        return
    if not asked and hash_of(definition) in kept.former:
        yield (
            f"{OWN.about(name)} is defined here as it was before: the database has a newer "
            "definition. Write that with `recon records export`, or lead the database back with "
            "`recon records apply`, as the owner of the schema."
        )
        return
    before = table_of(name, kept.definition)
    for change in changes(before, OWN.tables[name]):
        if why := _in_the_way(connection, before, change):
            about = OWN.about(name)
            yield f"{about} is defined otherwise than in the database: {change.text}; {why}."


def _in_the_way(connection: psycopg.Connection, before: Table, change: Change) -> str:
    """What keeps a kind from being changed, and what to do; empty if nothing does."""
    name = before.name
    if change.asks is Asks.NOTHING:
        return ""
    if not is_used(connection, name):
        # A run may be about to write its first rows.
        return _being_read(connection, name)
    match change.asks:
        case Asks.NONE_WAITING:
            return _waiting(connection, name)
        case Asks.NO_RECORDS:
            if _any(connection, name):
                return _POSSIBLE[change.asks]
            return _waiting(connection, name)
        case Asks.UNHELD:
            held = f"WHERE {quoted(change.field)} IS NOT NULL"
            if any(_any(connection, of, held) for of in (name, f"staged_{name}")):
                return _POSSIBLE[change.asks]
            return _in_error(connection, name, change.field) or _in_work(connection, name)
        case Asks.NO_LINES:
            return _delivered_as_lines(connection, name)
        case Asks.UNSENT:
            return _sent(connection, before) or _in_work(connection, name)
        case Asks.NO_ROWS:
            return _POSSIBLE[change.asks]


def _waiting(connection: psycopg.Connection, name: str) -> str:
    """The batch with rows waiting to become records, checked by the former definition; or empty."""
    found = connection.execute(
        f"SELECT min(b.id) FROM {SCHEMA}.batch b JOIN {SCHEMA}.extract e ON e.batch_id = b.id "
        f"WHERE b.state IN ({listed(NOTHING_APPLIED)}) AND EXISTS (SELECT FROM "
        f"{SCHEMA}.staged_{name} s WHERE s.extract_id = e.id AND s.error_data IS NULL)"
    )
    if (batch := one_value(found)) is None:
        return _being_read(connection, name)
    return (
        f"batch {batch} has rows that were checked by that and wait. Define it so again (`recon "
        "records export` writes it), end that batch or discard it, and change the definition then"
    )


def _being_read(connection: psycopg.Connection, name: str) -> str:
    """The batch that a run is reading whose files have, or may contain, rows of a kind; or empty.

    That run began with the former definition, and checks all of its files by it.
    """
    found = connection.execute(
        f"SELECT min(b.id) FROM {SCHEMA}.batch b JOIN {SCHEMA}.extract e ON e.batch_id = b.id "
        "WHERE b.id = ANY(%s) AND b.state = %s AND e.record = ANY(%s) AND e.refused IS NULL",
        [worked_on(connection), State.RECEIVED, [name, INSERT_BATCH_DATA]],
    )
    if (batch := one_value(found)) is None:
        return ""
    return (
        f"a run is reading batch {batch}, and checks its rows by that. Wait for its end, and "
        "change the definition then"
    )


def _in_error(connection: psycopg.Connection, name: str, field: str) -> str:
    """A correctable row in error that has, or may have, an invalid text in a field; or empty.

    A line that could not be divided into cells may have one if its file's header has the field.
    """
    row = connection.execute(
        f"""SELECT s.batch_id, e.name, s.record_number FROM {SCHEMA}.staged_{name} s
        JOIN {SCHEMA}.extract e ON e.id = s.extract_id
        JOIN {SCHEMA}.batch b ON b.id = s.batch_id AND b.state NOT IN ({listed(ENDS)})
        WHERE s.error_data IS NOT NULL
            AND (EXISTS (SELECT FROM json_array_elements(s.error_data::json) r
                    WHERE r ->> 'FieldName' = %(field)s
                        AND r ->> 'ErrorCode' NOT IN ({listed(_NOTHING_THERE)}))
                OR {IS_UNDIVIDED} AND EXISTS (SELECT
                    FROM json_array_elements_text(coalesce(e.header, '[]')::json) h
                    WHERE lower(h) = lower(%(field)s)))
            AND NOT EXISTS (SELECT FROM {SCHEMA}.outcome o WHERE o.verdict = '{CORRECTED}'
                AND (o.extract_id, o.record_number) = (s.extract_id, s.record_number))
        ORDER BY 1, s.extract_id, 3 LIMIT 1""",
        {"field": field},
    ).fetchone()
    if row is None:
        return ""
    batch, file, record = row
    return (
        f"record {record} of {shown(file)}, batch {batch}, is in error and may have something "
        f"there. Define it so again, correct that row (`recon rejects {batch}`), or undo "
        "or discard that batch, and remove the field then"
    )


def _delivered_as_lines(connection: psycopg.Connection, name: str) -> str:
    """The batch that has records of a kind as lines without names, unless taken back; or empty."""
    found = connection.execute(
        f"SELECT min(id) FROM {SCHEMA}.batch WHERE profile::json ->> 'inner_record' = '{name}' "
        f"AND state NOT IN ({listed(TAKEN_BACK)})"
    )
    if (batch := one_value(found)) is None:
        return ""
    return (
        f"batch {batch}: its feed brings lines of it inside insert-batch data (inner_record), and "
        "their cells are told by the order of the fields alone. Leave the fields where they are, "
        "and put new ones behind them"
    )


def _sent(connection: psycopg.Connection, before: Table) -> str:
    """The batch with rows of a kind that goes to the service, and what to do; empty if none does.

    A batch that was taken back goes nowhere any more, but what was sent of it stays. A row that was
    planned and certainly never arrived does not count as sent, unless somebody has decided about
    it. Records of other kinds in its files were sent by other operations and do not count.
    """
    name, operation = before.name, before.endpoint.name if before.endpoint else ""
    row = connection.execute(
        f"""SELECT b.id, b.state,
            EXISTS (SELECT FROM {SCHEMA}.send x
                WHERE x.extract_id = e.id AND x.operation = '{operation}'
                    AND (x.state NOT IN ('unsent', 'superseded') OR x.carried_out IS NOT NULL
                        OR x.decision IS NOT NULL OR x.earlier > 0)) AS sent
        FROM {SCHEMA}.batch b JOIN {SCHEMA}.extract e ON e.batch_id = b.id
        WHERE b.service IS NOT NULL AND (e.record = '{name}' OR EXISTS (SELECT FROM
            {SCHEMA}.staged_{name} s WHERE s.extract_id = e.id))
        ORDER BY sent DESC, b.state IN ({listed(ENDS)}), b.id LIMIT 1"""
    ).fetchone()
    if row is None:
        return ""
    batch, state, sent = row
    if sent:
        return (
            f"what was sent of batch {batch} is kept by that. Define it so again, or give the "
            "new kind another name"
        )
    if state in ENDS:
        return ""
    return (
        f"batch {batch}, which has rows of the kind, goes to the service. Define it so again, "
        "undo or discard that batch, and deliver it behind the change"
    )


def _in_work(connection: psycopg.Connection, name: str) -> str:
    """The batch with rows of a kind that a run works on, by its former definition; or empty.

    It may be about to note that rows are sent. Which kinds insert-batch data contain is known only
    once they are staged.
    """
    found = connection.execute(
        f"""SELECT min(e.batch_id) FROM {SCHEMA}.extract e JOIN {SCHEMA}.batch b
            ON b.id = e.batch_id AND b.id = ANY(%s)
        WHERE e.refused IS NULL AND (e.record = %s OR e.record = %s AND (b.state = %s
            OR EXISTS (SELECT FROM {SCHEMA}.staged_{name} s WHERE s.extract_id = e.id)))""",
        [worked_on(connection), name, INSERT_BATCH_DATA, State.RECEIVED],
    )
    if (batch := one_value(found)) is None:
        return ""
    return (
        f"a run is working on batch {batch} by that. Wait for its end, and change the definition "
        "then"
    )


def is_used(connection: psycopg.Connection, name: str) -> bool:
    """Whether anything of a kind was ever delivered; its rows may be gone, its extract stays."""
    return (
        _any(connection, name)
        or _any(connection, f"staged_{name}")
        or _any(connection, "extract", f"WHERE record = '{name}'")
    )


def _any(connection: psycopg.Connection, table: str, where: str = "") -> bool:
    asked = f"SELECT EXISTS (SELECT FROM {SCHEMA}.{table} {where})"
    return bool(one_value(connection.execute(asked)))
