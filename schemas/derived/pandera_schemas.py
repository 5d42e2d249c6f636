"""The pandera schema of every record, derived from its field table.

No row is written as clean unless its schema has validated it: this is the program's check of its
own row verdicts. A row that fails here is a fault of the program, not of the delivery.
"""

import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import polars as pl

from schemas.counting import quantity
from schemas.field import Table
from schemas.frame_types import frame_columns, millionth_columns
from schemas.row_rules import row_rules

# pandera reads variables when it is imported, and some of them make it check less or nothing. It
# also loads hypothesis if installed, which takes longer than validating many a delivery.
_hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith("PANDERA_")}
_loaded = sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]

import pandera.polars as pa  # noqa: E402
from pandera.backends.polars import builtin_checks  # noqa: E402, F401
from pandera.config import ValidationDepth, config_context  # noqa: E402
from pandera.errors import SchemaErrors  # noqa: E402

os.environ.update(_hidden)
if _loaded is None:
    del sys.modules["hypothesis"]


class BrokenRule(NamedTuple):
    """A rule of its schema that a frame breaks."""

    field: str
    rule: str
    """The ErrorCode of a rule, or pandera's message about a column."""
    rows: int
    line: int
    """The line on which the first of those rows begins."""


class SchemaBroken(Exception):
    """Clean rows break their schema. None of their values is kept, because some are secrets."""

    def __init__(self, record: str, broken: list[BrokenRule]) -> None:
        found = "; ".join(
            f"{one.field}: {one.rule} ({quantity(one.rows, 'row')}, the first on line {one.line})"
            for one in broken
        )
        super().__init__(f"clean rows of {record} break its schema. {found}.")
        self.broken = broken


@cache
def columns_schema(table: Table, *, millionths: bool = False) -> pa.DataFrameSchema:
    """The columns of a record's typed frame; with `millionths`, its doubles are in millionths."""
    columns = {
        name: pa.Column(dtype, nullable=True)
        for field in table.delivered
        for name, dtype in (millionth_columns if millionths else frame_columns)(field).items()
    }
    return pa.DataFrameSchema(columns, name=table.name, strict=True)


@cache
def rules_schema(table: Table) -> pa.DataFrameSchema:
    """The rules that all rows of a record's typed frame pass.

    All rules are one check; a check for each would make validating a chunk three times as costly.
    """
    passes = [rule.passes.all(ignore_nulls=False).alias(str(rule)) for rule in row_rules(table)]

    def every_rule(data: pa.PolarsData) -> bool:
        return all(data.lazyframe.select(passes).collect().row(0))

    return pa.DataFrameSchema(checks=[pa.Check(every_rule)] if passes else [], name=table.name)


def validate(
    table: Table, clean: pl.DataFrame, lines: pl.Series, *, millionths: bool = False
) -> None:
    """Validate clean rows, which begin on `lines`, by the schemas of their record.

    Raises SchemaBroken with everything they break.
    """
    if clean.is_empty():
        return
    # Check both columns and values whatever the process has set, also in a lazy frame, which
    # pandera does not take apart and put together again.
    with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
        try:
            _validate_columns(table, millionths, tuple(clean.schema.items()))
            rules_schema(table).validate(clean.lazy(), lazy=True)
        except SchemaErrors as errors:
            wrong = errors.schema is not rules_schema(table)
            broken = _broken_columns(errors, lines) if wrong else _broken_rules(table, clean, lines)
        else:
            return
    raise SchemaBroken(table.name, [*broken])


@cache
def _validate_columns(
    table: Table, millionths: bool, columns: tuple[tuple[str, pl.DataType], ...]
) -> None:
    """Raise SchemaErrors if the columns are not the record's.

    The result does not depend on rows, so equal columns are checked only once; checking them again
    would cost more than the rules of a whole chunk.
    """
    columns_schema(table, millionths=millionths).validate(pl.DataFrame(schema=columns), lazy=True)


def _broken_columns(errors: SchemaErrors, lines: pl.Series) -> Iterator[BrokenRule]:
    for of, check, case in errors.failure_cases.select("column", "check", "failure_case").rows():
        yield BrokenRule(of, f"{check}, not {case}", len(lines), lines[0])


def _broken_rules(table: Table, clean: pl.DataFrame, lines: pl.Series) -> Iterator[BrokenRule]:
    for rule in row_rules(table):
        rows = (~clean.select(rule.passes).to_series()).arg_true()
        if len(rows):
            yield BrokenRule(rule.field, rule.code, len(rows), lines[rows[0]])
