"""Cells that could be two things are errors of their row, also where settings meet."""

from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ProfileError
from connectors.files.profiles.profile_file import read_profile
from connectors.settings import Settings
from flows.stages.examining.examine import examine

CONSTANTS = {
    "TenantsId": 7,
    "ActionsId": 1,
    "DebtsId": 5,
    "CurrenciesId": 3,
    "CurrencyRatesId": 9,
    "DiscountAmount": "0.00",
    "Id": 1,
    "PaidAmount": "1.00",
    "PaymentDate": "2026-01-01T00:00Z",
}
EXCEL = {"from": ["A", "B"], "date_format": "excel", "offset": "Z"}
UNIX = {"from": ["A", "B"], "date_format": "unix"}
CURRENCY = {"from": ["A"], "currency": ["Rs1", "$1", "1 kr"]}

CELLS: dict[str, tuple[str, dict[str, Any], str, str | None]] = {
    # Name of the field, how it is read, the cells, and what is said of them; None: nothing.
    "a day and a time as numbers": ("PaymentDate", EXCEL, "45292,0.5", "more than one"),
    "a day and no time": ("PaymentDate", EXCEL, "45292,", None),
    "seconds in two columns": ("PaymentDate", UNIX, "1767225600,0", "more than one"),
    "a number in two columns": ("Id", {"from": ["A", "B"]}, "1,23", "more than one"),
    "the same in one of them": ("Id", {"from": ["A", "B"]}, ",123", None),
    "with a pattern for its part": (
        "Id",
        {"from": ["A", "B"], "join": "/", "part": r"(\d+)/"},
        "1,23",
        None,
    ),
    "a point behind a word": ("PaidAmount", CURRENCY, "Rs.500,", "Rs.500"),
    "a point behind a sign": ("PaidAmount", CURRENCY, "$.50,", None),
    "a word behind a point": ("PaidAmount", CURRENCY, "500. kr,", "500. kr"),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_that_could_be_two_things(tmp_path: Path, name: str) -> None:
    field, form, cells, said = CELLS[name]
    constants = {one: value for one, value in CONSTANTS.items() if one != field}
    profile = read_profile(
        {
            "feed": "f",
            "record": "payment",
            "unknown_columns": "ignore",
            "fields": {field: form},
            "constants": constants,
        }
    )
    (tmp_path / "f.csv").write_text(f"A,B\n{cells}\n")
    (verdict,) = examine(Settings(home=tmp_path), [str(tmp_path / "f.csv")], profile)
    told = [error["Message"] for reject in verdict.rejects for error in reject.errors]
    assert [said in one for one in told] == [True] if said else told == [], verdict


def test_a_default_that_no_cell_of_a_table_can_meet() -> None:
    table = {"keep": ["Date"], "name": "Currency", "value": "Rate"}
    rates = {"feed": "f", "record": "currency_rate", "unpivot": table}
    for of in (
        {"columns": {"Rate": "ExchangeRate"}, "fields": {"ExchangeRate": {"default": "1"}}},
        {"fields": {"ExchangeRate": {"from": [" rate"], "default": "1"}}},
    ):
        with pytest.raises(ProfileError, match="default is never used"):
            read_profile({**rates, **of})


def test_rows_of_insert_batch_data_are_not_left_out_by_a_cell(tmp_path: Path) -> None:
    """Which record it is its header says; and the condition would not be looked at."""
    profile = read_profile(
        {"feed": "f", "unknown_columns": "ignore", "leave_out": {"Status": ["void"]}}
    )
    path = tmp_path / "f.csv"
    path.write_text("Data,HasError,Merged,BatchId,Jsondata,ErrorData,Status\na,,,,,,void\n")
    (verdict,) = examine(Settings(home=tmp_path), [str(path)], profile)
    assert verdict.refused == "unsupported_format"
    assert "the profile leaves rows out" in (verdict.message or "")


@pytest.mark.parametrize("key", ["leave_out", "keep_only"])
def test_a_column_is_named_once(key: str) -> None:
    with pytest.raises(ProfileError, match=f"{key} names a column twice"):
        read_profile({"feed": "f", key: {"Status": ["a"], "status ": ["b"]}})
