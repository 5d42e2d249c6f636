"""The records inside insert-batch data: the kind that each row carries, and its cells.

The record is read from Jsondata or, if that is empty, from Data. A row that was merged before is
not taken again; a row with an error is tried again with its present content.
"""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from flows.steps.validate.field_errors import FieldErrors, of_inner_record
from schemas.cells.reading import SHOWN_CHARACTERS, Unread
from schemas.counting import quantity
from schemas.derived.json_text import read_json_record, recognise
from schemas.derived.nested import read_tree
from schemas.field import Table
from schemas.tables import EXTRACTS


class InsertBatchRecords(NamedTuple):
    """Rows of insert-batch data, as row numbers of the frame, sorted by their content."""

    records: Mapping[str, Mapping[int, Mapping[str, str | None]]]
    """Record kind -> row -> cells."""
    merged: Sequence[int]
    errors: FieldErrors


def insert_batch_records(rows: pl.DataFrame, inner_record: str | None) -> InsertBatchRecords:
    """Sort typed rows of insert-batch data; `inner_record` is the kind the feed names, if any."""
    named = EXTRACTS[inner_record] if inner_record else None
    records: defaultdict[str, dict[int, Mapping[str, str | None]]] = defaultdict(dict)
    merged: list[int] = []
    unread: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for row, (data, is_merged, jsondata) in enumerate(
        rows.select("Data", "Merged", "Jsondata").iter_rows()
    ):
        if is_merged:
            merged.append(row)
            continue
        column, text = record_holder(jsondata, data)
        found = _read_record(text, named)
        if isinstance(found, Unread):
            unread[column][row] = found.facts["value"][: SHOWN_CHARACTERS + 1]
        else:
            records[found[0].name][row] = found[1]
    errors = [
        of_inner_record(column, np.array([*why], np.intp), [*why.values()])
        for column, why in unread.items()
    ]
    return InsertBatchRecords(records, merged, FieldErrors(errors))


def record_holder(jsondata: str | None, data: str | None) -> tuple[str, str]:
    """The column that holds the record of a row, and its text; blank Jsondata holds none."""
    if jsondata and jsondata.strip():
        return "Jsondata", jsondata
    return "Data", data or ""


def record_inside(
    jsondata: str | None, data: str | None, inner_record: str | None
) -> tuple[Table, Mapping[str, str | None]] | None:
    """The kind and the cells of the record inside one row; None if it cannot be read."""
    _, text = record_holder(jsondata, data)
    found = _read_record(text, EXTRACTS[inner_record] if inner_record else None)
    return None if isinstance(found, Unread) else found


def cells_frame(table: Table, rows: Mapping[int, Mapping[str, str | None]]) -> pl.DataFrame:
    """The cells of inner records as a frame of text, one column per delivered field."""
    return pl.DataFrame(
        {name: [cells.get(name) for cells in rows.values()] for name in table.columns},
        schema=dict.fromkeys(table.columns, pl.String()),
    )


def _read_record(text: str, named: Table | None) -> tuple[Table, Mapping[str, str | None]] | Unread:
    if not text.strip():
        return _unread("both are empty")
    if text.lstrip()[0] != "{":
        return _csv_line(text, named)
    table = named or _recognised(text)
    if table is None:
        return _unread("its fields are those of no one record")
    cells = read_json_record(table, text)
    return cells if isinstance(cells, Unread) else (table, cells)


def _unread(why: str) -> Unread:
    """The reason for a record that cannot be read; not quoted, since it may hold a password."""
    return Unread("InnerRecord", {"value": why})


def _recognised(text: str) -> Table | None:
    try:
        tree = read_tree(text)
    except ValueError:
        return None
    return recognise(tuple(tree)) if isinstance(tree, dict) else None


def _csv_line(text: str, named: Table | None) -> tuple[Table, Mapping[str, str | None]] | Unread:
    if named is None:
        return _unread("it is no object, and the feed names no record")
    try:
        lines = list(csv.reader([text], strict=True))
    except csv.Error as error:
        return _unread(f"it is no CSV line: {error}")
    if len(lines) != 1 or len(lines[0]) != len(named.columns):
        return _unread(f"it has not the {quantity(len(named.columns), 'field')} of {named.name}")
    return named, {name: cell or None for name, cell in zip(named.columns, lines[0], strict=True)}
