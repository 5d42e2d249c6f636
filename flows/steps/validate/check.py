"""The verdict on every row: its typed values, or all the reasons why it has none.

Text is read strictly to nullable typed columns; the record's rules are asked of the typed frame. A
cell that could not be read is reported once, with its own reason, never also as missing.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from schemas.cells.columns import type_cells
from schemas.cells.reading import SHOWN_CHARACTERS, UNFIT, Moment, Number, Unread, Value, read
from schemas.derived.nested import read_nested
from schemas.field import Field, Kind, Table
from schemas.frame_types import frame_columns
from schemas.kinds import EXACT, OFFSET
from schemas.reasons import NOT_SHOWN, REASONS
from schemas.row_rules import row_rules


@dataclass(frozen=True, slots=True)
class FieldError:
    """One reason against one row, in the shape of the service's own field error."""

    code: str
    field: str
    message: str
    meta: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The document's spelling: ErrorCode, FieldName, Message, Meta."""
        return {
            "ErrorCode": self.code,
            "FieldName": self.field,
            "Message": self.message,
            "Meta": dict(self.meta),
        }


@dataclass(frozen=True, slots=True)
class Checked:
    """A block of rows after the check: `typed` has a row for every row of the cells."""

    typed: pl.DataFrame
    errors: dict[int, list[FieldError]]
    """Reasons by row of the frame; a row without an entry is clean."""


def field_error(table: Table, of: Field, code: str, text: str | None, **facts: str) -> FieldError:
    """A reason against one cell.

    Of a record kind that has secrets no value is shown: a cell that was lost moves a secret into
    the column of another field.
    """
    shown = _shown(table, text)
    detail = facts.pop("detail", None)
    if table.unquotable:
        facts = {name: NOT_SHOWN if name == "kept" else fact for name, fact in facts.items()}
    message = REASONS[code].message(field=of.name, value=shown, of=of.of or "", **facts)
    if detail and not table.unquotable:
        message = f"{message} {detail}"
    meta = {"stage": "check", "column": of.name}
    if text is not None:
        meta["value"] = shown
    return FieldError(code, of.name, message, meta)


def check(
    table: Table,
    cells: pl.DataFrame,
    *,
    tenant: int | None = None,
    delivered: Mapping[str, pl.Series] | None = None,
) -> Checked:
    """Validate rows given as text: one String column per delivered field of the table.

    `tenant` is the one a batch is bound to; a row of any other is rejected. `delivered` are the
    texts of the sender, where `cells` are written as the field tables do: those are quoted.
    """
    texts = delivered or {}
    typed = type_cells(cells, table)
    errors: dict[int, list[FieldError]] = defaultdict(list)
    unread: set[tuple[int, str]] = set()
    for of, left in _left(table, cells, typed):
        texts_of = (cells[of.name], texts.get(of.name, cells[of.name]))
        typed = _read_strictly(table, of, texts_of, left, typed, errors, unread)
    typed = _without_unfit(table, cells, typed, errors, unread)
    _apply_rules(table, cells, typed, errors, unread)
    if tenant is not None and table.tenant:
        _bind(table, table.by_name[table.tenant], tenant, cells, typed, errors)
    order = {of.name: number for number, of in enumerate(table.delivered)}
    for found in errors.values():
        found.sort(key=lambda error: order[error.field])
    return Checked(typed, dict(errors))


def _left(
    table: Table, cells: pl.DataFrame, typed: pl.DataFrame
) -> Iterator[tuple[Field, pl.Series]]:
    """The rows the vectorised readers left, by field: there is a text, and no value."""
    read_ones = [of for of in table.delivered if of.kind is not Kind.STRING]
    given = cells.select((pl.col(of.name) != "").fill_null(value=False) for of in read_ones)
    empty = typed.select(pl.col(of.name).is_null() for of in read_ones)
    for of in read_ones:
        left = (given[of.name] & empty[of.name]).arg_true()
        if len(left):
            yield of, left


def _read_strictly(
    table: Table,
    of: Field,
    texts: tuple[pl.Series, pl.Series],
    left: pl.Series,
    typed: pl.DataFrame,
    errors: dict[int, list[FieldError]],
    unread: set[tuple[int, str]],
) -> pl.DataFrame:
    """Decide the cells that are left, and put what they say into the typed frame."""
    values: dict[int, Value] = {}
    pairs = zip(*(one.gather(left).to_list() for one in texts), strict=True)
    for row, (cell, given) in zip(left.to_list(), pairs, strict=True):
        value = read(of, cell, read_nested)
        if isinstance(value, Unread):
            # A remark behind the delivered text says more than the text alone.
            remarked = given is not None and cell != given and cell.startswith(given)
            quoted = cell if remarked or given is None else given
            facts = {k: v for k, v in value.facts.items() if not (remarked and k == "detail")}
            errors[row].append(field_error(table, of, value.code, quoted, **facts))
            unread.add((row, of.name))
        else:
            values[row] = value
    return _with_values(of, typed, values)


def _without_unfit(
    table: Table,
    cells: pl.DataFrame,
    typed: pl.DataFrame,
    errors: dict[int, list[FieldError]],
    unread: set[tuple[int, str]],
) -> pl.DataFrame:
    """Take out the texts that are not what the feed says of them."""
    texts = [of for of in table.delivered if of.kind is Kind.STRING]
    marked = cells.select(
        pl.col(of.name).str.starts_with(UNFIT).fill_null(value=False) for of in texts
    )
    for of in texts:
        if not (unfit := marked[of.name]).any():
            continue
        for row in unfit.arg_true().to_list():
            text = cells[of.name][row].removeprefix(UNFIT)
            errors[row].append(field_error(table, of, "Text", text))
            unread.add((row, of.name))
        typed = typed.with_columns(pl.when(~unfit).then(of.name).alias(of.name))
    return typed


def _with_values(of: Field, typed: pl.DataFrame, values: dict[int, Value]) -> pl.DataFrame:
    if not values:
        return typed
    rows = pl.Series(list(values), dtype=pl.UInt32)
    columns = []
    for name, dtype in frame_columns(of).items():
        given = [_frame_value(name, of, value) for value in values.values()]
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


def _apply_rules(
    table: Table,
    cells: pl.DataFrame,
    typed: pl.DataFrame,
    errors: dict[int, list[FieldError]],
    unread: set[tuple[int, str]],
) -> None:
    rules = row_rules(table)
    if not rules or typed.is_empty():
        return
    passed = typed.select(rule.passes.alias(str(n)) for n, rule in enumerate(rules))
    for number, rule in enumerate(rules):
        column = passed[str(number)]
        if column.all():
            continue
        text = cells[rule.field]
        for row in (~column).arg_true().to_list():
            if (row, rule.field) not in unread:
                of = table.by_name[rule.field]
                errors[row].append(field_error(table, of, rule.code, text[row]))


def _bind(
    table: Table,
    of: Field,
    tenant: int,
    cells: pl.DataFrame,
    typed: pl.DataFrame,
    errors: dict[int, list[FieldError]],
) -> None:
    for row in (typed[of.name] != tenant).fill_null(value=False).arg_true():
        text = cells[of.name][row]
        errors[row].append(field_error(table, of, "TenantNotBound", text, limit=str(tenant)))


def _shown(table: Table, text: str | None) -> str:
    if text is None:
        return ""
    if table.unquotable:
        return NOT_SHOWN
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
