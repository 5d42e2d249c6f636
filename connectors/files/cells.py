"""The cells of records without the signs that we put before what a spreadsheet would run."""

import csv

import polars as pl

from connectors.files.header import Header
from connectors.files.plain_csv import is_plain_text
from connectors.files.record_cells import cells_of
from connectors.files.workbook_parts import REMARK
from schemas.cells.reading import UNFIT
from schemas.field import Kind
from schemas.own_columns import QUOTED


def split_cells(text: str, header: Header) -> list[str]:
    """The cells of one record by the slow and obvious reader; none if it is not of their number."""
    if header.positions:
        return header.positions.cells_of(text)
    if not is_plain_text(text, header.dialect):
        cells = [cell or "" for cell in cells_of(text, header.dialect)]
        return cells if len(cells) == header.width else []
    try:
        cells = next(csv.reader([text], **header.dialect.signs, strict=True), [])
    except csv.Error:
        return []
    if len(cells) != header.width:
        return []
    if header.quoted_column is not None and cells[header.quoted_column] == QUOTED:
        guard = header.dialect.guard
        cells = [guard.take(cell) for cell in cells]
    return cells


def as_delivered(cells: pl.DataFrame, header: Header) -> pl.DataFrame:
    """Cells of a chunk, of rows that say so without the signs.

    A text of a sheet that is none, because its cell is not read, is marked as `UNFIT`.
    """
    if header.of_workbook:
        cells = cells.with_columns(
            pl.when(pl.col(name).str.contains(REMARK))
            .then(pl.lit(UNFIT) + pl.col(name))
            .otherwise(pl.col(name))
            .alias(name)
            for name in _texts(header)
        )
    if header.quoted_column is None:
        return cells
    quoted = (pl.col(str(header.quoted_column)) == QUOTED).fill_null(value=False)
    guard = header.dialect.guard
    return cells.with_columns(
        pl.when(quoted).then(guard.take_all(pl.col(name))).otherwise(pl.col(name)).alias(name)
        for name in cells.columns
    )


def _texts(header: Header) -> set[str]:
    """The columns that texts of the record are made of."""
    kinds = {of.name: of.kind for of in header.table.delivered}
    own = {place for place, of in enumerate(header.fields) if of and kinds[of] is Kind.STRING}
    parts = {
        place for of, some in header.sources.items() for place in some if kinds[of] is Kind.STRING
    }
    return {str(place) for place in own | parts}
