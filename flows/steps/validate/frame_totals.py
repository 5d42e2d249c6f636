"""The control totals of frames of typed rows."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from flows.steps.totals import NO_CURRENCY, Totals
from flows.steps.validate.field_errors import Rows
from schemas.amounts import EXACT as EXACT_SUMS
from schemas.amounts import KEYS, MICRO_DIGITS
from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.field import Kind, Table
from schemas.frame_types import AMOUNT
from schemas.kinds import EXACT

_SAFE = r"^-?[0-9]{1,10}(\.[0-9]{1,18}0*)?$"
"""Plain decimals that fit Decimal(38, 18) without rounding, as does the sum of 10^10 of them."""
_STATE, _CURRENCY = "state", "currency"
NONE_UNREAD: Mapping[str, Rows] = MappingProxyType({})


def unread_sums(
    table: Table, unread: Mapping[str, Rows], height: int, broken: int
) -> dict[str, Rows]:
    """By name of a sum, the rows of `height` whose part of it cannot be read.

    `unread` has, by field, the rows whose cell is not empty but holds no value. The last `broken`
    rows have no cells at all, so they may have had any value. An empty cell is not unread: it adds
    nothing to the sender's sum either.
    """
    if not unread and not broken:
        return {}
    keys = table.key if key_columns(table) == (IDENTITY,) else table.key[:1]
    parts = {name: (name,) for name in table.amounts} | ({KEYS: keys} if keys else {})
    behind = np.arange(height - broken, height)
    found = {
        of: reduce(np.union1d, (unread[name] for name in names if name in unread), behind)
        for of, names in parts.items()
    }
    return {of: rows.astype(np.intp) for of, rows in found.items() if len(rows)}


def totals_by_state(
    table: Table,
    typed: pl.DataFrame,
    identity: pl.Series,
    states: pl.Series,
    unread: Mapping[str, Rows] = NONE_UNREAD,
) -> dict[str, Totals]:
    """The control totals of typed rows by state; unreadable values are left out of sums.

    `unread` is the result of `unread_sums`, whose rows are counted.
    """
    names = [] if key_columns(table) == (IDENTITY,) else [table.key[0]]
    names += [table.currency] if table.currency else []
    columns = [typed[name] for name in names]
    columns += [typed[name + EXACT].alias(name) for name in table.amounts]
    found = totals_by(table, pl.DataFrame([identity, states.alias(_STATE), *columns]), _STATE)
    counts: dict[str, dict[str, int]] = {state: {} for state in found}
    for name, rows in unread.items():
        for state, count in Counter(states.gather(rows).to_list()).items():
            counts[state][name] = count
    return {state: replace(one, unreadable=counts[state]) for state, one in found.items()}


def totals_of_millionths(table: Table, rows: pl.DataFrame) -> Totals:
    """The control totals of typed rows whose amounts are integers in millionths."""
    amounts: dict[str, dict[str, Decimal]] = {}
    if table.amounts and not rows.is_empty():
        assert table.currency is not None
        # A sum of many amounts may need more than 64 bits.
        sums = rows.group_by(table.currency).agg(pl.col(table.amounts).cast(pl.Int128).sum())
        for currency, *found in sums.select(_currency(table), *table.amounts).iter_rows():
            values = (Decimal(value).scaleb(-MICRO_DIGITS, EXACT_SUMS) for value in found)
            amounts[currency] = dict(zip(table.amounts, values, strict=True))
    return Totals(rows.height, int(rows.select(_key_sum(table)).item() or 0), amounts)


def _currency(table: Table) -> pl.Expr:
    """The currency of each row's amounts, as named in control totals."""
    assert table.currency is not None
    return pl.col(table.currency).cast(pl.String).fill_null(NO_CURRENCY).alias(_CURRENCY)


def _key_sum(table: Table) -> pl.Expr:
    """The sum of the first column of the key, or of the first bits of an identity."""
    key = pl.col(IDENTITY).str.slice(0, 15).str.to_integer(base=16, dtype=pl.Int64)
    key = key if key_columns(table) == (IDENTITY,) else pl.col(table.key[0])
    return key.cast(pl.Int128).sum()


def totals_by(table: Table, rows: pl.DataFrame, by: str) -> dict[Any, Totals]:
    """The control totals of staged rows by the values of a column, which must not be null."""
    names = table.amounts
    assert all(table.by_name[name].kind is Kind.DOUBLE for name in names)
    currency = _currency(table) if names else pl.lit(NO_CURRENCY).alias(_CURRENCY)
    fits = rows.select(pl.col(name).str.contains(_SAFE) for name in names)
    short = (pl.when(fits[name]).then(name).cast(AMOUNT).alias(name) for name in names)
    converted = rows.with_columns(currency, *short)
    beyond = defaultdict[tuple[Any, str, str], Decimal](Decimal)
    for name in names:
        if not fits[name].all():
            long = converted.select(by, _CURRENCY).with_columns(rows[name]).filter(~fits[name])
            for of, kind, digits in long.iter_rows():
                beyond[of, kind, name] = EXACT_SUMS.add(beyond[of, kind, name], Decimal(digits))
    sums = converted.group_by(by, _CURRENCY).agg(
        pl.len(), _key_sum(table).alias("keys"), pl.col(names).sum()
    )
    heights, keys = Counter[Any](), Counter[Any]()
    amounts = defaultdict[Any, dict[str, dict[str, Decimal]]](dict)
    for of, kind, height, key, *found in sums.iter_rows():
        heights[of] += height
        keys[of] += int(key or 0)
        if names:
            amounts[of][kind] = {
                name: EXACT_SUMS.add(value or Decimal(0), beyond.get((of, kind, name), Decimal(0)))
                for name, value in zip(names, found, strict=True)
            }
    return {of: Totals(height, keys[of], amounts[of]) for of, height in heights.items()}
