"""Records of a side that cannot be read: reported with lines and bytes, never compared."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from connectors.compare.sides import Side, spill
from connectors.files.chunks.chunk import Chunk
from connectors.files.disk.atomic import private_folder
from connectors.files.incoming.columnar import arrow_rows
from schemas.cells.formula_columns import defused

NAME = "unreadable.csv"
_COLUMNS: dict[str, pl.DataType] = {
    "side": pl.String(),
    "line": pl.Int64(),
    "reason": pl.String(),
    "text": pl.String(),
    "bytes": pl.String(),
}
"""`bytes` are hexadecimal, and present only for a record that is no text."""


def put_aside(chunk: Chunk, faults: Mapping[int, str], scratch: Path, number: int) -> Path:
    """Write the unreadable records of a chunk: those of `faults`, with their reasons."""
    rows = list(faults)
    records = chunk.texts(rows).select(
        pl.Series("line", chunk.records.first_line[rows], pl.Int64),
        pl.Series("reason", list(faults.values())),
        pl.col("data").alias("text"),
        pl.col("raw").alias("bytes"),
    )
    return spill(records, private_folder(scratch / "unreadable"), number)


def first(side: Side, most: int) -> Iterator[tuple[int, str]]:
    """The lines of the first unreadable records, with the reasons."""
    if side.broken:
        yield from arrow_rows(side.broken).select("line", "reason").head(most).collect().rows()


def write(sides: Mapping[str, Side], scratch: Path) -> dict[str, Path]:
    """Write the unreadable records of both sides, named by `sides`, into one file in `scratch`."""
    target = scratch / NAME
    with target.open("wb") as file:
        pl.DataFrame(schema=_COLUMNS).write_csv(file)
        for name, side in sides.items():
            for records in (arrow_rows([one]).collect() for one in side.broken):
                lines = records.select(pl.lit(name).alias("side"), *records.columns)
                safe = lines.with_columns(defused(pl.col("text")).name.keep())
                safe.write_csv(file, include_header=False)
    return {NAME: target}
