"""Apply: staged rows become database rows, each with its verdict, a range with its receipt.

The rows of a range that the target knows are judged first; what is new is inserted, what changed
is updated with its image kept. The target is locked against other writers meanwhile, so a verdict
is still true when it is acted upon.

A range whose keys lie beyond all that the target knows needs neither judging nor the lock: all its
rows are new, and should one not be after all, the key's index refuses the whole range, which is
then judged like any other. So several such ranges may be inserted at once.

Most rows of a range end alike. Their verdict is told once, in the receipt of the range; only rows
that end otherwise get an outcome of their own. `schemas.views.staged_row` reads both.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import psycopg
from numpy.typing import NDArray

from connectors import tuples
from connectors.spool import OF_EXTRACT, Spooled, read_spool
from connectors.staging import COPY_BYTES
from schemas.field import Table
from schemas.kinds import stored_columns
from schemas.ledger import LINEAGE
from schemas.reasons import REASONS
from schemas.sql import IDENTITY, key_columns, staged_name
from schemas.views import position, quoted

CONSTRAINT_ERRORS = (psycopg.errors.IntegrityError, psycopg.errors.DataError)
NOT_NEW = (*CONSTRAINT_ERRORS, psycopg.errors.DeadlockDetected)
"""What the database says when a range of new rows is not one; two that insert the same keys in
different orders wait for each other."""
INSERTED = "inserted"
VERDICTS = (INSERTED, "updated", "unchanged", "stale")
MOST_LEFT_OUT = 200_000
"""Rows of a range that end otherwise, up to which the others are copied around them."""


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive records of one extract."""

    batch_id: int
    extract_id: int
    first: int
    last: int

    def halves(self) -> tuple["Range", "Range"]:
        """The range in two."""
        middle = (self.first + self.last) // 2
        return replace(self, last=middle), replace(self, first=middle + 1)

    def parameters(self) -> dict[str, int]:
        """The range as statement parameters."""
        return {
            "batch": self.batch_id,
            "extract": self.extract_id,
            "first": self.first,
            "last": self.last,
        }


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a range."""

    counts: Counter[str]
    verdict: str
    """Of every clean row of the range without an outcome of its own."""


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

    A row the database refuses by a constraint of its own ends in conflict with PostgreSQL's code;
    it costs no other row. `spooled` are parts of the range whose rows are at hand, `span` the
    least and the greatest value of the key's first column in the range, where they are known.
    """
    _tell_present(connection, table, rows, span)
    connection.execute("ANALYZE present")
    done = _act(connection, table, rows, spooled)
    known = connection.execute(
        f"SELECT verdict, count(*) FROM present WHERE {_untold('present')} GROUP BY 1",
        rows.parameters(),
    )
    counts = done + Counter(dict(known.fetchall()))
    verdict = max(VERDICTS, key=lambda name: counts[name])
    for statement in _tell_exceptions(table, verdict):
        connection.execute(statement, rows.parameters() | {"verdict": verdict})
    return Applied(counts, verdict)


def add_rows(
    connection: psycopg.Connection, table: Table, rows: Range, spooled: Sequence[Spooled]
) -> Applied:
    """Insert the clean rows of a range that have no outcome yet, inside the open transaction.

    They are taken for new. Raises one of `NOT_NEW`, and nothing of the range may be kept, when one
    of them is not, or the database refuses it for another reason: then `apply_rows` decides.
    """
    _tell_present(connection, table, rows, None, none=True)
    return Applied(+Counter({INSERTED: _add(connection, table, rows, spooled)}), INSERTED)


def may_meet(connection: psycopg.Connection, table: Table, span: tuple[int, int] | None) -> bool:
    """Whether keys within the span may be in the target, by the ends of its index."""
    if span is None:
        return True
    key = quoted(key_columns(table)[0])
    ends = connection.execute(f"SELECT min({key}), max({key}) FROM {table.name}").fetchone()
    assert ends is not None
    return ends[0] is not None and span[0] <= ends[1] and span[1] >= ends[0]


def _tell_present(
    connection: psycopg.Connection,
    table: Table,
    rows: Range,
    span: tuple[int, int] | None,
    *,
    none: bool = False,
) -> None:
    """The temporary table `present`: what the target knows of the range; nothing, if `none`."""
    judged = _judge_present(table, span)
    if none or not may_meet(connection, table, span):
        judged += " WITH NO DATA"
    connection.execute("DROP TABLE IF EXISTS pg_temp.present")
    connection.execute(judged, rows.parameters())


def _judge_present(table: Table, span: tuple[int, int] | None) -> str:
    """The rows of the range whose key the target knows, with their verdicts."""
    key = key_columns(table)
    content = [name for name in stored_columns(table) if name not in key]
    same, stale = "TRUE", ""
    if content:
        mine = ", ".join(f"s.{quoted(name)}" for name in content)
        theirs = ", ".join(f"t.{quoted(name)}" for name in content)
        same = f"({mine}) IS NOT DISTINCT FROM ({theirs})"
    if table.version:
        older = f"s.{quoted(table.version)} < t.{quoted(table.version)}"
        stale = f"WHEN {older} THEN 'stale'"
    within = ""
    if span is not None:
        # Says nothing new, but what was delivered is often a small part of what is known.
        within = f"AND t.{quoted(key[0])} BETWEEN {int(span[0])} AND {int(span[1])}"
    return f"""
        CREATE TEMP TABLE present ON COMMIT DROP AS
        SELECT s.record_number, CASE WHEN {same} THEN 'unchanged' {stale}
            ELSE 'updated' END AS verdict
        FROM {staged_name(table)} s JOIN {table.name} t ON {_joined(key)}
        WHERE {_ready()} {within}"""


def _act(
    connection: psycopg.Connection, table: Table, rows: Range, spooled: Sequence[Spooled] = ()
) -> Counter[str]:
    """Insert and update a range; returns how many rows were inserted and how many refused."""
    try:
        with connection.transaction():
            inserted = _add(connection, table, rows, spooled)
            if connection.execute(_CHANGED_ONES, rows.parameters()).fetchone():
                for statement in (_keep_images(table), _update(table)):
                    connection.execute(statement, rows.parameters())
            return Counter({INSERTED: inserted})
    except CONSTRAINT_ERRORS as error:
        if rows.first == rows.last:
            _refuse(connection, table, rows, error)
            return Counter(conflict=1)
    first, second = rows.halves()
    return _act(connection, table, first) + _act(connection, table, second)


def _add(
    connection: psycopg.Connection, table: Table, rows: Range, spooled: Sequence[Spooled]
) -> int:
    """Insert what is new in a range: rows at hand by COPY, which costs half, all other by SQL."""
    left_out = _left_out(connection, rows) if spooled else None
    if left_out is None:
        return connection.execute(_insert(table), rows.parameters()).rowcount
    columns = ", ".join(map(quoted, tuples.target_columns(table)))
    copied: list[Spooled] = []
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(tuples.HEAD)
            for part in spooled:
                written = _written_out(table, rows, part, left_out)
                if written is not None:
                    for piece in tuples.pieces(written, COPY_BYTES):
                        copy.write(piece)
                    copied.append(part)
            copy.write(tuples.TAIL)
        added = cursor.rowcount
    for between in _between(rows, copied):
        added += connection.execute(_insert(table), between.parameters()).rowcount
    return added


def _written_out(
    table: Table, rows: Range, part: Spooled, left_out: NDArray[np.int64]
) -> list[memoryview] | None:
    """The rows of a part but those left out, as COPY takes them; None: they are not at hand."""
    frame = read_spool(part)
    if frame is None:
        return None
    if len(left_out):
        frame = frame.filter(pl.Series(~np.isin(frame["record_number"].to_numpy(), left_out)))
    ids = zip(OF_EXTRACT, (rows.batch_id, rows.extract_id), strict=True)
    frame = frame.with_columns(pl.lit(number, pl.Int32).alias(name) for name, number in ids)
    found = tuples.encode(table, frame, tuples.target_columns(table))
    return None if found is None else [one.body.data.cast("B") for one in found]


def _left_out(connection: psycopg.Connection, rows: Range) -> NDArray[np.int64] | None:
    """Record numbers of the range that are not to be inserted; None: too many."""
    found = connection.execute(
        f"SELECT record_number FROM present UNION SELECT record_number FROM outcome o "
        f"WHERE {_in_range('o')} ORDER BY 1 LIMIT {MOST_LEFT_OUT + 1}",
        rows.parameters(),
    ).fetchall()
    if len(found) > MOST_LEFT_OUT:
        return None
    return np.array([number for (number,) in found], np.int64)


def _between(rows: Range, parts: Sequence[Spooled]) -> Iterator[Range]:
    """What of a range is not in the parts."""
    free = rows.first
    for part in parts:
        if part.first > free:
            yield replace(rows, first=free, last=part.first - 1)
        free = part.last + 1
    if free <= rows.last:
        yield replace(rows, first=free)


def _tell_exceptions(table: Table, verdict: str) -> list[str]:
    """Outcomes for the rows of the range that do not end like most of them."""
    told = "INSERT INTO outcome (batch_id, extract_id, record_number, verdict)"
    known = f"""{told} SELECT %(batch)s, %(extract)s, record_number, verdict FROM present
        WHERE verdict <> %(verdict)s AND {_untold("present")}"""
    fresh = f"""{told} SELECT %(batch)s, %(extract)s, s.record_number, '{INSERTED}'
        FROM {staged_name(table)} s WHERE {_ready()} AND {_absent()}"""
    # What was known goes last: the rows it tells of would no longer be told apart as fresh.
    return [known] if verdict == INSERTED else [fresh, known]


def _insert(table: Table) -> str:
    key = key_columns(table)
    columns = [*stored_columns(table), *([IDENTITY] if key == (IDENTITY,) else []), *_LINEAGE]
    names = ", ".join(quoted(name) for name in columns)
    return f"""INSERT INTO {table.name} ({names}) SELECT {names} FROM {staged_name(table)} s
        WHERE {_ready()} AND {_absent()}"""


def _keep_images(table: Table) -> str:
    return f"""INSERT INTO before_image (batch_id, extract_id, record_number, record, image)
        SELECT %(batch)s, %(extract)s, s.record_number, '{table.name}', row_to_json(t)::text
        FROM {_changed(table)} JOIN {table.name} t ON {_joined(key_columns(table))}"""


def _update(table: Table) -> str:
    key = key_columns(table)
    written = [*(name for name in stored_columns(table) if name not in key), *_LINEAGE]
    values = ", ".join(f"{quoted(name)} = s.{quoted(name)}" for name in written)
    return f"UPDATE {table.name} t SET {values} FROM {_changed(table)} WHERE {_joined(key)}"


def _changed(table: Table) -> str:
    return f"""(SELECT s.* FROM {staged_name(table)} s
        JOIN present p ON p.record_number = s.record_number AND p.verdict = 'updated'
        WHERE {_in_range("s")}) s"""


def _refuse(
    connection: psycopg.Connection, table: Table, rows: Range, error: psycopg.Error
) -> None:
    told = f"{error.sqlstate} {error.diag.message_primary or ''}".strip()
    parameters = rows.parameters() | {
        "field": error.diag.column_name or "",
        "message": REASONS["Constraint"].message(value=told),
        "state": error.sqlstate or "",
    }
    connection.execute(
        f"""INSERT INTO outcome (batch_id, extract_id, record_number, verdict, error_data)
        SELECT batch_id, extract_id, record_number, 'conflict', json_build_array(
            json_build_object('ErrorCode', 'Constraint', 'FieldName', %(field)s::text,
            'Message', %(message)s::text, 'Meta', json_build_object('stage', 'apply',
            'sqlstate', %(state)s::text, 'line', ({position("first_line")})::text)))::text
        FROM {staged_name(table)} s WHERE {_in_range("s")} AND error_data IS NULL""",
        parameters,
    )


_CHANGED_ONES = (
    "SELECT 1 FROM present WHERE verdict = 'updated' "
    "AND record_number BETWEEN %(first)s AND %(last)s LIMIT 1"
)
_LINEAGE = [field.name for field in LINEAGE]


def _in_range(alias: str) -> str:
    return (
        f"{alias}.extract_id = %(extract)s AND {alias}.record_number BETWEEN %(first)s AND %(last)s"
    )


def _ready() -> str:
    """Clean rows of the range that have no outcome."""
    return f"{_in_range('s')} AND s.error_data IS NULL AND {_untold('s')}"


def _untold(alias: str) -> str:
    return f"""NOT EXISTS (SELECT 1 FROM outcome o WHERE {_in_range("o")}
        AND o.record_number = {alias}.record_number)"""


def _absent() -> str:
    return "NOT EXISTS (SELECT 1 FROM present p WHERE p.record_number = s.record_number)"


def _joined(key: tuple[str, ...]) -> str:
    return " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in key)
