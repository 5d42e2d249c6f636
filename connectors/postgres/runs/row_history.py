"""What people decided about one delivered row, and what reconciliations said of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import psycopg

from connectors.postgres.batches.record_rows import RowPlace, row_beginning_at
from connectors.postgres.push.earlier import WhoseWord
from connectors.postgres.query import one_value
from connectors.postgres.runs.break_history import decisions_about, states_of
from connectors.postgres.runs.signatures import signatures_of
from connectors.postgres.trail import read_detail
from schemas.counting import agree
from schemas.derived.sql_names import SCHEMA, staged_name
from schemas.derived.views import ENDS, STATE, outcome_joins
from schemas.guards.batch_states import OPERATED, RESOLVE
from schemas.key_texts import key_values
from schemas.tables import EXTRACTS


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """A decision about the batch of a row, or about some rows of that batch."""

    what: str
    by: str
    at: datetime
    reason: str | None
    person: str | None
    """Account that was logged in; None if the name is only what was stated."""

    @property
    def word(self) -> WhoseWord:
        return WhoseWord(self.person or self.by, self.at, self.reason)

    @property
    def is_about_sends(self) -> bool:
        """Whether it concerns sends of rows."""
        return self.what.startswith(RESOLVE)

    def __str__(self) -> str:
        return f"{self.what} {self.word}"


@dataclass(frozen=True, slots=True)
class BreakInRun:
    """A break as one reconciliation left it, and who signed that report."""

    run: int
    as_of: date
    state: str
    signed: dict[str, str]
    """Name of the signer by role."""

    def __str__(self) -> str:
        signed = "".join(f", {role} by {who}" for role, who in self.signed.items())
        return f"{self.run} as of {self.as_of} ({self.state}{signed})"


@dataclass(frozen=True, slots=True)
class DecidedBreak:
    what: str
    by: str
    at: datetime
    reason: str
    run: int
    person: str | None

    def __str__(self) -> str:
        return f"{self.what} {WhoseWord(self.by, self.at, self.reason)}"


@dataclass(frozen=True, slots=True)
class RowBreak:
    """A break located at a row, in the state of the last reconciliation that has it."""

    break_id: str
    code: str
    scope: str
    state: str
    runs: tuple[BreakInRun, ...]
    """Latest first."""
    decisions: tuple[DecidedBreak, ...]
    """Latest first."""

    def __str__(self) -> str:
        seen = ", ".join(map(str, self.runs))
        decided = "".join(f"; {one}" for one in self.decisions)
        runs = agree(len(self.runs), "reconciliation", "reconciliations")
        return f"{self.code} {self.break_id} of {self.scope}: {self.state}; {runs} {seen}{decided}"


def verdict_before(connection: psycopg.Connection, row: Any) -> str | None:
    """The state of a row before its batch was undone or discarded; None if it was not."""
    if row.state not in ENDS:
        return None
    table = EXTRACTS[row.record]
    found = connection.execute(
        f"SELECT {STATE} FROM {SCHEMA}.{staged_name(table)} s {outcome_joins(table, batch=False)} "
        "WHERE s.extract_id = %s AND s.record_number = %s",
        [row.extract_id, row.record_number],
    )
    return str(one_value(found))


def may_be_at_service(connection: psycopg.Connection, row: Any) -> bool:
    """Whether the service has or may have what was sent of a row."""
    found = connection.execute(
        "SELECT carried_out IS NOT NULL OR state IN ('acknowledged', 'differs', 'in_doubt', "
        "'sending') FROM send WHERE extract_id = %s AND record_number = %s",
        [row.extract_id, row.record_number],
    )
    return bool(one_value(found))


def decisions_of_row(connection: psycopg.Connection, row: Any) -> list[BatchDecision]:
    """The decisions about the batch of a row, oldest first.

    Decisions that name only other rows of the batch are left out.
    """
    name = f"{row.extract_id}:{row.record_number}"
    found = connection.execute(
        'SELECT what, detail, "by", at, reason, person FROM event '
        "WHERE batch_id = %s AND what = ANY(%s) ORDER BY id",
        [row.batch_id, list(OPERATED)],
    ).fetchall()
    events = [(what, read_detail(text), rest) for what, text, *rest in found]
    return [
        BatchDecision(f"{what} as {detail['decision']}" if "decision" in detail else what, *rest)
        for what, detail, rest in events
        if _is_about(detail, name)
    ]


def _is_about(detail: dict[str, Any], name: str) -> bool:
    """Whether a decision may be about a row; it may if it does not name all of its rows."""
    named, rows = detail.get("named"), detail.get("rows", 0)
    if not isinstance(named, list) or not isinstance(rows, int):
        return True
    return name in named or len(named) < rows


def breaks_of_row(connection: psycopg.Connection, row: Any, file: str) -> Iterator[RowBreak]:
    """The breaks located at a row, by scope and break; `file` is the row's file."""
    found = connection.execute(
        """SELECT DISTINCT ON (r.scope, r.scope_hash, b.break_id)
            r.scope, r.scope_hash, b.break_id, b.code, b.key, b.state, r.id
        FROM break_state b JOIN reconciliation r ON r.id = b.reconciliation_id
        WHERE b.facts::json ->> 'file' = %(file)s
            AND (b.facts::json ->> 'line')::bigint = %(line)s
            AND (b.facts::json ->> 'batch_id')::bigint = %(batch)s
        ORDER BY r.scope, r.scope_hash, b.break_id, r.id DESC""",
        {"file": file, "line": row.first_line, "batch": row.batch_id},
    ).fetchall()
    table, place = EXTRACTS[row.record], RowPlace(row.extract_id, row.record_number)
    for scope, scope_hash, break_id, code, key, state, last in found:
        # A line may hold several records, and a batch may have two files of one name.
        of = key_values(table, key)
        if row_beginning_at(connection, row.batch_id, file, row.first_line, of) != place:
            continue
        runs = tuple(
            BreakInRun(
                one.reconciliation_id,
                one.as_of,
                one.state,
                {
                    role.value: signature.by
                    for role, signature in signatures_of(connection, one.reconciliation_id).items()
                },
            )
            for one in states_of(connection, scope_hash, break_id, last)
        )
        decisions = tuple(
            DecidedBreak(
                one.what.value, one.by, one.at, one.reason, one.reconciliation_id, one.person
            )
            for one in decisions_about(connection, scope_hash, [break_id])
        )
        yield RowBreak(break_id, code, scope, state, runs, decisions)
