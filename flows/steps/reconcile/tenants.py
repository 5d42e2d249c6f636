"""J11: two records that belong together have to name the same tenant.

Each crossing record is reported by the code of its own join. Here every pair of tenants that meet
on a join is reported once, so that a mix-up of tenants reads as one and no money counts twice.
"""

import polars as pl

from flows.steps.breaks.make import as_text, joined, make_breaks

CODE = "TENANT_CROSS"


def crossings(record: str, name: str, rows: pl.DataFrame) -> pl.DataFrame:
    """One break per pair of tenants among rows that cross.

    `rows` has `tenant` (whose record it is), `other` (whose record it names), `key` (the record's
    key as text) and `day`; `name` is the field that leads from one to the other.
    """
    pairs = (
        rows.group_by("tenant", "other")
        .agg(pl.len().alias("records"), pl.col("key").min(), pl.col("day").min())
        .sort("tenant", "other")
    )
    return make_breaks(
        CODE,
        record,
        pairs,
        key=joined("tenant", "other"),
        name=name,
        tenant=pl.col("tenant"),
        expected=as_text("tenant"),
        found=as_text("other"),
        date=pl.col("day"),
        note=pl.format("records that cross: {}; the first is {}", "records", "key"),
    )
