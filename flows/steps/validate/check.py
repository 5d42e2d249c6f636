"""The verdict on every row: its typed values, or all reasons why it has none.

Text is read strictly into nullable typed columns, and the rules of the record are checked on the
typed frame. A cell that cannot be read is reported once, for its own reason, never as missing too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flows.steps.validate.field_errors import (
    NO_ROWS,
    FieldErrors,
    OfField,
    Rows,
    empty_texts,
    of_field,
)
from flows.steps.validate.other_currency import NOT_NAMED, NamedCurrencies, currency_errors
from schemas.cells.columns import CODE, DETAIL, type_cells, why_unread
from schemas.cells.reading import UNFIT, Moment, Number, Unread, Value, limit_of, read
from schemas.cells.sheet_cells import REMARK
from schemas.derived.nested import read_nested
from schemas.field import INTEGERS, Field, Kind, Table
from schemas.frame_types import frame_columns
from schemas.kinds import EXACT, OFFSET
from schemas.reasons import UNREAD_CELL
from schemas.row_rules import row_rules

KEPT = "kept"
FEW = 200
"""Up to this many texts of a kind are read one by one."""
_TEXT, _GIVEN = pl.col("text"), pl.col("given")
_IS_REMARKED = _TEXT.str.contains(UNFIT, literal=True).fill_null(value=False)
_IS_MADE = _GIVEN.is_null() | _GIVEN.str.contains(UNFIT, literal=True)
_REMARK = _TEXT.str.splitn(UNFIT, 2).struct.field("field_1")
_OF_SHEET = (pl.col(CODE).is_not_null() & _TEXT.str.contains(REMARK)).fill_null(value=False)
"""Whether a text stands for a cell of a sheet that is not read, and says why."""
_REASON = (
    pl.when(_OF_SHEET).then(pl.lit(UNREAD_CELL)).otherwise(pl.col(CODE).fill_null("")).alias(CODE),
    # A text with a remark was not delivered as it is, so details of it would be misleading.
    pl.when(~(_IS_REMARKED | _OF_SHEET)).then(DETAIL).alias(DETAIL),
    pl.col(KEPT),
    pl.when(_OF_SHEET)
    .then(pl.coalesce(_GIVEN, _TEXT))
    .when(_IS_MADE)
    .then(_TEXT)
    .when(_IS_REMARKED)
    .then(_GIVEN + UNFIT + _REMARK)
    .otherwise(_GIVEN)
    .alias("quoted"),
)
"""Reason and quoted text of cells without a value, from the columns of `_why_unread`."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A block of rows after the check: `typed` has a row for every row of the cells."""

    typed: pl.DataFrame
    errors: FieldErrors
    unread: Mapping[str, Rows] = field(default_factory=dict)
    """By field, the rows whose cell is not empty but holds no value."""

    def among(self, chosen: NDArray[np.bool_]) -> "Checked":
        """The chosen rows only, renumbered by their place among them."""
        places = np.cumsum(chosen) - 1
        unread = {name: places[rows[chosen[rows]]] for name, rows in self.unread.items()}
        return Checked(self.typed.filter(pl.Series(chosen)), self.errors.among(chosen), unread)


def check(
    table: Table,
    cells: pl.DataFrame,
    *,
    tenant: int | None = None,
    delivered: Mapping[str, pl.Series] | None = None,
    named: NamedCurrencies = NOT_NAMED,
) -> Checked:
    """Validate rows given as text: one String column per delivered field of the table.

    `tenant` is the tenant a batch is bound to; rows of any other are rejected. `delivered` are the
    sender's own cells, to be quoted, while `cells` are in the form of the field tables. `named` are
    the currencies that cells name beside their texts.
    """
    typed, unread = _read_strictly(table, cells, delivered or {}, type_cells(cells, table))
    for of, rows in _unfit(table, cells):
        unread[of.name] = [*_unfit_texts(table, of, rows, cells[of.name][rows])]
        typed = typed.with_columns(typed[of.name].scatter(rows, None))
    broken = _broken_rules(table, typed)
    in_others = currency_errors(table, typed, cells, named)
    found: list[OfField] = []
    unread_rows: dict[str, Rows] = {}
    for of in table.delivered:
        errors = unread.get(of.name, [])
        read_not = np.concatenate([NO_ROWS, *(one.rows for one in errors)])
        if errors:
            unread_rows[of.name] = read_not[~_held(of, typed, read_not)]
        found += errors
        for code, rows in broken.get(of.name, ()):
            wrong = np.setdiff1d(rows, read_not, assume_unique=True) if len(read_not) else rows
            if len(wrong):
                found.append(of_field(table, of, code, wrong, cells[of.name][wrong]))
        found += in_others.get(of.name, ())
        if of.name == table.tenant and tenant is not None:
            other = _rows((typed[of.name] != tenant).fill_null(value=False))
            text, limit = cells[of.name][other], str(tenant)
            found.append(of_field(table, of, "TenantNotBound", other, text, limit=limit))
    return Checked(typed, FieldErrors([one for one in found if len(one.rows)]), unread_rows)


def _held(of: Field, typed: pl.DataFrame, rows: Rows) -> NDArray[np.bool_]:
    """For which of these rows the amount is known to its last digit, despite any error."""
    if not of.amount:
        return np.zeros(len(rows), np.bool_)
    return typed[of.name + EXACT][rows].is_not_null().to_numpy()


def _rows(mask: pl.Series) -> Rows:
    """The rows for which a mask without nulls is true."""
    return np.flatnonzero(mask.to_numpy())


def _left(table: Table, cells: pl.DataFrame, typed: pl.DataFrame) -> Iterator[tuple[Field, Rows]]:
    """Yield, by field, the rows that the vectorised readers left: there is a text, but no value."""
    read_ones = [of for of in table.delivered if of.kind is not Kind.STRING]
    given = cells.select((pl.col(of.name) != "").fill_null(value=False) for of in read_ones)
    empty = typed.select(pl.col(of.name).is_null() for of in read_ones)
    for of in read_ones:
        left = _rows(given[of.name] & empty[of.name])
        if len(left):
            yield of, left


def _unfit(table: Table, cells: pl.DataFrame) -> Iterator[tuple[Field, Rows]]:
    """Yield, by field, the rows whose texts are not as the feed profile states."""
    for of in table.delivered:
        if of.kind is Kind.STRING:
            marked = cells[of.name].str.contains(UNFIT, literal=True).fill_null(value=False)
            if marked.any():
                yield of, _rows(marked)


def _unfit_texts(table: Table, of: Field, rows: Rows, texts: pl.Series) -> Iterator[OfField]:
    of_sheet = texts.str.contains(REMARK)
    for code, there in ((UNREAD_CELL, of_sheet), ("Text", ~of_sheet)):
        if there.any():
            yield of_field(table, of, code, rows[there.to_numpy()], texts.filter(there))


def _read_strictly(
    table: Table, cells: pl.DataFrame, delivered: Mapping[str, pl.Series], typed: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, list[OfField]]]:
    """Decide the cells that are left: add values to the typed frame, and reasons for the others.

    An amount that a double would change is in error, but every sum has it as delivered. `delivered`
    are the texts to quote for fields whose texts differ from `cells`.
    """
    # Sorted by kind, so that cells of a kind are read together: each call has a fixed cost.
    left = sorted(_left(table, cells, typed), key=lambda one: one[0].kind.value)
    if not left:
        return typed, {}
    texts = pl.concat([cells[of.name][rows] for of, rows in left])
    given = pl.concat([delivered.get(of.name, cells[of.name])[rows] for of, rows in left])
    ends = np.cumsum([len(rows) for _, rows in left]).tolist()
    spans = [slice(end - len(rows), end) for end, (_, rows) in zip(ends, left, strict=True)]
    why, typed = _why_unread(left, spans, texts, typed)
    reasons = why.with_columns(texts.alias("text"), given.alias("given")).select(_REASON)
    codes = sorted(code for code in reasons[CODE].unique().to_list() if code)
    masks = [(code, (reasons[CODE] == code).to_numpy()) for code in codes]
    unread: dict[str, list[OfField]] = {}
    for (of, rows), span in zip(left, spans, strict=True):
        limit = limit_of(of.kind) if of.kind in INTEGERS else ""
        for code, mask in masks:
            wrong = mask[span]
            if wrong.any():
                some = reasons[span].filter(pl.Series(wrong))
                kept, detail = (
                    some[name] if some[name].null_count() < some.height else None
                    for name in (KEPT, DETAIL)
                )
                found, quoted = unread.setdefault(of.name, []), some["quoted"]
                found.append(
                    of_field(
                        table, of, code, rows[wrong], quoted, kept=kept, detail=detail, limit=limit
                    )
                )
    return typed, unread


def _why_unread(
    left: Sequence[tuple[Field, Rows]],
    spans: Sequence[slice],
    texts: pl.Series,
    typed: pl.DataFrame,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Why cells have no value (code, detail, kept part), and the frame with values of the others.

    The texts of each field are together, and so are the fields of a kind.
    """
    of_kind: dict[Kind, slice] = {}
    for (of, _), span in zip(left, spans, strict=True):
        of_kind[of.kind] = slice(of_kind.get(of.kind, span).start, span.stop)
    why = pl.concat([_why_at_once(kind, texts[span]) for kind, span in of_kind.items()])
    unsure = why[CODE].is_null().to_numpy()
    codes, details = why[CODE], why[DETAIL]
    kept = empty_texts(len(texts))
    if unsure.any():
        read_all: list[Value | Unread] = []
        for (of, rows), span in zip(left, spans, strict=True):
            here = unsure[span]
            read_ones = _read_each(of, texts[span].filter(pl.Series(here)))
            there = np.array([not isinstance(one, Unread) for one in read_ones], np.bool_)
            values = [one for one in read_ones if not isinstance(one, Unread)]
            typed = _with_values(of, typed, rows[here][there], values)
            typed = _with_amounts(of, typed, rows[here], read_ones)
            read_all += read_ones
        unread = [one if isinstance(one, Unread) else None for one in read_all]
        facts = (
            [one and one.code for one in unread],
            *([one and one.facts.get(name) for one in unread] for name in (DETAIL, KEPT)),
        )
        at = np.flatnonzero(unsure)
        codes, details, kept = (
            column.scatter(at, pl.Series(texts_of, dtype=pl.String))
            for column, texts_of in zip((codes, details, kept), facts, strict=True)
        )
    return pl.DataFrame({CODE: codes, DETAIL: details, KEPT: kept}), typed


def _why_at_once(kind: Kind, texts: pl.Series) -> pl.DataFrame:
    """As `why_unread`, or nulls for few texts, which are cheaper to read one by one."""
    if len(texts) > FEW:
        return why_unread(kind, texts)
    return pl.DataFrame({CODE: empty_texts(len(texts)), DETAIL: empty_texts(len(texts))})


def _read_each(of: Field, texts: pl.Series) -> list[Value | Unread]:
    """The results of the strict reader, which reads equal cells once."""
    cells = texts.to_list()
    values = {text: read(of, text, read_nested) for text in {*cells}}
    return [values[text] for text in cells]


def _with_values(of: Field, typed: pl.DataFrame, rows: Rows, values: list[Value]) -> pl.DataFrame:
    if not values:
        return typed
    return typed.with_columns(
        typed[name].scatter(
            rows, pl.Series([_frame_value(name, of, value) for value in values], dtype=dtype)
        )
        for name, dtype in frame_columns(of).items()
    )


def _with_amounts(
    of: Field, typed: pl.DataFrame, rows: Rows, read_ones: Sequence[Value | Unread]
) -> pl.DataFrame:
    """Add the exact amounts that a double would change to the frame."""
    if not of.amount:
        return typed
    exact = {
        row: one.facts["exact"]
        for row, one in zip(rows, read_ones, strict=True)
        if isinstance(one, Unread) and "exact" in one.facts
    }
    return typed.with_columns(typed[of.name + EXACT].scatter([*exact], [*exact.values()]))


def _frame_value(name: str, of: Field, value: Value) -> object:
    if isinstance(value, Number):
        return format(value.exact, "f") if name.endswith(EXACT) else value.value
    if isinstance(value, Moment):
        if name == of.name + OFFSET:
            return value.offset
        return value.wall if of.kind is Kind.DATETIME else value.instant
    return value


def _broken_rules(table: Table, typed: pl.DataFrame) -> dict[str, list[tuple[str, Rows]]]:
    """By field, the code of each broken rule and the rows that break it."""
    rules = row_rules(table)
    if not rules or typed.is_empty():
        return {}
    passed = typed.select(rule.passes.alias(str(n)) for n, rule in enumerate(rules))
    broken: dict[str, list[tuple[str, Rows]]] = {}
    for rule, column in zip(rules, passed, strict=True):
        if not column.all():
            broken.setdefault(rule.field, []).append((rule.code, _rows(~column)))
    return broken
