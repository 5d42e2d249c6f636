"""A time that one side has and the other has not is a difference of that field, whichever it is."""

from datetime import datetime

import pytest

from schemas.tables import USER_ACCOUNT
from tests.reconcile.records import database, extract, matched

BORN = datetime(1990, 5, 17)  # noqa: DTZ001
LATER = datetime(1990, 5, 18)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("delivered", "found", "codes"),
    [
        (BORN, BORN, []),
        (None, None, []),
        (BORN, None, [("VALUE", "BirthDate")]),
        (None, BORN, [("VALUE", "BirthDate")]),
        (BORN, LATER, [("INSTANT", "BirthDate")]),
    ],
)
def test_a_time_is_compared_where_one_side_has_none(
    delivered: datetime | None, found: datetime | None, codes: list[tuple[str, str]]
) -> None:
    of = {"Id": 1, "EMail": "a@b.co"}
    result = matched(
        USER_ACCOUNT,
        extract(USER_ACCOUNT, of | {"BirthDate": delivered}),
        database(USER_ACCOUNT, of | {"BirthDate": found}),
    )
    assert result.breaks.select("code", "field").rows() == codes
