"""One-sided records: records that only a target has, or two sides have under different tenants.

Also references of own record kinds that find nothing; those of the documented records have break
codes of their own, in rates, plans and documents.
"""

import polars as pl

from flows.steps.breaks.frame import no_breaks
from flows.steps.breaks.match_breaks import line_breaks
from flows.steps.frames.statuses import PARTNER, Lines, line_schema, number
from flows.steps.match.pairing import key_parts, keyless
from flows.steps.reconcile.eligibility import excluded, settle, unsettled
from flows.steps.reconcile.windows import business_date
from flows.steps.rules.rules import Rules
from schemas.breaks import Status
from schemas.field import Table
from schemas.kinds import identity_columns


def unmatched_lines(
    table: Table, records: pl.DataFrame, numbers: pl.Series, repeats: pl.Series, rules: Rules
) -> pl.DataFrame:
    """Lines (`statuses.line_schema`) of records that only a target has; `numbers` are theirs there.

    `repeats` marks those whose key another record has too.
    """
    lines = settle(unsettled(records.height), keyless(table, records), Status.UNKNOWN)
    lines = excluded(table, records, lines, rules)
    lines = settle(lines, repeats, Status.DUPLICATE)
    lines = settle(lines, lines["status"].is_null(), Status.MISSING_IN_EXTRACT)
    none = {name: pl.lit(None, dtype).alias(name) for name, dtype in line_schema(table).items()}
    columns: dict[str, pl.Expr | pl.Series] = {
        **none,
        **{name: pl.col(name) for name in identity_columns(table)},
        "tenant": number(table.tenant, "tenant"),
        "status": lines["status"],
        "rule": lines["rule"],
        "date": business_date(table, records),
        PARTNER: numbers.alias(PARTNER),
    }
    return records.select(columns.values()).select(list(none))


def unmatched_breaks(table: Table, alone: Lines, side: str) -> list[pl.DataFrame]:
    """Breaks that say why a record is only in a target."""
    codes = {
        Status.MISSING_IN_EXTRACT: "MISSING_IN_EXTRACT",
        Status.DUPLICATE: "DUPLICATE",
        Status.UNKNOWN: "KEY_MISSING",
    }
    return [
        line_breaks(table, alone, rows.arg_true(), code=code, side=side)
        for status, code in codes.items()
        for rows in [alone.frame["status"] == status.value]
    ]


def tenant_crossings(
    table: Table, lines: Lines, missing: pl.Series, alone: pl.DataFrame
) -> pl.DataFrame:
    """Breaks of missing records whose key the target has alone under another tenant."""
    tenant = table.tenant
    rest = [name for name in table.key if name != tenant]
    if tenant not in table.key or not rest or alone.is_empty() or not missing.len():
        return no_breaks()
    keys = [part for name in rest for part in key_parts(table.by_name[name])]
    wanted = lines.frame[missing].select(*keys, tenant).with_columns(missing.alias("row"))
    there = alone.filter(pl.col("status") == Status.MISSING_IN_EXTRACT).select(*keys, tenant)
    on = [name for name in there.columns if name != tenant]
    others = there.group_by(on).agg(pl.col(tenant).min().alias("other"))
    crossed = wanted.join(others, on=on, maintain_order="left")
    found = crossed.filter(pl.col(tenant) != pl.col("other")).select(
        "row",
        pl.lit(tenant).alias("field"),
        pl.col(tenant).cast(pl.String).alias("expected"),
        pl.col("other").cast(pl.String).alias("found"),
    )
    return line_breaks(table, lines, found, code="TENANT_CROSS", side="D")


def reference_breaks(
    table: Table, lines: Lines, extract: pl.DataFrame, compared: pl.Series, lost: pl.DataFrame
) -> list[pl.DataFrame]:
    """Breaks of compared extract rows whose reference finds nothing, or another tenant's record.

    `lost` has the references of the kind that find nothing, as found by `lost_references`.
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
