"""References of records of one's own kinds: what they refer to has to be in the database.

Those of the documented records have break codes of their own: rates, plans and documents.
"""

import polars as pl

from flows.steps.breaks.match_breaks import line_breaks
from flows.steps.frames.statuses import Lines
from schemas.field import Table


def reference_breaks(
    table: Table, lines: Lines, extract: pl.DataFrame, compared: pl.Series, lost: pl.DataFrame
) -> list[pl.DataFrame]:
    """Breaks of the compared extract rows whose reference leads nowhere, or to another tenant.

    `lost` has what the records of the kind refer to in vain, as `lost_references` found it.
    """
    rows = compared.arg_true()
    breaks = []
    for (name,), gone in lost.group_by("field", maintain_order=True):
        assert isinstance(name, str)
        bound = ["tenant"] if gone["tenant"].null_count() < gone.height else []
        used = extract.select(
            pl.col(name).cast(pl.Int64).alias("value"),
            *(pl.col("TenantsId").alias("tenant") for _ in bound),
        )[rows].with_columns(rows.alias("row"))
        found = used.join(gone, on=["value", *bound], how="inner", maintain_order="left").select(
            "row",
            pl.when("elsewhere")
            .then(pl.lit("REFERENCE_TENANT"))
            .otherwise(pl.lit("REFERENCE_MISSING"))
            .alias("code"),
            pl.col("value").cast(pl.String).alias("expected"),
            pl.when("elsewhere")
            .then(pl.format("{} {} is of another tenant", "of", "value"))
            .otherwise(pl.format("{} {} is not there", "of", "value"))
            .alias("note"),
        )
        breaks.append(line_breaks(table, lines, found, side="D", field=name))
    return breaks
