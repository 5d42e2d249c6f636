"""The breaks of matching: every finding about a record, in the record's own words.

Lines (`statuses.Lines`) say what each record is; a finding names lines by their number and adds
what is special about it.
"""

import polars as pl

from flows.steps.breaks.frame import AMOUNT, BREAK_SCHEMA, no_breaks
from flows.steps.match.comparison import text
from flows.steps.reconcile.beyond import beside, unsigned
from flows.steps.reconcile.statuses import EXPECTED, FOUND, Lines
from schemas.amounts import BEYOND
from schemas.breaks import BREAKS, Money
from schemas.derived.views import ERRORS
from schemas.field import Table

_LARGE = 10**19
"""The difference of two amounts below it can be held."""
_DIFFERENCE_CODES = ("AMOUNT", "ECHO")
"""Codes of one field whose amount is the difference; others have the money of the whole record."""
_NO_MONEY = [code for code, of in BREAKS.items() if of.money is Money.NONE]


def line_breaks(
    table: Table,
    lines: Lines,
    rows: pl.Series | pl.DataFrame,
    **columns: str | pl.Expr,
) -> pl.DataFrame:
    """Breaks about lines: `rows` are their numbers, or a frame of findings with a column `row`.

    `columns` and the columns of the findings fill the break; the rest comes from the line.
    """
    findings = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame({"row": rows})
    if findings.is_empty():
        return no_breaks()
    about = lines[findings["row"]]
    first = table.amounts[0] if table.amounts else None
    amount, beyond = _money_of(about, first) if first else [pl.lit(None)] * 2
    named = about.select(
        pl.lit(table.name).alias("record"),
        "tenant",
        key_text(table, about).alias("key"),
        pl.lit("").alias("field"),
        pl.coalesce("currency", "currency_found").alias("currency"),
        amount.alias("amount"),
        beyond.alias(f"amount{BEYOND}"),
        "date",
        "file",
        "line",
        "batch_id",
        pl.lit("").alias("note"),
    )
    filled = named.with_columns(
        findings[name] for name in findings.columns if name in BREAK_SCHEMA
    ).with_columns(**{name: pl.lit(v) if isinstance(v, str) else v for name, v in columns.items()})
    filled = filled.with_columns(
        (pl.col(name) if name in filled.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in BREAK_SCHEMA.items()
    )
    return filled.select(
        *(name for name in BREAK_SCHEMA if name not in ("amount", f"amount{BEYOND}")),
        *_amount(table),
    ).select(list(BREAK_SCHEMA))


def _money_of(about: pl.DataFrame, first: str) -> list[pl.Expr]:
    """The money of records: of the first amount, as it was delivered or else as it is there."""
    columns = [first + EXPECTED, first + FOUND]
    texts = [pl.lit(beside(about, name)) for name in columns]
    said = pl.col(columns[0]).is_not_null() | texts[0].is_not_null()
    held, text = (
        pl.when(said).then(delivered).otherwise(there)
        for delivered, there in (map(pl.col, columns), texts)
    )
    return [held.abs(), unsigned(text)]


def _amount(table: Table) -> list[pl.Expr]:
    """The difference where an amount differs; elsewhere the money of the whole record."""
    code = pl.col("code")
    # An amount that is not there is none, and an echo has no delta: their texts tell it.
    read = [pl.col(side).cast(AMOUNT, strict=False) for side in ("expected", "found")]
    unread = pl.any_horizontal(
        pl.col(side).is_not_null() & (number.is_null() | (number.abs() >= _LARGE))
        for side, number in zip(("expected", "found"), read, strict=True)
    )
    told = pl.when(~unread).then(read[1].fill_null(0) - read[0].fill_null(0))
    differs = pl.col("field").is_in(table.amounts) & code.is_in(_DIFFERENCE_CODES)
    return [
        pl.when(differs).then(difference).when(~code.is_in(_NO_MONEY)).then(name).alias(name)
        for name, difference in (
            ("amount", pl.coalesce("delta", told).abs()),
            (f"amount{BEYOND}", unsigned(pl.col(f"delta{BEYOND}"))),
        )
    ]


def key_text(table: Table, lines: pl.DataFrame) -> pl.Series:
    """The identity of each line as one text; where it has none, the place it was delivered at.

    So it is for a row in error of a record kind with secrets: one may have slipped into its key.
    """
    if lines.is_empty():
        return pl.Series("key", [], dtype=pl.String)
    texts = [_values(table, name, lines) for name in table.identity]
    joined = pl.DataFrame(texts).select(
        pl.concat_str((pl.col(f"{n}").fill_null("") for n in range(len(texts))), separator="/"),
    )
    nameless = lines.select(
        pl.all_horizontal(pl.col(name).is_null() for name in table.identity)
    ).to_series()
    if table.unquotable and "state" in lines.columns:
        nameless |= lines.select(pl.col("state").is_in(ERRORS).fill_null(value=False)).to_series()
    place = lines.select(
        pl.concat_str(pl.col("file").fill_null(""), pl.col("row").cast(pl.String).fill_null(""),
                      separator=":")
    ).to_series()  # fmt: skip
    return (
        pl.select(pl.when(nameless).then(place).otherwise(joined.to_series())).to_series()
    ).alias("key")


def _values(table: Table, name: str, lines: pl.DataFrame) -> pl.Series:
    number = table.identity.index(name)
    column = lines[name]
    if isinstance(column.dtype, pl.Datetime):
        shown = column.dt.to_string("%Y-%m-%dT%H:%M:%S%.6f").str.strip_suffix(".000000")
        return shown.str.strip_suffix("T00:00:00").alias(f"{number}")
    return text(column).alias(f"{number}")
