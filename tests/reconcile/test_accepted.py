"""Which records are matched because every break of theirs was accepted."""

from typing import Any

import polars as pl
import pytest

from flows.steps.frames.parts import held_rows
from flows.steps.reconcile.conclusion import accepted_keys, with_accepted
from schemas.tables import PAYMENT
from tests.reconcile.records import database, extract, matched

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
