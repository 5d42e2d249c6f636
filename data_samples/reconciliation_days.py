"""What is planted on each day of the reconciliation scenario, and what must be found.

Every plant has records of its own, so one break does not hide another. Where one fault has two
faces (a payment moved to another tenant has a foreign rate and a foreign invoice as well), every
face is expected.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciliation_base import (
    EUR,
    GBP,
    USD,
    Invoice,
    Payment,
    Plan,
    Rate,
    base_payments,
    base_plans,
    base_rates,
    invoice_of,
    rate_id,
)
from reconciliation_plants import Planted, debt, detail, pay, rate
from reconciliation_service import (
    ANSWER_BREAKS,
    ANSWER_CHANGES,
    ANSWERED_PAYMENTS,
    BATCHED_PAYMENTS,
    LISTING_BREAKS,
    TONES,
    listed_rows,
    sent_rows,
)

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Day:
    """One day: what is delivered, what happens to the target, what must be found."""

    name: str
    as_of: str
    verdict: str
    extracts: Mapping[str, Rows]
    listings: Mapping[str, Rows] = field(default_factory=dict)
    changes: Sequence[tuple[str, str]] = ()
    """What others did to the target: in words and as SQL."""
    breaks: Sequence[Planted] = ()


CHANGED_PAYMENTS = {
    21: Payment(21),
    22: Payment(22),
    23: Payment(23),
    24: Payment(24),
    25: Payment(25, day=4),
    26: Payment(26),
    27: Payment(27),
    28: Payment(28, discount="3.00"),
    29: Payment(29, day=9),
    30: Payment(30, day=4),
}
"""Payments that others change in the target."""

TARGET_CHANGES = (
    (
        "payment 1021 is a cent higher in the target",
        'UPDATE recon.payment SET "PaidAmount" = "PaidAmount" + 0.01 WHERE "Id" = 1021',
    ),
    (
        "payment 1022 names another action",
        'UPDATE recon.payment SET "ActionsId" = 7999 WHERE "Id" = 1022',
    ),
    (
        "payment 1023 was moved by an hour",
        'UPDATE recon.payment SET "PaymentDate" = "PaymentDate" + interval \'1 hour\' '
        'WHERE "Id" = 1023',
    ),
    (
        "payment 1024 tells the same instant with another offset",
        'UPDATE recon.payment SET "PaymentDate_offset" = 120 WHERE "Id" = 1024',
    ),
    ("payment 1025 was removed", 'DELETE FROM recon.payment WHERE "Id" = 1025'),
    (
        "payment 1926 was added by hand",
        'INSERT INTO recon.payment SELECT 1926, "TenantsId", "ActionsId", "DebtsId", '
        '"PaymentDate", "PaymentDate_offset", "PaidAmount", "DiscountAmount", "CurrenciesId", '
        '"CurrencyRatesId", batch_id, extract_id, 0 FROM recon.payment WHERE "Id" = 1026',
    ),
    (
        "payment 1027 has more digits than money has",
        'UPDATE recon.payment SET "PaidAmount" = 127.2500000000000000001 WHERE "Id" = 1027',
    ),
    (
        "payment 1028: a discount inside the tolerance",
        'UPDATE recon.payment SET "DiscountAmount" = 3.01 WHERE "Id" = 1028',
    ),
    (
        "payment 1029 of today is not there yet: inside its window",
        'DELETE FROM recon.payment WHERE "Id" = 1029',
    ),
    (
        "payment 1030 stands under another tenant",
        'UPDATE recon.payment SET "TenantsId" = 8 WHERE "Id" = 1030',
    ),
)

TARGET_BREAKS = (
    pay("AMOUNT", 21, "PaidAmount", "0.01"),
    pay("VALUE", 22, "ActionsId"),
    pay("INSTANT", 23, "PaymentDate"),
    pay("OFFSET", 24, "PaymentDate"),
    pay("MISSING_IN_TARGET", 25),
    Planted("MISSING_IN_EXTRACT", "payment", "1926/7"),
    pay("PRECISION", 27, "PaidAmount"),
    pay("TENANT_CROSS", 30, "TenantsId"),
    pay("MISSING_IN_TARGET", 30),
    pay("MISSING_IN_EXTRACT", 30, tenant=8),
    pay("RATE_TENANT", 30, "CurrencyRatesId", tenant=8),
    Planted("TENANT_CROSS", "payment", "8/7", "CurrencyRatesId"),
    Planted("INV_TENANT", "invoice_file", "9030/7", "DebtsId"),
    Planted("TENANT_CROSS", "invoice_file", "7/8", "DebtsId"),
)

WRONG_RATES = (
    Rate(70901, EUR, 21, "4.2", "2026-02-20"),
    Rate(70902, EUR, 22, "0", "2026-03-09"),
    Rate(70903, 23, 23, "1.01", "2026-03-09"),
    Rate(70904, EUR, 24, "7.5", "2026-03-09"),
    Rate(70905, EUR, 24, "7.5", "2026-03-09"),
    Rate(70906, EUR, 25, "10", "2026-03-09"),
    Rate(70907, 25, EUR, "0.2", "2026-03-09"),
    Rate(70908, 26, 27, "2", "2026-03-09"),
    Rate(70909, 27, 28, "3", "2026-03-09"),
    Rate(70910, 26, 28, "7", "2026-03-09"),
    Rate(70911, EUR, 29, "5", "2026-03-05"),
    Rate(70912, EUR, 29, "5", "2026-03-09"),
    Rate(70913, EUR, 30, "1", "2026-03-06"),
    Rate(70914, EUR, 30, "1.5", "2026-03-09"),
)
RATED_PAYMENTS = (
    Payment(31, rate=79999),
    Payment(32, rate=rate_id(6, EUR, tenant=8)),
    Payment(33, currency=USD, rate=rate_id(6, GBP)),
    Payment(34, day=5, currency=USD, rate=rate_id(9, USD)),
    Payment(35, day=9, currency=21, rate=70901),
    Payment(36, day=9, currency=USD, rate=rate_id(6, USD)),
    Payment(37, day=9, currency=22, rate=70902),
    Payment(38, day=9, currency=23, rate=70903),
)
RATE_BREAKS = (
    pay("RATE_MISSING", 31, "CurrencyRatesId"),
    pay("RATE_TENANT", 32, "CurrencyRatesId"),
    Planted("TENANT_CROSS", "payment", "7/8", "CurrencyRatesId"),
    pay("RATE_PAIR", 33, "CurrencyRatesId"),
    pay("RATE_FUTURE", 34, "CurrencyRatesId"),
    pay("RATE_STALE", 35, "CurrencyRatesId"),
    pay("RATE_NOT_LATEST", 36, "CurrencyRatesId"),
    rate("RATE_NONPOSITIVE", 70902, "ExchangeRate"),
    rate("RATE_SELF", 70903, "ExchangeRate"),
    rate("RATE_DUPLICATE", 70905),
    rate("RATE_INVERSE", 70906, "ExchangeRate"),
    rate("RATE_TRIANGLE", 70910, "ExchangeRate"),
    rate("RATE_GAP", 70912, "EffectiveDate"),
    rate("RATE_GAP", 70901),
    rate("RATE_JUMP", 70914, "ExchangeRate"),
)

PLANNED_PAYMENTS = (
    Payment(41, currency=USD),
    Payment(42, paid="150"),
    Payment(43, paid="150"),
    Payment(44),
    Payment(45),
    Payment(46),
    Payment(47),
    Payment(48, debt=5047, currency=USD),
    Payment(49, paid="100", discount="500"),
    Payment(50, debt=5046, id=3000000050),
)
PLANS = (
    Plan(340, 6, "10", EUR, 888888),
    Plan(341, 6, "141.25", EUR, 1041),
    Plan(342, 6, "200", EUR, 1042),
    Plan(343, 6, "100", EUR, 1043),
    Plan(344, 3, "144.25", EUR, 1044),
    Plan(345, 20, "145.25", EUR, 1045),
    Plan(346, 6, "73.125", EUR, 1046),
    Plan(346, 6, "73.125", EUR, 1046, status=3),
    Plan(347, 5, "30", EUR, None, status=1),
    Plan(348, 25, "30", EUR, None, status=1),
    Plan(348, 25, "30", USD, None, status=1),
    Plan(349, 12, "30", EUR, None, status=1),
)
PLAN_BREAKS = (
    detail("PLAN_ORPHAN", "340/2026-03-06/10/1/888888/2", "PaymentsId"),
    detail("PLAN_CURRENCY", "341/2026-03-06/141.25/1/1041/2", "PlannedCurrenciesId"),
    pay("PLAN_UNDER", 42, "PaidAmount", "-50"),
    pay("PLAN_OVER", 43, "PaidAmount", "50"),
    detail("PLAN_LATE", "344/2026-03-03/144.25/1/1044/2", "PlannedDate"),
    detail("PLAN_EARLY", "345/2026-03-20/145.25/1/1045/2", "PlannedDate"),
    detail("PLAN_DUPLICATE", "346/2026-03-06/73.125/1/1046/2"),
    detail("PLAN_UNPAID", "347/2026-03-05/30/1//1", "PaymentsId"),
    detail("PLAN_MIXED_CCY", "348", "PlannedCurrenciesId"),
    Planted("PLAN_REF_WIDTH", "payment", "3000000050/7", "Id"),
    debt("DEBT_OVER", "5046/1", "PaidAmount", "150.25"),
    debt("DEBT_UNDER", "5042/1", "PaidAmount", "-50"),
    debt("DEBT_OVER", "5043/1", "PaidAmount", "50"),
    debt("DEBT_MIXED_CCY", "5047", "CurrenciesId"),
    debt("DISCOUNT_GT_PAID", "5049/1", "DiscountAmount"),
)

DOCUMENTED_PAYMENTS = (Payment(51), Payment(53), Payment(54), Payment(55))
INVOICES = (
    Invoice(9052, 5052),
    Invoice(9053, 5053),
    Invoice(9153, 5053),
    Invoice(9054, 5054, url="https://files.example.com/same.pdf"),
    Invoice(9154, 5054, url="https://files.example.com/same.pdf"),
    Invoice(9055, 5055, tenant=8),
)
DOCUMENT_BREAKS = (
    debt("INV_NONE", "5051", "DebtsId"),
    Planted("INV_UNPAID", "invoice_file", "9052/7", "DebtsId"),
    Planted("INV_MULTI", "invoice_file", "5053", "DebtsId"),
    Planted("INV_DUPLICATE", "invoice_file", "9154/7"),
    Planted("INV_TENANT", "invoice_file", "9055/8", "DebtsId"),
    Planted("TENANT_CROSS", "invoice_file", "8/7", "DebtsId"),
)

REFUSED_ROWS = (
    ("1061", "7", "7061", "5061", "2026-03-06T10:00:00+01:00", "12,50", "0", "1", "70061"),
    ("1062", "7", "7062", "5062", "2026-03-06T10:00:00+01:00", "162.25", "0", "1", "70061"),
    ("1062", "7", "7062", "5062", "2026-03-06T10:00:00+01:00", "162.52", "0", "1", "70061"),
)
"""A decimal comma, and one key with two amounts."""
REFUSED_BREAKS = (
    pay("REJECTED", 61),
    Planted("DUPLICATE", "payment", "1062/7#1:payments.csv:54"),
    Planted("DUPLICATE", "payment", "1062/7#1:payments.csv:55"),
)


def cells(records: Iterable[Payment | Rate | Invoice | Plan]) -> list[tuple[str, ...]]:
    return [record.cells for record in records]


def monday() -> Day:
    """Every code once."""
    clean = tuple(base_payments())
    special = (
        *CHANGED_PAYMENTS.values(),
        *RATED_PAYMENTS,
        *PLANNED_PAYMENTS,
        *ANSWERED_PAYMENTS,
    )
    no_invoice = {25, 29, 48, 50}
    everything = (*clean, *special, *BATCHED_PAYMENTS)
    invoiced = [payment for payment in everything if payment.number not in no_invoice]
    invoices = [invoice_of(payment) for payment in invoiced]
    return Day(
        name="monday",
        as_of="2026-03-09",
        verdict="NOT_RECONCILED",
        extracts={
            "currency_rates": cells((*base_rates(), *WRONG_RATES)),
            "payments": [*cells((*clean, *special, *DOCUMENTED_PAYMENTS)), *REFUSED_ROWS],
            "invoice_files": cells((*invoices, *INVOICES)),
            "payment_plan_details": cells((*base_plans(), *PLANS)),
            "message_tones": TONES,
            "insert_batch_data": sent_rows(),
        },
        listings={"insert_batch_data": listed_rows()},
        changes=(*TARGET_CHANGES, *ANSWER_CHANGES),
        breaks=(
            *TARGET_BREAKS,
            *RATE_BREAKS,
            *PLAN_BREAKS,
            *DOCUMENT_BREAKS,
            *REFUSED_BREAKS,
            *ANSWER_BREAKS,
            *LISTING_BREAKS,
        ),
    )
