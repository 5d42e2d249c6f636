"""Corrections: a rejected row ends as corrected once the row that repairs it was taken in.

The delivery says which row repairs which: its batch names the batch it corrects, its rows name the
rows. A row that names none repairs the rows with its key, and the outcome says so. The repaired row
gets an outcome, which is withdrawn once it is no longer true.
"""

from collections.abc import Collection, Iterable, Iterator

import psycopg

from connectors.postgres.batches.batch_reports import note_owed
from connectors.postgres.batches.deliveries import batches_to_report_again
from connectors.postgres.batches.ledger import IN_DATABASE, State, batch_span, staged_tables
from connectors.postgres.database import nested_loops
from connectors.postgres.query import one_value
from connectors.postgres.trail import add_event
from schemas.counting import agree, first_of, quantity
from schemas.derived.sql_names import SCHEMA, key_columns, listed, staged_name
from schemas.derived.views import (
    CORRECTED,
    ERRORS,
    REPAIRING,
    SETTLING,
    STATE,
    in_batches,
    of_batch,
    outcome_joins,
    quoted,
    repair_joins,
    repair_state,
)
from schemas.field import Table
from schemas.guards.ledger_digests import ENDED_AT, TERMS
from schemas.tables import INSERT_BATCH_DATA


def settle_corrections(connection: psycopg.Connection, batch_id: int) -> None:
    """Mark the rows of a batch that are repaired as corrected, and no others.

    A repair may be repaired in turn, so the batches that this one corrects are settled as well.
    Call it inside a transaction; the outcome does not depend on what was settled before. The caller
    writes the reports of these batches again.
    """
    for current in _with_corrected(connection, batch_id):
        lock_corrections(connection, current)
        corrections = corrections_of(connection, current)
        some = bool(corrections) and _gather(connection, current, corrections)
        withdrawn = connection.execute(
            f"DELETE FROM outcome o WHERE {of_batch('o')} AND o.verdict = '{CORRECTED}' "
            + (f"AND NOT {_REPAIRED_AS_RECORDED}" if some else ""),
            batch_span(connection, current),
        ).rowcount
        corrected = sum(
            connection.execute(
                f"""INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
                SELECT s.batch_id, s.extract_id, s.record_number, '{CORRECTED}', {_MATCHED}
                {_in_error_and_repaired(table)}""",
                batch_span(connection, current),
            ).rowcount
            for table in (staged_tables(connection, current) if some else ())
        )
        # If another row repairs a row instead, it is not in error in between.
        if corrected < withdrawn:
            _end_with_errors(connection, current)
    # Rows of the other corrections may now count with an attempt in this batch, or no longer do.
    if others := batches_to_report_again(connection, batch_id):
        note_owed(connection, others)


def lock_corrections(connection: psycopg.Connection, batch_id: int) -> None:
    """Keep other transactions from settling, opening or taking back corrections of a batch.

    Two that end at once must see each other, and none may be opened of a batch being taken back.
    """
    connection.execute("SELECT lock_corrections(%s)", [batch_id])


def lock_corrected(connection: psycopg.Connection, batch_id: int) -> None:
    """Lock corrections of a batch and of those it corrects, in the order in which these settle."""
    for current in _with_corrected(connection, batch_id):
        lock_corrections(connection, current)


def _with_corrected(connection: psycopg.Connection, batch_id: int) -> Iterator[int]:
    """Yield a batch, the batch that it corrects, the one that this corrects, and so on."""
    current: int | None = batch_id
    while current is not None:
        yield current
        current = corrected_by(connection, current)


def corrected_by(connection: psycopg.Connection, batch_id: int) -> int | None:
    """The batch that this one corrects; only an earlier one, so that there is no cycle."""
    row = connection.execute(
        "SELECT corrects FROM batch WHERE id = %s AND corrects < id", [batch_id]
    ).fetchone()
    return None if row is None else int(row[0])


def corrections_of(connection: psycopg.Connection, batch_id: int) -> list[int]:
    """The corrections of a batch whose rows are applied; others repair nothing yet."""
    corrections = connection.execute(
        "SELECT id FROM batch WHERE corrects = %s AND id > corrects AND state = ANY(%s) "
        "ORDER BY id",
        [batch_id, list(IN_DATABASE)],
    ).fetchall()
    return [one for (one,) in corrections]


def _gather(connection: psycopg.Connection, batch_id: int, corrections: Iterable[int]) -> bool:
    """Collect names of the rows that a batch's corrections repair; gives whether there are any.

    `by_key` lists the batches with a row of that key, for rows that no repair names.
    """
    connection.execute("DROP TABLE IF EXISTS pg_temp.repaired")
    connection.execute(
        "CREATE TEMP TABLE repaired (name text PRIMARY KEY, by_key int[]) ON COMMIT DROP"
    )
    with nested_loops(connection, on=False):
        for correction in corrections:
            for table in staged_tables(connection, correction):
                connection.execute(
                    f"INSERT INTO repaired {_naming(table)} ON CONFLICT DO NOTHING",
                    batch_span(connection, correction),
                )
    for table in staged_tables(connection, batch_id):
        if table.key:
            _gather_by_key(connection, table, batch_id, corrections)
    connection.execute("ANALYZE repaired")
    return connection.execute("SELECT 1 FROM repaired LIMIT 1").fetchone() is not None


def _gather_by_key(
    connection: psycopg.Connection, table: Table, batch_id: int, corrections: Iterable[int]
) -> None:
    """Collect the rows in error that have the key of a repair that names no row."""
    connection.execute("DROP TABLE IF EXISTS pg_temp.in_error")
    found = connection.execute(
        f"CREATE TEMP TABLE in_error ON COMMIT DROP AS {_in_error(table)}",
        batch_span(connection, batch_id),
    ).rowcount
    if not found:
        return
    connection.execute("ANALYZE in_error")
    for correction in corrections:
        if table in staged_tables(connection, correction):
            connection.execute(
                f"""INSERT INTO repaired {_with_same_key(table, "in_error")} ON CONFLICT (name)
                DO UPDATE SET by_key = repaired.by_key || excluded.by_key
                WHERE repaired.by_key IS NOT NULL""",
                batch_span(connection, correction),
            )


def names_its_kind(table: Table) -> str:
    """SQL for whether a staged row `s` names a row of its kind in the batch being corrected.

    Insert-batch data may be of any kind. A row that names no such row repairs nothing, even once it
    is repaired itself.
    """
    corrected = "ARRAY(SELECT corrects FROM batch WHERE id = %(batch)s)"
    there = " UNION ALL ".join(
        f"SELECT {_name('r')} AS name FROM {staged_name(of)} r WHERE {in_batches('r', corrected)}"
        for of in dict.fromkeys((table, INSERT_BATCH_DATA))
    )
    return f"EXISTS (SELECT FROM ({there}) there WHERE there.name = s.parent)"


def _naming(table: Table) -> str:
    """SQL for the rows that repairs of a correction name."""
    return f"""SELECT s.parent, NULL::int[] FROM {staged_name(table)} s {repair_joins(table)}
        WHERE {of_batch("s")} AND s.parent IS NOT NULL AND {names_its_kind(table)}
        AND {repair_state(table)} IN ({listed(REPAIRING)})"""


def _in_error(table: Table) -> str:
    """SQL for the rows of a batch that can be repaired by their key.

    Rows that were corrected before are included, however they were corrected. `equal` says that a
    row was rejected because another row is the same.
    """
    equal = "coalesce(o.error_data::json -> 0 ->> 'ErrorCode' = 'EqualRows', FALSE) AS equal"
    columns = ", ".join(f"s.{quoted(name)}" for name in key_columns(table))
    known = " AND ".join(f"s.{quoted(name)} IS NOT NULL" for name in table.key)
    return f"""SELECT {_name("s")} AS name, {columns}, {equal}
        FROM {staged_name(table)} s {outcome_joins(table)} WHERE {of_batch("s")} AND {known}
        AND (s.error_data IS NOT NULL OR o.verdict IN ({listed(ERRORS)}))"""


def _with_same_key(table: Table, among: str) -> str:
    """SQL for those of them that have the key of a repair that names no row.

    Such a repair stands for one of several equal rows, so that these are left out unless the
    correction says that equal rows are one.
    """
    same = " AND ".join(f"w.{quoted(name)} = s.{quoted(name)}" for name in key_columns(table))
    return f"""SELECT w.name, ARRAY[%(batch)s]::int[] FROM {among} w WHERE (NOT w.equal OR EXISTS (
        SELECT FROM batch WHERE id = %(batch)s AND profile::json ->> 'repeats' = 'superseded'))
        AND EXISTS (
        SELECT 1 FROM {staged_name(table)} s {repair_joins(table)} WHERE {of_batch("s")}
        AND {same} AND s.parent IS NULL AND {repair_state(table)} IN ({listed(SETTLING)}))"""


def _end_with_errors(connection: psycopg.Connection, batch_id: int) -> None:
    """Let a batch that ended without errors, because they had been repaired, end with errors.

    It passes through the state of applied rows, as any batch does before its end.
    """
    before = State.COMPLETE
    for state in (State.MERGED, State.COMPLETE_WITH_ERRORS):
        moved = connection.execute(
            "UPDATE batch b SET state = %s WHERE id = %s AND state = %s "
            f"RETURNING {TERMS[ENDED_AT]}",
            [state, batch_id, before],
        ).fetchone()
        if moved is None:
            return
        reason = "what repaired its rows was taken back"
        detail = {ENDED_AT: moved[0]}
        add_event(connection, f"batch {state}", batch_id=batch_id, reason=reason, detail=detail)
        before = state


def _in_error_and_repaired(table: Table) -> str:
    """SQL for the rows of a batch that are to end as corrected."""
    return f"""FROM {staged_name(table)} s {outcome_joins(table)}
        JOIN repaired ON name = {_name("s")}
        WHERE {of_batch("s")} AND {STATE} IN ({listed(ERRORS)})"""


def unrepaired(
    connection: psycopg.Connection, batches: Collection[int] | None = None
) -> Iterator[str]:
    """Report rows, of these batches or of all, that count as corrected wrongly or fail to.

    Somebody else has added or removed their outcomes. This writes nothing, and says nothing of rows
    that `unread_repairs` reports.
    """
    looked_at = connection.execute(
        f"""SELECT batch_id FROM outcome WHERE verdict = '{CORRECTED}'
            AND (%(batches)s::int[] IS NULL OR {in_batches("outcome", "%(batches)s::int[]")})
        UNION SELECT b.id FROM batch b JOIN batch c ON c.corrects = b.id AND c.id > b.id
            WHERE (%(batches)s::int[] IS NULL OR b.id = ANY(%(batches)s))
            AND b.state = ANY(%(applied)s) AND c.state = ANY(%(applied)s) ORDER BY 1""",
        {"batches": None if batches is None else list(batches), "applied": list(IN_DATABASE)},
    ).fetchall()
    for (batch_id,) in looked_at:
        repaired, wrong = _repairs_now(connection, batch_id), _misrecorded(connection, batch_id)
        with nested_loops(connection, on=False):
            found = connection.execute(
                f"""WITH repaired (name, by_key) AS MATERIALIZED ({repaired}),
                wrong (extract_id, record_number, corrected) AS ({wrong})
                SELECT e.name, w.record_number, w.corrected, count(*) OVER () FROM wrong w
                JOIN extract e ON e.id = w.extract_id
                ORDER BY w.extract_id, w.record_number LIMIT {_MOST_LISTED}"""
            ).fetchall()
        for name, number, corrected, _ in found:
            problem = (
                "counts as corrected, and no row that was applied repairs it"
                if corrected
                else "does not count as corrected, and a row that was applied repairs it"
            )
            yield f"record {number} of {name} of batch {batch_id} {problem}"
        if found and found[0][-1] > _MOST_LISTED:
            more = quantity(found[0][-1] - _MOST_LISTED, "more record")
            yield f"so it is with {more} of batch {batch_id}"


def unread_repairs(connection: psycopg.Connection) -> Iterator[str]:
    """Report batches whose repairs by key this account cannot verify.

    If a row in error may hold a secret, its key is hidden from accounts that only read.
    """
    matched = connection.execute(
        f"""SELECT DISTINCT batch_id FROM outcome
        WHERE verdict = '{CORRECTED}' AND error_data IS NOT NULL ORDER BY 1"""
    ).fetchall()
    found = [one for (one,) in matched if _without_keys(connection, one)]
    if found:
        batches = agree(len(found), "batch", "batches")
        yield (
            f"what repairs rows of {batches} {first_of(found, _MOST_LISTED)} that were matched by "
            "key: this account of the database is not shown the keys of rows in error that may "
            "hold a secret"
        )


def _without_keys(connection: psycopg.Connection, batch_id: int) -> list[Table]:
    """The record kinds of a batch for which this account may not see the keys of rows in error."""
    return [
        table
        for table in staged_tables(connection, batch_id)
        if table.unquotable and not reads_staged(connection, staged_name(table))
    ]


def reads_staged(connection: psycopg.Connection, name: str = "staged_row") -> bool:
    """Whether this database account may read rows as delivered, of one table or of all."""
    asked = "SELECT has_table_privilege(%s, 'SELECT')"
    return bool(one_value(connection.execute(asked, [f"{SCHEMA}.{name}"])))


def _misrecorded(connection: psycopg.Connection, batch_id: int) -> str:
    """SQL for rows of a batch that count as corrected but are not `repaired`, or the reverse."""
    span = batch_span(connection, batch_id)
    only_readable = "".join(
        f""" AND NOT (o.error_data IS NOT NULL AND EXISTS (SELECT FROM {staged_name(table)} s
            WHERE s.extract_id = o.extract_id AND s.record_number = o.record_number))"""
        for table in _without_keys(connection, batch_id)
    )
    parts = [
        f"""SELECT o.extract_id, o.record_number, true FROM outcome o
        WHERE {of_batch("o")} AND o.verdict = '{CORRECTED}' AND NOT {_REPAIRED}{only_readable}"""
    ]
    parts += [
        f"SELECT s.extract_id, s.record_number, false {_in_error_and_repaired(table)}"
        for table in staged_tables(connection, batch_id)
    ]
    return " UNION ALL ".join(parts) % span


def _repairs_now(connection: psycopg.Connection, batch_id: int) -> str:
    """SQL for what `_gather` collects."""
    span, tables = batch_span(connection, batch_id), staged_tables(connection, batch_id)
    parts = ["SELECT NULL::text, NULL::int[]"]
    for correction in corrections_of(connection, batch_id):
        theirs = batch_span(connection, correction)
        for table in staged_tables(connection, correction):
            parts.append(_naming(table) % theirs)
            if table.key and table in tables:
                parts.append(_with_same_key(table, f"({_in_error(table) % span})") % theirs)
    return " UNION ALL ".join(parts)


def matched_by_key(
    connection: psycopg.Connection, extract_id: int, record_number: int
) -> str | None:
    """Why a row counts as corrected although no row names it; None for all others."""
    row = connection.execute(
        "SELECT error_data::json -> 0 ->> 'Message' FROM outcome "
        f"WHERE extract_id = %s AND record_number = %s AND verdict = '{CORRECTED}'",
        [extract_id, record_number],
    ).fetchone()
    return row[0] if row else None


_MATCHED = """CASE WHEN by_key IS NOT NULL THEN json_build_array(json_build_object(
    'ErrorCode', 'MatchedByKey', 'FieldName', '', 'Message', 'A row of batch ' || by_key[1]
    || ' has its key and names no row that it repairs: matched by key.',
    'Meta', json_build_object('stage', 'correct', 'batch', by_key[1]::text)))::text END"""
"""SQL for the reason why a row ends as corrected that no row of a correction names."""


def _name(alias: str) -> str:
    """SQL for a row's name as `recon rejects` writes it into the first column."""
    return f"{alias}.extract_id || ':' || {alias}.record_number"


_REPAIRED = f"""EXISTS (SELECT 1 FROM repaired WHERE name = {_name("o")}
    AND (by_key IS NULL) = (o.error_data IS NULL))"""
"""SQL for whether a corrected row `o` is still repaired in the same way."""
_REPAIRED_AS_RECORDED = f"""EXISTS (SELECT 1 FROM repaired WHERE name = {_name("o")} AND CASE
    WHEN by_key IS NULL THEN o.error_data IS NULL
    ELSE (o.error_data::json -> 0 -> 'Meta' ->> 'batch')::int = ANY(by_key) END)"""
"""The same, and still by the batch that was noted when it was matched by key."""
_MOST_LISTED = 20
"""Rows of a batch that are listed one by one."""
