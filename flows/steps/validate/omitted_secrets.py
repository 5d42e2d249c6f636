"""Secrets that a correction leaves out: what was delivered is kept, or the row is refused.

`recon rejects` writes no secret, so that an empty one says nothing about what is meant. It is never
taken for "no value", which would overwrite what the target has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from flows.steps.validate.field_errors import OfField, empty_texts, of_field
from schemas.cells.reading import Unread, read
from schemas.derived.nested import read_nested
from schemas.field import Table

PARENT = "parent"
"""Column of the positions that names the row which each one repairs."""


@dataclass(frozen=True, slots=True)
class DeliveredRow:
    """A row as it was delivered: its cells by field, and how far they can be trusted."""

    record: str
    cells: Mapping[str, str | None]
    wrong: frozenset[str]
    """Fields that its ErrorData names."""
    in_place: bool
    """Whether nothing suggests that its cells stand in other columns than their own."""
    repairs: bool = False
    """Whether it repairs another row itself, so that a secret it left out is one of that row."""
    before: "DeliveredRow | None" = None
    """That row; None where it cannot be told or read."""

    def writing(self, secret: str) -> "DeliveredRow | None":
        """The row that a secret was written in, of those that repair one another, or the first.

        None: nobody can tell.
        """
        if self.cells.get(secret) or not self.repairs:
            return self
        return self.before and self.before.writing(secret)


@dataclass(frozen=True, slots=True)
class Repaired:
    """The rows that those of a chunk repair, by their name; one that is not here is unknown."""

    rows: Mapping[str, DeliveredRow]
    correction: bool
    """Whether the delivery says that it corrects a batch."""
    columns: frozenset[str]
    """Fields that the file has a column for."""


class FindRepaired(Protocol):
    """Finds the rows that a correction repairs, by the names its own rows give them."""

    @property
    def correction(self) -> bool:
        """Whether the delivery says that it corrects a batch."""

    def rows(self, names: Iterable[str]) -> Mapping[str, DeliveredRow]:
        """Those that can be read."""


def fill_secrets(
    table: Table, frame: pl.DataFrame, parents: Sequence[str | None], repaired: Repaired
) -> tuple[pl.DataFrame, list[OfField]]:
    """The cells with what was left out, and the rows of which that cannot be told."""
    found: dict[str, dict[int, str]] = {}
    unknown: dict[str, list[int]] = {}
    empty = (
        (row, name)
        for name in table.secrets
        if name in frame.columns
        for row in (frame[name] == "").fill_null(value=True).arg_true()
    )
    for row, name in empty:
        parent = parents[row]
        if parent is None and not (repaired.correction and name in repaired.columns):
            continue  # It repairs nothing, so that empty means what it says.
        delivered = repaired.rows.get(parent or "")
        # What a row in between left out as well was never held against where it comes from.
        delivered = delivered and delivered.writing(name)
        if delivered is None or not _is_certain(table, frame, row, delivered):
            unknown.setdefault(name, []).append(row)
        elif text := delivered.cells.get(name):
            found.setdefault(name, {})[row] = text
    for name, texts in found.items():
        filled = frame[name].scatter(list(texts), pl.Series(list(texts.values()), dtype=pl.String))
        frame = frame.with_columns(filled.alias(name))
    code = "SecretLeftOut"
    return frame, [
        of_field(table, table.by_name[name], code, np.array(rows, np.intp), empty_texts(len(rows)))
        for name, rows in unknown.items()
    ]


def in_place(
    cells: Sequence[str | None], fields: Sequence[str | None], table: Table, wrong: frozenset[str]
) -> bool:
    """Whether the cells of a row in error stand in their own columns, as far as can be told.

    A cell that was lost moves those behind it, and a secret with them. It is one where a cell too
    many and empty stands behind a secret, and without it all others could be read where they then
    are; where a reason is against what stands behind; or where a secret stands in two columns. A
    column without a field may be that of a secret that no other column has.
    """
    hiding: set[str | None] = {*table.secrets}
    if not hiding <= {*fields}:
        hiding.add(None)
    secrets = [place for place, name in enumerate(fields) if name in hiding]
    if not secrets or not wrong:
        return True
    first = secrets[0]
    hidden = {cells[place] for place in secrets}
    return (
        "" not in wrong
        and not _explained_by_a_lost_cell(cells, fields, table, first)
        and not wrong.intersection(name for name in fields[first:] if name)
        and not any(
            cell in hidden for place, cell in enumerate(cells) if cell and place not in secrets
        )
    )


def _explained_by_a_lost_cell(
    cells: Sequence[str | None], fields: Sequence[str | None], table: Table, first: int
) -> bool:
    """Whether all typed cells can be read once those before an empty one move up by a place."""
    empty = next((place for place in range(first, len(cells)) if not cells[place]), None)
    if empty is None:
        return False
    return any(
        all(
            _can_be_read(table, name, cell)
            for name, cell in zip(
                fields, [*cells[:lost], None, *cells[lost:empty], *cells[empty + 1 :]], strict=True
            )
        )
        for lost in range(first + 1)
    )


def _can_be_read(table: Table, name: str | None, cell: str | None) -> bool:
    if name is None or not cell or name in table.secrets:
        return True
    return not isinstance(read(table.by_name[name], cell, read_nested), Unread)


def _is_certain(table: Table, frame: pl.DataFrame, row: int, delivered: DeliveredRow) -> bool:
    """Whether what was delivered under a secret's name is that secret.

    Where its cells may have slipped, those that were in no error have to be as they were.
    """
    if delivered.record != table.name:
        return False
    if delivered.in_place:
        return True
    compared = [
        (frame[name][row] or None, delivered.cells.get(name) or None)
        for name in table.columns
        if name not in table.secrets and name not in delivered.wrong
    ]
    return all(ours == theirs for ours, theirs in compared) and any(ours for ours, _ in compared)
