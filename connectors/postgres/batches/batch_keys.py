"""Keys: repeats, conflicts and references between the rows of a batch, found in the database.

Outcomes are only added here; staged rows are never changed. Memory does not grow with the batch:
PostgreSQL groups and joins, and only counts come back.
"""

from collections.abc import Mapping, Sequence

import psycopg

from connectors.postgres.batches.attempts import checked_of, standing_batches
from connectors.postgres.batches.ledger import batch_span
from connectors.postgres.batches.ranges import ready
from connectors.postgres.database import nested_loops
from connectors.postgres.query import one_value
from schemas.derived.sql_names import key_columns, listed, place_number, place_of, staged_name
from schemas.derived.views import (
    COUNTS_NOT,
    STATE,
    json_expression,
    moment,
    of_batch,
    outcome_joins,
    position,
    quoted,
)
from schemas.field import Kind, Reference, Table
from schemas.reasons import NOT_SHOWN, REASONS
from schemas.tables import TABLES

READY = ready(of_batch)
"""SQL for the staged rows `s` of a batch that were read without an error and have no outcome."""


def mark_duplicates(
    connection: psycopg.Connection,
    table: Table,
    batch_id: int,
    *,
    last_wins: bool,
    merges: bool,
    keys: Sequence[Sequence[int | str]] | None,
    made_of: Sequence[str],
) -> dict[str, int]:
    """Settle rows of one batch that share a key; gives how many got which verdict.

    With the same content the first row counts and the others are superseded; if the feed's policy
    does not merge them (`merges`), all conflict. With different content all conflict, unless the
    policy lets the last one win (`last_wins`): the newest by version, compared as for stale rows,
    and the last of equally new ones. `keys` are the only ones that may occur twice, if known. Rows
    share a key that is `made_of` other fields only if they agree in these; others conflict,
    whatever the policy.
    """
    if keys is not None:
        if not keys:
            return {}
        _offer_keys(connection, table, keys)
    key = _key(table)
    # A key that turns out to occur once gets no verdict, so offered keys need no count.
    repeated = f"SELECT {key} FROM offered"
    if keys is None:
        repeated = f"""SELECT {key} FROM {staged_name(table)} s
            WHERE {READY} GROUP BY {key} HAVING count(*) > 1"""
    verdict = (
        "CASE WHEN NOT alike THEN 'conflict' WHEN from_end > 1 THEN 'superseded' END"
        if last_wins
        else "CASE WHEN NOT same THEN 'conflict' WHEN from_start > 1 THEN 'superseded' END"
    )
    if not merges:
        verdict = "CASE WHEN rows_of_key > 1 THEN 'conflict' END"
    name = table.identity[0]
    statement = f"""
        WITH repeated AS (
            {repeated}
        ), content AS (
            SELECT extract_id, record_number, {position("first_line")} AS line, {key},
                {key_value(table)} AS key_value,
                md5({json_expression(table, "s")}) AS content, {_made(table, made_of, "s")} AS made,
                {_version(table)}
            FROM {staged_name(table)} s JOIN repeated USING ({key})
            WHERE {READY}
        ), compared AS (
            SELECT *, min(content) OVER same_key = max(content) OVER same_key AS same,
                min(made) OVER same_key = max(made) OVER same_key AS alike,
                count(*) OVER same_key AS rows_of_key,
                CASE WHEN bool_and(moment IS NOT NULL) OVER same_key THEN moment ELSE version END
                    AS age
            FROM content WINDOW same_key AS (PARTITION BY {key})
        ), ranked AS (
            SELECT *,
                row_number() OVER (same_key ORDER BY extract_id, record_number) AS from_start,
                row_number() OVER (same_key
                    ORDER BY age DESC, extract_id DESC, record_number DESC) AS from_end
            FROM compared WINDOW same_key AS (PARTITION BY {key})
        ), judged AS (
            SELECT extract_id, record_number, line, key_value, same, {verdict} AS verdict
            FROM ranked
        ), written AS (
            INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
            SELECT %(batch)s, extract_id, record_number, verdict,
                CASE WHEN verdict = 'superseded' THEN NULL
                    WHEN {"FALSE" if merges else "same"} THEN {error_data("EqualRows", name)}
                    ELSE {error_data("ConflictingKey", name)} END
            FROM judged WHERE verdict IS NOT NULL RETURNING verdict
        )
        SELECT verdict, count(*) FROM written GROUP BY verdict"""
    return dict(connection.execute(statement, batch_span(connection, batch_id)).fetchall())


def _version(table: Table) -> str:
    """SQL for the `version` of a staged row `s` and its `moment`, if it has one.

    Versions of several rows are compared by moment if all have one, otherwise as written.
    """
    if not table.version:
        return "NULL::bigint AS version, NULL::bigint AS moment"
    of = table.by_name[table.version]
    version = f"s.{quoted(of.name)}"
    as_moment = moment(of, "s") if of.kind is Kind.DATETIME else version
    return f"{version} AS version, {as_moment} AS moment"


def mark_collisions(
    connection: psycopg.Connection, table: Table, batch_id: int, name: str, made_of: Sequence[str]
) -> int:
    """Reject rows whose number `name`, made of other fields, another record already has.

    Gives how many.
    """
    same = " AND ".join(f"t.{quoted(one)} = s.{quoted(one)}" for one in key_columns(table))
    statement = f"""
        INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
        SELECT %(batch)s, extract_id, record_number, 'rejected', {error_data("KeyCollision", name)}
        FROM (SELECT s.extract_id, s.record_number, s.{quoted(name)}::text AS key_value,
                  {position("first_line")} AS line
              FROM {staged_name(table)} s JOIN {table.name} t ON {same}
              WHERE {READY}
                  AND {_made(table, made_of, "s")} <> {_made(table, made_of, "t")}) s"""
    return connection.execute(statement, batch_span(connection, batch_id)).rowcount


def _made(table: Table, names: Sequence[str], alias: str) -> str:
    """SQL for the values that a number is made of, told apart as in `flows.steps.validate.key_ids`.

    Trailing zeros of amounts do not count, and a time counts by its moment if it has one.
    """
    parts = []
    for of in (table.by_name[name] for name in names):
        column = f"{alias}.{quoted(of.name)}"
        if of.kind is Kind.DOUBLE:
            column = f"trim_scale({column})"
        elif of.kind is Kind.DATETIME:
            column = f"coalesce({moment(of, alias)}::text || 'Z', {column}::text)"
        parts.append(column)
    return f"md5(row({', '.join(parts)})::text)"


def check_reference(
    connection: psycopg.Connection,
    table: Table,
    reference: Reference,
    batch_id: int,
    *,
    reject: bool,
    complete: bool,
    values: Sequence[Sequence[int | str]] | None,
) -> int:
    """Find references that lead nowhere or to another tenant; gives how many rows have one.

    By default a note per value says so; a feed may have such rows rejected instead. `values` are
    all distinct values that the rows name, with the tenant, if known. References of a batch that is
    `complete` have to be in it or in the delivery it corrects; the target is not asked.
    """
    if not _find_missing(connection, table, reference, batch_id, values, complete=complete):
        return 0
    span: Mapping[str, object] = batch_span(connection, batch_id)
    of = f"m.value = s.{quoted(reference.field)}"
    if _bound(reference, table):
        of += f" AND m.tenant = {_tenant(reference, table)}"
    if reject:
        statement = f"""
            INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
            SELECT %(batch)s, s.extract_id, s.record_number, 'rejected',
                CASE WHEN m.elsewhere
                    THEN {error_data("ReferenceTenant", reference.field, reference.table)}
                    ELSE {error_data("ReferenceMissing", reference.field, reference.table)} END
            FROM (SELECT s.*, {quoted(reference.field)}::text AS key_value,
                      {position("first_line")} AS line
                  FROM {staged_name(table)} s) s
            JOIN missing m ON {of}
            WHERE {READY}"""
        return connection.execute(statement, span).rowcount

    elsewhere, nowhere = (
        _message(code, reference.field, "value", reference.table)
        for code in ("ReferenceTenant", "ReferenceMissing")
    )
    statement = f"""
        WITH named AS (
            SELECT m.value, m.elsewhere, count(*) AS rows,
                min({place_number("s")}) AS first
            FROM {staged_name(table)} s JOIN missing m ON {of}
            WHERE {READY} GROUP BY m.value, m.tenant, m.elsewhere
        ), noted AS (
            INSERT INTO note (batch_id, extract_id, record_number, record, code, field, value,
                rows, message)
            SELECT %(batch)s, {place_of("first")}, '{table.name}',
                CASE WHEN elsewhere THEN 'ReferenceTenant' ELSE 'ReferenceMissing' END,
                '{reference.field}', value::text, rows,
                CASE WHEN elsewhere THEN {elsewhere} ELSE {nowhere} END
            FROM named RETURNING rows
        )
        SELECT coalesce(sum(rows), 0) FROM noted"""
    return int(one_value(connection.execute(statement, span)))


def _find_missing(
    connection: psycopg.Connection,
    table: Table,
    reference: Reference,
    batch_id: int,
    values: Sequence[Sequence[int | str]] | None,
    *,
    complete: bool,
) -> int:
    """Create the temporary table `missing`: distinct values that lead nowhere or to another tenant.

    Gives how many. Every step is a table of its own with statistics for the planner. So a small
    delivery looks its values up in the target by index, and a large one reads the target once.
    """
    columns = "(value bigint, tenant integer) ON COMMIT DROP"
    connection.execute(
        "DROP TABLE IF EXISTS pg_temp.used, pg_temp.met, pg_temp.missing;"
        f"CREATE TEMP TABLE used {columns}; CREATE TEMP TABLE met {columns}"
    )
    _offer_used(connection, table, reference, batch_id, values)
    target = TABLES[reference.table]
    tenant = quoted("TenantsId") if target.tenant else "NULL::integer"
    column = quoted(reference.column)
    if complete:
        _meet_in_delivery(connection, reference, batch_id)
    else:
        with nested_loops(connection, on=True):
            connection.execute(
                f"INSERT INTO met SELECT {column}, {tenant} FROM {target.name} "
                f"WHERE {column} IN (SELECT value FROM used)"
            )
    # Rows in conflict are left out: nobody knows which of them will be the record. Superseded
    # rows need no look: the row that counts has their key, or was rejected and makes no record.
    connection.execute(
        f"""INSERT INTO met SELECT {column}, {tenant} FROM {staged_name(target)} s
        WHERE {READY} AND {column} IN (SELECT value FROM used)""",
        batch_span(connection, batch_id),
    )
    connection.execute("ANALYZE met")
    same = "AND k.tenant = u.tenant" if _bound(reference, table) else ""
    found = connection.execute(
        f"""CREATE TEMP TABLE missing ON COMMIT DROP AS
        SELECT u.value, u.tenant, v.value IS NOT NULL AS elsewhere
        FROM used u LEFT JOIN (SELECT DISTINCT value FROM met) v ON v.value = u.value
        WHERE NOT EXISTS (SELECT FROM met k WHERE k.value = u.value {same})"""
    )
    connection.execute("ANALYZE missing")
    return found.rowcount


def _meet_in_delivery(connection: psycopg.Connection, reference: Reference, batch_id: int) -> None:
    """Add to `met` the records that the other batches of a corrected delivery brought.

    Their rows have been checked, so their states tell which count.
    """
    target = TABLES[reference.table]
    tenant = quoted("TenantsId") if target.tenant else "NULL::integer"
    column = quoted(reference.column)
    others = {*standing_batches(connection, batch_id)} - {batch_id}
    for other in sorted(checked_of(connection, others)):
        connection.execute(
            f"""INSERT INTO met SELECT s.{column}, {tenant} FROM {staged_name(target)} s
            {outcome_joins(target)}
            WHERE {of_batch("s")} AND s.{column} IN (SELECT value FROM used)
                AND {STATE} NOT IN ({listed(COUNTS_NOT)})""",
            batch_span(connection, other),
        )


def _offer_used(
    connection: psycopg.Connection,
    table: Table,
    reference: Reference,
    batch_id: int,
    values: Sequence[Sequence[int | str]] | None,
) -> None:
    """Fill the temporary table `used`: every distinct value that the rows name, with its tenant."""
    if values is None:
        field = quoted(reference.field)
        connection.execute(
            f"""INSERT INTO used SELECT DISTINCT {field}, {_tenant(reference, table)}
            FROM {staged_name(table)} s
            WHERE {READY} AND {field} IS NOT NULL""",
            batch_span(connection, batch_id),
        )
    else:
        with connection.cursor().copy("COPY used FROM STDIN") as copy:
            for value in values:
                copy.write_row(value)
    connection.execute("ANALYZE used")


def _offer_keys(
    connection: psycopg.Connection, table: Table, keys: Sequence[Sequence[int | str]]
) -> None:
    """Create the temporary table `offered` with each of the keys once."""
    names = _key(table)
    connection.execute("DROP TABLE IF EXISTS pg_temp.offered, pg_temp.told_keys")
    for name in ("offered", "told_keys"):
        connection.execute(
            f"CREATE TEMP TABLE {name} ON COMMIT DROP AS "
            f"SELECT {names} FROM {staged_name(table)} WHERE FALSE"
        )
    with connection.cursor().copy(f"COPY told_keys ({names}) FROM STDIN") as copy:
        for key in keys:
            copy.write_row(key)
    connection.execute(f"INSERT INTO offered SELECT DISTINCT {names} FROM told_keys")
    connection.execute("ANALYZE offered")


def key_value(table: Table) -> str:
    """SQL for the key of a staged row `s` as people read it; hidden for records with secrets."""
    if table.unquotable:
        return f"'{NOT_SHOWN}'"
    return " || ', ' || ".join(f"coalesce(s.{quoted(name)}::text, '')" for name in table.identity)


def _key(table: Table) -> str:
    return ", ".join(quoted(name) for name in key_columns(table))


def _tenant(reference: Reference, table: Table) -> str:
    return f"s.{quoted('TenantsId')}" if _bound(reference, table) else "NULL::integer"


def _bound(reference: Reference, table: Table) -> bool:
    """Whether a row and the record it refers to must have the same tenant."""
    return reference.same_tenant and table.tenant is not None


def error_data(code: str, field: str, of: str = "") -> str:
    """SQL for the ErrorData of one reason; needs the columns `key_value` and `line`.

    The message names what the reason is about: the text `of`, or rows as described by the columns
    `of_row` and `repaired`.
    """
    return f"""json_build_array(json_build_object('ErrorCode', '{code}', 'FieldName', '{field}',
        'Message', {_message(code, field, "key_value", of)}, 'Meta', json_build_object(
        'stage', 'merge', 'column', '{field}', 'value', key_value,
        'line', line::text)))::text"""


def _message(code: str, field: str, value: str, of: str) -> str:
    """SQL for the message that a reader sees; `value` is a column expression."""
    facts = {"value": "\0", "row": "\1", "repaired": "\2"}
    text = REASONS[code].message(field=field, of=of, **facts).replace("'", "''")
    for mark, column in (("\0", value), ("\1", "of_row"), ("\2", "repaired")):
        text = text.replace(mark, f"' || {column} || '")
    return f"'{text}'"
