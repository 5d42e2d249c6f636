"""The records of the clean sample delivery: three tenants, sixty banking days of real rates."""

import csv
import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from sample_text import Row

TENANTS = (7, 8, 9)
CODES = ("EUR", "USD", "GBP", "CHF", "PLN", "SEK", "NOK", "DKK", "CZK", "CAD")
"""ISO code of CurrenciesId 1, 2, ...; the dollar of Canada comes only as insert-batch data."""
EURO, DOLLAR, CANADIAN = 1, 2, 10
PAID, OPEN = 2, 1
"""StatusCodesId used in the plan. The document gives the values no meaning, and neither do we."""
CURRENCY_OF_TENANT = {7: (1, 1, 1, 4, 5, 9), 8: (3, 3, 2, 1, 2, 6), 9: (2, 2, 1, 7, 8, 6)}
DEBTS_OF_TENANT, PLANS_OF_TENANT, PAYMENTS_OF_TENANT = 560, 30, 1000
BEYOND_EXACT_DOUBLE = 9_007_199_254_740_993
WIDE_IDS = 40
MIDNIGHT = {7: "", 8: "T00:00:00", 9: "T00:00:00Z"}
SUMMER_TIME_ENDS = date(2026, 10, 25)


@dataclass(slots=True)
class Books:
    """What the records of one kind need to know of the others."""

    days: list[date]
    quotes: dict[tuple[int, date], str]
    """(CurrenciesId, banking day) -> units per euro, as published."""
    rate_ids: dict[tuple[int, int, date], int] = field(default_factory=dict)
    """(TenantsId, CurrenciesId, banking day) -> Id of the rate."""
    paid_debts: dict[int, int] = field(default_factory=dict)
    """DebtsId -> TenantsId of every debt with a payment in the extract."""
    plan_rows: list[Row] = field(default_factory=list)
    planned_payments: set[str] = field(default_factory=set)

    def rate_id(self, tenant: int, currency: int, day: date) -> int:
        """The latest rate on or before the day; euro payments use the rate of the dollar."""
        latest = self.days[bisect_right(self.days, day) - 1]
        return self.rate_ids[tenant, max(currency, DOLLAR), latest]


def read_books(source: Path) -> Books:
    """Read ecb_reference_rates.csv."""
    with source.open(encoding="ascii", newline="") as file:
        published = list(csv.DictReader(file))
    days = [date.fromisoformat(row["Date"]) for row in published]
    quotes = {
        (currency, day): row[code]
        for day, row in zip(days, published, strict=True)
        for currency, code in enumerate(CODES, start=1)
        if currency != EURO
    }
    return Books(days, quotes)


def currency_rates(books: Books) -> Iterator[Row]:
    """One rate per tenant, currency and banking day, the euro being the one side."""
    number = 500_000
    for tenant in TENANTS:
        for day in books.days:
            for currency in range(DOLLAR, CANADIAN):
                number += 1
                books.rate_ids[tenant, currency, day] = number
                yield rate(books, number, tenant, currency, day)


def rate(books: Books, number: int, tenant: int, currency: int, day: date) -> Row:
    """A currency rate; each tenant writes the day in another form the document allows."""
    quote, effective = books.quotes[currency, day], f"{day}{MIDNIGHT[tenant]}"
    return (str(number), str(tenant), str(EURO), str(currency), quote, effective)


def payments(books: Books, draw: random.Random) -> list[Row]:
    """Payments in the order of their days; numbers grow with the day inside a tenant."""
    rows: list[tuple[str, Row]] = []
    for tenant in TENANTS:
        planned = list(_plan_payments(books, draw, tenant))
        ordinary = _ordinary_payments(books, draw, tenant, PAYMENTS_OF_TENANT - len(planned))
        ordered = sorted((*planned, *ordinary), key=lambda made: (made[0], made[1]))
        for place, (day, debt, currency, amount, discount, plan) in enumerate(ordered):
            number = tenant * 1_000_000 + 40_000_001 + place
            # Neighbours beyond 2**53 are one number to whoever reads them as double.
            if tenant == TENANTS[-1] and place < WIDE_IDS:
                number = BEYOND_EXACT_DOUBLE + place
            books.paid_debts[debt] = tenant
            row = (
                str(number),
                str(tenant),
                str(5_000_000_000 + debt * 10 + place % 7),
                str(debt),
                moment(draw, tenant, day),
                money(tenant, amount),
                money(tenant, discount),
                str(currency),
                str(books.rate_id(tenant, currency, day)),
            )
            rows.append((f"{day}{place:04d}", row))
            if plan:
                _plan_row(books, plan, day, row)
    return [row for _, row in sorted(rows, key=lambda keyed: (keyed[0], keyed[1][1]))]


Made = tuple[date, int, int, int, int, int]
"""Day, debt, currency, amount and discount in cents, payment plan or 0."""


def debt_currency(tenant: int, debt: int) -> int:
    """A debt has one currency."""
    choice = CURRENCY_OF_TENANT[tenant]
    return choice[debt * 7919 % 6]


def _plan_payments(books: Books, draw: random.Random, tenant: int) -> Iterator[Made]:
    """Plans of six instalments every second week; the last ones are due after the extract."""
    if tenant == TENANTS[-1]:
        return
    for place in range(PLANS_OF_TENANT):
        debt = tenant * 10_000_000 + 900_001 + place
        plan, currency = tenant * 1000 + place + 1, debt_currency(tenant, debt)
        amount = draw.randrange(2_500, 90_000)
        first = books.days[0] + timedelta(days=draw.randrange(28))
        for instalment in range(6):
            due = first + timedelta(days=instalment * 14)
            if due <= books.days[-1] and instalment < 5:
                yield due, debt, currency, amount, 0, plan
            else:
                late = max(due, books.days[-1] + timedelta(days=3 + instalment * 14))
                planned = (str(plan), str(late), money(tenant, amount), str(currency))
                books.plan_rows.append((*planned, None, str(OPEN)))


def _plan_row(books: Books, plan: int, day: date, payment: Row) -> None:
    planned = (str(plan), str(day), payment[5], payment[7], payment[0], str(PAID))
    books.plan_rows.append(planned)
    books.planned_payments.add(str(payment[0]))


def _ordinary_payments(
    books: Books, draw: random.Random, tenant: int, count: int
) -> Iterator[Made]:
    span = (books.days[-1] - books.days[0]).days + 1
    for _ in range(count):
        debt = tenant * 10_000_000 + 1 + draw.randrange(DEBTS_OF_TENANT)
        amount = draw.randrange(500, 25_000) * draw.choice((1, 1, 2, 5, 40))
        discount = amount * 2 // 100 if draw.random() < 0.15 else 0
        day = books.days[0] + timedelta(days=draw.randrange(span))
        yield day, debt, debt_currency(tenant, debt), amount, discount, 0


def moment(draw: random.Random, tenant: int, day: date) -> str:
    """Office hours, when the day is the same at every offset used."""
    offset = {
        7: "+02:00" if day < SUMMER_TIME_ENDS else "+01:00",
        8: draw.choice(("Z", "+00:00")),
        9: draw.choice(("-04:00", "-04:00", "+05:30")),
    }[tenant]
    hour, minute, second = draw.randrange(9, 18), draw.randrange(60), draw.randrange(60)
    return f"{day}T{hour:02d}:{minute:02d}:{second:02d}{offset}"


def money(tenant: int, cents: int) -> str:
    """Cents as a decimal; one tenant leaves trailing zeros out, the others do not."""
    text = f"{cents // 100}.{cents % 100:02d}"
    return text.rstrip("0").rstrip(".") if tenant == TENANTS[1] else text


def payment_plan_details(books: Books) -> list[Row]:
    """Instalments by plan and day; the unpaid ones have no PaymentsId."""
    return sorted(books.plan_rows, key=lambda row: (str(row[0]), str(row[1])))


def invoice_files(books: Books, draw: random.Random) -> list[Row]:
    """A file for most debts, two for a few, and some for debts nobody has paid yet."""
    unpaid = {tenant * 10_000_000 + 950_001 + n: tenant for tenant in TENANTS for n in range(3)}
    rows: list[Row] = []
    for debt, tenant in sorted((books.paid_debts | unpaid).items()):
        copies = draw.choices((0, 1, 2), weights=(6, 91, 3))[0]
        for copy in range(copies):
            number = 600_001 + len(rows)
            rows.append((str(number), str(tenant), str(debt), invoice_url(tenant, debt, copy)))
    return rows


def invoice_url(tenant: int, debt: int, copy: int) -> str:
    """An address that is data only; a few need quoting or are not plain ASCII."""
    folder = f"https://files.example.com/tenant-{tenant}/invoices/2026"
    tail = {3: "?part=a,b", 5: "-Straße.pdf", 8: "-reçu.pdf"}.get(debt % 40, ".pdf")
    return f"{folder}/{debt}{'-reminder' if copy else ''}{tail}"
