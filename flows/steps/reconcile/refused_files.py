"""Delivered files that were refused: neither side has their rows, so nothing else reports them."""

import polars as pl

from flows.steps.breaks.make import joined, make_breaks, not_numbered

CODE = "FILE_REFUSED"


def refused_files(files: pl.DataFrame) -> pl.DataFrame:
    """One break per file of `sources.REFUSED`, named by its batch and its name."""
    return make_breaks(
        CODE,
        "",
        files,
        key=not_numbered(joined("batch_id", "file")),
        tenant=pl.col("tenant"),
        expected=pl.lit("taken"),
        found=pl.format("refused: {}", "refused"),
    )
