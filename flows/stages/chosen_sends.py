"""Sends of a batch chosen by people, and the list of them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psycopg

from connectors.errors import BatchUnknown
from connectors.postgres.batches import ledger
from connectors.postgres.batches.ledger import Extract
from connectors.postgres.push.sends import (
    Selection,
    SendState,
    Sent,
    count_left_over,
    list_sends,
)
from flows.stages.rows.spots import Spot, of_name, places, show_command
from flows.stages.workspace import Workspace
from schemas.operations import BY_NAME

ROW = re.compile(r"(.+?):(?:(line|record):)?([0-9]{1,18})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChosenSends:
    """A choice of rows; a row has to meet every condition that is given."""

    rows: tuple[str, ...] = ()
    """Rows named as `FILE:line:LINE` or `FILE:record:NUMBER`, FILE being a delivered file."""
    operation: str | None = None
    states: tuple[str, ...] = ()
    places: tuple[tuple[int, int], ...] | None = None
    """Extract and record number of each row, where no text names it."""


def sends_of(workspace: Workspace, batch_id: int, chosen: ChosenSends) -> Iterator[Sent]:
    """The chosen sends of a batch with file, line and what was sent; secrets are masked."""
    with workspace.database.connect() as connection:
        ledger.find_batch(connection, batch_id)
        yield from list_sends(connection, selection_of(connection, batch_id, chosen))


def not_listed(workspace: Workspace, batch_id: int) -> dict[str, dict[str, int]]:
    """Operation -> state -> sends of a batch, if their record kind no longer has the operation."""
    with workspace.database.connect() as connection:
        return count_left_over(connection, batch_id)


def selection_of(connection: psycopg.Connection, batch_id: int, chosen: ChosenSends) -> Selection:
    if chosen.operation is not None and chosen.operation not in BY_NAME:
        known = ", ".join(sorted(BY_NAME))
        raise BatchUnknown(
            f"There is no operation {chosen.operation!r} to push to. Known: {known}."
        )
    unknown = sorted(set(chosen.states) - set(SendState))
    if unknown:
        raise BatchUnknown(f"{unknown[0]!r} is no state of a send: {', '.join(SendState)}.")
    rows = chosen.places
    if rows is None and chosen.rows:
        files = ledger.list_extracts(connection, batch_id)
        rows = tuple(
            place for row in chosen.rows for place in _places(connection, files, batch_id, row)
        )
    return Selection(batch_id, chosen.operation, chosen.states, rows)


def _places(
    connection: psycopg.Connection, files: Sequence[Extract], batch_id: int, row: str
) -> Iterator[tuple[int, int]]:
    """The rows named by a text; a bare number is not guessed to be a line or a record."""
    name, word, number = found.groups() if (found := ROW.fullmatch(row)) else (row, None, None)
    extracts = of_name(files, name)
    if not extracts or number is None:
        names = ", ".join(one.name for one in files[:10])
        raise BatchUnknown(
            f"{row!r} is no FILE:line:LINE or FILE:record:NUMBER of batch {batch_id}. "
            f"Its files: {names or 'none'}."
        )
    if word is None:
        raise BatchUnknown(
            f"{row!r} may be a line of {name} or the number of a record, which is another row. "
            f"Write {name}:line:{number} or {name}:record:{number}; nothing was changed."
        )
    spot = Spot(line=int(number)) if word == "line" else Spot(record=int(number))
    chosen = [place for one in extracts for place in places(connection, one, spot)]
    if not chosen:
        raise BatchUnknown(
            f"{row!r} is in no row of batch {batch_id}; nothing was changed. "
            f"`{show_command(batch_id, name, spot)}` says what is there."
        )
    yield from chosen
