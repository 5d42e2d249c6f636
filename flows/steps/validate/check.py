"""The verdict on every row: its typed values, or all the reasons why it has none.

Text is read strictly to nullable typed columns; the record's rules are asked of the typed frame. A
cell that could not be read is reported once, with its own reason, never also as missing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from flows.steps.validate.field_errors import NO_ROWS, FieldErrors, OfField, Rows, of_field
from flows.steps.validate.other_currency import NOT_NAMED, NamedCurrencies, currency_errors
from schemas.cells.columns import type_cells
from schemas.cells.reading import UNFIT, Moment, Number, Unread, Value, limit_of, read
from schemas.cells.unread import CODE, DETAIL, why_unread
from schemas.derived.nested import read_nested
from schemas.field import Field, Kind, Table
from schemas.frame_types import frame_columns
from schemas.kinds import EXACT, OFFSET
from schemas.row_rules import row_rules


@dataclass(frozen=True, slots=True)
class Checked:
    """A block of rows after the check: `typed` has a row for every row of the cells."""

    typed: pl.DataFrame
    errors: FieldErrors


def check(
    table: Table,
    cells: pl.DataFrame,
    *,
    tenant: int | None = None,
    delivered: Mapping[str, pl.Series] | None = None,
    named: NamedCurrencies = NOT_NAMED,
) -> Checked:
    """Validate rows given as text: one String column per delivered field of the table.

    `tenant` is the one a batch is bound to; a row of any other is rejected. `delivered` are the
    texts of the sender, where `cells` are written as the field tables do: those are quoted. `named`
    are the currencies that cells name beside their texts.
    """
    texts = delivered or {}
    typed = type_cells(cells, table)
    unread: dict[str, list[OfField]] = {}
    for of, left in _left(table, cells, typed):
        given = texts.get(of.name, cells[of.name])
        typed, unread[of.name] = _read_strictly(
            table, of, left, cells[of.name].gather(left), given.gather(left), typed
        )
    for of, rows in _unfit(table, cells):
        text = cells[of.name].gather(rows).str.replace_all(UNFIT, "", literal=True)
        unread[of.name] = [of_field(table, of, "Text", rows, text)]
        typed = typed.with_columns(typed[of.name].scatter(rows, None))
    broken = _broken_rules(table, typed)
    in_others = currency_errors(table, typed, cells, named)
    found: list[OfField] = []
    for of in table.delivered:
        told = unread.get(of.name, [])
        read_not = np.concatenate([NO_ROWS, *(one.rows for one in told)])
        found += told
        for code, rows in broken.get(of.name, ()):
            wrong = np.setdiff1d(rows, read_not, assume_unique=True) if len(read_not) else rows
            if len(wrong):
                found.append(of_field(table, of, code, wrong, cells[of.name].gather(wrong)))
        found += in_others.get(of.name, ())
        if of.name == table.tenant and tenant is not None:
            other = (typed[of.name] != tenant).fill_null(value=False).arg_true().to_numpy()
            text, limit = cells[of.name].gather(other), str(tenant)
            found.append(of_field(table, of, "TenantNotBound", other, text, limit=limit))
    return Checked(typed, FieldErrors([one for one in found if len(one.rows)]))


def _left(table: Table, cells: pl.DataFrame, typed: pl.DataFrame) -> Iterator[tuple[Field, Rows]]:
    """The rows the vectorised readers left, by field: there is a text, and no value."""
    read_ones = [of for of in table.delivered if of.kind is not Kind.STRING]
    given = cells.select((pl.col(of.name) != "").fill_null(value=False) for of in read_ones)
    empty = typed.select(pl.col(of.name).is_null() for of in read_ones)
    for of in read_ones:
        left = (given[of.name] & empty[of.name]).arg_true().to_numpy().astype(np.intp)
        if len(left):
            yield of, left


def _unfit(table: Table, cells: pl.DataFrame) -> Iterator[tuple[Field, Rows]]:
    """The rows whose texts are not what the feed says of them, by field."""
    texts = [of for of in table.delivered if of.kind is Kind.STRING]
    marked = cells.select(
        pl.col(of.name).str.contains(UNFIT, literal=True).fill_null(value=False) for of in texts
    )
    for of in texts:
        rows = marked[of.name].arg_true().to_numpy().astype(np.intp)
        if len(rows):
            yield of, rows


def _read_strictly(
    table: Table,
    of: Field,
    left: Rows,
    texts: pl.Series,
    given: pl.Series,
    typed: pl.DataFrame,
) -> tuple[pl.DataFrame, list[OfField]]:
    """Decide the cells that are left: the typed frame with what they say, and why others say none.

    `texts` are these cells, `given` what was delivered for each.
    """
    why = why_unread(of, texts).with_columns(pl.lit(None, pl.String).alias("kept"))
    unsure = why[CODE].is_null().arg_true().to_numpy()
    if len(unsure):
        read_ones = _read_each(of, texts.gather(unsure))
        there = np.array([value is not None for value in read_ones.values], np.bool_)
        typed = _with_values(
            of, typed, left[unsure[there]], [one for one in read_ones.values if one is not None]
        )
        why = why.with_columns(
            why[name].scatter(unsure, column)
            for name, column in zip((CODE, DETAIL, "kept"), read_ones[1:], strict=True)
        )
    # A remark behind the delivered text says more than the text alone.
    told = why.with_columns(texts.alias("text"), given.alias("given")).with_columns(
        ((pl.col("text") != pl.col("given")) & pl.col("text").str.starts_with(pl.col("given")))
        .fill_null(value=False)
        .alias("remarked")
    )
    plain = pl.col("remarked") | pl.col("given").is_null()
    told = told.select(
        CODE,
        "kept",
        pl.when(~pl.col("remarked")).then(DETAIL).alias(DETAIL),
        pl.when(plain).then("text").otherwise("given").alias("quoted"),
    )
    limit = limit_of(of.kind) if of.kind in (Kind.INTEGER, Kind.INTEGER64) else ""
    found = []
    for code in told[CODE].drop_nulls().unique().sort():
        rows = (told[CODE] == code).fill_null(value=False)
        one = told.filter(rows) if not rows.all() else told
        detail = one[DETAIL] if one[DETAIL].null_count() < one.height else None
        found.append(
            of_field(
                table,
                of,
                code,
                left[rows.to_numpy()],
                one["quoted"],
                kept=one["kept"] if one["kept"].null_count() < one.height else None,
                detail=detail,
                limit=limit,
            )
        )
    return typed, found


class _ReadCells(NamedTuple):
    """Of each cell its value, or else why it has none."""

    values: list[Value | None]
    codes: pl.Series
    details: pl.Series
    kept: pl.Series


def _read_each(of: Field, texts: pl.Series) -> _ReadCells:
    """What the strict reader says of cells; of equal ones once."""
    said: dict[str, Value | Unread] = {
        text: read(of, text, read_nested) for text in texts.unique().to_list()
    }
    values = [said[text] for text in texts.to_list()]
    unread = [value if isinstance(value, Unread) else None for value in values]
    facts = [
        pl.Series([one and one.facts.get(name) for one in unread], dtype=pl.String)
        for name in ("detail", "kept")
    ]
    return _ReadCells(
        [None if isinstance(value, Unread) else value for value in values],
        pl.Series([one and one.code for one in unread], dtype=pl.String),
        *facts,
    )


def _with_values(of: Field, typed: pl.DataFrame, rows: Rows, values: list[Value]) -> pl.DataFrame:
    if not values:
        return typed
    columns = []
    for name, dtype in frame_columns(of).items():
        given = [_frame_value(name, of, value) for value in values]
        columns.append(typed[name].scatter(rows, pl.Series(given, dtype=dtype)))
    return typed.with_columns(columns)


def _frame_value(name: str, of: Field, value: Value) -> object:
    if isinstance(value, Number):
        return format(value.exact, "f") if name.endswith(EXACT) else value.value
    if isinstance(value, Moment):
        if name == of.name + OFFSET:
            return value.offset
        return value.wall if of.kind is Kind.DATETIME else value.instant
    return value


def _broken_rules(table: Table, typed: pl.DataFrame) -> dict[str, list[tuple[str, Rows]]]:
    """By field: the code of each rule that rows break, and these."""
    rules = row_rules(table)
    if not rules or typed.is_empty():
        return {}
    passed = typed.select(rule.passes.alias(str(n)) for n, rule in enumerate(rules))
    broken: dict[str, list[tuple[str, Rows]]] = {}
    for rule, column in zip(rules, passed, strict=True):
        if not column.all():
            rows = (~column).arg_true().to_numpy().astype(np.intp)
            broken.setdefault(rule.field, []).append((rule.code, rows))
    return broken
