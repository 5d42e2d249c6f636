"""The rules of a reconciliation: tolerances, windows, ages, meanings; one value from one TOML.

Whatever the service document leaves open (the direction of a rate, the base currency, whether a
discount counts) is a rule with an explicit UNKNOWN, never a guess; checks that need it report so.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum


class Direction(StrEnum):
    """What an exchange rate multiplies."""

    FROM_TO = "from_to"
    """Amount in From times the rate is the amount in To."""
    TO_FROM = "to_from"
    UNKNOWN = "unknown"


class Discount(StrEnum):
    """Whether a discount settles a debt as a payment does."""

    COUNTS = "counts"
    DOES_NOT = "does_not"
    UNKNOWN = "unknown"


class Offset(StrEnum):
    """What it means if the same instant is stated with another offset."""

    EQUAL = "equal"
    """Nothing: the instant is the same."""
    TOLD = "told"
    """The record matches within tolerance, and a break of low severity reports the offset."""
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a found value may lie from the expected one, separately above and below.

    The wider of the absolute and the relative bound applies. A Tolerance has either days, for
    times, or the other bounds, for amounts.
    """

    record: str
    field: str
    currency: int | None = None
    """None means every currency without a tolerance of its own."""
    tenant: int | None = None
    above: Decimal = Decimal(0)
    below: Decimal = Decimal(0)
    above_relative: Decimal = Decimal(0)
    """Share of the expected value: 0.001 is one in a thousand."""
    below_relative: Decimal = Decimal(0)
    days: Decimal = Decimal(0)

    @property
    def name(self) -> str:
        only = [
            f"currency {self.currency}" if self.currency is not None else "",
            f"tenant {self.tenant}" if self.tenant is not None else "",
        ]
        return ", ".join(filter(None, (f"{self.record}.{self.field}", *only)))


@dataclass(frozen=True, slots=True)
class Window:
    """How long after its business date a record may be missing before it is an exception."""

    record: str
    days: int
    business: bool = True
    """Count business days of the calendar instead of calendar days."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Records that a rule leaves out; each is listed under the rule's id."""

    id: str
    record: str
    field: str
    values: tuple[str, ...]
    """Canonical texts of the values left out (`file.value_text`)."""
    reason: str


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be tolerated before the run fails."""

    count: int | None = None
    amount: Decimal | None = None
    """Limit of the sum of absolute differences, per currency."""


@dataclass(frozen=True, slots=True)
class Rates:
    direction: Direction = Direction.UNKNOWN
    base_currency: int | None = None
    stale_days: int | None = 7
    """None means that no rate is ever stale."""
    jump_percent: Decimal | None = Decimal(10)
    inverse_tolerance: Decimal | None = Decimal("0.001")
    """How far a rate times its inverse may be from 1; the same bound applies to triangles."""
    daily: bool = False
    """Whether a series must have a rate on every business day."""


@dataclass(frozen=True, slots=True)
class Plans:
    discount: Discount = Discount.UNKNOWN
    """With UNKNOWN a discount is not counted, and the report says so."""
    early_days: int | None = None
    """None means that an early payment is never a break."""
    late_days: int | None = 0
    under: Decimal = Decimal(0)
    over: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Severities:
    """From which amount and age a break is of high or medium severity."""

    high_amount: Decimal = Decimal(10000)
    medium_amount: Decimal = Decimal(100)
    high_age_days: int = 30
    medium_age_days: int = 7


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a run; their hash is on the cover of its report."""

    name: str = "default"
    tolerances: tuple[Tolerance, ...] = ()
    budget: Budget = Budget()
    windows: tuple[Window, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    rates: Rates = Rates()
    plans: Plans = Plans()
    severities: Severities = Severities()
    offset: Offset = Offset.TOLD
    calendar: str | None = None
    """Country or market of the `holidays` library; None means Monday to Friday."""
    references: frozenset[str] = field(
        default_factory=lambda: frozenset({"rates", "plans", "documents", "batches"})
    )
    """Which checks across record kinds are asked for."""
    records: tuple[tuple[str, str], ...] = ()
    """Names and definitions of own record kinds (`own_kinds`); they come from no rule file."""
