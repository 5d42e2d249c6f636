"""The batch report as plain text for a terminal, and the words that all renderings share."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple

from flows.report.spelling import (
    MINUS,
    NARROW,
    currency_named,
    digits,
    neutral,
    record_title,
    shortened,
    visible,
)
from flows.steps.batch_report import BatchReport, Chain, FileLine, NoteLine, Pushed, ReasonLine
from flows.steps.totals import NO_CURRENCY, Totals, add
from schemas.counting import agree, quantity
from schemas.reasons import REFUSALS

WIDTH = 96
"""Width of the text report; only a number that is longer than a line exceeds it."""
MOST = 200
"""Most findings in a short rendering, which says how many it leaves to the full report."""
NOTHING = "none"

_TYPEWRITER = str.maketrans({NARROW: " ", MINUS: "-"})


class BatchVerdict(NamedTuple):
    """A verdict in words: its badge, what it means and what to do next."""

    word: str
    meaning: str
    remedy: str


VERDICTS: Mapping[str, BatchVerdict] = {
    "complete": BatchVerdict(
        "COMPLETE",
        "No row carries an error, every file was read, and every figure ties.",
        "Nothing is left to do.",
    ),
    "complete_with_errors": BatchVerdict(
        "COMPLETE WITH ERRORS",
        "The rows without errors are applied and every figure ties; some rows carry errors or a "
        "file was refused.",
        "Correct what is listed under rejects and files, and deliver it again.",
    ),
    "held": BatchVerdict(
        "HELD",
        "Nothing of this batch has been applied.",
        "Read the rejects. Then release the batch to apply its clean rows, and correct the others; "
        "or discard it, and deliver its files again as new ones, corrected.",
    ),
    "does_not_tie": BatchVerdict(
        "DOES NOT TIE",
        "At least one figure does not add up; the chain shows at which stage.",
        "Do not use the data before the difference is explained.",
    ),
    "failed": BatchVerdict("FAILED", "The batch stopped before its end.", "Run the batch again."),
    "discarded": BatchVerdict(
        "DISCARDED", "The batch was ended without applying anything.", "Deliver it corrected."
    ),
    "undone": BatchVerdict(
        "UNDONE", "What was applied has been taken back.", "Deliver it corrected."
    ),
}

NO_REJECT = "Release the batch to apply its clean rows, or discard it."
"""Remedy for a held batch without rejects."""
AGAIN = (
    "What is listed under rejects was delivered again in a later batch: what is in error there "
    "too is corrected from that batch."
)
TAKEN = "Nothing is left to do: what was refused was taken since."
AT_SERVICE: Mapping[str, str] = {
    "unsent": "Push what is unsent.",
    "in_doubt": "Look at the service for the rows in doubt, then settle them.",
    "differs": "Look at the service for the rows that differ there, then settle them.",
    "refused": "Correct the rows that the service refused, or settle them.",
}
"""Remedies for rows at the service, by state."""


PLANNED = "inserted, updated and unchanged"
"""The rows that the states at the service have to add up to."""


class Figure(NamedTuple):
    """A number that is followed through every stage."""

    name: str
    currency: str | None = None
    """Key of `Totals.amounts`; None if it is not money."""

    def of(self, totals: Totals) -> int | Decimal:
        if self.currency is None:
            return totals.rows if self == ROWS else totals.keys
        return totals.amounts.get(self.currency, {}).get(self.name, Decimal(0))


ROWS, KEYS = Figure("Rows"), Figure("Hash total of keys")


def render_text(report: BatchReport) -> str:
    """The whole report in plain characters; delivered text cannot break a line or move a cursor."""
    lines = [
        *_cover(report),
        *section("Files", _most(_file(line) for line in report.files)),
        *(line for chain in report.chains for line in _chain(report, chain)),
        *(line for one in report.pushed for line in _pushed(report, one)),
        *section(
            "Rejects by reason (a row with several reasons counts under each)",
            _most(_reason(line) for line in report.reasons),
        ),
        *section(
            "Notes (these rejected no row)", _most(map(_note, report.notes), report.notes_beyond)
        ),
    ]
    return typewritten(lines)


def verdict_of(report: BatchReport) -> BatchVerdict:
    """The verdict in words; an unfinished batch is named by its state."""
    state = state_word(report.verdict).upper()
    under_way = BatchVerdict(state, "The batch has not reached its end.", "Run the batch again.")
    known = VERDICTS.get(report.verdict, under_way)
    if report.held_because and report.verdict == "held":
        known = known._replace(meaning=f"{known.meaning} {visible(report.held_because)}.")
        return known if report.errors else known._replace(remedy=NO_REJECT)
    if report.taken_back:
        who = f"By {shortened(report.taken_back, 400).rstrip('.')}."
        left = [left_text(report.left_at_service)] if report.left_at_service else []
        return known._replace(meaning=" ".join([known.meaning, who, *left]))
    own = report.errors - report.again > sum(one.undecided for one in report.pushed)
    if not own and not report.to_deliver:
        if report.again:
            known = known._replace(remedy=AGAIN)
        elif any(file.taken for file in report.files):
            known = known._replace(remedy=TAKEN)
    remedies = [text for state, text in AT_SERVICE.items() if _at_service(report, state)]
    if not remedies or report.verdict not in ("complete_with_errors", "merged"):
        return known
    if report.errors > sum(one.undecided for one in report.pushed) or report.to_deliver:
        remedies.append(known.remedy)
    meaning = "What is clean is applied and every figure ties; not all of it is at the service."
    return BatchVerdict(known.word, meaning, " ".join(remedies))


def left_text(left: Mapping[str, int]) -> str:
    """What the service keeps of an undone batch: rows by operation."""
    rows = ", ".join(f"{count} of {operation}" for operation, count in left.items())
    return f"The service keeps what it was sent: {rows}."


def _at_service(report: BatchReport, state: str) -> int:
    return sum(one.states[state].rows for one in report.pushed if state in one.states)


def currency_label(report: BatchReport, currency: str) -> str:
    return currency_named(currency, report.currencies)


def state_word(state: str) -> str:
    """A state in plain words: `in_doubt` becomes in doubt."""
    return visible(state).replace("_", " ")


def end_states(chain: Chain) -> dict[str, Totals]:
    """The end states in a fixed order, so that equal reports are rendered alike."""
    places = {state: place for place, state in enumerate(chain.order)}
    order = sorted(chain.states, key=lambda state: (places.get(state, len(places)), state))
    return {state: chain.states[state] for state in order}


def figures(chain: Chain) -> tuple[Figure, ...]:
    """Rows, hash total, then every amount in every currency of any stage or state."""
    everything = [*chain.states.values()]
    for line in chain.lines:
        everything += [line.totals, line.change, line.residual]
    found = {
        (name, currency)
        for totals in everything
        for currency, sums in totals.amounts.items()
        for name in sums
    }
    order = {name: place for place, name in enumerate(chain.amounts)}
    money = sorted(found, key=lambda one: (_by_number(one[1]), order.get(one[0], len(order)), one))
    return ROWS, KEYS, *(Figure(name, currency) for name, currency in money)


def figure_label(report: BatchReport, figure: Figure) -> str:
    """`Rows`, or `PaidAmount, 978 EUR`."""
    if figure.currency is None:
        return figure.name
    return f"{visible(figure.name)}, {currency_label(report, figure.currency)}"


def differences(
    report: BatchReport, chain: Chain, totals: Totals
) -> list[tuple[str, int | Decimal]]:
    """Label and value of every figure of a residual that is not zero."""
    return [
        (figure_label(report, figure), figure.of(totals))
        for figure in figures(chain)
        if figure.of(totals)
    ]


def refusal(line: FileLine) -> str:
    """Why a file was refused and what to do next; empty for a file that was read."""
    if line.refused is None:
        return ""
    reason = REFUSALS.get(line.refused)
    title = f"{visible(line.refused)} ({reason.title})" if reason else visible(line.refused)
    remedy = reason.remedy if reason else ""
    # The message ends with the remedy too, which must not be cut off.
    message = (line.message or "").removesuffix(remedy).rstrip(" ")
    if line.taken:
        remedy = "It was taken since."
    detail = f": {shortened(message, 400).rstrip('.')}" if message else ""
    return f"{title}{detail}. {remedy}".rstrip()


def refused_line(line: FileLine) -> str:
    """One line about a refused file, for short messages."""
    message = " ".join((line.message or "").split())
    return f"{line.name}: refused ({line.refused}). {message}".rstrip()


def without_messages(text: str) -> str:
    """Remove the messages from lines made by `refused_line`, because they quote the file."""
    return re.sub(r"(?m)(: refused \(\w+\)\.).*$", r"\1", text)


def _cover(report: BatchReport) -> Iterator[str]:
    verdict = verdict_of(report)
    refused = sum(line.refused is not None for line in report.files)
    yield from ("BATCH REPORT", "=" * WIDTH)
    facts = (
        ("Feed", neutral(report.feed)),
        ("Content", visible(report.content_id) or "none: no file was taken in"),
        ("Verdict", verdict.word),
        ("", verdict.meaning),
        ("Next", verdict.remedy),
        ("Rows", f"{digits(report.rows)} read, {digits(report.errors)} with errors"),
        ("Files", f"{digits(len(report.files))} delivered, {digits(refused)} refused"),
        *([("Service", visible(report.service))] if report.service else []),
    )
    for label, value in facts:
        yield from wrapped(value, first=label.ljust(10), rest=" " * 10)


def typewritten(lines: Iterable[str]) -> str:
    return "\n".join(line.rstrip() for line in lines).translate(_TYPEWRITER) + "\n"


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines under a title; the part of the title before a colon is in capitals."""
    words, colon, of = title.partition(": ")
    yield from ("", words.upper() + colon + of, "-" * WIDTH)
    yield from list(lines) or ["  None."]


def _most(findings: Iterable[Iterable[str]], beyond: int = 0) -> Iterator[str]:
    every = list(findings)
    for one in every[:MOST]:
        yield from one
    if len(every) > MOST:
        left = len(every) + beyond - MOST
        yield f"  {digits(left)} more {agree(left, 'is', 'are')} in the full report."


def _file(line: FileLine) -> Iterator[str]:
    yield from wrapped(neutral(line.name), first="  ", rest="    ")
    size = NOTHING if line.bytes is None else quantity(line.bytes, "byte", digits)
    counted = f"{quantity(line.rows, 'row', digits)}, {digits(line.rejected)} with errors"
    if line.excluded:
        counted += f", {digits(line.excluded)} left out"
    yield f"    {record_title(line.record)}: {counted}; {size}"
    yield f"    sha256 {visible(line.sha256 or NOTHING)}"
    if line.refused is not None:
        yield from wrapped(refusal(line), first="    REFUSED ", rest="            ")


def _chain(report: BatchReport, chain: Chain) -> Iterator[str]:
    yield from section(f"From the file to the database: {chain.title}", _stages(report, chain))
    unread = [
        line for one in report.unreadable(chain) for line in wrapped(one, first="  ", rest="  ")
    ]
    states = [*_states(report, chain), *unread]
    yield from section(f"What became of every row: {chain.title}", states)


def _pushed(report: BatchReport, one: Pushed) -> Iterator[str]:
    words = _residual(report, one.chain, one.residual)
    yield from section(
        f"At the service: {one.title}",
        [
            *wrapped(
                f"{one.operation}: every row the database has; {words}", first="  ", rest="  "
            ),
            *_states(report, one.chain, whole=PLANNED),
        ],
    )


def _residual(report: BatchReport, chain: Chain, totals: Totals) -> str:
    left = differences(report, chain, totals)
    text = "; ".join(f"{label}: {digits(value, signed=True)}" for label, value in left)
    return f"RESIDUAL {text}" if text else "residual 0"


def _stages(report: BatchReport, chain: Chain) -> Iterator[str]:
    stub = ["", *(line.stage for line in chain.lines)]
    for line in chain.lines:
        residual = _residual(report, chain, line.residual)
        words = f"{line.explained}; {residual}" if line.explained else residual
        yield from wrapped(words, first=f"  {line.stage:18}", rest=" " * 20)
    for label, group in _by_currency(report, chain):
        columns = []
        for figure in group:
            values = [digits(figure.of(line.totals)) for line in chain.lines]
            changes = [digits(figure.of(line.change), signed=True) for line in chain.lines[1:]]
            columns.append([[figure.name, *values], ["change", "", *changes]])
        yield from _grid([label, *stub[1:]], columns)


def _states(report: BatchReport, chain: Chain, whole: str = "read") -> Iterator[str]:
    sums = {**end_states(chain), "sum": add(chain.states.values())}
    if chain.lines:
        sums[whole] = chain.lines[0].totals
    for label, group in _by_currency(report, chain):
        # A state without money in this currency would only add a line of zeros.
        states = {
            name: totals
            for name, totals in sums.items()
            if name in ("sum", whole) or any(figure.of(totals) for figure in group)
        }
        yield from _grid(
            [label, *map(state_word, states)],
            [
                [[one.name, *(digits(one.of(totals)) for totals in states.values())]]
                for one in group
            ],
        )


def _by_currency(report: BatchReport, chain: Chain) -> Iterator[tuple[str, list[Figure]]]:
    for currency, group in groupby(figures(chain), key=lambda figure: figure.currency):
        yield "" if currency is None else currency_label(report, currency), list(group)


def _reason(line: ReasonLine) -> Iterator[str]:
    where = f", {visible(line.field)}" if line.field else ""
    yield from wrapped(
        f"{record_title(line.record)}{where}: {visible(line.code)}, {visible(line.title)}",
        first=f"  {digits(line.rows):>9}  ",
        rest=" " * 13,
    )
    value = f': "{shortened(line.value, 60)}"' if line.value else ""
    yield from wrapped(
        f"{neutral(line.file)}, {row_place(line)}{value}", first=f"{'first':>16} ", rest=" " * 17
    )
    yield from wrapped(visible(line.remedy), first=f"{'next':>16} ", rest=" " * 17)


def _note(line: NoteLine) -> Iterator[str]:
    yield from wrapped(
        f"{record_title(line.record)}: {visible(line.code)}, "
        f"{neutral(line.message, 200)} First: {neutral(line.file)}, {row_place(line)}.",
        first=f"  {digits(line.rows):>9}  ",
        rest=" " * 13,
    )


def row_place(line: ReasonLine | NoteLine) -> str:
    """The line of a row, as an editor shows it, and its record number.

    Digits are not grouped, because both are used in commands.
    """
    record = f", record {line.record_number}" if line.record_number else ""
    return f"line {line.line}{record}"


def _grid(stub: Sequence[str], groups: Iterable[Sequence[Sequence[str]]]) -> Iterator[str]:
    """Columns beside their row labels, split into as many pieces as the width requires."""
    labels = _padded(stub)
    pieces: list[list[list[str]]] = []
    for group in groups:
        columns = [_padded(column, str.rjust) for column in group]
        wide = sum(2 + len(column[0]) for column in (labels, *(pieces or [[]])[-1], *columns))
        if pieces and wide <= WIDTH:
            pieces[-1] += columns
        else:
            pieces.append(columns)
    for piece in pieces:
        yield ""
        for cells in zip(labels, *piece, strict=True):
            yield "  " + "  ".join(cells)


def _padded(column: Sequence[str], pad: Callable[[str, int], str] = str.ljust) -> list[str]:
    width = max(map(len, column))
    return [pad(cell, width) for cell in column]


def wrapped(text: str, *, first: str, rest: str) -> list[str]:
    """Wrap a text within WIDTH, with `first` before the first line and `rest` before the others."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ) or [first]


def _by_number(currency: str) -> tuple[bool, int, str]:
    number = int(currency) if currency.isdecimal() and currency.isascii() else 0
    return currency == NO_CURRENCY, number, currency
