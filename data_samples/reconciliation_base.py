"""Records of the reconciliation scenario: two tenants, one fortnight, everything in its place.

Ids tell what a record is: payments 1000 and up, their debts 5000 and up, invoice files 9000 and up,
plans 300 and up, rates of tenant 7 from 70000 and of tenant 8 from 80000.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from schemas.tables import EXTRACTS

EUR, USD, GBP, CHF = 1, 2, 3, 4
RATE_DAYS = (2, 3, 4, 5, 6, 9)
"""Days of March 2026 with a rate: Monday to Friday, and the Monday after."""
BASE_RATES = {EUR: 10000, USD: 11000, GBP: 8500}
"""One euro in ten-thousandths of the currency, on the first day."""

HEADERS = {
    name: EXTRACTS[record].columns
    for name, record in (
        ("currency_rates", "currency_rate"),
        ("payments", "payment"),
        ("invoice_files", "invoice_file"),
        ("payment_plan_details", "payment_plan_detail"),
        ("message_tones", "message_tone"),
        ("insert_batch_data", "insert_batch_data"),
    )
}


@dataclass(frozen=True)
class Rate:
    """One exchange rate."""

    id: int
    source: int
    target: int
    value: str
    day: str
    tenant: int = 7

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            str(self.id),
            str(self.tenant),
            str(self.source),
            str(self.target),
            self.value,
            f"{self.day}T00:00:00",
        )


@dataclass(frozen=True)
class Payment:
    """One payment; its number gives its Id and its debt."""

    number: int
    day: int = 6
    paid: str = ""
    discount: str = "0"
    currency: int = EUR
    rate: int = 0
    tenant: int = 7
    debt: int = 0
    id: int = 0

    @property
    def key(self) -> int:
        return self.id or 1000 + self.number

    @property
    def amount(self) -> str:
        return self.paid or f"{100 + self.number}.25"

    @property
    def debts_id(self) -> int:
        return self.debt or 5000 + self.number

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            str(self.key),
            str(self.tenant),
            str(7000 + self.number),
            str(self.debts_id),
            f"2026-03-{self.day:02}T10:00:00+01:00",
            self.amount,
            self.discount,
            str(self.currency),
            str(self.rate or rate_id(self.day, self.currency, self.tenant)),
        )


@dataclass(frozen=True)
class Invoice:
    """One invoice file of a debt."""

    id: int
    debt: int
    tenant: int = 7
    url: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        url = self.url or f"https://files.example.com/{self.id}.pdf"
        return (str(self.id), str(self.tenant), str(self.debt), url)


@dataclass(frozen=True)
class Plan:
    """One instalment of a payment plan."""

    plan: int
    day: int
    amount: str
    currency: int = EUR
    payment: int | None = None
    status: int = 2

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            str(self.plan),
            f"2026-03-{self.day:02}",
            self.amount,
            str(self.currency),
            "" if self.payment is None else str(self.payment),
            str(self.status),
        )


def rate_id(day: int, currency: int, tenant: int = 7) -> int:
    """Id of the base rate of a day and currency."""
    return tenant * 10000 + day * 10 + currency


def base_rates() -> Iterator[Rate]:
    """Euro to each currency, every banking day, moving by a thousandth."""
    for tenant in (7, 8):
        for step, day in enumerate(RATE_DAYS):
            for currency, start in BASE_RATES.items():
                value = start if currency == EUR else start + step * (start // 1000)
                yield Rate(
                    rate_id(day, currency, tenant),
                    EUR,
                    currency,
                    f"{value / 10000:.4f}".rstrip("0").rstrip("."),
                    f"2026-03-{day:02}",
                    tenant,
                )


def base_payments() -> Iterator[Payment]:
    """Payments 1 to 12 of tenant 7 and 13 to 16 of tenant 8, in three currencies."""
    for number in range(1, 17):
        yield Payment(
            number,
            day=RATE_DAYS[1 + number % 5],
            currency=(EUR, USD, GBP)[number % 3],
            tenant=7 if number <= 12 else 8,
        )


def base_plans() -> Iterator[Plan]:
    """Payments 1 to 6 are instalments that were paid on their day."""
    for payment in base_payments():
        if payment.number <= 6:
            yield Plan(
                300 + payment.number,
                payment.day,
                payment.amount,
                payment.currency,
                payment.key,
            )


def invoice_of(payment: Payment) -> Invoice:
    """The invoice file of a payment's debt."""
    return Invoice(9000 + payment.number, payment.debts_id, payment.tenant)


def corrected(payment: Payment, **changes: object) -> Payment:
    """The same payment with other values."""
    return replace(payment, **changes)
