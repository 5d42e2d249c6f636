"""The currencies named in amount cells, by amount field."""

import polars as pl

from connectors.files.chunks.chunk import Chunk
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile, written_of

NOWHERE = -1


def amount_currencies(chunk: Chunk, header: Header, profile: Profile) -> dict[str, list[pl.Series]]:
    """By amount field: the currency code named in each sound record's cell, or null.

    Amounts without any named currency are left out. A cell that stands for no value names none.
    """
    table = header.table
    if chunk.currencies is None or table.currency is None:
        return {}
    is_sound = chunk.records.is_sound
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
    """The column of the sheet from which each sound record's cell comes."""
    if unpivot := header.unpivot:
        kept = len(unpivot.kept)
        if place > kept:
            names = chunk.cells(kept + 2)[str(kept)]
            columns = {name: column for column, name in unpivot.labels}
            return names.replace_strict(columns, default=NOWHERE, return_dtype=pl.Int64)
        # After the kept columns comes the name of a column.
        place = unpivot.kept[place] if place < kept else NOWHERE
    return pl.repeat(place, chunk.height - len(chunk.faults), dtype=pl.Int64, eager=True)
