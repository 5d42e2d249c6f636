"""The currencies that the cells of amounts name, by the field they are of."""

import polars as pl

from connectors.files.chunks.chunk import Chunk
from connectors.files.layout.header import Header
from connectors.files.layout.unpivot import Unpivot
from connectors.files.profiles.profile import Profile, written_of
from connectors.files.text.dialect import RecordFault

NOWHERE = -1


def amount_currencies(chunk: Chunk, header: Header, profile: Profile) -> dict[str, list[pl.Series]]:
    """Of the sound records of a chunk, by amount: the code that each of its cells names, or null.

    Amounts none of whose cells names one are left out. A cell that stands for no value names none.
    """
    table = header.table
    if chunk.currencies is None or table.currency is None:
        return {}
    is_sound = chunk.records.fault == RecordFault.NONE
    starts = pl.Series("byte", chunk.records.start[is_sound] + chunk.start.byte, dtype=pl.Int64)
    found: dict[str, list[pl.Series]] = {}
    for name in table.amounts:
        for place in header.places(name):
            column = _column(chunk, header, place)
            cells = pl.DataFrame([starts, column.rename("column")])
            of_cells = cells.join(
                chunk.currencies, on=["byte", "column"], how="left", maintain_order="left"
            )
            codes = of_cells["code"]
            nothing = set(written_of(profile, name)["null"]) - {""}
            if nothing and codes.null_count() < len(codes):
                texts = chunk.cells(header.width)[str(place)]
                codes = codes.set(texts.is_in(sorted(nothing)).fill_null(value=False), None)
            if codes.null_count() < len(codes):
                found.setdefault(name, []).append(codes)
    return found


def _column(chunk: Chunk, header: Header, place: int) -> pl.Series:
    """The column of the sheet that a cell of each sound record comes from."""
    height = chunk.height - len(chunk.faults)
    unpivot = header.unpivot
    if unpivot is None:
        return _repeated(place, height)
    if place < len(unpivot.kept):
        return _repeated(unpivot.kept[place], height)
    if place == len(unpivot.kept):
        return _repeated(NOWHERE, height)  # It is the name of a column.
    return _labelled(chunk, unpivot)


def _labelled(chunk: Chunk, unpivot: Unpivot) -> pl.Series:
    width = len(unpivot.kept) + 2
    named = chunk.cells(width)[str(width - 2)]
    columns = {name: column for column, name in unpivot.labels}
    return named.replace_strict(columns, default=NOWHERE, return_dtype=pl.Int64)


def _repeated(column: int, height: int) -> pl.Series:
    return pl.repeat(column, height, dtype=pl.Int64, eager=True)
