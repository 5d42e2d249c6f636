"""The report as plain tables, section by section, for the page, the workbook and the texts.

A cell is a value, never a rendering: an amount is a Decimal, a day a date. Delivered text is passed
on as it is; every rendering neutralises it in its own way.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from flows.report.reconciled.after import TITLE as AFTER
from flows.report.reconciled.after import after, after_text
from flows.report.reconciled.annexes import annex, causes, cells, rates, tolerances
from flows.report.reconciled.table import (
    COUNT,
    CURRENCY,
    MONEY,
    NUMBER,
    RECORD,
    TENANT,
    TEXT,
    WORD,
    Cell,
    ReportColumn,
    ReportTable,
    TableRow,
)
from flows.report.reconciled.verdicts import word_of
from flows.report.reconciled.words import (
    NOT_READABLE,
    amount_of,
    currency_label,
    readable,
    sources,
    with_unreadable,
)
from flows.report.spelling import record_title
from flows.steps.breaks.ageing import BUCKETS
from flows.steps.frames.beyond import exact_sum
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.roll_forward import RollForward
from flows.steps.reconcile.totals import ChainLine, Proof, ProofLine
from schemas.breaks import STATUSES, Money
from schemas.tables import EXTRACTS

NOTHING_BETWEEN = "Zero on both sides, with nothing between"
"""Text about proofs that have nothing to prove."""
FORWARDS = (
    ("roll_forward", "open breaks", "No break was open before, and none is now."),
    ("accepted_forward", "accepted breaks", "No break was accepted before, and none is now."),
    ("aside_forward", "breaks set aside", "Every break of the runs before was looked at."),
)
"""The pools of breaks: attribute of the report, name in words, and text for an empty pool."""
INPUTS = {
    "name": ReportColumn("File", TEXT, 40),
    "record": RECORD,
    "batch_id": ReportColumn("Batch", NUMBER, 9),
    "rows": ReportColumn("Rows", COUNT, 12),
    "bytes": ReportColumn("Bytes", COUNT, 14),
    "sha256": ReportColumn("SHA-256", WORD, 66),
}


def tables(report: ReconciliationReport) -> tuple[ReportTable, ...]:
    """Every table except that of the breaks, in the order of the sections."""
    return (
        truths(report),
        inputs(report),
        after(report),
        statuses(report),
        chain(report),
        controls(report),
        proof(report),
        ageing(report),
        *(forward(report, *one) for one in FORWARDS),
        rates(report),
        annex(report, "plans"),
        annex(report, "debts"),
        annex(report, "batches"),
        tolerances(report),
        causes(report),
        annex(report, "excluded"),
    )


def truths(report: ReconciliationReport) -> ReportTable:
    columns = (
        RECORD,
        ReportColumn("Expected", WORD, 12),
        ReportColumn("Compared with", WORD, 30),
        ReportColumn("Not there", WORD, 30),
        ReportColumn("Note", WORD, 44),
    )
    rows = [
        TableRow(
            (
                record_title(one.record),
                sources(one.expected) or "nothing",
                sources(one.found) or "nothing",
                sources(one.missing),
                one.note,
            )
        )
        for one in report.cover.truths
    ]
    return ReportTable("truths", "Sources of truth", columns, rows)


def inputs(report: ReconciliationReport) -> ReportTable:
    rows = [TableRow(cells(report, INPUTS, one)) for one in report.cover.inputs]
    return ReportTable("inputs", "Input files", (*INPUTS.values(),), rows)


def statuses(report: ReconciliationReport) -> ReportTable:
    """The number of records in each status, with the sum per record kind."""
    columns = (
        RECORD,
        ReportColumn("Status", WORD, 22),
        ReportColumn("Meaning", WORD, 52),
        ReportColumn("Records", COUNT, 12),
    )
    rows: list[TableRow] = []
    for record, counts in report.status_counts.items():
        title = record_title(record)
        rows += [
            TableRow((title, status, STATUSES.get(status, ""), number))
            for status, number in counts.items()
        ]
        if len(counts) > 1:
            rows.append(TableRow((title, "All", "", sum(counts.values())), total=True))
    return ReportTable("statuses", "Statuses", columns, rows, groups=1)


def chain(report: ReconciliationReport) -> ReportTable:
    """The completeness chain, one line per figure and stage."""
    columns = (
        RECORD,
        CURRENCY,
        ReportColumn("Figure", WORD, 20),
        ReportColumn("Stage", WORD, 26),
        ReportColumn("Value", MONEY, 24),
        ReportColumn("Change", MONEY, 20),
        ReportColumn("Explained by", WORD, 40),
        ReportColumn("Residual", MONEY, 20, check=True),
    )
    rows: list[TableRow] = []
    for one in report.chain:
        head = (record_title(one.record), _money_of(report, one.record, one.currency))
        figures: list[tuple[str, Cell, Cell, Cell]] = [
            ("Records", one.rows, one.rows_change, one.residual_rows),
            ("Hash total of keys", one.keys, None, None),
        ]
        figures += [
            (
                name,
                readable(value, one.rows, one.unreadable.get(name, 0)),
                _of(one.amounts_change, name),
                _of(one.residual, name),
            )
            for name, value in one.amounts.items()
        ]
        rows += [
            TableRow((*head, name, _stage(one, name), value, change, one.explained, residual))
            for name, value, change, residual in figures
        ]
    # Rows of the same figure are put next to each other, in the order of first occurrence.
    gathered: dict[tuple[Cell, ...], list[TableRow]] = {}
    for row in rows:
        gathered.setdefault(row.cells[:3], []).append(row)
    rows = [row for figure in gathered.values() for row in figure]
    return ReportTable("chain", "Completeness chain", columns, rows, groups=2)


def _stage(one: ChainLine, name: str) -> str:
    return with_unreadable(one.stage, one.unreadable.get(name, 0))


def controls(report: ReconciliationReport) -> ReportTable:
    """Control totals, one line per figure of a record kind, tenant and currency."""
    columns = (
        RECORD,
        TENANT,
        CURRENCY,
        ReportColumn("Figure", WORD, 20),
        ReportColumn("Extract", MONEY, 24),
        ReportColumn("Target", MONEY, 24),
        ReportColumn("Difference", MONEY, 20),
        ReportColumn("Explained", MONEY, 20),
        ReportColumn("Residual", MONEY, 20, check=True),
    )
    rows: list[TableRow] = []
    for one in report.controls:
        money = _money_of(report, one.record, one.currency)
        head = (record_title(one.record), one.tenant, money)
        difference = one.found_rows - one.expected_rows
        counted = (
            one.expected_rows,
            one.found_rows,
            difference,
            difference - one.residual_rows,
            one.residual_rows,
        )
        rows.append(TableRow((*head, "Records", *counted), bad=bool(one.residual_rows)))
        for name, expected in one.expected.items():
            found, unread = _of(one.found, name), one.unreadable.get(name, 0)
            rows.append(
                TableRow(
                    (
                        *head,
                        with_unreadable(name, unread),
                        readable(expected, one.expected_rows, unread),
                        found,
                        exact_sum((found, expected.copy_negate())),
                        _of(one.explained, name),
                        _of(one.residual, name),
                    ),
                    bad=bool(_of(one.residual, name)),
                )
            )
        keys = (one.expected_keys, one.found_keys, one.found_keys - one.expected_keys)
        rows.append(TableRow((*head, "Hash total of keys", *keys, None, None)))
    return ReportTable("controls", "Control totals", columns, rows, groups=3)


def proof(report: ReconciliationReport) -> ReportTable:
    """The difference proof in the form of a bank reconciliation."""
    columns = (
        RECORD,
        ReportColumn("Amount field", WORD, 18),
        CURRENCY,
        ReportColumn("Line", WORD, 44),
        ReportColumn("Records", COUNT, 12),
        ReportColumn("Amount", MONEY, 24),
    )
    rows: list[TableRow] = []
    for one in report.proofs:
        head = (record_title(one.record), one.field, currency_label(report, one.currency))
        rows += [TableRow((*head, *statement_line(line)), total=line.total) for line in one.lines]
        rows.append(
            TableRow(
                (*head, unexplained(unread=has_unreadable(one)), None, one.unexplained), total=True
            )
        )
    return ReportTable("proof", "Difference proof", columns, rows, groups=3)


def unexplained(*, unread: bool) -> str:
    """The text of the last line of a proof, which cannot account for unreadable amounts."""
    return "unexplained, of the amounts that are readable" if unread else "unexplained"


def has_unreadable(one: Proof) -> bool:
    """Whether amounts of a proof are in no sum because they are unreadable."""
    return any(line.unreadable for line in one.lines)


def idle(one: Proof) -> bool:
    """Whether a proof has nothing to prove: zero on both sides, and no records between."""
    between = any(line.rows for line in one.lines[1:-2])
    money = any(line.amount or line.unreadable for line in one.lines)
    return not (one.unexplained or between or money)


def nothing_compared(report: ReconciliationReport) -> str:
    """The text for a report in which no proof has anything to prove."""
    return f"{NOTHING_BETWEEN}." if report.proofs else "No amount was compared."


def forward(report: ReconciliationReport, name: str, about: str, none: str) -> ReportTable:
    """The roll-forward of a pool of breaks from the previous run to this one."""
    forwards: Sequence[RollForward] = getattr(report, name)
    columns = (
        CURRENCY,
        ReportColumn("Line", WORD, 44),
        ReportColumn("Breaks", COUNT, 12),
        ReportColumn("Difference", MONEY, 24),
        ReportColumn("Gross", MONEY, 24),
    )
    rows: list[TableRow] = []
    for one in forwards:
        head = currency_label(report, one.currency)
        rows += [
            TableRow((head, line.text, line.rows, None, None), total=line.total)
            if not one.money
            else TableRow((head, *statement_line(line), line.gross), total=line.total)
            for line in one.lines
        ]
        left = (one.residual, one.residual_gross) if one.money else (None, None)
        rows.append(TableRow((head, "residual", one.residual_rows, *left), total=True))
    return ReportTable(name, f"Roll-forward of {about}", columns, rows, groups=1, none=none)


def statement_line(line: ProofLine) -> tuple[Cell, ...]:
    """One line of a statement: text, number of records, amount."""
    return with_unreadable(line.text, line.unreadable), line.rows, amount_of(line)


def ageing(report: ReconciliationReport) -> ReportTable:
    """Open breaks by code, currency and age: their number and, below, what they add to totals."""
    buckets = [ReportColumn(f"{bucket} days", COUNT, 14) for bucket in BUCKETS]
    columns = (
        ReportColumn("Code", WORD, 24),
        CURRENCY,
        ReportColumn("Figure", WORD, 10),
        *buckets,
        ReportColumn("All", COUNT, 18),
    )
    rows: list[TableRow] = []
    for one in report.ageing:
        head = (one.code, currency_label(report, one.currency))
        figure = NOT_READABLE if one.basis == Money.UNREADABLE else "breaks"
        rows.append(TableRow((*head, figure, *one.counts, sum(one.counts))))
        if one.basis not in (Money.NONE, Money.UNREADABLE):
            rows.append(TableRow((*head, one.basis, *one.amounts, exact_sum(one.amounts))))
    return ReportTable("ageing", "Ageing of open breaks", columns, rows, groups=2)


def facts(report: ReconciliationReport) -> Iterator[tuple[str, Cell]]:
    """Yield the names and values of the cover's facts."""
    cover = report.cover
    first, last = cover.period
    if cover.restates:
        yield "Restatement", cover.restates
    yield "Scope", cover.title
    yield "As of", cover.as_of
    yield "Time zone", f"{cover.zone}; records count by the day of their own clock"
    if report.run:
        run = f"reconciliation {report.run.number}, made by {report.run.by}"
        yield "Run", f"{run}; its moment is in manifest.json"
    if cover.after:
        yield AFTER, after_text(report)
    if cover.undated:
        kinds = ", ".join(map(record_title, cover.undated))
        yield "As they stand", f"{kinds}: these have no business date"
    if first and last:
        yield "Period", f"{first.isoformat()} to {last.isoformat()}"
    yield "Tenants", ", ".join(map(str, cover.tenants)) or "none named"
    yield "Rules", cover.rules_name
    yield "Rules hash", cover.rules_hash
    yield "Version", f"recon {cover.version}"
    if cover.previous:
        before = cover.previous
        which = f"reconciliation {before.run} as of {before.as_of.isoformat()}"
        yield "Previous run", f"{which}, {word_of(before.verdict)}"
        yield "Previous report hash", before.report_hash
    else:
        of = "the first that restates this day" if cover.restates else "the first run of its scope"
        yield "Previous run", f"none: this is {of}"


def _money_of(report: ReconciliationReport, record: str, currency: str) -> str | None:
    """The currency of a line; None for a record kind without amounts."""
    known = EXTRACTS.get(record)
    plain = known is not None and not known.amounts and not currency
    return None if plain else currency_label(report, currency)


def _of(amounts: Mapping[str, Decimal], name: str) -> Decimal:
    return amounts.get(name, Decimal(0))
