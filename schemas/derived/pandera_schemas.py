"""The pandera schema of every record, derived from its field table.

Nothing is written as clean that its schema has not validated: it is the program's check of its own
row verdicts. A row that fails here is a fault of the program, not of the delivery.
"""

import os
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import polars as pl

from schemas.counting import quantity
from schemas.field import Table
from schemas.kinds import frame_columns, millionth_columns
from schemas.row_rules import row_rules

# pandera reads variables when it is imported, and by some of them it checks less, or nothing.
for _name in [name for name in os.environ if name.startswith("PANDERA_")]:
    del os.environ[_name]

import pandera.polars as pa  # noqa: E402
from pandera.config import ValidationDepth, config_context  # noqa: E402
from pandera.errors import SchemaErrors  # noqa: E402

_RULES = "rules"


class BrokenRule(NamedTuple):
    """What a frame breaks of its schema."""

    field: str
    rule: str
    """The ErrorCode of a rule, or what pandera says of a column."""
    rows: int
    line: int
    """Where the first of those rows begins."""


class SchemaBroken(Exception):
    """Clean rows are not what their schema says. No value of them is kept: some are secrets."""

    def __init__(self, record: str, broken: list[BrokenRule]) -> None:
        found = "; ".join(
            f"{one.field}: {one.rule} ({quantity(one.rows, 'row')}, the first on line {one.line})"
            for one in broken
        )
        super().__init__(f"clean rows of {record} break its schema. {found}.")
        self.broken = broken


@cache
def schema(table: Table, *, millionths: bool = False) -> pa.DataFrameSchema:
    """The contract of a record's typed frame; with its doubles in millionths, if so asked.

    All rules are one check: one for each of them makes validating a chunk three times as dear.
    """
    columns = {
        name: pa.Column(dtype, nullable=True)
        for field in table.delivered
        for name, dtype in (millionth_columns if millionths else frame_columns)(field).items()
    }
    passes = [
        rule.passes.all(ignore_nulls=False).alias(f"{rule.field} {rule.code}")
        for rule in row_rules(table)
    ]

    def every_rule(data: pa.PolarsData) -> bool:
        passed = data.lazyframe.select(passes).collect().row(0, named=True)
        broken = [rule for rule, all_pass in passed.items() if not all_pass]
        if broken:
            # A False cannot be listed with what is wrong about columns: those failures are texts.
            raise ValueError(", ".join(broken))
        return True

    checks = [pa.Check(every_rule, name=_RULES)] if passes else []
    return pa.DataFrameSchema(columns, checks=checks, name=table.name, strict=True)


def validate(
    table: Table, clean: pl.DataFrame, lines: pl.Series, *, millionths: bool = False
) -> None:
    """Validate clean rows, which begin on `lines`, by the schema of their record.

    Raises SchemaBroken with all that they break.
    """
    if clean.is_empty():
        return
    try:
        # Whatever the process has set, columns and values are both looked at.
        with config_context(
            validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA
        ):
            schema(table, millionths=millionths).validate(clean, lazy=True)
    except SchemaErrors as errors:
        broken = _broken_columns(errors, lines) or [*_broken_rules(table, clean, lines)]
    else:
        return
    raise SchemaBroken(table.name, broken)


def _broken_columns(errors: SchemaErrors, lines: pl.Series) -> list[BrokenRule]:
    cases = errors.failure_cases.filter(pl.col("check") != _RULES)
    found = cases.select("column", "check", "failure_case").iter_rows()
    return [
        BrokenRule(of, f"{check}, not {case}", len(lines), lines[0]) for of, check, case in found
    ]


def _broken_rules(table: Table, clean: pl.DataFrame, lines: pl.Series) -> Iterator[BrokenRule]:
    for rule in row_rules(table):
        rows = (~clean.select(rule.passes).to_series()).arg_true()
        if len(rows):
            yield BrokenRule(rule.field, rule.code, len(rows), lines[rows[0]])
