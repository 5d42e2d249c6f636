"""What the records of a scope belong with."""

from typing import Any

import polars as pl
import pytest

from flows.stages.reconcile.around import OfTenants
from schemas.tables import PAYMENT, PAYMENT_PLAN_DETAIL
from tests.reconcile.records import database

PAYMENTS = [(1, 7), (2, 8), (3, 7), (3, 8)]
"""Number and tenant: both tenants have a payment 3."""


@pytest.mark.parametrize(
    ("names", "own", "batch", "theirs"),
    [
        # What each detail of a plan names, what another detail of it names that is of the scope,
        # the batch that wrote them, and which of them are of tenant 7.
        ([1, 2], None, 1, [True, False]),
        ([1, None], None, 1, [True, True]),
        ([2, None], None, 1, [False, False]),
        # A number of two tenants is that of the tenant of the plan.
        ([1, 3], None, 1, [True, True]),
        ([3], 1, 1, [True]),
        ([2, 3], None, 1, [False, False]),
        ([3], None, 1, [False]),
        ([1, 2, None], None, 1, [True, False, False]),
        # What was delivered bound to a tenant is theirs, whatever it names.
        ([2, None, 99], None, 2, [True, True, True]),
        ([99], None, 1, [False]),
    ],
)
def test_a_detail_is_of_the_tenant_of_its_payment(
    names: list[int | None], own: int | None, batch: int, theirs: list[bool]
) -> None:
    def details(*names: int | None) -> pl.DataFrame:
        rows: list[dict[str, Any]] = [{"PaymentsId": name, "batch_id": batch} for name in names]
        return database(PAYMENT_PLAN_DETAIL, *rows)

    payments = database(PAYMENT, *({"Id": number, "TenantsId": of} for number, of in PAYMENTS))
    some = details(*names)
    mine = details(own) if own else details()
    found = OfTenants((7,), lambda rows: rows, (2,)).details(some, mine, payments)
    assert found.equals(some.filter(pl.Series(theirs)))
