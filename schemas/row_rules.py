"""The rules of a record as named polars expressions: the only place where they are written.

Row verdicts and pandera schemas are made from these same expressions.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, assert_never

import polars as pl

from schemas.field import Field, Kind, Rule, Table

EMAIL = r"^[^@\s,;<>\"()]+@[^@\s,;<>\"()]+\.[^@\s,;<>\"().]+$"
"""One @ with a name before it and a dotted domain after it, as the service's older rule asks."""
NOT_FINITE = "NotFinite"


class RowRule(NamedTuple):
    """One rule of one field, named by its ErrorCode; `passes` is true or false, never null."""

    field: str
    code: str
    passes: pl.Expr


@cache
def row_rules(table: Table) -> tuple[RowRule, ...]:
    """Every rule of a record, field by field, in the order the service reports them."""
    return tuple(rule for field in table.delivered for rule in _rules_of(field))


def _rules_of(field: Field) -> Iterator[RowRule]:
    value = pl.col(field.name)
    for rule in field.validations:
        yield RowRule(field.name, rule.value, _passes(rule, value))
    if field.kind is Kind.DOUBLE:
        # In millionths a double is an integer, which is always finite.
        yield RowRule(field.name, NOT_FINITE, value.is_finite().fill_null(value=True))


def _passes(rule: Rule, value: pl.Expr) -> pl.Expr:
    match rule:
        case Rule.NOT_NULL:
            return value.is_not_null()
        case Rule.NOT_EMPTY:
            # Null is empty too: the service reports both rules for an absent value.
            return (value.str.strip_chars() != "").fill_null(value=False)
        case Rule.EMAIL:
            # Null passes: the service applies this rule only to values that are there.
            return value.str.contains(EMAIL).fill_null(value=True)
    assert_never(rule)
