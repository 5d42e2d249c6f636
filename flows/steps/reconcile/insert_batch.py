"""The record inside a row of insert-batch data, read once for comparison and naming.

A row holds its record in Data (a CSV line, JSON or JSV) and in Jsondata. Only the kind of the
record, its key and the fields that differ are ever shown, never all of it, since a row may carry a
secret.
"""

import csv
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flows.steps.match.comparison import SECRET
from schemas.cells.reading import Moment, Number, Unread, read
from schemas.derived.json_text import number_text, read_json_record, recognise, record_cells
from schemas.derived.nested import read_nested, read_tree
from schemas.field import Field, Kind, Table

Cells = Mapping[str, str | None]
_DIGEST_LENGTH = 12


@dataclass(frozen=True, slots=True)
class InsertBatchRecord:
    kind: Table | None = None
    cells: Cells | None = None
    unreadable: bool = False
    """Whether there is Jsondata that is not a record."""
    differs: tuple[tuple[str, str | None, str | None], ...] = ()
    """Fields in which Data and Jsondata differ: name, Data, Jsondata."""

    def content(self, data: str | None, jsondata: str | None) -> str:
        """A text that is equal for equal rows: the record, or else both texts as they are."""
        if self.kind is None or self.cells is None:
            return "\x1f".join(["", data or "", jsondata or ""])
        values = [_canonical(field, self.cells.get(field.name)) for field in self.kind.delivered]
        return "\x1f".join([self.kind.name, *values])

    @property
    def name(self) -> str:
        """The record's kind and the parts of its key that are not secret."""
        if self.kind is None or self.cells is None:
            return ""
        names = (name for name in self.kind.key if not self.kind.by_name[name].secret)
        return f"{self.kind.name} {'/'.join(self.cells.get(name) or '' for name in names)}".strip()


def read_insert_batch_record(data: str | None, jsondata: str | None) -> InsertBatchRecord:
    """Read the record of a row from Jsondata or, without it, from Data, as an import does."""
    if jsondata is None or not jsondata.strip():
        kind, cells = _object(data or "")
        return InsertBatchRecord(kind, cells)
    kind, cells = _object(jsondata)
    if kind is None or cells is None:
        return InsertBatchRecord(unreadable=True)
    return InsertBatchRecord(kind, cells, differs=tuple(_differing(kind, data, cells)))


def digest(content: str) -> str:
    """A short name of a content, the same in every run, that does not reveal it."""
    return hashlib.sha256(content.encode()).hexdigest()[:_DIGEST_LENGTH]


def _object(text: str) -> tuple[Table | None, Cells | None]:
    try:
        tree = read_tree(text)
        kind = recognise(tuple(tree)) if isinstance(tree, dict) else None
        return (kind, record_cells(kind, tree)) if kind else (None, None)
    except ValueError:
        return None, None


def _differing(
    kind: Table, data: str | None, cells: Cells
) -> Iterator[tuple[str, str | None, str | None]]:
    """Fields in which Data differs; none if Data is no record of this kind."""
    line = _data_cells(kind, data)
    if line is None:
        return
    for field in kind.delivered:
        one, other = line.get(field.name), cells.get(field.name)
        if one != other and _canonical(field, one) != _canonical(field, other):
            yield field.name, *((SECRET, SECRET) if field.secret else (one, other))


def _data_cells(kind: Table, data: str | None) -> Cells | None:
    if not data:
        return None
    if data.lstrip().startswith("{"):
        cells = read_json_record(kind, data)
        return None if isinstance(cells, Unread) else cells
    line = cells_of(kind, data)
    return None if line is None else dict(zip(kind.columns, line, strict=True))


def cells_of(kind: Table, text: str) -> list[str] | None:
    """The cells of a CSV line with as many cells as the kind has columns; None for other texts."""
    try:
        lines = list(csv.reader([text], strict=True))
    except csv.Error:
        return None
    return lines[0] if [*map(len, lines)] == [len(kind.columns)] else None


def _canonical(field: Field, cell: str | None) -> str:
    # A CSV line cannot tell null from an empty text, so they are equal here.
    if not cell:
        return ""
    match read(field, cell, read_nested):
        case Unread():
            return f"? {cell}"
        case Number(exact=exact):
            return number_text(exact)
        case Moment(wall=wall, offset=offset) as moment:
            if offset is not None and field.kind is Kind.DATETIME_OFFSET:
                return moment.instant.isoformat()
            return f"{wall.isoformat()} {offset}"
        case value:
            return str(value)
