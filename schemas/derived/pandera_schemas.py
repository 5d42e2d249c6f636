"""The pandera schema of every record, derived from its field table: the only source of rules.

A schema judges typed frames (`kinds.frame_schema`). Every rule is a check named by its ErrorCode,
so a failure case says field, row and code. `coerce` stays off: on polars it reports the first
failing column only. Lazy frames are never validated: pandera skips their data checks in silence.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pandera.polars as pa
import polars as pl

from schemas.field import Field, Kind, Rule, Table
from schemas.kinds import frame_columns

EMAIL = r"^[^@\s,;<>\"()]+@[^@\s,;<>\"()]+\.[^@\s,;<>\"().]+$"
"""One @ with a name before it and a dotted domain after it, as the service's older rule asks."""


@cache
def schema(table: Table) -> pa.DataFrameSchema:
    """The contract of a table's typed frame; validate eager frames with `lazy=True`."""
    columns: dict[str, pa.Column] = {}
    for field in table.delivered:
        for name, dtype in frame_columns(field).items():
            checks = _checks(field) if name == field.name else []
            columns[name] = pa.Column(dtype, checks=checks, nullable=True, required=True)
    return pa.DataFrameSchema(columns, name=table.name, strict=True, ordered=True)


class CompiledRule(NamedTuple):
    """One check of a schema as an expression; true where a row passes."""

    field: str
    code: str
    passes: pl.Expr


@cache
def compiled_rules(table: Table) -> tuple[CompiledRule, ...]:
    """The schema's own checks as expressions, so that one pass over a frame judges them all.

    Validating a frame through pandera costs milliseconds of bookkeeping per block; the expressions
    are the same, taken out of the same checks. A check that is no plain expression raises
    TypeError: it would have to be validated through pandera.
    """
    return tuple(_compiled(schema(table)))


def _compiled(contract: pa.DataFrameSchema) -> Iterator[CompiledRule]:
    for name, column in contract.columns.items():
        for check in column.checks:
            recorder = _Recorder()
            check._check_fn(pa.PolarsData(recorder, name))  # type: ignore[arg-type]
            if recorder.expression is None or check.name is None:
                raise TypeError(f"{contract.name}.{name}: {check} is no plain expression")
            yield CompiledRule(name, check.name, recorder.expression)


class _Recorder:
    """Stands where a check expects a lazy frame, and keeps the expression it selects."""

    def __init__(self) -> None:
        self.expression: pl.Expr | None = None

    def select(self, expression: pl.Expr) -> "_Recorder":
        self.expression = expression
        return self


def _checks(field: Field) -> list[pa.Check]:
    checks = [_check(rule) for rule in field.validations]
    if field.kind is Kind.DOUBLE:
        checks.append(pa.Check(_finite, name="NotFinite", ignore_na=True))
    return checks


def _check(rule: Rule) -> pa.Check:
    match rule:
        case Rule.NOT_NULL:
            return pa.Check(_not_null, name=rule.value, ignore_na=False)
        case Rule.NOT_EMPTY:
            return pa.Check(_not_empty, name=rule.value, ignore_na=False)
        case Rule.EMAIL:
            return pa.Check(_email, name=rule.value, ignore_na=True)


def _not_null(data: pa.PolarsData) -> pl.LazyFrame:
    return data.lazyframe.select(pl.col(data.key).is_not_null())


def _not_empty(data: pa.PolarsData) -> pl.LazyFrame:
    # Null is empty too: the service reports both rules for an absent value.
    text = pl.col(data.key).str.strip_chars()
    return data.lazyframe.select(text.is_not_null() & (text != "").fill_null(value=False))


def _email(data: pa.PolarsData) -> pl.LazyFrame:
    # Null passes: the service's rule judges what is there.
    return data.lazyframe.select(pl.col(data.key).str.contains(EMAIL).fill_null(value=True))


def _finite(data: pa.PolarsData) -> pl.LazyFrame:
    return data.lazyframe.select(pl.col(data.key).is_finite().fill_null(value=True))
