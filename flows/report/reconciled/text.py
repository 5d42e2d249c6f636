"""The reconciliation for a terminal: verdict, statuses, totals, the first causes and breaks."""

from collections.abc import Iterator, Sequence
from datetime import date

from flows.report.reconciled.first_page import NOTES, parts, to_sign
from flows.report.reconciled.pools import pooled_causes
from flows.report.reconciled.table import (
    CURRENCY,
    NUMERIC,
    Cell,
    ColumnKind,
    ReportColumn,
    ReportTable,
    TableRow,
)
from flows.report.reconciled.tables import facts, has_unreadable, idle, unexplained
from flows.report.reconciled.words import (
    CURRENCIES,
    NOT_READABLE,
    amount_text,
    code_title,
    currency_label,
    money_of_break,
    place_in_file,
    values_of_break,
    verdict_of,
    with_unreadable,
)
from flows.report.spelling import (
    digits,
    in_report,
    neutral,
    neutral_pair,
    record_title,
    shortened,
    visible,
)
from flows.report.text import WIDTH, section, typewritten, wrapped
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.reported_breaks import BreakLine
from flows.steps.reconcile.totals import ProofLine
from schemas.counting import quantity
from schemas.life import OPEN, BreakState

CAUSES = 10
BREAKS = 20
VALUE = 80
"""Most characters of a value; texts of our own are shorter."""
_NOTED_STATES = (BreakState.REOPENED, BreakState.EXPIRED, BreakState.ACCEPTED)
"""States whose note says who decided, until when and why."""


def render_text(report: ReconciliationReport) -> str:
    """The short report in plain characters; delivered text cannot break a line or move a cursor."""
    lines = [
        *_cover(report),
        *(line for table in parts(report) for line in section(table.title, _table(table))),
        *section("Statuses", _statuses(report)),
        *section("Totals, never across currencies", _totals(report)),
        *section("Causes", _causes(report)),
        *section("Breaks", _breaks(report)),
        *section("Roll-forward", _forwards(report)),
    ]
    return typewritten(lines)


def display_text(cell: Cell, kind: ColumnKind) -> str:
    """A value as text: numbers exact and grouped, days in ISO 8601, delivered text neutral."""
    match cell:
        case None:
            return ""
        case str():
            return neutral(cell) if kind is ColumnKind.TEXT else visible(cell)
        case date():
            return cell.isoformat()
        case _:
            return str(cell) if kind is ColumnKind.NUMBER else digits(cell)


def display_row(table: ReportTable, row: TableRow) -> list[str]:
    """The cells of a row as texts; two compared cells start where they differ.

    Otherwise a change far from the beginning of a long value would be cut off.
    """
    texts = [display_text(c, k.kind) for c, k in zip(row.cells, table.columns, strict=True)]
    if at := table.against:
        texts[at], texts[at + 1] = neutral_pair(str(row.cells[at]), str(row.cells[at + 1]))
    return texts


def _cover(report: ReconciliationReport) -> Iterator[str]:
    verdict = verdict_of(report)
    yield from (visible(report.cover.title), "=" * WIDTH)
    yield from _wrapped(f"{verdict.word}: {verdict.meaning}", "")
    for sentence in to_sign(report):
        yield from _wrapped(visible(sentence), "")
    for because in report.cover.because:
        yield from _wrapped(visible(because), "  because ")
    yield ""
    for name, value in facts(report):
        yield from _wrapped(display_text(value, ColumnKind.TEXT), f"{name:22}")


def _table(table: ReportTable) -> Iterator[str]:
    """A small table as lines, one column after the other, without empty cells."""
    if not table.rows:
        yield from _wrapped(visible(table.none), "  ")
    if table.rows and table.name in NOTES:
        yield from (*_wrapped(NOTES[table.name], "  "), "")
    if table.name == "money":
        yield from _money(table)
        return
    # Rows that differ only by currency share a heading, with a line for each of the first ones.
    for rows in _alike(table).values():
        if len(rows) == 1:
            yield from _wrapped("; ".join(_named_cells(table, rows[0])), "  ")
            continue
        about = [place for place, one in enumerate(table.columns) if _is_about(one)]
        yield from _wrapped("; ".join(_named_cells(table, rows[0], about)), "  ")
        figures = [
            place
            for place, one in enumerate(table.columns)
            if place not in about and one is not CURRENCY
        ]
        for row in rows[:CURRENCIES]:
            of = display_row(table, row)[table.columns.index(CURRENCY)]
            yield from _wrapped("; ".join(_named_cells(table, row, figures)), f"    {of}: ")
        if len(rows) > CURRENCIES:
            yield f"    {quantity(len(rows) - CURRENCIES, 'more currency')}"


def _money(table: ReportTable) -> Iterator[str]:
    """A line for each currency, and one for all currencies without anything to report."""
    currencies: dict[str, list[str]] = {}
    for row in table.rows:
        currency, pool, *_ = display_row(table, row)
        texts = currencies.setdefault(currency, [])
        if any(cell for cell in row.cells[2:]):
            figures = _named_cells(table, row, range(2, len(row.cells)))
            texts.append(" ".join((pool, ", ".join(figures))))
    for currency, texts in currencies.items():
        if texts:
            yield from _wrapped("; ".join(texts), f"  {currency}: ")
    if nothing := [currency for currency, texts in currencies.items() if not texts]:
        yield from _wrapped(", ".join(nothing), "  nothing unexplained, open or accepted: ")
    if table.rows:
        yield "  What is 0 is left out."


def _alike(table: ReportTable) -> dict[tuple[Cell, ...] | int, list[TableRow]]:
    """Group rows that are about one thing in several currencies; other rows are alone."""
    rows: dict[tuple[Cell, ...] | int, list[TableRow]] = {}
    for number, row in enumerate(table.rows):
        cells = zip(row.cells, table.columns, strict=True)
        about = tuple(cell for cell, one in cells if _is_about(one))
        key = about if CURRENCY in table.columns else number
        rows.setdefault(key, []).append(row)
    return rows


def _is_about(column: ReportColumn) -> bool:
    return column is not CURRENCY and column.kind not in NUMERIC


def _named_cells(
    table: ReportTable, row: TableRow, places: Sequence[int] | None = None
) -> Iterator[str]:
    """Yield the cells of a row with the names of their columns; the first cell needs none."""
    texts = display_row(table, row)
    if len(texts) == 2:
        yield ": ".join(texts)
        return
    for place in range(len(texts)) if places is None else places:
        if cell := texts[place]:
            yield _named(table.columns[place].name.lower(), cell) if place else cell


def _named(column: str, cell: str) -> str:
    """A cell with the name of its column, unless it contains that, as `no currency` does."""
    return cell if cell.startswith((f"{column} ", f"no {column}")) else f"{column} {cell}"


def _statuses(report: ReconciliationReport) -> Iterator[str]:
    for record, counts in report.status_counts.items():
        yield f"  {record_title(record)}: {digits(sum(counts.values()))}"
        for status, rows in counts.items():
            yield f"    {visible(status):20}{digits(rows):>12}"


def _totals(report: ReconciliationReport) -> Iterator[str]:
    for one in report.proofs:
        if idle(one):
            continue
        head = f"{record_title(one.record)} {one.field}, {currency_label(report, one.currency)}"
        tied = "ties" if not one.unexplained else "DOES NOT TIE"
        yield f"  {head}: {tied}"
        lines = [
            *((_line_text(line), amount_text(line)) for line in one.lines),
            (unexplained(unread=has_unreadable(one)), digits(one.unexplained)),
        ]
        width = max(len(amount) for _, amount in lines)
        for text, amount in lines:
            yield f"    {visible(text):44}  {amount:>{width}}"


def _causes(report: ReconciliationReport) -> Iterator[str]:
    todo = pooled_causes(report)["open"]
    for one in report.causes[:CAUSES]:
        there = todo[one.id].breaks if one.id in todo else 0
        left = "" if there == one.breaks else f" ({digits(there)} of them open)"
        yield from _wrapped(f"{neutral(one.title, 200)}{left}", f"  {digits(one.breaks):>9}  ")
        for amounts, what in ((one.amounts, ""), (one.gross, "gross ")):
            for currency, amount in amounts.items():
                yield f"{'':13}{what}{digits(amount)} {currency_label(report, currency)}"
    yield from _left(len(report.causes) + report.left_out.get("causes", 0), CAUSES)


def _breaks(report: ReconciliationReport) -> Iterator[str]:
    todo = report.breaks.where("state", *OPEN)
    accepted = report.breaks.where("state", BreakState.ACCEPTED)
    aside = len(report.breaks) - len(todo) - len(accepted)
    yield (
        f"  {digits(len(todo))} open, {digits(len(accepted))} accepted"
        f"{f', {digits(aside)} set aside' if aside else ''}"
    )
    if todo or accepted:
        yield "  a row is shown by: recon row BATCH FILE --line LINE"
    for one in todo[:BREAKS]:
        yield from _break(report, one)
    yield from _left(len(todo), BREAKS)
    # The approver answers for accepted breaks too: by whom, until when and why is shown.
    if accepted:
        yield from ("", "  accepted:")
    for one in accepted[:BREAKS]:
        yield from _break(report, one)
    yield from _left(len(accepted), BREAKS)


def _break(report: ReconciliationReport, one: BreakLine) -> Iterator[str]:
    where = f" {one.field}" if one.field else ""
    yield from _wrapped(
        f"{visible(one.code)}: {code_title(one.code)}; {record_title(one.record)} "
        f"{neutral(one.key, 60)}{visible(where)}",
        f"  {visible(one.id)} {visible(one.severity):7} ",
    )
    money = " ".join(filter(None, money_of_break(report, one)))
    details = [money] if money else []
    # Two tenants may have a debt of the same number, and its key does not name the tenant.
    if one.tenant is not None and not one.key.endswith(f"/{one.tenant}"):
        details.append(f"tenant {one.tenant}")
    if one.expected is not None or one.found is not None:
        expected, found = map(_value, values_of_break(one, VALUE))
        details.append(f"expected {expected}, found {found}")
    if one.basis == NOT_READABLE:
        details.append(shortened(one.note, 2 * VALUE))
    if one.file:
        details.append(neutral(one.file, 60) + place_in_file(one))
    if details:
        yield from _wrapped("; ".join(details), " " * 27)
    if one.state in _NOTED_STATES and one.note:
        yield from _wrapped(f"{visible(one.state)}: {shortened(one.note, 400)}", " " * 27)


def _forwards(report: ReconciliationReport) -> Iterator[str]:
    for name, forwards in report.forwards.items():
        for one in forwards:
            yield f"  {name}, {currency_label(report, one.currency)}"
            lines = [
                line for line in one.lines if line.total or line.rows or line.amount or line.gross
            ]
            if not one.money:
                yield from (
                    f"    {visible(_line_text(line)):58}{digits(line.rows):>9}" for line in lines
                )
                continue
            width = max(len(amount_text(line)) for line in lines)
            for line in lines:
                gross = f"  gross {digits(line.gross)}" if line.gross else ""
                yield (
                    f"    {visible(_line_text(line)):58}{digits(line.rows):>9}  "
                    f"{amount_text(line):>{width}}{gross}"
                )
            if one.residual_rows or one.residual or one.residual_gross:
                left = f"{digits(one.residual)}, gross {digits(one.residual_gross)}"
                yield f"    does not tie: {digits(one.residual_rows)}, {left}"


def _line_text(line: ProofLine) -> str:
    return with_unreadable(line.text, line.unreadable)


def _value(text: str | None) -> str:
    return "nothing" if text is None else f'"{text}"'


def _left(all_of: int, most: int) -> Iterator[str]:
    if left := in_report(all_of - most):
        yield f"  {left}"


def _wrapped(text: str, first: str) -> list[str]:
    return wrapped(text, first=first, rest=" " * len(first))
