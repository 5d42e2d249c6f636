"""The breaks of matching: one for every finding about a record, with the record's values.

Lines (`statuses.Lines`) say what each record is; a finding refers to a line by its number and adds
its own columns.
"""

from collections.abc import Mapping

import polars as pl

from flows.steps.breaks.frame import BREAK_SCHEMA, PLACE_OF, no_breaks
from flows.steps.breaks.make import (
    amount_text,
    amounts_of,
    joined,
    key_text,
    make_breaks,
    not_numbered,
)
from flows.steps.frames.beyond import beyond_texts, unsigned
from flows.steps.frames.statuses import EXPECTED, FOUND, Lines
from schemas.amounts import BEYOND
from schemas.breaks import BREAKS, Money
from schemas.derived.views import ERRORS
from schemas.field import Table
from schemas.frame_types import AMOUNT

_IN_ANOTHER = r"^(-?[0-9]+(?:\.[0-9]+)?) in "
"""An echoed amount in another currency, with that currency (`answers.echo_differences`)."""
_LARGE = 10**19
"""The difference of two amounts below this fits an exact column."""
_DIFFERENCES, _NO_MONEY = (
    [code for code, of in BREAKS.items() if of.money is money]
    for money in (Money.DIFFERENCE, Money.NONE)
)


def line_breaks(
    table: Table, lines: Lines, rows: pl.Series | pl.DataFrame, **columns: str
) -> pl.DataFrame:
    """Make breaks about lines; `rows` are their numbers, or a frame of findings with `row`.

    `columns` and the columns of the findings fill the break; the rest comes from the line.
    """
    findings = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame({"row": rows})
    if findings.is_empty():
        return no_breaks()
    about = lines[findings["row"]]
    # Records of a kind without a key are identified by content: equal ones are interchangeable.
    place = [_place().alias(PLACE_OF)] if table.key else []
    facts = {name: pl.lit(findings[name]) for name in findings.columns if name in BREAK_SCHEMA}
    facts |= {name: pl.lit(value) for name, value in columns.items()}
    facts |= _amount(table, about, facts)
    facts |= {"tenant": pl.col("tenant"), "date": pl.col("date")}
    facts["currency"] = pl.coalesce("currency", "currency_found")
    code, name, key = facts.pop("code"), facts.pop("field", ""), line_key(table, about)
    breaks = make_breaks(code, table.name, about, key=pl.lit(key), name=name, **facts)
    there = pl.col("file").is_not_null()
    return breaks.hstack(about.select(pl.when(there).then(one) for one in place))


def _amount(table: Table, about: pl.DataFrame, facts: Mapping[str, pl.Expr]) -> dict[str, pl.Expr]:
    """The difference if an amount differs, else the money of the whole record.

    An amount in another currency has no difference; `amounts` then has both values.
    """
    code, field, expected, found, delta, beyond = (
        facts.get(name, pl.lit(None)).cast(BREAK_SCHEMA[name])
        for name in ("code", "field", "expected", "found", "delta", f"delta{BEYOND}")
    )
    differs = field.is_in(table.amounts) & code.is_in(_DIFFERENCES)
    # An absent amount counts as zero, and an echo has no delta: the difference is then computed
    # from the texts. polars subtracts in all rows, so numbers that are too large become null first.
    sides = [pl.when(differs).then(side) for side in (expected, found)]
    numbers = [side.cast(AMOUNT, strict=False) for side in sides]
    read = [pl.when(number.abs() < _LARGE).then(number) for number in numbers]
    unread = pl.any_horizontal(
        side.is_not_null() & number.is_null() for side, number in zip(sides, read, strict=True)
    )
    subtracted = pl.when(~unread).then(read[1].fill_null(0) - read[0].fill_null(0))
    differences = pl.coalesce(delta, subtracted).abs(), unsigned(beyond)
    across = across_currencies(table, code, field)
    both = both_amounts(field, expected, found, pl.col("currency_found"))
    echoed = pl.when(differs & (code == "ECHO")).then(found.str.extract(_IN_ANOTHER))
    own = ~code.is_in(_NO_MONEY) & ~across
    # All amounts of records, as delivered or else as in the target.
    every = {
        name: pl.coalesce(amount_text(about, name + side) for side in (EXPECTED, FOUND))
        for name in table.amounts
    }
    amounts = pl.when(~differs.fill_null(value=False) & own).then(amounts_of(every))
    in_another = pl.format("{} {}, {} {} in another currency", field, expected, field, echoed)
    money = (
        pl.when(differs).then(difference).when(own).then(whole)
        for difference, whole in zip(differences, _money_of(table, about), strict=True)
    )
    texts = pl.when(across).then(both).when(echoed.is_not_null()).then(in_another)
    names = ("amount", f"amount{BEYOND}", "amounts")
    return dict(zip(names, (*money, texts.otherwise(amounts)), strict=True))


def across_currencies(table: Table, code: pl.Expr, field: pl.Expr) -> pl.Expr:
    """Whether two values are amounts in two currencies (`comparison.differences`)."""
    return (field.is_in(table.amounts) & (code == "VALUE")).fill_null(value=False)


def both_amounts(field: pl.Expr, expected: pl.Expr, found: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Two values of an amount, the second in another currency, in the form of `make.amounts_of`.

    Limits and severity go by the larger of the two.
    """
    one = pl.format("{} {}", field, expected)
    other_one = pl.format("{} {} in currency {}", field, found, other)
    return pl.concat_str(one, other_one, separator=", ", ignore_nulls=True)


def _money_of(table: Table, about: pl.DataFrame) -> list[pl.Expr]:
    """The money of records: the first amount, as delivered or else as in the target."""
    if not table.amounts:
        return [pl.lit(None, AMOUNT), pl.lit(None, pl.String)]
    columns = [table.amounts[0] + EXPECTED, table.amounts[0] + FOUND]
    texts = [pl.lit(beyond_texts(about, name)) for name in columns]
    was_delivered = pl.col(columns[0]).is_not_null() | texts[0].is_not_null()
    held, text = (
        pl.when(was_delivered).then(delivered).otherwise(there)
        for delivered, there in (map(pl.col, columns), texts)
    )
    return [held.abs(), unsigned(text)]


def line_key(table: Table, lines: pl.DataFrame) -> pl.Series:
    """`key_text` of each line, or its place of delivery if a part of its key is missing.

    Two rows that lack the same part are two records, and a break of one must not be taken for one
    of the other. Rows in error of a kind with secrets are named by place too, because a secret may
    have slipped into their key.
    """
    nameless = pl.all_horizontal(pl.col(name).is_null() for name in table.identity)
    if table.key:
        delivered = pl.col("file").cast(pl.String).fill_null("") != ""
        nameless |= delivered & pl.any_horizontal(pl.col(name).is_null() for name in table.key)
    if table.unquotable and "state" in lines.columns:
        nameless |= pl.col("state").is_in(ERRORS).fill_null(value=False)
    key = pl.when(nameless).then(not_numbered(_place())).otherwise(key_text(table))
    return lines.select(key.alias("key")).to_series()


def _place() -> pl.Expr:
    """Batch, file and row of a line; the batch, because files of every day have the same names."""
    return joined("batch_id", "file", "row", by=":")
