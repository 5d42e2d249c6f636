"""The evidence of a break: both sides, the row as delivered, its send and its history."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl
import psycopg

from connectors.errors import BreakUnknown, ReconError
from connectors.postgres.accounts import is_batch_seen
from connectors.postgres.batches.corrections import reads_staged
from connectors.postgres.batches.record_rows import (
    RowPlace,
    SendOfRow,
    TargetRow,
    delivered_row,
    earlier_writers,
    row_beginning_at,
    send_of,
    target_row,
)
from connectors.postgres.push.sends import Selection, Sent, hidden_fields, list_sends
from connectors.postgres.runs.break_history import (
    PastDecision,
    PastState,
    breaks_of_record,
    decisions_about,
    states_of,
)
from connectors.postgres.runs.reconciliations import Reconciliation, latest_run
from flows.stages.receiving.kept import removed_on
from flows.stages.reconcile.breaks import breaks_now, can_be_decided
from flows.stages.rows.locate import locate
from flows.stages.rows.spots import Spot, show_command
from flows.stages.rows.texts import RowTexts
from flows.stages.workspace import Workspace
from flows.steps.breaks.acceptance import both_values, outgrown
from flows.steps.frames.beyond import number_of
from flows.steps.secrets import shown_record
from flows.steps.totals import plain
from schemas.amounts import BEYOND, EXACT
from schemas.breaks import BREAKS, BreakCode
from schemas.field import Kind, Table
from schemas.key_texts import key_values
from schemas.life import Choice
from schemas.tables import EXTRACTS

WITHHELD = (
    "Delivered text is shown to accounts of all tenants only: a delivery for one tenant may hold "
    "rows of others."
)
NO_TEXT = ("ErrorCode", "FieldName")
"""The parts of an error that quote nothing of its row."""
ID = "[0-9a-f]{16}"
"""The form of a break's id."""
OTHERS = 50
"""The most other breaks of the same record that are looked up."""


@dataclass(frozen=True, slots=True)
class OneBreak:
    run: Reconciliation
    facts: Mapping[str, Any]
    """The columns of `breaks_now`, with `outgrown`, `accepted_as` and `is_now`."""
    code: BreakCode
    followed_by: Reconciliation | None
    """The scope's later run, on which decisions have to be taken; None if there is none."""
    possible: frozenset[Choice]
    """Decisions that would change something about the break."""
    decisions: Sequence[PastDecision]
    """Decisions of all runs of the scope, latest first."""
    states: Sequence[PastState]
    others: Sequence[Mapping[str, Any]]
    """Other breaks of the same record in the same run."""

    @property
    def undoes(self) -> PastDecision | None:
        """The acceptance that reopening would take back; None if there is none."""
        if Choice.REOPEN not in self.possible:
            return None
        taken = (one for one in self.decisions if one.what in (Choice.ACCEPT, Choice.REOPEN))
        last = next(taken, None)
        return last if last and last.what is Choice.ACCEPT else None


def find_break(
    connection: psycopg.Connection, run: Reconciliation, break_id: str, names: Mapping[str, str]
) -> OneBreak:
    """A break of a run by its id, with `names` of currencies; raises BreakUnknown."""
    unknown = BreakUnknown(
        f"Reconciliation {run.id} has no break {break_id}. Its page lists those that it has."
    )
    if not re.fullmatch(ID, break_id):
        raise unknown
    ids = [break_id, *breaks_of_record(connection, run.id, break_id, OTHERS)]
    current = breaks_now(connection, run, ids).with_columns(outgrown(), *both_values(names))
    facts = {str(row["id"]): row for row in current.iter_rows(named=True)}
    if break_id not in facts:
        raise unknown
    own = facts.pop(break_id)
    last = latest_run(connection, run.scope)
    followed = last if last and last.id != run.id else None
    this = current.filter(pl.col("id") == break_id).select(
        can_be_decided(one, by_id=True).alias(one) for one in Choice
    )
    possible = () if followed else (Choice(one.name) for one in this if one.item())
    return OneBreak(
        run,
        own,
        BREAKS[own["code"]],
        followed,
        frozenset(possible),
        decisions_about(connection, run.scope_hash, [break_id]),
        states_of(connection, run.scope_hash, break_id, run.id),
        list(facts.values()),
    )


def amount_of(facts: Mapping[str, Any], name: str) -> Decimal | str | None:
    """An amount of a break from either of its columns; as a text if it is no number."""
    text = facts[name + BEYOND]
    return facts[name] if text is None else (number_of(text) or str(text))


@dataclass(frozen=True, slots=True)
class FieldPair:
    """A field of a record, as delivered and as in the database."""

    name: str
    delivered: str | None
    there: str | None
    difference: Decimal | None
    """The database's value minus the delivered one, if both are numbers and differ."""

    @property
    def differs(self) -> bool:
        return self.delivered != self.there


@dataclass(frozen=True, slots=True)
class RowAsDelivered:
    facts: Mapping[str, Any]
    """The columns of `shown_row`, with the name of the file."""
    text: str | None
    """The text verbatim, unless it may contain a secret."""
    about_text: str
    """What proves the text, or why there is none."""
    errors: Sequence[Mapping[str, Any]]
    """Its errors; empty if the text is withheld, since their messages quote it."""
    command: str


@dataclass(frozen=True, slots=True)
class Behind:
    """The evidence of one break; a part that does not exist is None."""

    table: Table | None
    target: TargetRow | None
    writer: Mapping[str, Any] | None
    """The delivered row that last wrote the target's row."""
    delivered: RowAsDelivered | None
    pairs: Sequence[FieldPair]
    send: SendOfRow | None
    sent: Sent | None
    """What was sent and answered; None also if the role may not read it."""
    past: Sequence[Mapping[str, Any]] | None
    """Delivered rows that wrote the record before; None if the role may not read them."""
    hidden: bool = False
    """Whether no value of the record is shown, as it can hold a secret and the service objects."""
    looked_up: bool = True
    """Whether it is known which row of the target the break is about."""
    with_text: bool = True
    """Whether the evidence includes the contents of what was delivered, sent and answered."""

    @property
    def compared(self) -> bool:
        """Whether both sides of the pairs are known; no value is, of a row that is not shown."""
        brought = self.delivered and self.delivered.facts["jsondata"]
        return self.with_text and bool(self.target and brought)


def look_behind(
    workspace: Workspace,
    connection: psycopg.Connection,
    facts: Mapping[str, Any],
    *,
    with_text: bool = True,
) -> Behind:
    """The evidence of a break, given as a row of `breaks_now`, in batches the account may see.

    Without text it says where rows are and which errors they have, but not what they contain.
    """
    table = EXTRACTS.get(facts["record"])
    if table is None:
        return Behind(None, None, None, None, (), None, None, ())
    place, key = None, key_values(table, facts["key"])
    if facts["file"] and facts["line"] and facts["batch_id"]:
        place = row_beginning_at(connection, facts["batch_id"], facts["file"], facts["line"], key)
    target = target_row(connection, table, key=key, by=place)
    place = place or (target.writer if target else None)
    row = _seen_row(connection, place) if place else None
    delivered = _delivered(workspace, connection, table, row, with_text=with_text) if row else None
    past = earlier_writers(connection, table, target.writer) if target else []
    written = send_of(connection, target.writer) if target else None
    hidden = hidden_fields(table, written.state if written else "")
    pairs = list(_pairs(table, delivered if with_text else None, target, hidden))
    return Behind(
        table,
        target,
        _seen_row(connection, target.writer) if target else None,
        delivered,
        pairs,
        send_of(connection, place) if delivered and place else None,
        _sent(connection, delivered, place) if with_text else None,
        None if past is None else [row for one in past if (row := _seen_row(connection, one))],
        hidden=set(hidden) > set(table.secrets),
        looked_up=bool(key) or (place is not None and reads_staged(connection)),
        with_text=with_text,
    )


def _seen_row(connection: psycopg.Connection, place: RowPlace) -> Mapping[str, Any] | None:
    """A delivered row, if the acting account may see its batch."""
    row = delivered_row(connection, place)
    return row if row and is_batch_seen(connection, row["batch_id"]) else None


def _delivered(
    workspace: Workspace,
    connection: psycopg.Connection,
    table: Table,
    facts: Mapping[str, Any],
    *,
    with_text: bool,
) -> RowAsDelivered:
    command = show_command(facts["batch_id"], facts["file"], Spot(record=facts["record_number"]))
    errors = json.loads(facts["error_data"] or "[]")
    if not with_text:
        known = [{name: error.get(name) for name in NO_TEXT} for error in errors]
        return RowAsDelivered(facts, None, WITHHELD, known, command)
    text, about_text = facts["data"], ""
    if reads_staged(connection) and not table.unquotable:
        try:
            text, about_text = _kept_text(workspace, connection, facts)
        except ReconError as broken:
            text, about_text = None, str(broken)
    elif table.unquotable:
        about_text = "Records of this kind can hold a secret, so their text is not shown."
    elif text is None:
        about_text = "Its text is in the kept file alone, which needs a role that loads."
    display = None if text is None else shown_record(table, text)
    return RowAsDelivered(facts, display, about_text, errors, command)


def _kept_text(
    workspace: Workspace, connection: psycopg.Connection, facts: Mapping[str, Any]
) -> tuple[str | None, str]:
    """The text of a row and its proof, or None and why there is no text."""
    batch, number = facts["batch_id"], facts["record_number"]
    found = locate(workspace, connection, batch, facts["file"], Spot(record=number))
    (row,) = (one for one in found if one.extract_id == facts["extract_id"])
    text = RowTexts(workspace, connection, [batch]).fill(row._asdict())["data"]
    if text is None and facts["cleared_at"]:
        return None, removed_on(facts["cleared_at"])
    if text is None:
        return None, "Its bytes are no text that can be shown."
    return str(text), row.proof


def _sent(
    connection: psycopg.Connection, delivered: RowAsDelivered | None, place: RowPlace | None
) -> Sent | None:
    if delivered is None or place is None or not reads_staged(connection):
        return None
    chosen = Selection(delivered.facts["batch_id"], rows=(place,))
    return next(iter(list_sends(connection, chosen)), None)


def _pairs(
    table: Table,
    delivered: RowAsDelivered | None,
    target: TargetRow | None,
    hidden: Collection[str],
) -> Iterator[FieldPair]:
    brought = _record(delivered.facts["jsondata"] if delivered else None)
    there = _record(target.json if target else None)
    for field in table.delivered:
        if field.name in hidden or not (field.name in brought or field.name in there):
            continue
        one, other = brought.get(field.name), there.get(field.name)
        difference = None
        if field.kind is Kind.DOUBLE and one != other and None not in (one, other):
            difference = EXACT.subtract(Decimal(str(other)), Decimal(str(one)))
        yield FieldPair(field.name, one, other, difference)


def _record(text: str | None) -> dict[str, str]:
    record = json.loads(text, parse_float=Decimal, parse_int=Decimal) if text else {}
    return {
        name: plain(value)
        if isinstance(value, Decimal)
        else (value if isinstance(value, str) else json.dumps(value, default=str))
        for name, value in record.items()
    }
