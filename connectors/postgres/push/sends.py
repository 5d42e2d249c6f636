"""Sends as people ask about them: which batches wait, and what became of rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row

from connectors.postgres.accounts import OF_OTHERS, visible_batches
from connectors.postgres.batches.ledger import batch_span
from connectors.postgres.batches.recount import Sum, key_number
from connectors.postgres.push.earlier import EarlierSend, WhoseWord, earlier_of, undone_by, words_of
from connectors.postgres.push.lane import asking_columns
from connectors.postgres.push.plan import FOLLOWS, LEFT_BEHIND, WAITS
from connectors.postgres.query import one_value
from schemas.derived.push_keys import ASKING, AskingRow, push_key
from schemas.derived.sql_names import staged_name
from schemas.derived.views import SEND_ERRORS, json_expression, of_batch, position, quoted
from schemas.field import Table
from schemas.guards.batch_states import UNDO, is_bound
from schemas.operations import BY_NAME, PUSHES, Operation
from schemas.tables import EXTRACTS

_OF_BATCH = f"FROM send x WHERE x.batch_id = b.id AND {WAITS}"


class SendState(StrEnum):
    """State of a row on its way to the service, in the order of reports."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    DIFFERS = "differs"
    IN_DOUBT = "in_doubt"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"
    UNSENT = "unsent"
    SENDING = "sending"


SETTLED = frozenset({SendState.ACKNOWLEDGED, SendState.SUPERSEDED})
"""States in which nothing is left to do, whichever row brought it about."""


class SendDecision(StrEnum):
    """What an operator decides about rows that are not settled."""

    CONFIRM = "confirm"
    RESEND = "resend"
    ABANDON = "abandon"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which sends of a batch are meant; None, or no states, means any."""

    batch_id: int
    operation: str | None = None
    states: tuple[str, ...] = ()
    rows: tuple[tuple[int, int], ...] | None = None
    """Extract and record number of each row."""


def errors_in(error_data: str | None) -> list[dict[str, Any]]:
    """The errors in ErrorData; empty if there is none."""
    found: list[dict[str, Any]] = json.loads(error_data or "[]")
    return found


class Sent(NamedTuple):
    """One send, with what was or will be sent; secrets are masked."""

    file: str
    record_number: int
    line: int
    record: str
    operation: str
    state: str
    attempts: int
    status: int | None
    push_key: str
    jsondata: str
    echo: str | None
    service_id: str | None
    error_data: str | None
    decision: str | None
    decided: WhoseWord | None
    """Who decided and why; None if nobody did, or an earlier version kept no note of it."""
    earlier: tuple["SentBefore", ...]
    """Its earlier states, in order."""


class SentBefore(NamedTuple):
    """An earlier state of a send, before it was to be sent again or was decided otherwise."""

    state: str
    attempts: int
    status: int | None
    push_key: str
    echo: str | None
    service_id: str | None
    error_data: str | None
    changed_at: datetime
    decision: str | None
    decided: WhoseWord | None
    ended_by: str
    """The decision that ended it, `undo` or `restored`."""
    undone: int | None
    """The batch that was undone; None if none was, or it may not be named."""
    ended: WhoseWord | None
    """Who ended it and why; None also if the undone batch may not be named."""

    @property
    def ended_in_words(self) -> str:
        """What ended it, in words."""
        if self.ended_by != UNDO:
            return self.ended_by
        return f"undo of {OF_OTHERS if self.undone is None else f'batch {self.undone}'}"

    @property
    def errors(self) -> list[dict[str, Any]]:
        return errors_in(self.error_data)


def waiting_batches(
    connection: psycopg.Connection, service: str | None, *, repeatable: bool = False
) -> list[int]:
    """The batches that have something to push, least recently tried first.

    So a caller that takes the first few each time comes to all of them. Batches that go to another
    service are last. `repeatable` says that the host lets POSTs in doubt be sent again.
    """
    rows = connection.execute(
        f"""SELECT b.id FROM batch b WHERE b.service IS NOT NULL
            AND (b.state = 'merged' OR b.state IN ('complete', 'complete_with_errors', 'failed')
                AND (EXISTS (SELECT 1 {_OF_BATCH}) OR b.id IN ({LEFT_BEHIND})))
        ORDER BY b.service IS DISTINCT FROM %(service)s,
            (SELECT max(x.changed_at) {_OF_BATCH}) NULLS FIRST, b.id""",
        {"service": service, "repeatable": repeatable},
    ).fetchall()
    return [row[0] for row in rows]


def is_unsettled(connection: psycopg.Connection, batch_id: int, *, repeatable: bool) -> bool:
    """Whether a push could change anything of a batch: rows to send, or to follow another row.

    `repeatable` says that the host lets POSTs in doubt be sent again.
    """
    found = connection.execute(
        f"SELECT 1 FROM send x WHERE batch_id = %(batch)s AND ({WAITS} OR {FOLLOWS}) LIMIT 1",
        {"batch": batch_id, "repeatable": repeatable},
    )
    return found.fetchone() is not None


def is_bound_to_service(connection: psycopg.Connection, batch_id: int) -> bool:
    """Whether a batch's service has one of its rows, may have one, or has refused one."""
    asked = f"SELECT {is_bound('b.id')} FROM batch b WHERE b.id = %s"
    return bool(one_value(connection.execute(asked, [batch_id])))


def row_name(connection: psycopg.Connection, batch_id: int, operation: str, number: int) -> str:
    """The name of a send's row, as `recon resolve` takes it."""
    row = connection.execute(
        "SELECT e.name, x.record_number FROM send x JOIN extract e ON e.id = x.extract_id "
        "WHERE x.batch_id = %s AND x.operation = %s AND x.number = %s",
        [batch_id, operation, number],
    ).fetchone()
    assert row is not None
    return f"{row[0]}:record:{row[1]}"


def count_states(connection: psycopg.Connection, batch_id: int) -> dict[str, dict[str, int]]:
    """How many rows of a batch there are by operation and state."""
    counts: dict[str, dict[str, int]] = {}
    for operation, state, rows in connection.execute(
        "SELECT operation, state, count(*) FROM send WHERE batch_id = %s "
        'GROUP BY 1, 2 ORDER BY operation COLLATE "C", state COLLATE "C"',
        [batch_id],
    ):
        counts.setdefault(operation, {})[state] = rows
    return counts


def count_left_over(connection: psycopg.Connection, batch_id: int) -> dict[str, dict[str, int]]:
    """The same for operations that the record kind of the rows no longer has.

    Such an operation is gone, or belongs to another kind now, of which the batch has no rows.
    """
    values = batch_span(connection, batch_id)
    return {
        name: states
        for name, states in count_states(connection, batch_id).items()
        if name not in BY_NAME
        or connection.execute(
            f"SELECT FROM {staged_name(BY_NAME[name].table)} s WHERE {of_batch('s')} LIMIT 1",
            values,
        ).fetchone()
        is None
    }


def batches_with_sends(connection: psycopg.Connection, batches: Sequence[int]) -> set[int]:
    """Those of these batches with a row that was or is to be sent to a service."""
    found = connection.execute(
        "SELECT id FROM unnest(%s::int[]) AS id "
        "WHERE EXISTS (SELECT FROM send WHERE batch_id = id)",
        [list(batches)],
    ).fetchall()
    return {batch for (batch,) in found}


def left_at_service(connection: psycopg.Connection, batch_id: int) -> dict[str, int]:
    """How many rows of a batch the service has or may have, by operation."""
    rows = connection.execute(
        "SELECT operation, count(*) FROM send WHERE batch_id = %s AND (carried_out IS NOT NULL "
        "OR state IN ('in_doubt', 'sending') "
        # An earlier version did not record whether attempts were carried out.
        "OR attempts > 0 AND state IN ('acknowledged', 'differs') "
        "OR state = 'abandoned' AND status BETWEEN 200 AND 299) "
        'GROUP BY 1 ORDER BY operation COLLATE "C"',
        [batch_id],
    )
    return dict(rows.fetchall())


def recount_sends(connection: psycopg.Connection, table: Table, batch_id: int) -> Iterator[Sum]:
    """Totals of a batch's rows by their state at the service, from the staged rows."""
    currency = f"coalesce({quoted(table.currency)}::text, '')" if table.currency else "''"
    sums = "".join(f", coalesce(sum({quoted(name)}), 0)" for name in table.amounts)
    rows = connection.execute(
        f"""SELECT s.extract_id, x.state, {currency}, count(*),
            coalesce(sum({key_number(table)}), 0) {sums}
        FROM send x JOIN {staged_name(table)} s
            ON s.extract_id = x.extract_id AND s.record_number = x.record_number
        WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s AND {of_batch("s")}
        GROUP BY 1, 2, 3 ORDER BY 1, x.state COLLATE "C", {currency} COLLATE "C" """,
        batch_span(connection, batch_id) | {"operation": PUSHES[table.name].name},
    )
    for extract_id, state, money, count, keys, *amounts in rows:
        found = dict(zip(table.amounts, amounts, strict=True))
        yield Sum(extract_id, state, money, count, int(keys), found)


class SendRefusal(NamedTuple):
    """A reason why rows of a record kind are not settled at the service, with the first row."""

    state: str
    code: str
    field: str
    message: str
    rows: int
    extract_id: int
    line: int
    record_number: int
    value: str


def refusals(connection: psycopg.Connection, table: Table, batch_id: int) -> list[SendRefusal]:
    """The service's reasons against the rows of a batch, most frequent first."""
    with connection.cursor(row_factory=class_row(SendRefusal)) as cursor:
        return cursor.execute(
            f"""WITH reasons AS (
                SELECT x.state, x.extract_id, x.record_number,
                    {position("first_line")} AS first_line,
                    json_array_elements(x.error_data::json) AS reason
                FROM send x JOIN {staged_name(table)} s
                    ON s.extract_id = x.extract_id AND s.record_number = x.record_number
                WHERE x.batch_id = %(batch)s AND x.operation = %(operation)s
                    AND x.state = ANY(%(states)s) AND {of_batch("s")}
            ), named AS (
                SELECT state, extract_id, record_number, first_line,
                    coalesce(reason ->> 'ErrorCode', '') AS code,
                    coalesce(reason ->> 'FieldName', '') AS field,
                    coalesce(reason ->> 'Message', '') AS message,
                    reason -> 'Meta' ->> 'value' AS value
                FROM reasons
            )
            SELECT state, code, field, min(message COLLATE "C") AS message, count(*) AS rows,
                (array_agg(extract_id ORDER BY extract_id, record_number))[1] AS extract_id,
                (array_agg(first_line ORDER BY extract_id, record_number))[1] AS line,
                (array_agg(record_number ORDER BY extract_id, record_number))[1] AS record_number,
                coalesce((array_agg(value ORDER BY extract_id, record_number))[1], '') AS value
            FROM named GROUP BY state, code, field ORDER BY count(*) DESC,
                state COLLATE "C", code COLLATE "C", field COLLATE "C" """,
            batch_span(connection, batch_id)
            | {"operation": PUSHES[table.name].name, "states": list(SEND_ERRORS)},
        ).fetchall()


def list_sends(connection: psycopg.Connection, chosen: Selection) -> Iterator[Sent]:
    """The chosen sends in push order, record kind by record kind."""
    words = words_of(connection, chosen.batch_id)
    for record, operation in PUSHES.items():
        if chosen.operation in (None, operation.name):
            yield from _list(connection, EXTRACTS[record], operation, chosen, words)


def _list(
    connection: psycopg.Connection,
    table: Table,
    operation: Operation,
    chosen: Selection,
    words: Mapping[int, WhoseWord],
) -> Iterator[Sent]:
    key = ", ".join(f"s.{quoted(name)}" for name in table.identity)
    where, values = where_chosen(chosen)
    rows = connection.execute(
        f"""SELECT {asking_columns(table)},
            e.name, {position("first_line")}, x.state, x.attempts, x.status,
            {json_expression(table, "s")}, x.echo, x.service_id, x.error_data, x.decision,
            x.extract_id, x.decision_number, x.earlier, {key}
        FROM send x JOIN extract e ON e.id = x.extract_id JOIN batch b ON b.id = x.batch_id
        JOIN {staged_name(table)} s
            ON s.extract_id = x.extract_id AND s.record_number = x.record_number
        WHERE {where} AND x.operation = %(of)s AND {of_batch("s")} ORDER BY x.number""",
        values | batch_span(connection, chosen.batch_id) | {"of": operation.name},
    )
    for row in rows:
        asking = AskingRow(*row[:ASKING])
        name, line, state, attempts, status, jsondata, echo, service_id, *rest = row[ASKING:]
        error_data, decision, extract_id, decision_number, kept, *identity = rest
        before = earlier_of(connection, extract_id, asking.record_number) if kept else ()
        key_of = tuple(identity)
        hidden = hidden_fields(table, state)
        yield Sent(
            file=name,
            record_number=asking.record_number,
            line=line,
            record=table.name,
            operation=operation.name,
            state=state,
            attempts=attempts,
            status=status,
            push_key=push_key(operation, jsondata, key_of, asking),
            jsondata=_masked(jsondata, hidden),
            echo=_masked(echo, hidden) if echo else None,
            service_id=service_id,
            error_data=error_data,
            decision=decision,
            decided=words.get(decision_number),
            earlier=tuple(
                _sent_before(
                    connection,
                    one,
                    words,
                    push_key(operation, jsondata, key_of, asking._replace(epoch=one.epoch)),
                    hidden_fields(table, one.state),
                )
                for one in before
            ),
        )


def hidden_fields(table: Table, state: str) -> Sequence[str]:
    """The fields hidden when a record is shown: beside an error, all if any may hold a secret.

    `state` is that of its row at the service. A cell may have slipped, a secret with it, and the
    service may have refused the record for that.
    """
    return table.columns if table.unquotable and state in SEND_ERRORS else table.secrets


def _sent_before(
    connection: psycopg.Connection,
    one: EarlierSend,
    words: Mapping[int, WhoseWord],
    key: str,
    hidden: Sequence[str],
) -> SentBefore:
    number = one.ended_number or 0
    by_undo = one.ended_by == UNDO
    undone = number if by_undo and visible_batches(connection, [number]) else None
    decided = None if by_undo else words.get(number)
    return SentBefore(
        state=one.state,
        attempts=one.attempts,
        status=one.status,
        push_key=key,
        echo=_masked(one.echo, hidden) if one.echo else None,
        service_id=one.service_id,
        error_data=one.error_data,
        changed_at=one.changed_at,
        decision=one.decision,
        decided=words.get(one.decision_number or 0),
        ended_by=one.ended_by,
        undone=undone,
        ended=undone_by(connection, undone) if undone else decided,
    )


def where_chosen(chosen: Selection) -> tuple[str, dict[str, object]]:
    """SQL for the chosen sends `x`, and its parameters."""
    parts = ["x.batch_id = %(chosen_batch)s"]
    values: dict[str, object] = {"chosen_batch": chosen.batch_id}
    if chosen.operation is not None:
        parts.append("x.operation = %(chosen_operation)s")
        values["chosen_operation"] = chosen.operation
    if chosen.states:
        parts.append("x.state = ANY(%(chosen_states)s)")
        values["chosen_states"] = list(chosen.states)
    if chosen.rows is not None:
        parts.append(
            "(x.extract_id, x.record_number) IN "
            "(SELECT * FROM unnest(%(chosen_extracts)s::int[], %(chosen_records)s::bigint[]))"
        )
        values["chosen_extracts"] = [extract_id for extract_id, _ in chosen.rows]
        values["chosen_records"] = [number for _, number in chosen.rows]
    return " AND ".join(parts), values


def _masked(jsondata: str, hidden: Sequence[str]) -> str:
    if not any(f'"{name}":' in jsondata for name in hidden):
        return jsondata
    record = json.loads(jsondata)
    masked = {name: "***" if name in hidden else value for name, value in record.items()}
    return json.dumps(masked, ensure_ascii=False, separators=(",", ":"))
