"""Break codes: what a difference between two truths is called, and what to do about it.

A code is stable: it is part of a break's id, of rule files and of what auditors file away.
"""

from dataclasses import dataclass
from enum import StrEnum


class BreakClass(StrEnum):
    """The kinds of difference, as reports group them."""

    COMPLETENESS = "COMPLETENESS"
    ACCURACY = "ACCURACY"
    REFERENCE = "REFERENCE"
    RATE = "RATE"
    PLAN = "PLAN"
    DOCUMENT = "DOCUMENT"
    BATCH = "BATCH"
    TENANT = "TENANT"
    DUPLICATE = "DUPLICATE"
    PRECISION = "PRECISION"
    GOVERNANCE = "GOVERNANCE"


class Status(StrEnum):
    """What became of one record; exclusive, and adding up to the input."""

    MATCHED_EXACT = "MATCHED_EXACT"
    MATCHED_TOLERANCE = "MATCHED_TOLERANCE"
    MATCHED_MANUAL = "MATCHED_MANUAL"
    """Its breaks are accepted: by whom and until when is with the break."""
    PENDING = "PENDING"
    """Inside its timing window: no exception yet."""
    MISSING_IN_TARGET = "MISSING_IN_TARGET"
    MISSING_IN_EXTRACT = "MISSING_IN_EXTRACT"
    MISMATCH = "MISMATCH"
    DUPLICATE = "DUPLICATE"
    REJECTED = "REJECTED"
    """By our check, or refused by the service."""
    NOT_SENT = "NOT_SENT"
    SENT_UNCONFIRMED = "SENT_UNCONFIRMED"
    """Accepted by the service, but neither echoed nor read back."""
    IN_DOUBT = "IN_DOUBT"
    EXCLUDED = "EXCLUDED"
    """By a rule that names itself: superseded, stale, or one of the rule file."""
    UNPROVEN = "UNPROVEN"
    """The same on both sides, but the delivered text that says so cannot be shown."""
    UNKNOWN = "UNKNOWN"


class Money(StrEnum):
    """What the amount of a break is; never mixed with another in one sum."""

    DIFFERENCE = "difference"
    """By how much two sides differ: the whole record where one side lacks it."""
    GROSS = "gross"
    """The money of the record it is about: nothing is known to be missing."""
    UNREADABLE = "not readable"
    """It has an amount, as delivered, that is no number: it is in no sum."""
    NONE = "none"
    """No money: a rate, a document, a flag."""


class Severity(StrEnum):
    """How much a break matters, from its amount and age."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class BreakCode:
    """One break code with its one wording."""

    code: str
    group: BreakClass
    """It decides more than the heading: severity, whether a corrected row may close it, and what a
    run needs to look for it."""
    title: str
    action: str
    """What to do next, as a sentence."""
    money: Money = Money.NONE
    """What its amount is; a DIFFERENCE in a field that holds no money is GROSS."""
    whole: Money | None = None
    """What it is where the break names no field, if that is something else."""
    debt: bool = False
    """Whether its amount adds up the payments of a debt, and so what breaks of these say."""


_C, _M = BreakClass, Money


def _by_code(*codes: BreakCode) -> dict[str, BreakCode]:
    assert len({code.code for code in codes}) == len(codes)
    return {code.code: code for code in codes}


BREAKS = _by_code(
    BreakCode(
        "MISSING_IN_TARGET",
        _C.COMPLETENESS,
        "delivered, but not in the target",
        "Rerun the batch, or find out who removed the record.",
        money=_M.DIFFERENCE,
    ),
    BreakCode(
        "MISSING_IN_EXTRACT",
        _C.COMPLETENESS,
        "in the target, but in no extract",
        "Ask the producer for the record, or explain where it came from.",
        money=_M.DIFFERENCE,
    ),
    BreakCode(
        "REJECTED",
        _C.COMPLETENESS,
        "rejected by the check",
        "Correct the row in the corrections file and deliver it again.",
        money=_M.DIFFERENCE,
    ),
    BreakCode(
        "REFUSED",
        _C.COMPLETENESS,
        "refused by the service",
        "Correct what the service names, and deliver the record again.",
        money=_M.GROSS,
    ),
    BreakCode(
        "NOT_SENT",
        _C.COMPLETENESS,
        "not sent to the service yet",
        "Push the batch: recon push.",
        money=_M.GROSS,
    ),
    BreakCode(
        "IN_DOUBT",
        _C.COMPLETENESS,
        "sent, and the answer was lost",
        "Look at the service, then settle it: recon resolve.",
        money=_M.GROSS,
    ),
    BreakCode(
        "UNCONFIRMED",
        _C.COMPLETENESS,
        "accepted, but neither echoed nor read back",
        "Read the record back at the service.",
        money=_M.GROSS,
    ),
    BreakCode(
        "AMOUNT",
        _C.ACCURACY,
        "amounts differ",
        "Find which side is right; correct the other at its source.",
        money=_M.DIFFERENCE,
    ),
    BreakCode(
        "VALUE",
        _C.ACCURACY,
        "values differ",
        "Find which side is right; correct the other at its source.",
        money=_M.GROSS,
    ),
    BreakCode(
        "INSTANT",
        _C.ACCURACY,
        "times differ",
        "Find which side is right; check the time zone of the target.",
    ),
    BreakCode(
        "OFFSET",
        _C.ACCURACY,
        "same instant, told with another offset",
        "Nothing to pay; settle which offset the feed shall use.",
    ),
    BreakCode(
        "ECHO",
        _C.ACCURACY,
        "the service answered with another value than was sent",
        "Compare the record at the service with the extract.",
        money=_M.DIFFERENCE,
        whole=_M.GROSS,
    ),
    BreakCode(
        "PRECISION",
        _C.PRECISION,
        "an amount that cannot be held exactly",
        "Correct the digits at the source.",
        money=_M.GROSS,
    ),
    BreakCode(
        "DUPLICATE",
        _C.DUPLICATE,
        "one key, more than one record",
        "Deliver the one that counts; withdraw the others.",
        money=_M.DIFFERENCE,
    ),
    BreakCode(
        "KEY_MISSING",
        _C.COMPLETENESS,
        "a record without its key, which nothing can be compared with",
        "Deliver the record with its key, or remove it.",
        money=_M.DIFFERENCE,
    ),
    BreakCode(
        "TENANT_CROSS",
        _C.TENANT,
        "two sides that belong together name different tenants",
        "Find out whose record it is before anything is paid.",
        money=_M.GROSS,
    ),
    BreakCode(
        "REFERENCE_MISSING",
        _C.REFERENCE,
        "the record it refers to is not there",
        "Deliver the record it refers to, or correct the reference.",
        money=_M.GROSS,
    ),
    BreakCode(
        "REFERENCE_TENANT",
        _C.REFERENCE,
        "the record it refers to belongs to another tenant",
        "Find out whose record it is, and correct the reference.",
        money=_M.GROSS,
    ),
    BreakCode(
        "RATE_MISSING",
        _C.RATE,
        "the rate it names is not there",
        "Deliver the rate.",
        money=_M.GROSS,
    ),
    BreakCode(
        "RATE_TENANT",
        _C.RATE,
        "the rate belongs to another tenant",
        "Use a rate of the tenant.",
        money=_M.GROSS,
    ),
    BreakCode(
        "RATE_PAIR",
        _C.RATE,
        "the rate does not convert this currency",
        "Name a rate whose pair has the payment's currency.",
        money=_M.GROSS,
    ),
    BreakCode(
        "RATE_FUTURE",
        _C.RATE,
        "the rate is younger than the payment",
        "Use the rate of the day.",
        money=_M.GROSS,
    ),
    BreakCode(
        "RATE_STALE", _C.RATE, "the rate was too old", "Use the rate of the day.", money=_M.GROSS
    ),
    BreakCode(
        "RATE_NOT_LATEST",
        _C.RATE,
        "a later rate was there",
        "Use the latest rate of the day.",
        money=_M.GROSS,
    ),
    BreakCode("RATE_NONPOSITIVE", _C.RATE, "a rate of zero or less", "Correct the rate."),
    BreakCode("RATE_SELF", _C.RATE, "a currency against itself is not 1", "Correct the rate."),
    BreakCode(
        "RATE_DUPLICATE",
        _C.RATE,
        "two rates for one pair and moment",
        "Keep the one that counts.",
    ),
    BreakCode("RATE_INVERSE", _C.RATE, "a rate and its inverse disagree", "Correct one of them."),
    BreakCode("RATE_TRIANGLE", _C.RATE, "three rates do not close", "Correct one of them."),
    BreakCode("RATE_GAP", _C.RATE, "a day without a rate", "Deliver the missing days."),
    BreakCode("RATE_JUMP", _C.RATE, "a jump from one rate to the next", "Confirm the rate."),
    BreakCode(
        "PLAN_ORPHAN",
        _C.PLAN,
        "the payment it names is not there",
        "Deliver the payment.",
        money=_M.GROSS,
    ),
    BreakCode(
        "PLAN_REF_WIDTH",
        _C.PLAN,
        "the payment's number is wider than the plan's reference",
        "The reference is 32-bit: this payment cannot be named by any plan detail.",
        money=_M.GROSS,
    ),
    BreakCode(
        "PLAN_CURRENCY",
        _C.PLAN,
        "planned in one currency, paid in another",
        "Settle the currency of the plan.",
        money=_M.GROSS,
    ),
    BreakCode(
        "PLAN_UNDER",
        _C.PLAN,
        "paid less than planned",
        "Collect the rest, or plan anew.",
        money=_M.DIFFERENCE,
    ),
    BreakCode(
        "PLAN_OVER",
        _C.PLAN,
        "paid more than planned",
        "Pay back, or plan anew.",
        money=_M.DIFFERENCE,
    ),
    BreakCode(
        "PLAN_LATE",
        _C.PLAN,
        "paid after the planned day",
        "Nothing, or charge interest.",
        money=_M.GROSS,
    ),
    BreakCode(
        "PLAN_EARLY",
        _C.PLAN,
        "paid before the planned day",
        "Nothing, or plan anew.",
        money=_M.GROSS,
    ),
    BreakCode("PLAN_UNPAID", _C.PLAN, "due and without a payment", "Collect it.", money=_M.GROSS),
    BreakCode(
        "PLAN_DUPLICATE",
        _C.PLAN,
        "the same plan detail twice",
        "Withdraw one of them.",
        money=_M.GROSS,
    ),
    BreakCode("PLAN_MIXED_CCY", _C.PLAN, "one plan in several currencies", "Split the plan."),
    BreakCode(
        "DEBT_UNDER",
        _C.PLAN,
        "a debt paid less than planned",
        "Collect the rest.",
        money=_M.DIFFERENCE,
        debt=True,
    ),
    BreakCode(
        "DEBT_OVER",
        _C.PLAN,
        "a debt paid more than planned",
        "Pay back.",
        money=_M.DIFFERENCE,
        debt=True,
    ),
    BreakCode(
        "DEBT_MIXED_CCY",
        _C.PLAN,
        "one debt in several currencies",
        "Settle its currency.",
        debt=True,
    ),
    BreakCode(
        "DISCOUNT_GT_PAID",
        _C.PLAN,
        "more discount than payment",
        "Confirm the discount.",
        money=_M.GROSS,
        debt=True,
    ),
    BreakCode(
        "INV_DUPLICATE", _C.DOCUMENT, "one invoice file under two numbers", "Withdraw one of them."
    ),
    BreakCode(
        "INV_NONE",
        _C.DOCUMENT,
        "paid without an invoice file",
        "Add the invoice file.",
        money=_M.GROSS,
        debt=True,
    ),
    BreakCode("INV_UNPAID", _C.DOCUMENT, "an invoice file without a payment", "Collect it."),
    BreakCode(
        "INV_MULTI", _C.DOCUMENT, "several invoice files for one debt", "Name the one that counts."
    ),
    BreakCode(
        "INV_TENANT",
        _C.DOCUMENT,
        "the invoice file belongs to another tenant",
        "Find out whose debt it is.",
    ),
    BreakCode(
        "BATCH_MISSING", _C.BATCH, "sent, but not listed by the service", "Run the batch again."
    ),
    BreakCode("BATCH_EXTRA", _C.BATCH, "listed, but not sent by us", "Ask who sent it."),
    BreakCode(
        "BATCH_ERROR_UNTOLD", _C.BATCH, "HasError without ErrorData", "Ask the service for why."
    ),
    BreakCode("BATCH_MERGED_ERROR", _C.BATCH, "Merged and HasError at once", "Look at the record."),
    BreakCode(
        "BATCH_NOT_MERGED",
        _C.BATCH,
        "neither an error nor merged",
        "Run the batch again at the service.",
    ),
    BreakCode("BATCH_ERROR_UNSET", _C.BATCH, "ErrorData without HasError", "Read ErrorData."),
    BreakCode("BATCH_JSON_UNREADABLE", _C.BATCH, "Jsondata that is no record", "Deliver again."),
    BreakCode(
        "BATCH_JSON_DIFFERS", _C.BATCH, "Jsondata says other than Data", "Find which counts."
    ),
    BreakCode("BATCH_COUNT", _C.BATCH, "counts that do not tie to our rejects", "Run it again."),
    BreakCode(
        "CHANGED_AFTER_SIGNOFF",
        _C.GOVERNANCE,
        "a signed record has changed since",
        "Find who changed it and why; sign again.",
        money=_M.DIFFERENCE,
    ),
    BreakCode(
        "LATE_ARRIVAL",
        _C.GOVERNANCE,
        "dated in a period that was signed before it came",
        "Find why it came late; accept it for the next report, or restate the signed one.",
        money=_M.GROSS,
    ),
    BreakCode(
        "TOLERANCE_BUDGET",
        _C.GOVERNANCE,
        "more was waved through than the rules allow",
        "Look at the differences inside tolerance, or agree on another limit.",
        money=_M.DIFFERENCE,
    ),
)
"""Every break code, in the order reports explain them.

Where two tell the same difference, the first of them has its money in totals.
"""
