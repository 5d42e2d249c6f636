"""The control totals of frames of typed rows."""

from collections.abc import Mapping
from decimal import Decimal

import polars as pl

from flows.steps.totals import EXACT_SUMS, NO_CURRENCY, Totals
from schemas.amounts import MICRO_DIGITS, MILLIONTHS
from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.field import Kind, Table
from schemas.frame_types import AMOUNT
from schemas.kinds import EXACT

_SAFE_CHARACTERS = 17
"""A plain decimal this short fits Decimal(38, 18) without rounding."""
_ALL, _EXTRACT = "all", "extract_id"


def totals_by_state(
    table: Table, typed: pl.DataFrame, identity: pl.Series, states: Mapping[str, pl.Series]
) -> dict[str, Totals]:
    """The control totals of typed rows by state, each a mask; unreadable values are left out."""
    amounts = [name + EXACT for name in table.amounts]
    key = [] if key_columns(table) == (IDENTITY,) else [table.key[0]]
    currency = [table.currency] if table.currency else []
    counted = identity.to_frame().with_columns(typed[name] for name in (*key, *currency, *amounts))
    totals = {}
    for state, mask in states.items():
        rows = counted.filter(mask)
        totals[state] = Totals(rows.height, _keys(table, rows), _amounts(table, rows).get(0, {}))
    return totals


def totals_of_millionths(table: Table, rows: pl.DataFrame) -> Totals:
    """The control totals of typed rows whose amounts are integers, in millionths."""
    amounts: dict[str, dict[str, Decimal]] = {}
    if table.amounts and not rows.is_empty():
        assert table.currency is not None
        # A sum of many amounts may need more than 64 bits.
        sums = rows.group_by(table.currency).agg(pl.col(table.amounts).cast(pl.Int128).sum())
        for currency, *found in sums.iter_rows():
            values = (Decimal(value).scaleb(-MICRO_DIGITS, EXACT_SUMS) for value in found)
            amounts[str(currency)] = dict(zip(table.amounts, values, strict=True))
    return Totals(rows.height, _keys(table, rows), amounts)


def _keys(table: Table, typed: pl.DataFrame) -> int:
    return int(typed.select(_key_sum(table)).item() or 0)


def _key_sum(table: Table) -> pl.Expr:
    """The sum of the first column of the key, or of the first bits of an identity."""
    key = pl.col(IDENTITY).str.slice(0, 15).str.to_integer(base=16, dtype=pl.Int64)
    key = key if key_columns(table) == (IDENTITY,) else pl.col(table.key[0])
    return key.cast(pl.Int128).sum()


def totals_by_extract(table: Table, rows: pl.DataFrame) -> dict[int, Totals]:
    """The control totals of staged rows, none of which has an error, by their extract."""
    exact = {name: name + EXACT for name in table.amounts}
    counted = rows.group_by(_EXTRACT).agg(pl.len(), _key_sum(table).alias("keys"))
    amounts = _amounts(table, rows.rename(exact), _EXTRACT)
    return {
        extract: Totals(height, int(keys), amounts.get(extract, {}))
        for extract, height, keys in counted.iter_rows()
    }


def _amounts(
    table: Table, typed: pl.DataFrame, by: str = _ALL
) -> dict[int, dict[str, dict[str, Decimal]]]:
    """By what is in a column, the sums of amounts by their currency."""
    if not table.amounts or typed.is_empty():
        return {}
    assert table.currency is not None
    assert all(table.by_name[name].kind is Kind.DOUBLE for name in table.amounts)
    exact = [pl.col(name + EXACT) for name in table.amounts]
    short = [
        (text.str.len_bytes() <= _SAFE_CHARACTERS) | text.str.contains(MILLIONTHS) for text in exact
    ]
    of = pl.lit(0).alias(_ALL) if by == _ALL else pl.col(by)
    currency = pl.col(table.currency).cast(pl.String).fill_null(NO_CURRENCY).alias("currency")
    sums = (
        typed.lazy()
        .group_by(of, currency)
        .agg(
            pl.when(fits).then(text).cast(AMOUNT).sum().name.keep()
            for text, fits in zip(exact, short, strict=True)
        )
        .collect()
    )
    result: dict[int, dict[str, dict[str, Decimal]]] = {}
    for row in sums.iter_rows(named=True):
        result.setdefault(row[by], {})[row["currency"]] = {
            name: row[name + EXACT] or Decimal(0) for name in table.amounts
        }
    for name, text, fits in zip(table.amounts, exact, short, strict=True):
        long = typed.filter(~fits).select(of, currency, text)
        for whose, kind, digits in long.iter_rows():
            amounts = result[whose][kind]
            amounts[name] = EXACT_SUMS.add(amounts[name], Decimal(digits))
    return result
