"""Breaks as runs left them, and what was decided about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import psycopg

from connectors.postgres.accounts import who
from connectors.postgres.bulk.copy_out import Columns, copied
from connectors.postgres.runs.reconciliations import decisions_hash
from connectors.postgres.trail import detail_text, write_trail
from connectors.process import whoami
from schemas.field import Kind, Table
from schemas.frame_types import AMOUNT, FRAME_TYPES, Dtype
from schemas.guards.decisions import DECIDED
from schemas.ledger import BREAK_STATE, DECISION
from schemas.life import NO_CHANGE, RESOLVED, Choice


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about breaks: what, by whom and why."""

    what: Choice
    reason: str
    by: str | None = None
    """Stated name; None for the user of this process."""
    until: date | None = None
    """Last day of an acceptance."""
    side: str | None = None
    """Where the break was resolved: source or service."""
    owner: str | None = None
    up_to: Decimal | None = None
    """Ceiling of an acceptance; None accepts the break exactly as it was."""


def breaks_of(
    connection: psycopg.Connection, number: int, ids: Sequence[str] | None = None
) -> pl.DataFrame:
    """The breaks that a run left, those it resolved included; `ids` limits them."""
    return _frame(
        connection,
        BREAK_STATE,
        f"reconciliation_id = %(run)s{_only(ids)} ORDER BY break_id",
        {"run": number, "ids": None if ids is None else list(ids)},
    )


def unresolved(connection: psycopg.Connection, number: int) -> pl.Series:
    """The ids of the breaks that a run left unresolved, in order."""
    return copied(
        connection,
        {"break_id": ("break_id", pl.String())},
        f"{BREAK_STATE.name} WHERE reconciliation_id = %(run)s AND state <> ALL(%(resolved)s) "
        "ORDER BY break_id",
        {"run": number, "resolved": list(RESOLVED)},
    )["break_id"]


def breaks_before(
    connection: psycopg.Connection, scope_hash: str, number: int, ids: pl.Series
) -> pl.DataFrame:
    """These breaks as the next run carries them forward, after the scope's last run, `number`.

    Breaks resolved in an earlier run are as that run left them.
    """
    last = breaks_of(connection, number, ids.to_list())
    unknown = ids.filter(~ids.is_in(last["break_id"].implode())).to_list()
    former = _frame(
        connection,
        BREAK_STATE,
        """(reconciliation_id, break_id) IN (
            SELECT max(b.reconciliation_id), b.break_id FROM break_state b
            JOIN reconciliation r ON r.id = b.reconciliation_id
            WHERE r.scope_hash = %(scope)s AND b.break_id = ANY(%(ids)s) GROUP BY b.break_id
        ) ORDER BY break_id""",
        {"scope": scope_hash, "ids": unknown},
    )
    return pl.concat([last, former])


def decisions_since(
    connection: psycopg.Connection,
    scope_hash: str,
    decided_through: int,
    ids: Sequence[str] | None = None,
) -> pl.DataFrame:
    """The decisions in a scope after a given one, in order; `ids` limits them to these breaks."""
    return _frame(
        connection,
        DECISION,
        "id > %(after)s AND reconciliation_id IN "
        f"(SELECT id FROM reconciliation WHERE scope_hash = %(scope)s){_only(ids)} ORDER BY id",
        {"after": decided_through, "scope": scope_hash, "ids": None if ids is None else list(ids)},
    )


def proposals_on(
    connection: psycopg.Connection,
    number: int,
    decided_through: int,
    ids: Sequence[str] | None = None,
) -> dict[str, str]:
    """By break of a run, who proposed an acceptance that no later decision answered.

    `ids` limits it to these breaks.
    """
    no_answer = [one.value for one in NO_CHANGE if one is not Choice.PROPOSE]
    last = connection.execute(
        "SELECT DISTINCT ON (break_id) break_id, by, what FROM decision WHERE id > %(after)s "
        f"AND reconciliation_id = %(run)s AND what <> ALL(%(no_answer)s){_only(ids)} "
        "ORDER BY break_id, id DESC",
        {
            "after": decided_through,
            "run": number,
            "no_answer": no_answer,
            "ids": None if ids is None else list(ids),
        },
    ).fetchall()
    return {str(one): str(by) for one, by, what in last if what == Choice.PROPOSE}


def newest_decision(
    connection: psycopg.Connection, number: int, decided_through: int
) -> tuple[int, datetime] | None:
    """Id and time of the latest decision on the breaks of a run; None if there is none."""
    return connection.execute(
        "SELECT id, at FROM decision WHERE id > %s AND reconciliation_id = %s "
        "ORDER BY id DESC LIMIT 1",
        [decided_through, number],
    ).fetchone()


def newest_in_scope(
    connection: psycopg.Connection, scope_hash: str, decided_through: int
) -> tuple[int, datetime] | None:
    """The same for the breaks of all runs of a scope, after a given decision."""
    return connection.execute(
        "SELECT id, at FROM decision WHERE id > %s AND reconciliation_id IN "
        "(SELECT id FROM reconciliation WHERE scope_hash = %s) ORDER BY id DESC LIMIT 1",
        [decided_through, scope_hash],
    ).fetchone()


def decided_after(
    connection: psycopg.Connection, number: int, decision: tuple[int, datetime] | None
) -> list[str] | None:
    """The breaks of a run that were decided about after one of its decisions.

    None if that decision does not exist, as in a restored database: then nothing is known.
    """
    after, at = decision or (0, None)
    ids, known = connection.execute(
        "SELECT array(SELECT DISTINCT break_id FROM decision WHERE reconciliation_id = %(run)s "
        "AND id > %(after)s), %(at)s::timestamptz IS NULL OR EXISTS (SELECT FROM decision "
        "WHERE id = %(after)s AND at = %(at)s AND reconciliation_id = %(run)s)",
        {"run": number, "after": after, "at": at},
    ).fetchone() or ([], False)
    return [*ids] if known else None


def accepted_on(
    connection: psycopg.Connection, scope_hash: str, decided_through: int, breaks: Sequence[str]
) -> pl.DataFrame:
    """These breaks as they were in the run in which each was last accepted, up to a decision."""
    return _frame(
        connection,
        BREAK_STATE,
        """(reconciliation_id, break_id) IN (
            SELECT DISTINCT ON (d.break_id) d.reconciliation_id, d.break_id FROM decision d
            JOIN reconciliation r ON r.id = d.reconciliation_id
            WHERE r.scope_hash = %(scope)s AND d.id <= %(through)s AND d.what = %(what)s
            AND d.break_id = ANY(%(ids)s) ORDER BY d.break_id, d.id DESC
        ) ORDER BY break_id""",
        {
            "scope": scope_hash,
            "through": decided_through,
            "what": Choice.ACCEPT.value,
            "ids": list(breaks),
        },
    )


def add_decisions(
    connection: psycopg.Connection, number: int, breaks: Sequence[str], decision: Decision
) -> int:
    """Record a decision for each of these breaks of a run; gives the one event for them all."""
    by = who(connection, decision.by)
    until = decision.until.isoformat() if decision.until else None
    up_to = format(decision.up_to, "f") if decision.up_to is not None else None
    terms = (decision.what.value, by, decision.reason, until, decision.side, decision.owner)
    ids = sorted(breaks)
    detail = {
        "reconciliation": number,
        "breaks": len(ids),
        "sha256": decisions_hash((number, one, *terms, up_to) for one in ids),
    } | {
        name: value
        for name, value in (
            ("until", until),
            ("side", decision.side),
            ("owner", decision.owner),
            ("up_to", up_to),
            ("said_by", decision.by if decision.by != by else None),
            ("process", None if decision.by else whoami()),
        )
        if value
    }
    connection.execute("SELECT draft('decision')")
    connection.execute(
        "INSERT INTO draft_decision (reconciliation_id, break_id, what, by, reason, until, side, "
        "owner, up_to) SELECT %s, id, %s, %s, %s, %s, %s, %s, %s FROM unnest(%s::text[]) id",
        [number, *terms, up_to, ids],
    )
    return write_trail(
        connection, "decide", DECIDED[decision.what], by, decision.reason, detail_text(detail)
    )


def _only(ids: Sequence[str] | None) -> str:
    return "" if ids is None else " AND break_id = ANY(%(ids)s::text[])"


def _frame(
    connection: psycopg.Connection, table: Table, condition: str, parameters: dict[str, Any]
) -> pl.DataFrame:
    columns: Columns = {}
    for name, field in table.by_name.items():
        # Money is exact here; the ledger has no other fields of this kind.
        dtype: Dtype = AMOUNT if field.kind is Kind.DOUBLE else FRAME_TYPES[field.kind]
        is_time = isinstance(dtype, pl.Datetime)
        sql = f"(extract(epoch FROM {name}) * 1000000)::bigint" if is_time else name
        columns[name] = sql, dtype
    return copied(connection, columns, f"{table.name} WHERE {condition}", parameters)
