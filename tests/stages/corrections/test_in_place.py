"""Whether a secret may stand in another column: a cell was lost, and those behind it moved."""

import pytest

from flows.steps.validate.omitted_secrets import in_place
from schemas.tables import EXTRACTS

TENANT, ACTION, NAME, KEY, URL = (
    *("TenantsId", "PaymentActionsId", "Name"),
    *("ServiceKey", "NotifyUrl"),
)
AS_DOCUMENTED = (TENANT, ACTION, NAME, KEY, URL)
NUMBER_BEFORE_SECRET = (TENANT, NAME, ACTION, KEY, URL)
PLACES: list[tuple[tuple[str | None, ...], list[str | None], set[str], bool]] = [
    # columns, cells, the fields that reasons name, whether the cells stand in their own columns
    (AS_DOCUMENTED, ["1", "2", "n", "sk", "u"], set(), True),
    (AS_DOCUMENTED, ["x", "2", "n", "sk", "u"], {TENANT}, True),
    (AS_DOCUMENTED, ["x", "2", "n", "sk", None], {TENANT}, True),
    (AS_DOCUMENTED, ["1", "2", "n", "sk", "u"], {URL}, False),
    (AS_DOCUMENTED, ["1", "2", "n", "sk", "u"], {""}, False),
    (AS_DOCUMENTED, ["x", "2", "sk", "sk", "u"], {TENANT}, False),
    # One of them was lost.
    (AS_DOCUMENTED, ["2", "n", "sk", "u", None], {ACTION}, False),
    (AS_DOCUMENTED, ["1", "n", "sk", "u", None], {ACTION}, False),
    (NUMBER_BEFORE_SECRET, ["n", "2", "sk", "u", None], {TENANT, ACTION}, False),
    (NUMBER_BEFORE_SECRET, ["1", "2", "sk", "u", None], {ACTION}, False),
    (NUMBER_BEFORE_SECRET, ["1", "n", "sk", "u", None], {ACTION}, False),
    (NUMBER_BEFORE_SECRET, ["1", "n", "2", "u", None], {NAME}, False),
    # The secret may be in a column that no field has.
    ((TENANT, ACTION, NAME, None, URL), ["x", "2", "n", "sk", "u"], {TENANT}, True),
    ((TENANT, ACTION, NAME, None, URL), ["1", "2", "n", "sk", "u"], {URL}, False),
    ((TENANT, ACTION, NAME, URL), ["1", "2", "n", "u"], {URL}, True),
]


@pytest.mark.parametrize(("columns", "cells", "wrong", "there"), PLACES)
def test_cells_of_a_row_in_error_stand_in_their_own_columns(
    columns: tuple[str | None, ...], cells: list[str | None], wrong: set[str], there: bool
) -> None:
    gateway = EXTRACTS["payment_gateway"]
    assert in_place(cells, columns, gateway, frozenset(wrong)) is there
