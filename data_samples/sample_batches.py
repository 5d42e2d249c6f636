"""Insert-batch data: payments, rates and invoice files wrapped as the service lists them."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from sample_records import (
    CANADIAN,
    TENANTS,
    Books,
    debt_currency,
    invoice_url,
    moment,
    money,
    rate,
)
from sample_text import COLUMNS, Row, canonical_json, line

CANADIAN_DAYS = 7
INVOICES, PAYMENTS = 40, 139
FIRST_BATCH, BATCH_ROWS = 4101, 40


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A record and the insert-batch row around it."""

    extract: str
    """The extract the record would otherwise stand in."""
    record: Row
    row: Row

    @property
    def merged(self) -> bool:
        """Whether the listing says that the record is already merged."""
        return self.row[2] == "True"


def insert_batch_data(books: Books, draw: random.Random) -> list[Wrapped]:
    """Two hundred rows: rates first, then invoice files and payments that nobody else delivers."""
    return [
        Wrapped(extract, record, _row(place, extract, record))
        for place, (extract, record) in enumerate(_records(books, draw))
    ]


def _records(books: Books, draw: random.Random) -> Iterator[tuple[str, Row]]:
    days = books.days[-CANADIAN_DAYS:]
    for tenant in TENANTS:
        for place, day in enumerate(days):
            number = 580_001 + tenant * 100 + place
            books.rate_ids[tenant, CANADIAN, day] = number
            yield "currency_rates", rate(books, number, tenant, CANADIAN, day)
    for place in range(INVOICES):
        tenant = TENANTS[place % 3]
        debt = wrapped_debt(tenant, place)
        address = invoice_url(tenant, debt, 0)
        yield "invoice_files", (str(690_001 + place), str(tenant), str(debt), address)
    span = (days[-1] - days[0]).days + 1
    for place in range(PAYMENTS):
        tenant = TENANTS[place % 3]
        debt = wrapped_debt(tenant, place % 45)
        currency = debt_currency(tenant, debt) if place % 9 % 4 else CANADIAN
        day = days[0] + timedelta(days=draw.randrange(span))
        # One number that a double cannot hold, since JSON readers are tempted to use one.
        number = 9_007_199_254_741_993 if place == 5 else 48_500_001 + place
        yield (
            "payments",
            (
                str(number),
                str(tenant),
                str(5_900_000_000 + place),
                str(debt + (500 if currency == CANADIAN else 0)),
                moment(draw, tenant, day),
                money(tenant, draw.randrange(1_000, 400_000)),
                money(tenant, draw.choice((0, 0, 0, 150))),
                str(currency),
                str(books.rate_id(tenant, currency, day)),
            ),
        )


def wrapped_debt(tenant: int, place: int) -> int:
    """A debt that only insert-batch data speaks of."""
    return tenant * 10_000_000 + 970_001 + place


def _row(place: int, extract: str, record: Row) -> Row:
    """The row in one of the shapes a listing shows: new, already merged, or once in error."""
    batch = str(FIRST_BATCH + place // BATCH_ROWS)
    jsondata = canonical_json(COLUMNS[extract], record)
    data = line(record)
    if extract == "payments" and place % 16 == 3:
        return (_once_wrong(record), "True", "False", batch, jsondata, _error())
    if extract == "payments" and place % 11 == 2:
        return (data, "False", "True", batch, jsondata, None)
    if place % 6 == 4:
        return (jsondata, "False", "False", batch, None, None)
    return (data, "False", "False", batch, jsondata, None)


def _once_wrong(record: Row) -> str:
    """The line as it came at first: the day written in a way that has two readings."""
    year, month, day = str(record[4])[:10].split("-")
    return line((*record[:4], f"{month}/{day}/{year}", *record[5:]))


def _error() -> str:
    error = {
        "ErrorCode": "DateTime",
        "FieldName": "PaymentDate",
        "Message": "'PaymentDate' is not an ISO 8601 date and time.",
    }
    return json.dumps([error])
