"""Tables laid out for the page: groups named once, statements with a column per currency."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from flows.report.reconciled.table import (
    NUMERIC,
    Cell,
    ColumnKind,
    ReportColumn,
    ReportTable,
    TableRow,
)
from flows.report.reconciled.tables import has_unreadable, unexplained
from flows.report.reconciled.tables import idle as is_idle
from flows.report.reconciled.text import display_row, display_text
from flows.report.reconciled.words import (
    NOT_READABLE,
    amount_text,
    currency_label,
    readable,
    with_unreadable,
)
from flows.report.spelling import digits, record_title
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.totals import ChainLine, Proof, ProofLine
from schemas.counting import quantity

MOST = 300
"""Most lines of an annex on the page."""
ACROSS = 5
"""Most currencies side by side in a statement."""


ROOM = 22
"""Most characters of a number that stays on one line."""


class GridEntry(NamedTuple):
    """One cell: its text and its appearance."""

    text: str
    label: str = ""
    look: str = ""
    """Style classes: `n` for a number, `d` for a day; `good` and `bad`."""
    small: str = ""


class GridLine(NamedTuple):
    cells: tuple[GridEntry, ...]
    total: bool = False
    bad: bool = False


class GridGroup(NamedTuple):
    """Lines under one heading, which may be empty for none."""

    heading: str
    lines: tuple[GridLine, ...]


class Grid(NamedTuple):
    """A table whose first columns are headings of groups."""

    table: ReportTable
    groups: tuple[GridGroup, ...]
    left: int
    """Number of lines that are not on the page."""


def grid(table: ReportTable) -> Grid:
    groups: dict[str, list[GridLine]] = {}
    # A line that keeps the report from reconciling is always on the page.
    rows = [row for place, row in enumerate(table.rows) if place < MOST or row.bad]
    for row in rows:
        heading = " · ".join(
            _heading(cell, column)
            for cell, column in zip(row.cells, table.columns[: table.groups], strict=False)
            if cell is not None
        )
        groups.setdefault(heading, []).append(_line(row, table))
    grouped = tuple(GridGroup(heading, tuple(lines)) for heading, lines in groups.items())
    return Grid(table, grouped, len(table.rows) - len(rows))


def _heading(cell: Cell, column: ReportColumn) -> str:
    text = display_text(cell, column.kind)
    return f"tenant {text}" if column.name == "Tenant" else text


def _line(row: TableRow, table: ReportTable) -> GridLine:
    cells = zip(row.cells, table.columns, display_row(table, row), strict=True)
    entries = tuple(_entry(*one) for one in cells)[table.groups :]
    return GridLine(entries, row.total, row.bad)


def _entry(cell: Cell, column: ReportColumn, text: str) -> GridEntry:
    """A cell; the colour of a figure that has to be zero shows whether it is."""
    tone = "" if cell is None or not column.check else " bad" if cell else " good"
    long = " long" if column.kind in NUMERIC and len(text) > ROOM else ""
    return GridEntry(text, column.name, look(column) + long + tone)


def look(column: ReportColumn) -> str:
    return "n" if column.kind in NUMERIC else "d" if column.kind is ColumnKind.DATE else ""


class GridStatement(NamedTuple):
    """A statement with lines down and currencies across."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[GridLine, ...]


def statements(report: ReconciliationReport) -> list[GridStatement]:
    """The difference proofs that have anything to prove, one per record kind and amount field."""
    fields: dict[tuple[str, str], list[Proof]] = {}
    for one in report.proofs:
        if not is_idle(one):
            fields.setdefault((one.record, one.field), []).append(one)
    return [
        _statement(report, record, field, proofs[first : first + ACROSS], further=bool(first))
        for (record, field), proofs in fields.items()
        for first in range(0, len(proofs), ACROSS)
    ]


def idle(report: ReconciliationReport) -> list[str]:
    """Names of proofs with nothing to prove: zero on both sides, no records or amounts between."""
    fields: dict[tuple[str, str], list[str]] = {}
    for one in report.proofs:
        if is_idle(one):
            label = currency_label(report, one.currency)
            fields.setdefault((one.record, one.field), []).append(label)
    return [f"{record_title(r)} {f}: {', '.join(labels)}" for (r, f), labels in fields.items()]


def _statement(
    report: ReconciliationReport, record: str, field: str, proofs: Sequence[Proof], *, further: bool
) -> GridStatement:
    heads = tuple(currency_label(report, one.currency) for one in proofs)
    texts = _in_order([line.text for line in one.lines] for one in proofs)
    lines = []
    for text in texts:
        found = [next((line for line in one.lines if line.text == text), None) for one in proofs]
        cells = tuple(
            GridEntry("", head, "n")
            if line is None
            else GridEntry(amount_text(line), head, "n", _records(line))
            for head, line in zip(heads, found, strict=True)
        )
        total = any(line.total for line in found if line)
        lines.append(GridLine((GridEntry(text), *cells), total))
    unread = any(map(has_unreadable, proofs))
    left = tuple(
        GridEntry(digits(one.unexplained), head, "n bad" if one.unexplained else "n good")
        for head, one in zip(heads, proofs, strict=True)
    )
    lines.append(GridLine((GridEntry(unexplained(unread=unread)), *left), total=True))
    title = f"{record_title(record)}: {field}{', further currencies' if further else ''}"
    return GridStatement(title, heads, tuple(lines))


def _records(line: ProofLine) -> str:
    return with_unreadable(quantity(line.rows, "record", digits), line.unreadable)


def _in_order(lists: Iterable[Sequence[str]]) -> list[str]:
    """All texts once, in an order that agrees with every list."""
    merged: list[str] = []
    for texts in lists:
        place = 0
        for text in texts:
            if text in merged:
                place = merged.index(text) + 1
            else:
                merged.insert(place, text)
                place += 1
    return merged


class ChainGrid(NamedTuple):
    """The completeness chain of a record kind, with figures down and stages across."""

    title: str
    stages: Sequence[ChainLine]
    groups: tuple[GridGroup, ...]
    ties: bool


def chains(report: ReconciliationReport) -> list[ChainGrid]:
    records: dict[str, dict[str, list[ChainLine]]] = {}
    for one in report.chain:
        records.setdefault(one.record, {}).setdefault(one.currency, []).append(one)
    return [_chain(report, record, currencies) for record, currencies in records.items()]


def _chain(
    report: ReconciliationReport, record: str, currencies: Mapping[str, Sequence[ChainLine]]
) -> ChainGrid:
    every = [line for lines in currencies.values() for line in lines]
    bare = list(currencies) == [""]
    return ChainGrid(
        title=record_title(record),
        stages=next(iter(currencies.values())),
        groups=tuple(
            GridGroup("" if bare else currency_label(report, currency), tuple(_figures(lines)))
            for currency, lines in currencies.items()
        ),
        ties=not any(line.residual_rows or any(line.residual.values()) for line in every),
    )


def _figures(lines: Sequence[ChainLine]) -> Iterable[GridLine]:
    def grid_line(
        name: str,
        values: Sequence[int | Decimal | None],
        changes: Sequence[int | Decimal],
        residuals: Sequence[int | Decimal],
    ) -> GridLine:
        cells = [
            GridEntry(
                NOT_READABLE if value is None else digits(value),
                line.stage,
                "n bad" if residual else "n",
                _under(
                    _change(change, residual) if place and (change or residual) else "",
                    line.unreadable.get(name, 0),
                ),
            )
            for place, (line, value, change, residual) in enumerate(
                zip(lines, values, changes, residuals, strict=True)
            )
        ]
        return GridLine((GridEntry(name), *cells), bad=any(residuals))

    yield grid_line(
        "Records",
        [line.rows for line in lines],
        [line.rows_change for line in lines],
        [line.residual_rows for line in lines],
    )
    for name in lines[0].amounts:
        zero = Decimal(0)
        yield grid_line(
            name,
            [
                readable(line.amounts.get(name, zero), line.rows, line.unreadable.get(name, 0))
                for line in lines
            ],
            [line.amounts_change.get(name, zero) for line in lines],
            [line.residual.get(name, zero) for line in lines],
        )
    keys = [line.keys for line in lines]
    steps = [0, *(after - before for before, after in pairwise(keys))]
    yield grid_line("Hash total of keys", keys, steps, [0] * len(keys))


def _under(change: str, unread: int) -> str:
    return "; ".join(filter(None, (change, f"{digits(unread)} {NOT_READABLE}" if unread else "")))


def _change(change: int | Decimal, residual: int | Decimal) -> str:
    text = digits(change, signed=True)
    return f"{text}, not explained {digits(residual, signed=True)}" if residual else text


def ties(report: ReconciliationReport) -> list[tuple[Proof, GridEntry]]:
    """The proofs that have anything to prove, each with its unexplained amount."""
    column = ReportColumn("Unexplained", ColumnKind.MONEY, check=True)
    return [
        (one, _entry(one.unexplained, column, digits(one.unexplained)))
        for one in report.proofs
        if one.lines and not is_idle(one)
    ]
