"""Apply: staged rows become database rows, each with a verdict, and each range with a receipt.

Rows whose key the target knows are compared first; new rows are then inserted, and changed ones
updated with their former content kept. The target is locked against other writers meanwhile, so a
verdict is still true when it is acted upon.

A range whose keys lie beyond all keys of the target needs neither judging nor the lock, since all
its rows are new. If one is not new after all, the index of the key refuses the whole range, which
is then compared like any other. So several such ranges may be inserted at once.

Most rows of a range end alike. The receipt of the range records that verdict once; only rows that
end otherwise get an outcome of their own. The view `staged_row` reads both
(`schemas.derived.views`).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg

from connectors.files.disk.spool import Spooled
from connectors.postgres.batches.insert import insert_new, insert_staged
from connectors.postgres.batches.ranges import (
    AppliedTogether,
    Range,
    WholeExtracts,
    absent,
    ready,
    same,
    without_outcome,
)
from connectors.postgres.batches.written_over import note_written_over
from schemas.derived.sql_names import content_columns, key_columns, staged_name
from schemas.derived.views import is_older, joined, position, quoted, same_content
from schemas.field import Table
from schemas.kinds import stored_columns
from schemas.ledger import LINEAGE
from schemas.reasons import REASONS

CONSTRAINT_ERRORS = (psycopg.errors.IntegrityError, psycopg.errors.DataError)
NOT_NEW = (*CONSTRAINT_ERRORS, psycopg.errors.DeadlockDetected)
"""Errors that show that not all rows of a range are new; two transactions that insert the same keys
in different orders deadlock."""
INSERTED = "inserted"
VERDICTS = (INSERTED, "updated", "unchanged", "stale")


@dataclass(frozen=True, slots=True)
class Applied:
    counts: Counter[str]
    verdict: str
    """The verdict of every clean row of the range without an outcome of its own."""


@dataclass(frozen=True, slots=True)
class Work:
    """Whether a range has new rows and changed rows; a repeated delivery mostly has neither."""

    new: bool
    changed: bool


def lock_target(connection: psycopg.Connection, table: Table) -> None:
    """Keep other writers out of a target until the transaction ends."""
    connection.execute(f"LOCK TABLE {table.name} IN SHARE ROW EXCLUSIVE MODE")


def apply_rows(
    connection: psycopg.Connection,
    table: Table,
    rows: Range,
    spooled: Sequence[Spooled] = (),
    span: tuple[int, int] | None = None,
) -> Applied:
    """Apply the clean rows of a range that have no outcome yet, inside the open transaction.

    A row refused by a constraint of the database ends in conflict, with PostgreSQL's code, and
    affects no other row. `spooled` are parts of the range whose rows are at hand; `span` is the
    least and the greatest value of the key's first column in the range, if known.
    """
    _create_present(connection, table, rows, span)
    known = _known(connection, rows, "TRUE")[rows.extract_id]
    work = Work(
        new=not known or _ready_rows(connection, table, rows)[rows.extract_id] > known.total(),
        changed=known["updated"] > 0,
    )
    _analyse_present(connection, work)
    done = _act(connection, table, rows, work, spooled)
    if done["conflict"]:
        known = _known(connection, rows, without_outcome(rows.within, "present"))[rows.extract_id]
    applied = _applied(done + known)
    if known["updated"]:
        note_written_over(connection, table, rows)
    _insert_exceptions(connection, table, rows, {rows.extract_id: applied})
    return applied


def apply_extracts(
    connection: psycopg.Connection, table: Table, rows: WholeExtracts, span: tuple[int, int] | None
) -> dict[int, Applied]:
    """Apply several extracts at once; gives by extract what `apply_rows` gives for one.

    Raises one of CONSTRAINT_ERRORS if the database refuses a row. Then nothing of the extracts may
    be kept, and `apply_rows` decides extract by extract.
    """
    _create_present(connection, table, rows, span)
    known = _known(connection, rows, "TRUE")
    ready_rows = _ready_rows(connection, table, rows)
    new = {one: ready_rows[one] - known[one].total() for one in rows.extracts}
    work = Work(any(new.values()), any(counts["updated"] for counts in known.values()))
    _analyse_present(connection, work)
    if work.new:
        insert_staged(connection, table, rows)
    if work.changed:
        _change(connection, table, rows)
        note_written_over(connection, table, rows)
    applied = {one: _applied(+Counter({INSERTED: new[one]}) + known[one]) for one in rows.extracts}
    _insert_exceptions(connection, table, rows, applied)
    return applied


def _applied(counts: Counter[str]) -> Applied:
    return Applied(counts, max(VERDICTS, key=counts.__getitem__))


def _analyse_present(connection: psycopg.Connection, work: Work) -> None:
    if work.new or work.changed:
        connection.execute("ANALYZE present")


def add_rows(
    connection: psycopg.Connection, table: Table, rows: Range, spooled: Sequence[Spooled]
) -> Applied:
    """Insert the clean rows of a range that have no outcome yet, inside the open transaction.

    They are assumed to be new. Raises one of `NOT_NEW` if one is not, or the database refuses it
    for another reason. Then nothing of the range may be kept, and `apply_rows` decides.
    """
    _create_present(connection, table, rows, None, none=True)
    return Applied(+Counter({INSERTED: insert_new(connection, table, rows, spooled)}), INSERTED)


def may_meet(connection: psycopg.Connection, table: Table, span: tuple[int, int] | None) -> bool:
    """Whether the target may have keys within the span, by the ends of its index."""
    if span is None:
        return True
    key = quoted(key_columns(table)[0])
    ends = connection.execute(f"SELECT min({key}), max({key}) FROM {table.name}").fetchone()
    assert ends is not None
    return ends[0] is not None and span[0] <= ends[1] and span[1] >= ends[0]


def _create_present(
    connection: psycopg.Connection,
    table: Table,
    rows: AppliedTogether,
    span: tuple[int, int] | None,
    *,
    none: bool = False,
) -> None:
    """Create the temporary table `present`: rows whose key the target knows; empty if `none`."""
    statement = _present_statement(table, rows, span)
    if none or not may_meet(connection, table, span):
        statement += " WITH NO DATA"
    connection.execute("DROP TABLE IF EXISTS pg_temp.present")
    connection.execute(statement, rows.parameters())


def _present_statement(table: Table, rows: AppliedTogether, span: tuple[int, int] | None) -> str:
    """SQL that creates `present`: rows whose key the target knows, with their verdicts.

    The verdict is cast to varchar(9), because a text of any length would get a TOAST table.
    """
    key = key_columns(table)
    same, stale = same_content(table), ""
    if table.version:
        stale = f"WHEN {is_older(table.by_name[table.version])} THEN 'stale'"
    within = ""
    if span is not None:
        # Redundant, but speeds up the join: a delivery is often a small part of the target.
        within = f"AND t.{quoted(key[0])} BETWEEN {int(span[0])} AND {int(span[1])}"
    return f"""
        CREATE TEMP TABLE present ON COMMIT DROP AS
        SELECT s.extract_id, s.record_number, (CASE WHEN {same} THEN 'unchanged' {stale}
            ELSE 'updated' END)::varchar(9) AS verdict, t.batch_id AS before
        FROM {staged_name(table)} s JOIN {table.name} t ON {joined(table)}
        WHERE {ready(rows.within)} {within}"""


def _known(
    connection: psycopg.Connection, rows: AppliedTogether, where: str
) -> defaultdict[int, Counter[str]]:
    """How many rows of `present` end with each verdict, by extract."""
    known: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for extract, verdict, count in connection.execute(
        f"SELECT extract_id, verdict, count(*) FROM present WHERE {where} GROUP BY 1, 2",
        rows.parameters(),
    ):
        known[extract][verdict] = count
    return known


def _ready_rows(
    connection: psycopg.Connection, table: Table, rows: AppliedTogether
) -> Counter[int]:
    """How many rows are to be applied, by extract."""
    found = connection.execute(
        f"SELECT extract_id, count(*) FROM {staged_name(table)} s "
        f"WHERE {ready(rows.within)} GROUP BY 1",
        rows.parameters(),
    )
    return Counter(dict(found.fetchall()))


def _act(
    connection: psycopg.Connection,
    table: Table,
    rows: Range,
    work: Work,
    spooled: Sequence[Spooled] = (),
) -> Counter[str]:
    """Insert and update a range; gives how many rows were inserted and how many refused."""
    try:
        with connection.transaction():
            inserted = insert_new(connection, table, rows, spooled) if work.new else 0
            if work.changed:
                _change(connection, table, rows)
            return +Counter({INSERTED: inserted})
    except CONSTRAINT_ERRORS as error:
        if rows.first == rows.last:
            _refuse(connection, table, rows, error)
            return Counter(conflict=1)
    first, second = rows.halves()
    return _act(connection, table, first, work) + _act(connection, table, second, work)


def _insert_exceptions(
    connection: psycopg.Connection,
    table: Table,
    rows: AppliedTogether,
    applied: Mapping[int, Applied],
) -> None:
    """Write outcomes for the rows that do not end like most of their extract."""
    into = "INSERT INTO outcome (batch_id, extract_id, record_number, verdict)"
    of_extract = "unnest(%(whose)s::int[], %(verdicts)s::text[]) m (extract_id, verdict)"
    parameters = {
        **rows.parameters(),
        "whose": list(applied),
        "verdicts": [one.verdict for one in applied.values()],
    }
    if any(one.counts[INSERTED] and one.verdict != INSERTED for one in applied.values()):
        connection.execute(
            f"""{into} SELECT %(batch)s, s.extract_id, s.record_number, '{INSERTED}'
            FROM {staged_name(table)} s JOIN {of_extract} ON m.extract_id = s.extract_id
            WHERE m.verdict <> '{INSERTED}' AND {ready(rows.within)} AND {absent()}""",
            parameters,
        )
    # Last, since rows with an outcome no longer count as ready above.
    if any(
        one.counts[name]
        for one in applied.values()
        for name in VERDICTS
        if name not in (INSERTED, one.verdict)
    ):
        connection.execute(
            f"""{into} SELECT %(batch)s, p.extract_id, p.record_number, p.verdict
            FROM present p JOIN {of_extract} ON m.extract_id = p.extract_id
            WHERE p.verdict <> m.verdict AND {without_outcome(rows.within, "p")}""",
            parameters,
        )


def _change(connection: psycopg.Connection, table: Table, rows: AppliedTogether) -> None:
    """Update target rows whose content differs, and keep their former content."""
    changed = f"""(SELECT s.* FROM {staged_name(table)} s
        JOIN present p ON {same("p", "s")} AND p.verdict = 'updated'
        WHERE {rows.within("s")}) s"""
    connection.execute(
        f"""INSERT INTO before_image (batch_id, extract_id, record_number, record, image)
        SELECT %(batch)s, s.extract_id, s.record_number, '{table.name}', row_to_json(t)::text
        FROM {changed} JOIN {table.name} t ON {joined(table)}""",
        rows.parameters(),
    )
    written = (*content_columns(table), *stored_columns(LINEAGE))
    values = ", ".join(f"{quoted(name)} = s.{quoted(name)}" for name in written)
    connection.execute(
        f"UPDATE {table.name} t SET {values} FROM {changed} WHERE {joined(table)}",
        rows.parameters(),
    )


def _refuse(
    connection: psycopg.Connection, table: Table, rows: Range, error: psycopg.Error
) -> None:
    # Even the first line of the message may quote a value.
    message = "" if table.unquotable else error.diag.message_primary or ""
    reason = f"{error.sqlstate} {message}".strip()
    parameters = {
        **rows.parameters(),
        "field": error.diag.column_name or "",
        "message": REASONS["Constraint"].message(value=reason),
        "state": error.sqlstate or "",
    }
    connection.execute(
        f"""INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
        SELECT batch_id, extract_id, record_number, 'conflict', json_build_array(
            json_build_object('ErrorCode', 'Constraint', 'FieldName', %(field)s::text,
            'Message', %(message)s::text, 'Meta', json_build_object('stage', 'apply',
            'sqlstate', %(state)s::text, 'line', ({position("first_line")})::text)))::text
        FROM {staged_name(table)} s WHERE {rows.within("s")} AND error_data IS NULL""",
        parameters,
    )
