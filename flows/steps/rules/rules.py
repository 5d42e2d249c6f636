"""The rules of a reconciliation: tolerances, windows, ages, meanings; one value from one TOML.

What the service document leaves open (direction of a rate, base currency, what a discount counts
for) is a rule with an explicit UNKNOWN, never a guess: what needs it is then reported as such.
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
    """What it means when the same instant is stated with another offset."""

    EQUAL = "equal"
    """Nothing: it is the same instant."""
    TOLD = "told"
    """The record matches within tolerance, and a break of low severity says so."""
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a found value may lie from the expected one, above and below apart.

    The wider of the absolute and the relative bound holds. Days are for times, the others for
    amounts; one Tolerance has either.
    """

    record: str
    field: str
    currency: int | None = None
    """None: every currency without a tolerance of its own."""
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
    """How long a record may be missing before it is an exception, from its business date."""

    record: str
    days: int
    business: bool = True
    """Count business days of the calendar instead of calendar days."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Records a rule leaves out; every one is listed under the rule's id."""

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
    """Per currency: sum of the absolute differences."""


@dataclass(frozen=True, slots=True)
class Rates:
    direction: Direction = Direction.UNKNOWN
    base_currency: int | None = None
    stale_days: int | None = 7
    """None: no rate is ever stale."""
    jump_percent: Decimal | None = Decimal(10)
    inverse_tolerance: Decimal | None = Decimal("0.001")
    """How far rate times inverse may be from 1; the same bound holds for a triangle."""
    daily: bool = False
    """Whether a series must have a rate on every business day."""


@dataclass(frozen=True, slots=True)
class Plans:
    discount: Discount = Discount.UNKNOWN
    """Unknown: a discount is not counted, and the report says so."""
    early_days: int | None = None
    """None: early is never a break."""
    late_days: int | None = 0
    under: Decimal = Decimal(0)
    over: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Severities:
    """From which amount and age on a break matters."""

    high_amount: Decimal = Decimal(10000)
    medium_amount: Decimal = Decimal(100)
    high_age_days: int = 30
    medium_age_days: int = 7


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything a run asks for; its hash is on the cover."""

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
    """Country or market of the `holidays` library; None: Monday to Friday."""
    references: frozenset[str] = field(
        default_factory=lambda: frozenset({"rates", "plans", "documents", "batches"})
    )
    """Which of the joins beyond a record's own are asked for."""
    records: tuple[tuple[str, str], ...] = ()
    """Names and definitions of the record kinds of one's own (`own_kinds`), of no rule file."""
