"""Classes of breaks: how reports group them, and what all breaks of a class have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from schemas.field import Table
from schemas.tables import CURRENCY_RATE, INSERT_BATCH_DATA, INVOICE_FILE, PAYMENT_PLAN_DETAIL


class BreakClass(StrEnum):
    """A kind of difference, as reports group them."""

    DELIVERY = "DELIVERY"
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


class HeldAgainst(StrEnum):
    """Which two sources a break holds against each other."""

    TAKEN = "what was delivered with what was taken of it"
    TARGET = "what was delivered with the target"
    ANSWER = "what was sent with what the service says of it"
    OTHERS = "a record with others that it belongs to"
    LISTING = "what was sent with what the service lists"
    SIGNED = "what was signed with what is there now"


@dataclass(frozen=True, slots=True)
class OfClass:
    """What all breaks of a class have in common."""

    grave: bool
    """Whether they are severe whatever their money and age."""
    in_rows: bool
    """Whether a corrected text in the delivered row may close them."""
    between: bool
    """Whether they hold a record against others, which may have come in another extract."""
    tried_again: bool
    """Whether a break that is gone is looked for again with one side as it was."""
    needs: Table | None
    """The record kind without which they are not looked for; for BATCH breaks, its listing."""
    compared: HeldAgainst
    """The two sources they hold against each other, unless the break code says otherwise."""


CLASSES: Mapping[BreakClass, OfClass] = {
    BreakClass.DELIVERY: OfClass(True, False, False, False, None, HeldAgainst.TAKEN),
    BreakClass.COMPLETENESS: OfClass(False, False, False, False, None, HeldAgainst.TARGET),
    BreakClass.ACCURACY: OfClass(False, True, False, False, None, HeldAgainst.TARGET),
    BreakClass.REFERENCE: OfClass(False, True, True, False, None, HeldAgainst.OTHERS),
    BreakClass.RATE: OfClass(False, True, True, True, CURRENCY_RATE, HeldAgainst.OTHERS),
    BreakClass.PLAN: OfClass(False, False, True, True, PAYMENT_PLAN_DETAIL, HeldAgainst.OTHERS),
    BreakClass.DOCUMENT: OfClass(False, False, True, True, INVOICE_FILE, HeldAgainst.OTHERS),
    BreakClass.BATCH: OfClass(False, False, True, False, INSERT_BATCH_DATA, HeldAgainst.LISTING),
    BreakClass.TENANT: OfClass(True, True, False, True, None, HeldAgainst.OTHERS),
    BreakClass.DUPLICATE: OfClass(False, True, True, False, None, HeldAgainst.TARGET),
    BreakClass.PRECISION: OfClass(False, True, False, False, None, HeldAgainst.TARGET),
    BreakClass.GOVERNANCE: OfClass(True, False, True, False, None, HeldAgainst.SIGNED),
}
