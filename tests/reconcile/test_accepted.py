"""Which records are matched because every break of theirs was accepted, and as what."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from flows.steps.breaks.acceptance import both_values
from flows.steps.breaks.frame import gather
from flows.steps.breaks.lifecycle import CARRIED, CHANGED, DECISIONS, carry, nothing_before
from flows.steps.frames.parts import held_rows
from flows.steps.reconcile.conclusion import accepted_keys, with_accepted
from flows.steps.reconcile.debts import roll_up
from flows.steps.reconcile.documents import cover, reconcile_documents
from schemas.tables import INVOICE_FILE, PAYMENT
from tests.reconcile.records import AS_OF, database, extract, matched

SMALLER, LARGER = {"PaidAmount": 1}, {"PaidAmount": 2}
CASES = [
    # tenant, key and state of each break about payments; status of payment 12 of tenant 2
    ([(2, "12/2", "ACCEPTED")], "MATCHED_MANUAL"),
    ([(2, "12/2", "OPEN")], "MISMATCH"),
    ([(2, "12/2", "ACCEPTED"), (2, "12/2", "OPEN")], "MISMATCH"),
    ([(2, "12/2", "RESOLVED_SOURCE")], "MISMATCH"),
    # Debt 12 of tenant 1, in currency 2, is told by the same key.
    ([(1, "12/2", "ACCEPTED"), (2, "12/2", "OPEN")], "MISMATCH"),
    # So it may be of the same tenant.
    ([(2, "12/2", "ACCEPTED"), (2, "12/2", "OPEN", "DEBT_UNDER")], "MATCHED_MANUAL"),
    ([(2, "12/2", "OPEN"), (2, "12/2", "ACCEPTED", "DEBT_UNDER")], "MISMATCH"),
]


@pytest.mark.parametrize(("breaks", "status"), CASES)
def test_a_record_is_matched_where_all_of_its_own_breaks_are_accepted(
    breaks: list[tuple[Any, ...]], status: str
) -> None:
    names = {"tenant": pl.Int32, "key": pl.String, "state": pl.String, "code": pl.String}
    rows = [one if len(one) > 3 else (*one, "AMOUNT") for one in breaks]
    carried = pl.DataFrame(rows, names, orient="row").with_columns(
        pl.lit(PAYMENT.name).alias("record"), pl.lit("").alias("side")
    )
    who = {"Id": 12, "TenantsId": 2}
    found = matched(PAYMENT, extract(PAYMENT, who | SMALLER), database(PAYMENT, who | LARGER))
    lines = with_accepted(PAYMENT, found.statuses, accepted_keys(held_rows(carried)), None)
    assert lines["status"].to_list() == [status]


NOTHING = {"PaidAmount": None, "DiscountAmount": None, "state": "rejected"}
WHOLE = [
    # the payment that is missing, what it is later, the ceiling, what becomes of the acceptance
    ({}, {}, None, "ACCEPTED"),
    ({}, {"PaidAmount": Decimal(-10)}, None, "REOPENED"),
    ({}, {"DiscountAmount": Decimal("0.5")}, None, "REOPENED"),
    ({}, {"PaidAmount": Decimal(20)}, "25", "ACCEPTED"),
    ({}, {"PaidAmount": Decimal(-5)}, "25", "REOPENED"),
    ({"PaidAmount": Decimal(-10)}, {"PaidAmount": Decimal("-20.5")}, "25", "ACCEPTED"),
    ({}, {"PaidAmount": Decimal(20), "DiscountAmount": Decimal(9)}, "25", "REOPENED"),
    ({"state": "rejected"}, {"PaidAmount": Decimal(-10), "state": "rejected"}, None, "REOPENED"),
    (NOTHING, NOTHING, None, "ACCEPTED"),
    (NOTHING, NOTHING | {"DiscountAmount": Decimal(500)}, None, "REOPENED"),
]


@pytest.mark.parametrize(("seen", "now", "up_to", "state"), WHOLE)
def test_an_acceptance_of_a_whole_record_covers_its_amounts_with_their_signs(
    seen: dict[str, Any], now: dict[str, Any], up_to: str | None, state: str
) -> None:
    before = carried_on(missing(seen), nothing_before())
    found = carried_on(missing(now), before, up_to)
    assert found["state"].to_list() == [state]
    accepted_as, is_now = found.select(both_values({})).row(0)
    assert state == "ACCEPTED" or accepted_as != is_now
    # What a run of an earlier version left says nothing of these: they are as the next one says.
    unknown = before.with_columns(pl.lit(None, pl.String).alias("amounts"))
    paid = [one.get("PaidAmount", Decimal(10)) for one in (seen, now)]
    sizes = [amount and amount.copy_abs() for amount in paid]
    covered = sizes[1] <= Decimal(up_to) if up_to else sizes[0] == sizes[1]
    found = carried_on(missing(now), unknown, up_to)
    assert covered is (found["state"][0] == "ACCEPTED")
    assert not covered or carry_on(missing(now), found)["state"].to_list() == ["ACCEPTED"]
    other = now | {"DiscountAmount": Decimal(-7)}
    assert carry_on(missing(other), found)["state"].to_list() == ["REOPENED"]


PAID_OF_DEBT: list[tuple[list[dict[str, Any]], str]] = [
    ([{}], "ACCEPTED"),
    ([{"PaidAmount": Decimal(-10)}], "REOPENED"),
    ([{}, {"Id": 2, "CurrenciesId": 1}], "REOPENED"),
]


@pytest.mark.parametrize(("now", "state"), PAID_OF_DEBT)
def test_an_acceptance_of_a_debt_without_a_file_covers_what_was_paid(
    now: list[dict[str, Any]], state: str
) -> None:
    one: list[dict[str, Any]] = [{}]
    several = [*one, {"Id": 2, "CurrenciesId": 1}]
    more = [*now[:-1], now[-1] | {"PaidAmount": Decimal(7)}]
    for seen, later, becomes in ((one, now, state), (several, more, "REOPENED")):
        found = carried_on(without_file(later), carried_on(without_file(seen), nothing_before()))
        assert found["state"].to_list() == [becomes]


def without_file(payments: list[dict[str, Any]]) -> pl.DataFrame:
    covered = cover(roll_up(extract(PAYMENT, *payments)), database(INVOICE_FILE))
    return gather([reconcile_documents([covered])])


def missing(payment: dict[str, Any]) -> pl.DataFrame:
    return gather([matched(PAYMENT, extract(PAYMENT, payment), database(PAYMENT)).breaks])


def carried_on(breaks: pl.DataFrame, before: pl.DataFrame, up_to: str | None = None) -> Any:
    """Breaks of the next run, where those of the run before were accepted on it."""
    accepted = [
        {"id": 1, "break_id": one, "what": "accept", "by": "ann", "reason": "agreed",
         "until": "2026-12-31", "up_to": up_to, "reconciliation_id": 1}
        for one in before["id"]
    ]  # fmt: skip
    return carry_on(breaks, before, accepted)


def carry_on(
    breaks: pl.DataFrame, before: pl.DataFrame, decided: Sequence[dict[str, Any]] = ()
) -> Any:
    decisions = pl.DataFrame(decided, schema=DECISIONS)
    found = carry(breaks, before, decisions, pl.DataFrame(schema=CHANGED), AS_OF)
    return found.select(list(CARRIED))
