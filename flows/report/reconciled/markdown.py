"""The reconciliation for the Prefect UI: a short Markdown page, and the breaks as table cells."""

from collections.abc import Iterator, Mapping
from itertools import islice

from flows.report.markdown import SHOW_ROW, cell, escape, markdown_table, value_cell
from flows.report.reconciled.chart import picture
from flows.report.reconciled.first_page import changed, method, to_sign
from flows.report.reconciled.pools import cause_titles, pooled_causes
from flows.report.reconciled.words import (
    CURRENCIES,
    NOT_READABLE,
    currency_label,
    money_of_break,
    place_in_file,
    side_text,
    value_of_break,
    verdict_of,
)
from flows.report.spelling import EMPTY, digits, in_report, neutral, neutral_pair, record_title
from flows.steps.breaks.cause_groups import CauseGroup
from flows.steps.breaks.money import largest_first
from flows.steps.breaks.shares import Share
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.reported_breaks import BreakLine, Breaks
from schemas.breaks import BREAKS
from schemas.counting import quantity
from schemas.life import OPEN, BreakState

BYTES = 40_000
"""Most bytes of an artifact; the page leaves out whole blocks at its end to stay below."""
ROWS = 200
CAUSES = 10
"""Most causes of open breaks, and as many of accepted ones."""
TOP = 50
"""Most breaks on the page."""
CELL_CHARACTERS = 60


def reconciliation_markdown(report: ReconciliationReport) -> str:
    """Verdict, totals, statuses, causes and the largest breaks, at most `BYTES` long."""
    blocks: list[str] = []
    left = BYTES - 200
    for block in _blocks(report):
        left -= len(block.encode()) + 2
        if left < 0:
            blocks.append("The rest is in the report.")
            break
        blocks.append(block)
    return "\n\n".join(blocks) + "\n"


def breaks_table(report: ReconciliationReport) -> list[dict[str, str]]:
    """The largest breaks as cells that are safe where the UI renders them as Markdown.

    A page shows four or five columns at once, so code, record, amount and place come first.
    """
    return [
        {
            "Code": cell(one.code),
            "Record": cell(_of_what(one), CELL_CHARACTERS),
            "Amount": _amount(report, one),
            "Where": _where(one),
            "Next": cell(BREAKS[one.code].action, 2 * CELL_CHARACTERS),
            "Difference": _difference(one),
            "State": cell(f"{one.state}, {one.severity}"),
            "Break": cell(one.id),
        }
        for one in _largest(report)
    ]


def _largest(report: ReconciliationReport) -> Breaks:
    """The largest breaks of any severity; equal ones are in the order of the report."""
    frame = report.breaks.frame
    return Breaks(frame.sort(*largest_first(), nulls_last=True, maintain_order=True).head(ROWS))


def _of_what(one: BreakLine) -> str:
    """The record kind and the key; a key of several records, such as a debt, with its field."""
    together = BREAKS[one.code].together and not one.side
    return f"{record_title(one.record)} {one.key} {one.field if together else ''}".strip()


def _where(one: BreakLine) -> str:
    """File, line and batch as needed by `recon row`; only the file name may be shortened."""
    place = place_in_file(one)
    return cell(one.file, CELL_CHARACTERS - len(place)) + place if one.file else ""


def _blocks(report: ReconciliationReport) -> Iterator[str]:
    verdict, cover = verdict_of(report), report.cover
    counts = report.breaks.counts("state")
    todo, accepted = sum(counts[state] for state in OPEN), counts[BreakState.ACCEPTED]
    yield f"# {escape(verdict.word)}: {escape(neutral(cover.title))}"
    yield escape(verdict.meaning)
    yield "\n".join(f"- {escape(sentence)}" for sentence in to_sign(report))
    if cover.restates:
        yield escape(neutral(cover.restates))
    if cover.because:
        yield "\n".join(f"- {escape(because)}" for because in cover.because)
    yield (
        f"As of {cover.as_of.isoformat()}, {escape(cover.zone)}; "
        f"{quantity(todo, 'open break', digits)}, {digits(accepted)} accepted; "
        f"rules {escape(cover.rules_name)}"
    )
    for table in (method(report), changed(report)):
        if not table.rows:
            continue
        yield f"## {escape(table.title)}"
        yield markdown_table(
            ("What", "Before", "Now"),
            [_change(*map(str, row.cells)) for row in table.rows[:ROWS]],
        )
        yield from _left(len(table.rows), ROWS)
    if report.proofs:
        yield "## Totals"
        yield markdown_table(
            ("Amount", "Currency", " Extract", " Left out", " Target", " Unexplained"),
            [
                (
                    escape(f"{record_title(one.record)} {one.field}"),
                    escape(currency_label(report, one.currency)),
                    side_text(one.lines[0]),
                    digits(one.left_out),
                    side_text(one.target),
                    digits(one.unexplained),
                )
                for one in report.proofs[:ROWS]
                if one.lines
            ],
        )
        yield from _left(len(report.proofs), ROWS)
    if report.statuses:
        yield "## Statuses"
        text = escape(_picture_text(report))
        yield f"![{text}]({picture(_bars(report), title='Records by status')})"
        yield markdown_table(
            ("Record", "Status", " Records"),
            [
                (escape(record_title(one.record)), escape(one.status), digits(one.rows))
                for one in report.statuses
            ],
        )
    yield from _causes(report)
    if report.breaks:
        yield "## Largest breaks"
        yield SHOW_ROW
        lines = breaks_table(report)[:TOP]
        heads = tuple(f" {name}" if name == "Amount" else name for name in lines[0])
        yield markdown_table(heads, [tuple(line.values()) for line in lines])
        yield from _left(len(report.breaks), TOP)


def _change(what: str, before: str, now: str) -> tuple[str, ...]:
    return (cell(what, 160), *map(escape, neutral_pair(before, now, 160)))


def _left(all_of: int, most: int) -> Iterator[str]:
    if left := in_report(all_of - most):
        yield left


def _causes(report: ReconciliationReport) -> Iterator[str]:
    """The causes as on page one of the report, but more of them."""
    titles = cause_titles(report)
    for pool, causes in pooled_causes(report).items():
        if causes:
            yield f"## Causes of most money, of breaks that are {pool}"
            rows = [
                (cell(one.title(titles), 160), digits(one.breaks), _money(report, one))
                for one in islice(causes.values(), CAUSES)
            ]
            yield markdown_table(("Cause", " Breaks", "Money"), rows)
            left = report.left_out.get("causes", 0) if pool == "open" else 0
            yield from _left(len(causes) + left, CAUSES)


def _money(report: ReconciliationReport, group: CauseGroup) -> str:
    """The money of a cause in its first currencies, and the number of other currencies."""
    amounts = [
        f"{escape(currency_label(report, currency))}: {_share(share)}"
        if currency
        else _share(share)
        for currency, share in islice(group.shares.items(), CURRENCIES)
    ]
    left = len(group.shares) - len(amounts)
    return "; ".join([*amounts, *([quantity(left, "more currency", digits)] if left else [])])


def _share(share: Share) -> str:
    parts = (
        "" if share.difference is None else f"difference {digits(share.difference)}",
        "" if share.gross is None else f"gross {digits(share.gross)}",
        f"{digits(share.sums.unreadable)} {NOT_READABLE}" if share.sums.unreadable else "",
    )
    return ", ".join(filter(None, parts)) or "no money"


def _bars(report: ReconciliationReport) -> list[tuple[str, Mapping[str, int]]]:
    return [(record_title(record), counts) for record, counts in report.status_counts.items()]


def _picture_text(report: ReconciliationReport) -> str:
    """The picture in words, with ungrouped counts, which screen readers read as one number."""
    return "; ".join(
        f"{title}: {', '.join(f'{status} {rows}' for status, rows in counts.items())}"
        for title, counts in _bars(report)
    )


def _difference(one: BreakLine) -> str:
    if one.basis == NOT_READABLE:
        return value_cell(one.note)
    field = f"{cell(one.field)}: " if one.field else ""
    if one.expected is None and one.found is None:
        return field.removesuffix(": ")
    expected, found = (_value(value_of_break(one, text)) for text in (one.expected, one.found))
    return f"{field}{expected} / {found}"


def _value(text: str | None) -> str:
    """The value of a side; an empty text differs from none."""
    return EMPTY if text == "" else value_cell(text or "")


def _amount(report: ReconciliationReport, one: BreakLine) -> str:
    amount, currency = money_of_break(report, one)
    return f"{amount} {escape(currency)}" if currency else amount
