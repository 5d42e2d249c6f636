"""Attempts: a row in error that is delivered again, again in error, counts as one reject, not two.

It counts in the delivery that brought it last. Once one attempt was taken in, none counts.

A line that could not be divided into cells may hold several records. So each row that repairs it is
a record of its own, and none of them is an attempt at another, in whatever batch it came.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import psycopg

from connectors.postgres.batches.deliveries import FAMILY
from connectors.postgres.batches.ledger import (
    IN_DATABASE,
    TAKEN_BACK,
    State,
    batch_span,
    find_batch,
    staged_tables,
)
from connectors.postgres.batches.repair_places import read_name
from schemas.derived.sql_names import listed, staged_name
from schemas.derived.views import (
    APPLIED,
    AT_PLACES,
    CORRECTED,
    ERRORS,
    FOR_NONE,
    IS_UNDIVIDED,
    PENDING,
    REPAIRING,
    STATE,
    at_places,
    of_batch,
    outcome_joins,
    repair_joins,
    repair_state,
)
from schemas.field import Table
from schemas.tables import INSERT_BATCH_DATA


class AttemptRow(NamedTuple):
    """The place of a staged row; sorts in the order of the attempts."""

    batch_id: int
    extract_id: int
    record_number: int


class Later(NamedTuple):
    """Why a row in error is not repaired in its own batch: another batch has its repair."""

    batch_id: int
    state: str
    """REPAIRED, REJECTED or WAITING."""


REPAIRED, REJECTED, WAITING = "repaired", "in error again", "waiting"


def later_attempts(connection: psycopg.Connection, batch_id: int) -> dict[AttemptRow, Later]:
    """The rows in error of a batch that a later batch repairs, whatever became of the repair there.

    A repair that was undone or discarded does not count. A repair that was rejected is to be
    repaired in its own batch: it is the same row, and has the corrections made so far. Of several
    repairs in one batch somebody has to choose, so none of them is later than the others.
    """
    repairs, states = _repairs(connection, _corrections(connection, [batch_id]))
    found: dict[AttemptRow, Later] = {}
    # Naming a good repair means changing a good record; if that fails, it is an error of its own.
    good = {row for row, state in states.items() if state in REPAIRING and state != CORRECTED}
    attempts = _attempts(repairs, good)
    repaired = _rows_repaired(connection, attempts)
    others = {row.batch_id for first, rows in attempts.items() for row in (first, *rows)}
    matched = _matched_by_key(connection, {batch_id, *others})
    for first, repairing in attempts.items():
        known = repaired[first]
        records = _records(first, repairing, repairs, known)
        # Skip a repair superseded by a row in error: the repair of that row is its repair too.
        rows = [row for row in repairing if states[row] != FOR_NONE]
        settled = _latest(first, [row for row in rows if states[row] in REPAIRING], records)
        last = _latest(first, rows, records)
        # The row that a repair names may be in no error.
        in_error = known.state in (*ERRORS, CORRECTED)
        for row in (first, *rows):
            if row.batch_id != batch_id or (row == first and not in_error):
                continue
            by, later = settled[row], last[row]
            # A repair that was corrected in turn counts as taken in, but not by its own batch.
            if by and (states.get(row) not in REPAIRING or states.get(row) == CORRECTED):
                found[row] = matched.get(by, Later(by.batch_id, REPAIRED))
            elif not by and first in matched:
                found[row] = matched[first]
            elif not by and later and row.batch_id < later.batch_id:
                found[row] = Later(later.batch_id, REJECTED if states[later] in ERRORS else WAITING)
    # For a row corrected by its key, no row that names it is the repair.
    return found | {row: by for row, by in matched.items() if row.batch_id == batch_id}


def counted_elsewhere(connection: psycopg.Connection, batch_id: int) -> int:
    """How many rows in error of a batch count with another attempt (see `delivered_again`)."""
    again = delivered_again(connection, [batch_id])
    return sum(row.batch_id == batch_id for row in again)


def standing_batches(connection: psycopg.Connection, batch_id: int) -> list[int]:
    """The batches of a batch's delivery that were not taken back; empty if nothing corrects it."""
    return _standing(connection, _corrections(connection, [batch_id]))


def _standing(connection: psycopg.Connection, corrections: Iterable[tuple[int, int]]) -> list[int]:
    """The batches that occur in these corrections and were not taken back."""
    standing = connection.execute(
        f"SELECT id FROM batch WHERE id = ANY(%s) AND state NOT IN ({listed(TAKEN_BACK)}) "
        "ORDER BY id",
        [sorted({one for pair in corrections for one in pair})],
    ).fetchall()
    return [one for (one,) in standing]


def checked_of(connection: psycopg.Connection, batches: Collection[int]) -> list[int]:
    """Those of these batches whose rows have been through `check`."""
    found = connection.execute(
        "SELECT id FROM batch WHERE id = ANY(%s) AND state <> ALL(%s)",
        [[*batches], [State.RECEIVED, State.STAGED]],
    ).fetchall()
    return [one for (one,) in found]


def first_batch(connection: psycopg.Connection, batch_id: int) -> int:
    """The batch that a delivery began with."""
    known = _corrections(connection, [batch_id], taken_back=True)
    return min((corrected for _, corrected in known), default=batch_id)


def _corrections(
    connection: psycopg.Connection, batches: Collection[int], *, taken_back: bool = False
) -> list[tuple[int, int]]:
    """The corrections in the deliveries of these batches, as pairs: correction, corrected batch.

    Without undone and discarded ones, unless `taken_back`.
    """
    return connection.execute(
        f"""{FAMILY}
        SELECT b.id, b.corrects FROM batch b JOIN family USING (id)
        WHERE b.corrects < b.id AND (%s OR b.state NOT IN ({listed(TAKEN_BACK)}))
        ORDER BY b.id""",
        [list(batches), taken_back],
    ).fetchall()


def _repairs(
    connection: psycopg.Connection, corrections: Iterable[tuple[int, int]]
) -> tuple[dict[AttemptRow, AttemptRow], dict[AttemptRow, str]]:
    """The rows of these corrections that repair a row: which row each repairs, and their states.

    A row that names no row of its kind repairs nothing: it is an error of its own, and has no
    bearing on the row of another kind that it names.
    """
    named: dict[AttemptRow, AttemptRow] = {}
    states: dict[AttemptRow, str] = {}
    kinds: dict[AttemptRow, Table] = {}
    for correction, corrected in corrections:
        for row, table, parent, state in _named_repairs(connection, correction):
            if place := read_name(parent):
                named[row] = AttemptRow(corrected, *place)
                kinds[row], states[row] = table, state
    others = {*named.values()} - kinds.keys()
    known = kinds | {row: table for table, row in _rows_at(connection, others)}
    repairs = {
        row: of for row, of in named.items() if known.get(of) in (kinds[row], INSERT_BATCH_DATA)
    }
    return repairs, {row: states[row] for row in repairs}


class Attempts(NamedTuple):
    """The attempts at the rows of a delivery."""

    first: dict[AttemptRow, AttemptRow]
    """By repair, the row it goes back to, across repairs in between, taken back or not."""
    states: dict[AttemptRow, str]
    """The state of each repair."""


def attempts_at(connection: psycopg.Connection, batch_id: int) -> Attempts:
    """The repairs of the delivery that a batch belongs to."""
    corrections = _corrections(connection, [batch_id], taken_back=True)
    repairs, states = _repairs(connection, corrections)
    first = {row: of for of, rows in _attempts(repairs).items() for row in rows}
    return Attempts(first, states)


class OtherRepair(NamedTuple):
    """A repair in one batch of a row that another batch has applied a repair of."""

    repair: AttemptRow
    batch_id: int
    known_by: AttemptRow
    """The row with the key of the other's record: the other repair, or the row in error if that
    repair matched it by key."""


def other_repairs(connection: psycopg.Connection, batch_id: int) -> list[OtherRepair]:
    """Repairs of a batch for whose rows other batches have applied repairs.

    For a line without cells each repair is a record of its own, so none is listed.
    """
    others = {*standing_batches(connection, batch_id)} - {batch_id}
    if others <= {first_batch(connection, batch_id)}:
        return []  # The usual case: no other batch repairs anything.
    first, states = attempts_at(connection, batch_id)
    siblings: dict[AttemptRow, list[tuple[int, AttemptRow]]] = {}
    for row, of in first.items():
        if row.batch_id != batch_id and states[row] in APPLIED:
            siblings.setdefault(of, []).append((row.batch_id, row))
    for row, by in _matched_by_key(connection, {row.batch_id for row in first.values()}).items():
        if by.batch_id != batch_id:
            siblings.setdefault(row, []).append((by.batch_id, row))
    mine = {row: of for row, of in first.items() if row.batch_id == batch_id and of in siblings}
    known = _rows_repaired(connection, {*mine.values()})
    return [
        OtherRepair(row, *other)
        for row, of in mine.items()
        if not known[of].undivided
        for other in siblings[of]
    ]


def _attempts(
    repairs: Mapping[AttemptRow, AttemptRow], ends: Collection[AttemptRow] = ()
) -> dict[AttemptRow, list[AttemptRow]]:
    """Rows repaired first, each with all rows that repair it, directly or through a repair.

    The way back from a repair does not pass those in `ends`.
    """
    attempts: dict[AttemptRow, list[AttemptRow]] = {}
    for row in repairs:
        first = repairs[row]
        while first in repairs and first not in ends:
            first = repairs[first]
        attempts.setdefault(first, []).append(row)
    return attempts


def _matched_by_key(
    connection: psycopg.Connection, batches: Collection[int]
) -> dict[AttemptRow, Later]:
    """The rows of these batches corrected by a row that has their key and names no row."""
    found: dict[AttemptRow, Later] = {}
    for batch_id in sorted(batches):
        rows = connection.execute(
            f"""SELECT o.extract_id, o.record_number,
                (o.error_data::json -> 0 -> 'Meta' ->> 'batch')::int
            FROM outcome o WHERE {of_batch("o")} AND o.verdict = '{CORRECTED}'
                AND o.error_data IS NOT NULL""",
            batch_span(connection, batch_id),
        )
        found |= {AttemptRow(batch_id, *place): Later(by, REPAIRED) for *place, by in rows}
    return found


def delivered_again(
    connection: psycopg.Connection, batches: Collection[int]
) -> frozenset[AttemptRow]:
    """Rows in error that count with another attempt at the same record, or not at all.

    Given for the whole deliveries of these batches: whether a row was delivered again does not
    depend on which batches are asked about.
    """
    return frozenset().union(*_delivered_again(connection, batches))


def settled_by_others(
    connection: psycopg.Connection, batches: Collection[int]
) -> frozenset[AttemptRow]:
    """Those of them that do not count at all: another attempt at the same record was taken in."""
    return _delivered_again(connection, batches)[0]


def _delivered_again(
    connection: psycopg.Connection, batches: Collection[int]
) -> tuple[frozenset[AttemptRow], frozenset[AttemptRow]]:
    """The rows that count with no attempt, and those that count with another attempt."""
    corrections = _corrections(connection, batches)
    standing = {*_standing(connection, corrections)}
    repairs, states = _repairs(connection, filter(standing.issuperset, corrections))
    in_error = {row: of for row, of in repairs.items() if states[row] in ERRORS}
    # Neither passes a repair that is in no error, such as one that was corrected in turn.
    every, attempts = _attempts(repairs, repairs.keys() - in_error.keys()), _attempts(in_error)
    repaired = _rows_repaired(connection, attempts)
    settled: set[AttemptRow] = set()
    again: set[AttemptRow] = set()
    for first, rows in attempts.items():
        known = repaired[first]
        if known.undivided:
            records = _records(first, every[first], repairs, known)
            taken = [row for row in every[first] if states[row] in REPAIRING]
            by = _latest(first, taken, records)
            settled.update(row for row in rows if by[row])
        else:
            records = _records(first, rows, repairs, known)
            settled.update(rows if known.state == CORRECTED else ())
        last = _latest(first, rows, records)
        again.update(row for row in rows if row != last[row])
        if known.state in ERRORS:
            again.add(first)
    return frozenset(settled), frozenset(again - settled)


def _named_repairs(
    connection: psycopg.Connection, batch_id: int
) -> Iterator[tuple[AttemptRow, Table, str, str]]:
    """The rows of a batch that name a row they repair: place, kind, the name given, and state.

    No row counts as taken in before its batch is applied, whatever `check` made of it.
    """
    applied = find_batch(connection, batch_id).state in IN_DATABASE
    for table in staged_tables(connection, batch_id):
        for extract_id, number, parent, state in connection.execute(
            f"""SELECT s.extract_id, s.record_number, s.parent, {repair_state(table)}
            FROM {staged_name(table)} s {repair_joins(table)}
            WHERE {of_batch("s")} AND s.parent IS NOT NULL""",
            batch_span(connection, batch_id),
        ):
            known = state if applied or state not in REPAIRING else PENDING
            yield AttemptRow(batch_id, extract_id, number), table, parent, known


class _Repaired(NamedTuple):
    state: str
    undivided: bool
    """Whether it is a line that could not be divided into cells."""


def _rows_repaired(
    connection: psycopg.Connection, rows: Collection[AttemptRow]
) -> dict[AttemptRow, _Repaired]:
    columns = f", {STATE}, {IS_UNDIVIDED}"
    return {
        row: _Repaired(*known)
        for table, row, *known in _rows_at(connection, rows, columns, outcome_joins)
    }


def _rows_at(
    connection: psycopg.Connection,
    rows: Collection[AttemptRow],
    columns: str = "",
    joins: Callable[[Table], str] = lambda _: "",
) -> Iterator[tuple[Any, ...]]:
    """Those of these rows that exist, with their record kind and further columns."""
    for batch_id in sorted({row.batch_id for row in rows}):
        places = at_places(row[1:] for row in rows if row.batch_id == batch_id)
        for table in staged_tables(connection, batch_id):
            for extract, number, *more in connection.execute(
                f"""SELECT s.extract_id, s.record_number{columns}
                FROM {staged_name(table)} s {joins(table)} {AT_PLACES} WHERE {of_batch("s")}""",
                batch_span(connection, batch_id) | places,
            ):
                yield table, AttemptRow(batch_id, extract, number), *more


def _records(
    first: AttemptRow,
    rows: Iterable[AttemptRow],
    repairs: Mapping[AttemptRow, AttemptRow],
    repaired: _Repaired,
) -> dict[AttemptRow, AttemptRow]:
    """By attempt at a row, the record it is about, represented by the first attempt at that record.

    This is the row itself, except for a line without cells.
    """
    if not repaired.undivided:
        return dict.fromkeys(rows, first)
    records: dict[AttemptRow, AttemptRow] = {}
    for row in sorted(rows):  # A row repairs only rows of earlier batches.
        records[row] = row if repairs[row] == first else records[repairs[row]]
    return records


def _latest(
    first: AttemptRow, some: Iterable[AttemptRow], records: Mapping[AttemptRow, AttemptRow]
) -> dict[AttemptRow, AttemptRow | None]:
    """For the row and each attempt at it, the latest of `some` attempts at the same record."""
    of_record = {records[row]: row for row in sorted(some)}
    found = {row: of_record.get(record) for row, record in records.items()}
    return found | {first: max(of_record.values(), default=None)}
