"""The days after Monday: some breaks are cured, some are accepted, one comes back."""

from collections.abc import Iterable

from reconciliation_base import EUR, GBP, USD, Invoice, Payment, Rate, invoice_of, rate_id
from reconciliation_days import REFUSED_BREAKS, Day, cells, monday
from reconciliation_plants import Planted, detail, pay
from reconciliation_service import changed_send

MONDAY = monday()

CURED_AT_SOURCE = REFUSED_BREAKS
"""By the correction pack of Monday's report, edited and delivered on Tuesday."""
CURED_IN_TARGET = (
    pay("AMOUNT", 21, "PaidAmount", "0.01"),
    pay("VALUE", 22, "ActionsId"),
    pay("MISSING_IN_TARGET", 25),
    pay("NOT_SENT", 71),
)
"""By whoever keeps the target, and by sending what was unsent."""
CAME_BACK = pay("AMOUNT", 21, "PaidAmount", "0.01")
CHANGED = pay("CHANGED_AFTER_SIGNOFF", 3, "PaidAmount", "5")

TUESDAY_CHANGES = (
    (
        "payment 1021 is put right",
        'UPDATE recon.payment SET "PaidAmount" = 121.25 WHERE "Id" = 1021',
    ),
    (
        "payment 1022 is put right",
        'UPDATE recon.payment SET "ActionsId" = 7022 WHERE "Id" = 1022',
    ),
    (
        "payments 1025 and 1029 are there again, as they were delivered",
        'INSERT INTO recon.payment SELECT "Id", "TenantsId", "ActionsId", "DebtsId", '
        '"PaymentDate", "PaymentDate_offset", "PaidAmount", "DiscountAmount", "CurrenciesId", '
        '"CurrencyRatesId", batch_id, extract_id, record_number FROM recon.staged_payment '
        'WHERE "Id" IN (1025, 1029) AND error_data IS NULL',
    ),
)
SENT = (
    (
        "payment 1071 has been sent meanwhile",
        changed_send("state = 'acknowledged', status = 200", "payment", 'r."Id" = 1071'),
    ),
)
WEDNESDAY_CHANGES = (
    (
        "payment 1021 is a cent higher once more",
        'UPDATE recon.payment SET "PaidAmount" = 121.26 WHERE "Id" = 1021',
    ),
    (
        "payment 1102: one more discount inside the tolerance, and one too many for the budget",
        'UPDATE recon.payment SET "DiscountAmount" = 0.02 WHERE "Id" = 1102',
    ),
)
FRIDAY_CHANGES = (
    (
        "payment 1003 is changed after the report was signed",
        'UPDATE recon.payment SET "PaidAmount" = "PaidAmount" + 5 WHERE "Id" = 1003',
    ),
)


LATE_INVOICES = (25, 29, 61, 62)
"""Payments that were not in the target on Monday, nor were their invoice files delivered."""


def delivered(
    day: int, numbers: range, late: Iterable[int] = ()
) -> dict[str, list[tuple[str, ...]]]:
    """A quiet delivery: the day's rates, a few payments and their invoice files."""
    rates = [
        Rate(rate_id(day, currency, tenant), EUR, currency, value, f"2026-03-{day:02}", tenant)
        for tenant in (7, 8)
        for currency, value in ((EUR, "1"), (USD, "1.11"), (GBP, "0.855"))
    ]
    payments = [Payment(number, day=day) for number in numbers]
    late_ones = [Payment(number) for number in late]
    invoices: list[Invoice] = [invoice_of(payment) for payment in (*payments, *late_ones)]
    return {
        "currency_rates": cells(rates),
        "payments": cells(payments),
        "invoice_files": cells(invoices),
    }


def without(breaks: Iterable[Planted], *cured: Iterable[Planted]) -> tuple[Planted, ...]:
    """What is left of some breaks."""
    gone = {each for some in cured for each in some}
    return tuple(each for each in breaks if each not in gone)


TUESDAY = Day(
    name="tuesday",
    as_of="2026-03-10",
    verdict="NOT_RECONCILED",
    extracts=delivered(10, range(101, 104), LATE_INVOICES),
    changes=(*TUESDAY_CHANGES, *SENT),
    breaks=without(MONDAY.breaks, CURED_AT_SOURCE, CURED_IN_TARGET),
)
WEDNESDAY = Day(
    name="wednesday",
    as_of="2026-03-11",
    verdict="NOT_RECONCILED",
    extracts=delivered(11, range(104, 106)),
    changes=WEDNESDAY_CHANGES,
    breaks=(
        *TUESDAY.breaks,
        CAME_BACK,
        Planted("TOLERANCE_BUDGET", "", "count/"),
    ),
)
FRIDAY = Day(
    name="friday",
    as_of="2026-03-13",
    verdict="NOT_RECONCILED",
    extracts={},
    changes=FRIDAY_CHANGES,
    breaks=(
        *WEDNESDAY.breaks,
        CHANGED,
        pay("AMOUNT", 3, "PaidAmount", "5"),
        pay("PLAN_OVER", 3, "PaidAmount", "5"),
        Planted("DEBT_OVER", "payment", "5003/1", "PaidAmount", "5"),
        detail("PLAN_UNPAID", "349/2026-03-12/30/1//1", "PaymentsId"),
    ),
)
DAYS = (MONDAY, TUESDAY, WEDNESDAY, FRIDAY)
