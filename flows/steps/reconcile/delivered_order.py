"""Order: records as the rows that wrote them were delivered, wherever a target keeps them.

Where several records make one break, it is told at the first of them.
"""

import polars as pl

from schemas.field import Table

_ROWS = 2**32
"""More rows than an extract can have; their numbers and the extract's fit 64 bits together."""


def in_order(table: Table, records: pl.DataFrame) -> pl.DataFrame:
    """Records in the order of the rows that wrote them; others last, by what they are.

    Records of which nobody knows who wrote them stay as they are.
    """
    if not {"extract_id", "row"} <= set(records.columns):
        return records
    row = pl.col("row")
    if records.select(row.is_between(0, _ROWS - 1).all() & row.is_not_null().all()).item():
        # One number sorts eight times as fast as two columns and the identity behind them.
        writer = records.select(pl.col("extract_id").cast(pl.Int64) * _ROWS + row).to_series()
        if not writer.null_count() and writer.n_unique() == writer.len():
            return records if writer.is_sorted() else records[writer.arg_sort()]
    return records.sort("extract_id", "row", *table.identity, nulls_last=True)
