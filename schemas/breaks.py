"""Break codes: the name of each difference between two sources, and what to do about it.

A code is stable: break ids, rule files and auditors' records contain it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from schemas.break_classes import CLASSES, BreakClass, HeldAgainst, OfClass


class Status(StrEnum):
    """What became of a record; every record has exactly one, so they add up to the input."""

    MATCHED_EXACT = "MATCHED_EXACT"
    MATCHED_TOLERANCE = "MATCHED_TOLERANCE"
    MATCHED_MANUAL = "MATCHED_MANUAL"
    PENDING = "PENDING"
    MISSING_IN_TARGET = "MISSING_IN_TARGET"
    MISSING_IN_EXTRACT = "MISSING_IN_EXTRACT"
    MISMATCH = "MISMATCH"
    DUPLICATE = "DUPLICATE"
    REJECTED = "REJECTED"
    NOT_SENT = "NOT_SENT"
    SENT_UNCONFIRMED = "SENT_UNCONFIRMED"
    IN_DOUBT = "IN_DOUBT"
    EXCLUDED = "EXCLUDED"
    UNPROVEN = "UNPROVEN"
    UNKNOWN = "UNKNOWN"


STATUSES: Mapping[str, str] = {
    Status.MATCHED_EXACT: "the same on both sides",
    Status.MATCHED_TOLERANCE: "the same within the tolerance of a rule",
    Status.MATCHED_MANUAL: "its differences were accepted, each by name and until a day",
    Status.PENDING: "inside its timing window: not an exception yet",
    Status.MISSING_IN_TARGET: "delivered, but not in the target",
    Status.MISSING_IN_EXTRACT: "in the target, but in no extract",
    Status.MISMATCH: "on both sides, with other values",
    Status.DUPLICATE: "one key, more than one record",
    Status.REJECTED: "rejected by the check, or refused by the service",
    Status.NOT_SENT: "not sent to the service yet",
    Status.SENT_UNCONFIRMED: "taken for accepted: neither echoed nor read back",
    Status.IN_DOUBT: "sent, and the answer was lost",
    Status.EXCLUDED: "left out of the comparison: by a rule, or for another delivery of the same",
    Status.UNPROVEN: "the same on both sides, but the delivered text cannot be shown",
    Status.UNKNOWN: "without a key, or an amount that cannot be held exactly",
}
"""The meaning of each status, in reports and on pages."""


class Money(StrEnum):
    """What the amount of a break is; amounts of different kinds are never added up."""

    DIFFERENCE = "difference"
    """How far two sides differ; the whole record's money where one side lacks the record."""
    GROSS = "gross"
    """The money of the record the break is about; nothing is known to be missing."""
    UNREADABLE = "not readable"
    """The delivered amount is not a number, so it is in no sum."""
    NONE = "none"
    """No money: a rate, a document, a flag."""


class Severity(StrEnum):
    """How much a break matters, from its amount and age."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class BreakCode:
    code: str
    title: str
    action: str
    """What to do next, as a sentence."""
    group: BreakClass
    money: Money = Money.NONE
    """What the amount is; DIFFERENCE becomes GROSS for a field that holds no money."""
    whole: Money | None = None
    """What the amount is if the break names no field; None: the same as `money`."""
    amounts: bool = False
    """Whether its two values are amounts in one currency, with a meaningful difference."""
    debt: bool = False
    """Whether its amount adds up the payments of a debt, and so includes their own breaks."""
    together: bool = False
    """Whether a break that names no side is about several records together. Its key is then that of
    a debt or a plan, and may look like the key of another record."""
    at_service: bool = False
    """Whether it compares what was sent with the service's answer, whatever its class compares."""

    @property
    def compared(self) -> HeldAgainst:
        """The two sources the break holds against each other."""
        return HeldAgainst.ANSWER if self.at_service else self.of_class.compared

    @property
    def of_class(self) -> OfClass:
        """What all breaks of its class have in common; the class decides more than the heading."""
        return CLASSES[self.group]


_delivery = partial(BreakCode, group=BreakClass.DELIVERY)
_completeness = partial(BreakCode, group=BreakClass.COMPLETENESS)
_accuracy = partial(BreakCode, group=BreakClass.ACCURACY)
_precision = partial(BreakCode, group=BreakClass.PRECISION)
_duplicate = partial(BreakCode, group=BreakClass.DUPLICATE)
_tenant = partial(BreakCode, group=BreakClass.TENANT)
_reference = partial(BreakCode, group=BreakClass.REFERENCE)
_rate = partial(BreakCode, group=BreakClass.RATE)
_plan = partial(BreakCode, group=BreakClass.PLAN)
_document = partial(BreakCode, group=BreakClass.DOCUMENT)
_batch = partial(BreakCode, group=BreakClass.BATCH)
_governance = partial(BreakCode, group=BreakClass.GOVERNANCE)


_OTHER_TENANT = (
    "Where the tenant of an applied record is wrong, undo its batch and import its files "
    "corrected: a tenant is part of the key, and a repair keeps the key of its row."
)


def _by_code(*codes: BreakCode) -> dict[str, BreakCode]:
    assert len({code.code for code in codes}) == len(codes)
    return {code.code: code for code in codes}


BREAKS = _by_code(
    _delivery(
        "FILE_REFUSED",
        "a delivered file that was refused: no side has its rows",
        "Put the file right and deliver it under its name: recon import FILE --corrects BATCH. If "
        "its rows are not wanted, or came in another way, accept this and say so.",
        together=True,
    ),
    _completeness(
        "MISSING_IN_TARGET",
        "delivered, but not in the target",
        "Rerun the batch, or find out who removed the record.",
        money=Money.DIFFERENCE,
    ),
    _completeness(
        "MISSING_IN_EXTRACT",
        "in the target, but in no extract",
        "Ask the producer for the record, or explain where it came from.",
        money=Money.DIFFERENCE,
    ),
    _completeness(
        "REJECTED",
        "rejected by the check",
        "Correct the row in the corrections file and deliver it again.",
        money=Money.DIFFERENCE,
    ),
    _completeness(
        "REFUSED",
        "refused by the service",
        "Correct what the service names, and deliver the record again.",
        money=Money.GROSS,
        at_service=True,
    ),
    _completeness(
        "NOT_SENT",
        "not sent to the service yet",
        "Push the batch: recon push.",
        money=Money.GROSS,
        at_service=True,
    ),
    _completeness(
        "IN_DOUBT",
        "sent, and the answer was lost",
        "Look at the service, then settle it: recon resolve. A PUT: recon push.",
        money=Money.GROSS,
        at_service=True,
    ),
    _completeness(
        "UNCONFIRMED",
        "taken for accepted: neither echoed nor read back",
        "Read the record back at the service.",
        money=Money.GROSS,
        at_service=True,
    ),
    _accuracy(
        "AMOUNT",
        "amounts differ",
        "Find which side is right; correct the other at its source.",
        money=Money.DIFFERENCE,
        amounts=True,
    ),
    _accuracy(
        "VALUE",
        "values differ",
        "Find which side is right; correct the other at its source.",
        money=Money.GROSS,
    ),
    _accuracy(
        "INSTANT", "times differ", "Find which side is right; check the time zone of the target."
    ),
    _accuracy(
        "OFFSET",
        "same instant, told with another offset",
        "Nothing to pay; settle which offset the feed shall use.",
    ),
    _accuracy(
        "ECHO",
        "the service answered with another value than was sent",
        "Compare the record at the service with the extract.",
        money=Money.DIFFERENCE,
        whole=Money.GROSS,
        at_service=True,
    ),
    _precision(
        "PRECISION",
        "an amount that cannot be held exactly",
        "Correct the digits at the source.",
        money=Money.GROSS,
    ),
    _duplicate(
        "DUPLICATE",
        "one key, more than one record",
        "Deliver the one that counts; withdraw the others. Where each counts, deliver them with "
        "keys that tell them apart.",
        money=Money.DIFFERENCE,
    ),
    _completeness(
        "KEY_MISSING",
        "a record without its key, which nothing can be compared with",
        "Deliver the record with its key, or remove it.",
        money=Money.DIFFERENCE,
    ),
    _tenant(
        "TENANT_CROSS",
        "two sides that belong together name different tenants",
        f"Find out whose record it is before anything is paid. {_OTHER_TENANT}",
        money=Money.GROSS,
        together=True,
    ),
    _reference(
        "REFERENCE_MISSING",
        "the record it refers to is not there",
        "Deliver the record it refers to, or correct the reference.",
        money=Money.GROSS,
    ),
    _reference(
        "REFERENCE_TENANT",
        "the record it refers to belongs to another tenant",
        f"Find out whose record it is, and correct the reference. {_OTHER_TENANT}",
        money=Money.GROSS,
    ),
    _rate("RATE_MISSING", "the rate it names is not there", "Deliver the rate.", money=Money.GROSS),
    _rate(
        "RATE_TENANT",
        "the rate belongs to another tenant",
        f"Use a rate of the tenant. {_OTHER_TENANT}",
        money=Money.GROSS,
    ),
    _rate(
        "RATE_PAIR",
        "the rate does not convert this currency",
        "Name a rate whose pair has the payment's currency.",
        money=Money.GROSS,
    ),
    _rate(
        "RATE_FUTURE",
        "the rate is younger than the payment",
        "Use the rate of the day.",
        money=Money.GROSS,
    ),
    _rate("RATE_STALE", "the rate was too old", "Use the rate of the day.", money=Money.GROSS),
    _rate(
        "RATE_NOT_LATEST",
        "a later rate was there",
        "Use the latest rate of the day.",
        money=Money.GROSS,
    ),
    _rate("RATE_NONPOSITIVE", "a rate of zero or less", "Correct the rate."),
    _rate("RATE_SELF", "a currency against itself is not 1", "Correct the rate."),
    _rate("RATE_DUPLICATE", "two rates for one pair and moment", "Keep the one that counts."),
    _rate("RATE_INVERSE", "a rate and its inverse disagree", "Correct one of them."),
    _rate("RATE_TRIANGLE", "three rates do not close", "Correct one of them."),
    _rate("RATE_GAP", "a day without a rate", "Deliver the missing days."),
    _rate("RATE_JUMP", "a jump from one rate to the next", "Confirm the rate."),
    _plan(
        "PLAN_ORPHAN",
        "the payment it names is not there",
        "Deliver the payment.",
        money=Money.GROSS,
    ),
    _plan(
        "PLAN_REF_WIDTH",
        "the payment's number is wider than the plan's reference",
        "The reference is 32-bit: this payment cannot be named by any plan detail.",
        money=Money.GROSS,
    ),
    _plan(
        "PLAN_CURRENCY",
        "planned in one currency, paid in another",
        "Settle the currency of the plan.",
        money=Money.GROSS,
    ),
    _plan(
        "PLAN_UNDER",
        "paid less than planned",
        "Collect the rest, or plan anew.",
        money=Money.DIFFERENCE,
    ),
    _plan("PLAN_OVER", "paid more than planned", "Pay back, or plan anew.", money=Money.DIFFERENCE),
    _plan(
        "PLAN_LATE", "paid after the planned day", "Nothing, or charge interest.", money=Money.GROSS
    ),
    _plan("PLAN_EARLY", "paid before the planned day", "Nothing, or plan anew.", money=Money.GROSS),
    _plan("PLAN_UNPAID", "due and without a payment", "Collect it.", money=Money.GROSS),
    _plan(
        "PLAN_DUPLICATE", "the same plan detail twice", "Withdraw one of them.", money=Money.GROSS
    ),
    _plan("PLAN_MIXED_CCY", "one plan in several currencies", "Split the plan.", together=True),
    _plan(
        "DEBT_UNDER",
        "a debt paid less than planned",
        "Collect the rest.",
        money=Money.DIFFERENCE,
        debt=True,
        together=True,
    ),
    _plan(
        "DEBT_OVER",
        "a debt paid more than planned",
        "Pay back.",
        money=Money.DIFFERENCE,
        debt=True,
        together=True,
    ),
    _plan(
        "DEBT_MIXED_CCY",
        "one debt in several currencies",
        "Settle its currency.",
        debt=True,
        together=True,
    ),
    _plan(
        "DISCOUNT_GT_PAID",
        "more discount than payment",
        "Confirm the discount.",
        money=Money.GROSS,
        debt=True,
        together=True,
    ),
    _document("INV_DUPLICATE", "one invoice file under two numbers", "Withdraw one of them."),
    _document(
        "INV_NONE",
        "paid without an invoice file",
        "Add the invoice file.",
        money=Money.GROSS,
        debt=True,
        together=True,
    ),
    _document("INV_UNPAID", "an invoice file without a payment", "Collect it."),
    _document(
        "INV_MULTI",
        "several invoice files for one debt",
        "Name the one that counts.",
        together=True,
    ),
    _document(
        "INV_TENANT", "the invoice file belongs to another tenant", "Find out whose debt it is."
    ),
    _batch("BATCH_MISSING", "sent, but not listed by the service", "Run the batch again."),
    _batch("BATCH_EXTRA", "listed, but not sent by us", "Ask who sent it."),
    _batch("BATCH_ERROR_UNTOLD", "HasError without ErrorData", "Ask the service for why."),
    _batch("BATCH_MERGED_ERROR", "Merged and HasError at once", "Look at the record."),
    _batch(
        "BATCH_NOT_MERGED", "neither an error nor merged", "Run the batch again at the service."
    ),
    _batch("BATCH_ERROR_UNSET", "ErrorData without HasError", "Read ErrorData."),
    _batch("BATCH_JSON_UNREADABLE", "Jsondata that is no record", "Deliver again."),
    _batch("BATCH_JSON_DIFFERS", "Jsondata says other than Data", "Find which counts."),
    _batch("BATCH_COUNT", "counts that do not tie to our rejects", "Run it again.", together=True),
    _governance(
        "CHANGED_AFTER_SIGNOFF",
        "a signed record has changed since",
        "Find who changed it and why; sign again.",
        money=Money.DIFFERENCE,
    ),
    _governance(
        "LATE_ARRIVAL",
        "dated in a period that was signed before it came",
        "Find why it came late; accept it for the next report, or restate the signed one.",
        money=Money.GROSS,
    ),
    _governance(
        "TOLERANCE_BUDGET",
        "more was waved through than the rules allow",
        "Look at the differences inside tolerance, or agree on another limit.",
        money=Money.DIFFERENCE,
        together=True,
    ),
)
"""Every break code, in the order reports explain them.

Where two codes report the same difference, totals count the money of the first.
"""
OF_AMOUNTS = [code for code, of in BREAKS.items() if of.amounts]
"""Codes of breaks between two amounts."""
