"""The vocabulary of a reconciliation report: statuses, states, sources, currencies."""

from collections.abc import Mapping
from decimal import Decimal

from flows.report.reconciled.verdicts import VERDICTS, VerdictWords, word_of
from flows.report.spelling import currency_named, digits, shortened_pair, ungrouped, visible
from flows.steps.frames.beyond import number_of
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.reported_breaks import BreakLine
from flows.steps.reconcile.totals import ProofLine
from schemas.breaks import BREAKS, STATUSES, Money
from schemas.life import GONE, BreakState
from schemas.tables import EXTRACTS

NOT_READABLE = Money.UNREADABLE.value
"""Shown in place of an unreadable amount, never a zero."""

STATES: Mapping[str, str] = {
    BreakState.NEW: "found by this run for the first time",
    BreakState.OPEN: "there before, and still there",
    BreakState.REOPENED: "back after it was resolved or accepted",
    BreakState.EXPIRED: "its acceptance has run out: it is open again",
    BreakState.ACCEPTED: "accepted by name, with a reason, until a day",
    BreakState.NOT_LOOKED_AT: "found before; this run did not look whether it is still there",
    BreakState.WAIVED_BY_RULE: "found before and still there; the rules of this run tolerate it",
}

WHY_GONE: Mapping[str, str] = {
    BreakState.RESOLVED_SOURCE: "gone, because of what was delivered since",
    BreakState.RESOLVED_SERVICE: "gone, and not by a delivery: what it is compared with has "
    "changed, in the database or at the service",
    BreakState.RESOLVED_NEITHER: "gone, because the day moved on, or because it was signed since",
    BreakState.CHANGED_INTO: "gone, and nothing was resolved: another break says now how the field "
    "differs, and an acceptance does not cover it",
}
"""Meanings of the states in `GONE`."""

ALWAYS: Mapping[str, str] = {
    "break": "one difference or contradiction that somebody has to resolve or to accept",
    "open": "neither resolved nor accepted: it keeps the report from reconciling",
    "unexplained": "what is left of a difference when every break is taken off; it has to be 0",
    "residual": "the same for a sum or a chain of stages: what its parts leave; it has to be 0",
    "hash total": "the sum of the keys of records; it changes when one is lost, doubled or swapped",
    "cause": "breaks that have one thing in common, so that one action may close all of them",
    "self-test": "before it compares, a run plants known faults in made-up records; "
    "it has to find each of them, or the report does not reconcile",
    "recomputed": "in the workbook: a figure once more, by a formula over the cells it is made "
    "of; OK says that both are the same",
}
"""Words explained in every report, a sentence each."""
GLOSSARY: Mapping[str, str] = {
    **STATUSES,
    **STATES,
    **{GONE[state]: reason for state, reason in WHY_GONE.items()},
    NOT_READABLE: "the amount was delivered as something that is no number; it is in no sum",
}
"""Words explained only in reports that use them."""

SOURCES: Mapping[str, str] = {
    "E": "extract",
    "R": "request sent",
    "A": "answer of the service",
    "D": "database",
    "G": "listing of the service",
    "P": "last approved run",
}


def verdict_of(report: ReconciliationReport) -> VerdictWords:
    """The verdict in words; an unknown verdict is shown as it is, and is never good."""
    verdict = report.cover.verdict
    unknown = VerdictWords(word_of(verdict), "This verdict is not known.", "bad")
    return VERDICTS.get(verdict) or unknown


def currency_label(report: ReconciliationReport, currency: str) -> str:
    return currency_named(currency, report.currencies)


def values_of_break(one: BreakLine, most: int) -> tuple[str | None, str | None]:
    """The expected and the found value, as a `shortened_pair`."""
    return shortened_pair(value_of_break(one, one.expected), value_of_break(one, one.found), most)


def place_in_file(one: BreakLine) -> str:
    """The text behind the file name of a break; a break about a whole file has no line."""
    line = "" if one.line is None else f", line {one.line}"
    return f"{line}, batch {one.batch_id}"


def value_of_break(one: BreakLine, text: str | None) -> str | None:
    """An expected or found value of a break, with money written like the difference beside it."""
    number = stated_amount(one.record, one.field, text)
    return text if number is None else ungrouped(number)


def stated_amount(record: str, field: str, text: str | None) -> Decimal | None:
    """The amount that a text of a field states; None if it is no amount or no number."""
    table = EXTRACTS.get(record)
    return number_of(text) if table is not None and field in table.amounts else None


def readable(amount: Decimal, rows: int, unreadable: int) -> Decimal | None:
    """The money of some rows; None if none of them has a readable amount."""
    none = unreadable and unreadable >= abs(rows) and not amount
    return None if none else amount


def amount_of(line: ProofLine) -> Decimal | None:
    """The money of a line of a statement; None if it is not readable."""
    return readable(line.amount, line.rows, line.unreadable)


def amount_text(line: ProofLine) -> str:
    """The money of a line of a statement as text."""
    amount = amount_of(line)
    return NOT_READABLE if amount is None else digits(amount)


def side_text(line: ProofLine) -> str:
    """One side of a statement, with its number of unreadable amounts."""
    text = amount_text(line)
    if not line.unreadable or text == NOT_READABLE:
        return text
    return f"{text}, {digits(line.unreadable)} {NOT_READABLE}"


def with_unreadable(text: str, rows: int) -> str:
    """The name of a line, with its number of rows without a readable amount."""
    return f"{text} ({ungrouped(rows)} {NOT_READABLE})" if rows else text


def money_of_break(report: ReconciliationReport, one: BreakLine) -> tuple[str, str]:
    """The money of a break, a signed difference or gross money, and its currency."""
    if one.basis == Money.UNREADABLE:
        return NOT_READABLE, currency_label(report, one.currency) if one.currency else ""
    money = one.amount if one.basis == Money.GROSS or one.delta is None else one.delta
    if money is None or one.basis == Money.NONE:
        return "", ""
    currency = currency_label(report, one.currency) if one.currency else ""
    if one.basis == Money.GROSS:
        return f"gross {digits(money)}", currency
    return digits(money, signed=one.delta is not None), currency


CURRENCIES = 5
"""Most currencies of a cause in a text."""


def code_title(code: str) -> str:
    return BREAKS[code].title if code in BREAKS else ""


def sources(letters: str | tuple[str, ...]) -> str:
    return ", ".join(SOURCES.get(letter, visible(letter)) for letter in letters)
