"""Second keys: fields by which records must be unique as well as by their key."""

import polars as pl

from flows.steps.breaks.frame import no_breaks
from flows.steps.breaks.match_breaks import line_breaks
from flows.steps.frames.statuses import Lines
from flows.steps.match.pairing import key_parts, maybe_repeated
from flows.steps.match.same_text import maybe_same, same
from schemas.field import Kind, Table

SECOND_KEYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "currency_rate": (
        "RATE_DUPLICATE",
        ("TenantsId", "FromCurrenciesId", "ToCurrenciesId", "EffectiveDate"),
    ),
    "invoice_file": ("INV_DUPLICATE", ("TenantsId", "DebtsId", "InvoiceUrl")),
}
"""Record kind -> the break and the fields of its second key."""


def second_key_parts(table: Table) -> list[pl.Expr]:
    """The parts of a second key that are not texts; empty if the kind has no second key.

    Few records share these parts, so texts are compared only for those.
    """
    _, names = SECOND_KEYS.get(table.name, ("", ()))
    fields = [table.by_name[name] for name in names]
    return [part for field in fields if field.kind is not Kind.STRING for part in key_parts(field)]


def second_key_breaks(
    table: Table, lines: Lines, records: pl.DataFrame, numbers: pl.Series, side: str
) -> pl.DataFrame:
    """Breaks of records that share their second key with a record of a smaller Id, or may share it.

    `numbers` are those of the records' lines; a record without one gets no break. Every record
    after the first has a break that names the first. Texts are compared by meaning (`same_text`);
    if they differ only in what nobody sees, the break says so.
    """
    code, names = SECOND_KEYS[table.name]
    texts = [name for name in names if table.by_name[name].kind is Kind.STRING]
    parts = second_key_parts(table)
    alike = maybe_repeated(records.select(parts))
    if alike is None:
        return no_breaks()
    near = alike.arg_true()
    found = records[near]
    exact = [pl.col(name).map_elements(same, return_dtype=pl.String) for name in texts]
    keys = found.select(
        *parts,
        *(pl.col(name).map_elements(maybe_same, return_dtype=pl.String) for name in texts),
        pl.struct(*exact, pl.lit(value=True).alias("__any")).alias("__exact"),
        pl.col("Id").alias("__id"),
    ).with_columns(numbers.gather(near).alias("row"), near.alias("__at"))
    on = [name for name in keys.columns if name not in ("__id", "row", "__at", "__exact")]
    again = keys.filter(pl.struct(on).is_duplicated()).drop_nulls(list(names))
    if again.is_empty():
        return no_breaks()
    later = (
        again.sort("__id", "__at")
        .with_columns(
            pl.col("__id").first().over(on).alias("first"),
            pl.col("__exact").first().over(on).alias("__first_exact"),
        )
        .filter(pl.col("__id") != pl.col("first"), pl.col("row").is_not_null())
        .sort("__at")
    )
    findings = later.select(
        "row",
        pl.col("__id").cast(pl.String).alias("found"),
        pl.col("first").cast(pl.String).alias("expected"),
        pl.concat_str(
            pl.when(pl.col("__exact").eq_missing(pl.col("__first_exact")))
            .then(pl.lit("the same as Id "))
            .otherwise(pl.lit("but for blanks or the form of its letters the same as Id ")),
            pl.col("first"),
        ).alias("note"),
    )
    return line_breaks(table, lines, findings, code=code, side=side)
