"""The cells of records, without the signs we put before what a spreadsheet would run."""

import csv

import polars as pl

from connectors.files.layout.header import Header
from connectors.files.text.record_cells import cells_of
from connectors.files.text.shadow import is_plain_text
from schemas.cells.sheet_cells import REMARK
from schemas.own_columns import QUOTED


def split_cells(text: str, header: Header) -> list[str]:
    """The cells of one record by the slow, obvious reader; empty if their number is wrong."""
    if header.positions:
        return header.positions.cells_of(text)
    if not is_plain_text(text, header.dialect):
        cells = [cell or "" for cell in cells_of(text, header.dialect)]
        return cells if len(cells) == header.width else []
    try:
        cells = plain_row(text, header, strict=True)
    except csv.Error:
        return []
    if len(cells) != header.width:
        return []
    if header.quoted_column is not None and cells[header.quoted_column] == QUOTED:
        guard = header.dialect.guard
        cells = [guard.take(cell) for cell in cells]
    return cells


def plain_row(text: str, header: Header, *, strict: bool = False) -> list[str]:
    """The cells of a plain record, in any number; raises csv.Error if `strict`.

    In a text without quotes only cells that we added are quoted, after everything delivered.
    """
    dialect = header.dialect
    cells = next(csv.reader([text], **dialect.signs, strict=strict), [])
    if dialect.has_quote or dialect.quote.decode() not in text:
        return cells
    delimiter, own = dialect.delimiter.decode(), header.line_width
    if header.unpivot:
        return cells if len(cells) == header.width else text.split(delimiter)
    if not header.carried:
        return text.split(delimiter)
    *delivered, added = text.split(delimiter, own)
    return [*delivered, *next(csv.reader([added], **dialect.signs), [])]


def as_delivered(cells: pl.DataFrame, header: Header) -> pl.DataFrame:
    """The cells of a chunk; rows marked as guarded lose the signs put before their texts."""
    if header.quoted_column is None:
        return cells
    quoted = (pl.col(str(header.quoted_column)) == QUOTED).fill_null(value=False)
    guard = header.dialect.guard
    return cells.with_columns(
        pl.when(quoted).then(guard.take_all(pl.col(name))).otherwise(pl.col(name)).alias(name)
        for name in cells.columns
    )


def unread_cells(header: Header) -> str | None:
    """A pattern of cells that stand for an unread one of a sheet; None if there are none.

    Rejected rows of a sheet are written as CSV and may be returned as they are.
    """
    return REMARK if header.of_workbook or header.parent_column is not None else None
