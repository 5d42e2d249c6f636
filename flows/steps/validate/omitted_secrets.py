"""Secrets that a correction leaves out: the delivered one is kept, or the row is refused.

`recon rejects` writes no secrets, so an empty secret in a correction is ambiguous. It is never read
as "no value", which would overwrite the secret in the target.
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
"""Column of the positions with the name of the row that each row repairs."""


@dataclass(frozen=True, slots=True)
class DeliveredRow:
    """A row as delivered: its cells by field, and how far they can be trusted."""

    record: str
    cells: Mapping[str, str | None]
    wrong: frozenset[str]
    """Fields that its ErrorData names."""
    in_place: bool
    """Whether nothing suggests that its cells have slipped into other columns."""
    repairs: bool = False
    """Whether it repairs another row itself, so that a secret it left out is that row's."""
    before: "DeliveredRow | None" = None
    """The row it repairs; None if that is unknown or cannot be read."""

    def writing(self, secret: str) -> "DeliveredRow | None":
        """The row of a chain of repairs in which a secret was last written, else the first row.

        None if it cannot be told.
        """
        if self.cells.get(secret) or not self.repairs:
            return self
        return self.before and self.before.writing(secret)


@dataclass(frozen=True, slots=True)
class Repaired:
    """The rows that the rows of a chunk repair, by name; a row not in it is unknown."""

    rows: Mapping[str, DeliveredRow]
    correction: bool
    """Whether the delivery says that it corrects a batch."""
    columns: frozenset[str]
    """Fields for which the file has a column."""


class FindRepaired(Protocol):
    """Finds the rows that a correction repairs, by the names given in its own rows."""

    @property
    def correction(self) -> bool:
        """Whether the delivery says that it corrects a batch."""

    def rows(self, names: Iterable[str]) -> Mapping[str, DeliveredRow]:
        """The named rows that can be read."""


def fill_secrets(
    table: Table, frame: pl.DataFrame, parents: Sequence[str | None], repaired: Repaired
) -> tuple[pl.DataFrame, list[OfField]]:
    """The cells with omitted secrets filled in, and reasons for rows whose secret is unknown."""
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
            continue  # It repairs nothing, so empty means no value.
        delivered = repaired.rows.get(parent or "")
        # The secret comes from the row it was written in; rows in between that left it out as well
        # were never compared with that one.
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
    """Whether the cells of a row in error are in their own columns, as far as can be told.

    A lost cell moves those behind it, and a secret with them. Signs of that are: an empty cell
    behind a secret, without which the cells before it could be read one place further on; a reason
    against a field behind the secret; or a secret's text in another column. A column without a
    field may hold a secret that has no column of its own.
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
    """Whether all typed cells can be read once those before an empty one move on by one place."""
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
    """Whether the cell delivered under a secret's name is certainly that secret.

    If cells may have slipped, those without an error must be the same in the correction.
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
