"""The cells of records without the signs that we put before what a spreadsheet would run."""

import csv
import re

import polars as pl

from connectors.files.header import Header
from connectors.files.record_cells import cells_of
from connectors.files.workbook_parts import IN_CURRENCY, REMARK
from schemas.cells.reading import UNFIT
from schemas.field import Kind
from schemas.own_columns import QUOTED


def split_cells(text: str, header: Header) -> list[str]:
    """The cells of one record by the slow and obvious reader; none if it is not of their number."""
    cells = _split(text, header)
    if header.of_workbook:
        texts = _texts(header)
        for place, cell in enumerate(cells):
            if str(place) not in texts:
                cells[place] = re.sub(IN_CURRENCY, r"\1", cell)
    return cells


def _split(text: str, header: Header) -> list[str]:
    if header.positions:
        return header.positions.cells_of(text)
    if not header.dialect.is_plain(text):
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


def as_delivered(cells: pl.DataFrame, header: Header, code: pl.Expr | None = None) -> pl.DataFrame:
    """Cells of a chunk, of rows that say so without the signs.

    A text of a sheet that is none, because its cell is not read, is marked as `UNFIT`. A number
    whose cell says a currency is the number; where `code` says that the record is in another, it is
    none. `code` is null where nobody knows.
    """
    if header.of_workbook:
        texts = _texts(header)
        cells = cells.with_columns(
            pl.when(pl.col(name).str.contains(REMARK))
            .then(pl.lit(UNFIT) + pl.col(name))
            .otherwise(pl.col(name))
            .alias(name)
            if name in texts
            else _number(pl.col(name), pl.lit(None, pl.String) if code is None else code)
            for name in cells.columns
        )
    if header.quoted_column is None:
        return cells
    quoted = (pl.col(str(header.quoted_column)) == QUOTED).fill_null(value=False)
    guard = header.dialect.guard
    return cells.with_columns(
        pl.when(quoted).then(guard.take_all(pl.col(name))).otherwise(pl.col(name)).alias(name)
        for name in cells.columns
    )


def _number(cell: pl.Expr, code: pl.Expr) -> pl.Expr:
    """A number of a sheet without the currency that its cell says, if that is the record's."""
    own = cell.str.extract(IN_CURRENCY, 2)
    other = pl.concat_str(cell, pl.lit(", and the record is in "), code)
    return (
        pl.when(own.is_null())
        .then(cell)
        .when((own != code).fill_null(value=False))
        .then(other)
        .otherwise(cell.str.extract(IN_CURRENCY, 1))
    )


def _texts(header: Header) -> set[str]:
    """The columns that texts of the record are made of."""
    kinds = {of.name: of.kind for of in header.table.delivered}
    own = {place for place, of in enumerate(header.fields) if of and kinds[of] is Kind.STRING}
    parts = {
        place for of, some in header.sources.items() for place in some if kinds[of] is Kind.STRING
    }
    return {str(place) for place in own | parts}
