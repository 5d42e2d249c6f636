"""What a change of a record kind asks of the rows that are there."""

from dataclasses import replace

import pytest

from schemas.field import Field, Kind, Reference, Rule, Table
from schemas.own_definition import Asks, changes

NOT_NULL = Field("Id", Kind.INTEGER, rules=(Rule.NOT_NULL,))
ID, TEXT = Field("Id", Kind.INTEGER, required=True), Field("Reason", Kind.STRING)
PIN = Field("Pin", Kind.STRING, secret=True)
FEE = Field("Fee", Kind.DOUBLE, amount=True)
CURRENCY = Field("CurrenciesId", Kind.INTEGER)
DAY = Field("Day", Kind.DATETIME, required=True)
TO_FEE, TO_DAY = Reference("Id", "fee"), Reference("Day", "day")
NEWEST = replace(DAY, version=True)


def kind(
    *fields: Field,
    key: tuple[str, ...] = ("Id",),
    title: str = "Refund",
    currency: str | None = None,
    references: tuple[Reference, ...] = (),
) -> Table:
    return Table("refund", title, fields, key=key, currency=currency, references=references)


CASES = {
    # what: before, after, where it is possible
    "nothing": (kind(ID), kind(ID), []),
    "a title": (kind(ID), kind(ID, title="Money back"), [Asks.NOTHING]),
    "a key": (kind(ID, TEXT), kind(ID, TEXT, key=("Id", "Reason")), [Asks.NO_ROWS]),
    "a key that is required by a rule alone": (
        kind(ID),
        kind(NOT_NULL),
        [Asks.NO_ROWS, Asks.NOTHING, Asks.NOTHING],
    ),
    "the other way": (
        kind(NOT_NULL),
        kind(ID),
        [Asks.NO_ROWS, Asks.NO_RECORDS, Asks.NOTHING],
    ),
    "a currency": (
        kind(ID, CURRENCY, FEE, currency="CurrenciesId"),
        kind(ID, CURRENCY, FEE, currency="Id"),
        [Asks.NO_ROWS],
    ),
    "a new field": (kind(ID), kind(ID, TEXT), [Asks.NOTHING]),
    "a new amount": (kind(ID, CURRENCY), kind(ID, CURRENCY, FEE), [Asks.NOTHING]),
    "a new required field": (
        kind(ID),
        kind(ID, Field("Reason", Kind.STRING, required=True)),
        [Asks.NO_RECORDS],
    ),
    "a new field that has to have a value": (
        kind(ID),
        kind(ID, Field("Reason", Kind.STRING, rules=(Rule.NOT_NULL,))),
        [Asks.NONE_WAITING],
    ),
    "a new secret": (kind(ID), kind(ID, PIN), [Asks.NO_ROWS]),
    "a secret less": (kind(ID, PIN), kind(ID), [Asks.NO_ROWS]),
    "a secret now": (kind(ID, Field("Pin", Kind.STRING)), kind(ID, PIN), [Asks.NO_ROWS]),
    "a secret no more": (kind(ID, PIN), kind(ID, Field("Pin", Kind.STRING)), [Asks.NO_ROWS]),
    "a field less": (kind(ID, TEXT), kind(ID), [Asks.UNHELD]),
    "an amount less": (kind(ID, FEE), kind(ID), [Asks.NO_ROWS]),
    "another first amount": (
        kind(ID, FEE, Field("Tax", Kind.DOUBLE, amount=True)),
        kind(ID, Field("Tax", Kind.DOUBLE, amount=True), FEE),
        [Asks.NO_ROWS, Asks.NO_LINES],
    ),
    "another type": (kind(ID, TEXT), kind(ID, Field("Reason", Kind.BOOLEAN)), [Asks.NO_ROWS]),
    "an amount now": (kind(ID, Field("Fee", Kind.DOUBLE)), kind(ID, FEE), [Asks.NO_ROWS]),
    "required now": (
        kind(ID, TEXT),
        kind(ID, Field("Reason", Kind.STRING, required=True)),
        [Asks.NO_RECORDS],
    ),
    "required no more": (
        kind(ID, Field("Reason", Kind.STRING, required=True)),
        kind(ID, TEXT),
        [Asks.NOTHING],
    ),
    "a rule": (
        kind(ID, TEXT),
        kind(ID, Field("Reason", Kind.STRING, rules=(Rule.NOT_EMPTY,))),
        [Asks.NONE_WAITING],
    ),
    "a rule less": (
        kind(ID, Field("Reason", Kind.STRING, rules=(Rule.NOT_EMPTY,))),
        kind(ID, TEXT),
        [Asks.NOTHING],
    ),
    "a business date": (
        kind(ID, Field("Day", Kind.DATETIME)),
        kind(ID, Field("Day", Kind.DATETIME, business_date=True)),
        [Asks.NOTHING],
    ),
    "a version": (kind(ID, DAY), kind(ID, NEWEST), [Asks.NONE_WAITING]),
    "a version less": (kind(ID, NEWEST), kind(ID, DAY), [Asks.NONE_WAITING]),
    "another version": (
        kind(ID, NEWEST),
        kind(replace(ID, version=True), DAY),
        [Asks.NONE_WAITING, Asks.NONE_WAITING],
    ),
    "a version that is a business date too": (
        kind(ID, NEWEST),
        kind(ID, replace(NEWEST, business_date=True)),
        [Asks.NOTHING],
    ),
    "a new version": (kind(ID), kind(ID, NEWEST), [Asks.NO_RECORDS]),
    "a note": (kind(ID, TEXT), kind(ID, Field("Reason", Kind.STRING, note="x")), [Asks.NOTHING]),
    "a reference": (kind(ID), kind(ID, references=(TO_FEE,)), [Asks.NONE_WAITING]),
    "a reference less": (kind(ID, references=(TO_FEE,)), kind(ID), [Asks.NOTHING]),
    "a reference to another kind": (
        kind(ID, references=(TO_FEE,)),
        kind(ID, references=(replace(TO_FEE, table="payment"),)),
        [Asks.NONE_WAITING],
    ),
    "references in another order": (
        kind(ID, DAY, references=(TO_FEE, TO_DAY)),
        kind(ID, DAY, references=(TO_DAY, TO_FEE)),
        [Asks.NOTHING],
    ),
    "another order": (kind(ID, TEXT), kind(TEXT, ID), [Asks.NO_LINES]),
    "a new field before others": (kind(ID), kind(TEXT, ID), [Asks.NOTHING, Asks.NO_LINES]),
    "a field less before others": (kind(TEXT, ID), kind(ID), [Asks.UNHELD, Asks.NO_LINES]),
    "a field in the place of another": (
        kind(TEXT, ID),
        kind(Field("Note", Kind.STRING), ID),
        [Asks.UNHELD, Asks.NOTHING],
    ),
}


@pytest.mark.parametrize(("before", "after", "asks"), CASES.values(), ids=CASES)
def test_changes(before: Table, after: Table, asks: list[Asks]) -> None:
    assert [change.asks for change in changes(before, after)] == asks
