"""The batch report for the Prefect UI: a short Markdown page, and the rejects as table cells."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flows.report.chart import describe, picture, state_parts
from flows.report.spelling import digits, in_report, neutral, record_title, shortened, visible
from flows.report.text import (
    NOTHING,
    PLANNED,
    Figure,
    currency_label,
    differences,
    end_states,
    figures,
    refusal,
    state_word,
    verdict_of,
)
from flows.steps.batch_report import BatchReport, Chain, Pushed
from flows.steps.totals import Totals, add
from schemas.counting import quantity

MOST = 200
"""Most rows of all tables of a page together; the UI slows down with more."""
CELL_CHARACTERS = 80
"""Most characters of a delivered text."""
SHOW_ROW = "A row is shown by: recon row BATCH FILE --line LINE"

_SPECIAL = re.compile(r"([\\`*_\[\]()<>|~&!#])")
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
_JOINER = "\N{WORD JOINER}"


class MarkdownPart(NamedTuple):
    """A table under its heading, with escaped cells."""

    heading: str
    names: tuple[str, ...]
    """Column names; a name that starts with a blank marks a column of numbers."""
    rows: Sequence[Sequence[str]]
    left: int = 0
    """Number of further rows that are not in `rows`."""


def summary_markdown(report: BatchReport) -> str:
    """Verdict, end states, money, refused files, reasons and notes, in at most `MOST` rows."""
    verdict = verdict_of(report)
    refused = sum(line.refused is not None for line in report.files)
    blocks = [
        f"# {verdict.word}: {escape(neutral(report.feed))}",
        escape(verdict.meaning),
        f"**Next:** {escape(verdict.remedy)}",
        f"{quantity(report.rows, 'row', digits)} read, {digits(report.errors)} with errors; "
        f"{quantity(len(report.files), 'file', digits)}, {digits(refused)} refused; "
        + (f"content {escape(report.content_id)}" if report.content_id else "no content"),
    ]
    room = MOST
    for part in _parts(report):
        blocks.append(part.heading)
        rows = part.rows[:room]
        if rows:
            blocks.append(markdown_table(part.names, rows))
        if left := in_report(part.left + len(part.rows) - len(rows)):
            blocks.append(left)
        room -= len(rows)
    return "\n\n".join(blocks) + "\n"


def rejects_table(report: BatchReport) -> list[dict[str, str]]:
    """The first `MOST` reasons as cells that are safe where the UI renders them as Markdown.

    A page shows four or five columns at once, so what is wrong, how often and where come first.
    """
    return [
        {
            "Reason": cell(line.code),
            "Rows": digits(line.rows),
            "File": cell(line.file),
            "Line": str(line.line),
            "Field": cell(line.field) or NOTHING,
            "Value": value_cell(line.value),
            "Record": cell(record_title(line.record)),
            "Next": cell(line.remedy, 2 * CELL_CHARACTERS),
        }
        for line in report.reasons[:MOST]
    ]


def escape(text: str) -> str:
    """Escape text into one line without Markdown marks, HTML, table borders or addresses.

    Some renderers detect addresses after unescaping marks, so an invisible word joiner splits them:
    `https:` from `//`, `www` from its dot, a name from its `@`.
    """
    return _SPECIAL.sub(r"\\\1", _ADDRESS.sub(_JOINER, visible(text)))


def _parts(report: BatchReport) -> Iterator[MarkdownPart]:
    for chain in report.chains:
        yield from _record(report, chain)
    for one in report.pushed:
        yield from _pushed(report, one)
    refused = [line for line in report.files if line.refused is not None]
    files = [(cell(line.name), escape(refusal(line))) for line in refused[:MOST]]
    if files:
        head: tuple[str, ...] = ("File", "Why, and what to do next")
        yield MarkdownPart("## Refused files", head, files, len(refused) - len(files))
    cells = [tuple(one.values()) for one in rejects_table(report)]
    if cells:
        head = ("Reason", " Rows", "File", " Line", "Field", "Value", "Record", "Next")
        yield MarkdownPart(
            f"## Rejects by reason\n\n{SHOW_ROW}", head, cells, len(report.reasons) - len(cells)
        )
    notes = [
        (
            digits(line.rows),
            cell(line.message, 2 * CELL_CHARACTERS),
            cell(line.file),
            str(line.line),
            str(line.record_number),
        )
        for line in report.notes[:MOST]
    ]
    if notes:
        head = (" Rows", "Note", "First in", " Line", " Record number")
        yield MarkdownPart("## Notes", head, notes, report.note_count - len(notes))


def _record(report: BatchReport, chain: Chain) -> Iterator[MarkdownPart]:
    title = escape(chain.title)
    read = chain.lines[0].totals if chain.lines else Totals()
    yield _states(f"## {title}", chain, chain.title, "End state", "read", read)
    residuals = [
        (line.stage, text) for line in chain.lines for text in _left(report, chain, line.residual)
    ]
    if residuals:
        yield MarkdownPart(f"### {title}: residuals", ("Stage", "Residual"), residuals)
    elif chain.lines:
        yield MarkdownPart(f"{title} ties: the residual is zero at every stage.", (), ())
    money = [figure for figure in figures(chain) if figure.currency is not None]
    if money and chain.lines:
        # Unchanged rows are not written, and so not read back.
        there = chain.lines[-1].totals, chain.states.get("unchanged", Totals())
        yield MarkdownPart(
            f"### {title}: money in the database",
            ("Currency", "Amount", " Read", " Written", " Unchanged, there before"),
            [_money(report, figure, read, *there) for figure in money],
        )
    for unread in report.unreadable(chain):
        yield MarkdownPart(escape(unread), (), ())


def _pushed(report: BatchReport, one: Pushed) -> Iterator[MarkdownPart]:
    title, chain = escape(one.title), one.chain
    heading = f"## At the service: {title} ({escape(one.operation)})"
    yield _states(heading, chain, one.title, "State at the service", PLANNED, one.planned)
    left = [(text,) for text in _left(report, chain, one.residual)]
    if left:
        yield MarkdownPart(f"### {title} at the service: residuals", ("Residual",), left)


def _left(report: BatchReport, chain: Chain, residual: Totals) -> list[str]:
    """The unexplained residual, figure by figure."""
    return [
        f"{escape(label)}: {digits(value, signed=True)}"
        for label, value in differences(report, chain, residual)
    ]


def _states(
    heading: str, chain: Chain, title: str, state: str, whole: str, planned: Totals
) -> MarkdownPart:
    """The states of a chain as a picture and a table, with the total they have to add up to."""
    bar = state_parts(chain)
    image = f"![{describe(bar)}]({picture(bar, title=title)})"
    rows = [_counts(name, totals) for name, totals in end_states(chain).items()]
    rows += [_counts("**sum**", add(chain.states.values())), _counts(f"**{whole}**", planned)]
    return MarkdownPart(f"{heading}\n\n{image}", (state, " Rows", " Hash total of keys"), rows)


def _counts(name: str, totals: Totals) -> tuple[str, str, str]:
    return state_word(name), digits(totals.rows), digits(totals.keys)


def _money(report: BatchReport, figure: Figure, *columns: Totals) -> tuple[str, ...]:
    currency = currency_label(report, figure.currency or "")
    return escape(currency), escape(figure.name), *(digits(figure.of(one)) for one in columns)


def markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table of escaped cells; a name that starts with a blank marks a column of numbers."""
    rules = ["--:" if name.startswith(" ") else ":--" for name in names]
    lines = [[name.strip() for name in names], rules, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def cell(text: str, most: int = CELL_CHARACTERS) -> str:
    """Delivered text for a table cell: short, visible, escaped, never a formula."""
    return escape(neutral(text, most))


def value_cell(text: str) -> str:
    """A delivered value in quotes, so that blanks at its ends are visible."""
    return f"“{escape(shortened(text, CELL_CHARACTERS))}”" if text else NOTHING
