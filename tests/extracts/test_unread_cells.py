"""Cells of workbooks that hold no value for sure: what is made of them is rejected, not cut out."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.settings import Limits, Settings
from flows.stages.examining.examine import FileVerdict, examine
from schemas.cells.sheet_cells import NO_DAY, NOT_READ, TOO_EARLY, TOO_LARGE, remarked
from schemas.own_columns import PARENT_COLUMN

SHAPE: dict[str, Any] = {
    "feed": "by-hand",
    "record": "payment",
    "offset": "+01:00",
    "columns": {"No": "Id", "Paid": "PaidAmount", "On": "PaymentDate"},
    "constants": {
        **dict.fromkeys(("TenantsId", "ActionsId", "DebtsId", "CurrencyRatesId"), 7),
        "CurrenciesId": 978,
        "DiscountAmount": "0.00",
    },
}
HEADER, GOOD = ["No", "Paid", "On"], [1, 2.5, "2026-11-01"]
LARGE, LONG, EARLY = 1 << 53, 123456789012345678.0, date(1900, 2, 28)
DAY = r"(\d{4}-\d\d-\d\d)"
TEXTS: dict[str, Any] = {
    "feed": "files",
    "record": "message_tone",
    "columns": {"No": "AvatarsId"},
    "constants": {"TenantsId": 7},
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "home")


def with_fields(shape: dict[str, Any], **fields: dict[str, Any]) -> Profile:
    """The profile in which these fields are made in another way than by their column."""
    columns = {theirs: name for theirs, name in shape["columns"].items() if name not in fields}
    return read_profile({**shape, "columns": columns, "fields": fields})


def examined(settings: Settings, folder: Path, profile: Profile, *rows: list[Any]) -> FileVerdict:
    path = folder / "a.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet, day = book.add_worksheet(), book.add_format({"num_format": "dd.mm.yyyy"})
    for at, row in enumerate(rows):
        for column, value in enumerate(row):
            of_day = isinstance(value, date)
            sheet.write_datetime(at, column, value, day) if of_day else sheet.write(
                at, column, value
            )
    book.close()
    (verdict,) = examine(settings, [str(path)], profile)
    return verdict


PARTS = [
    # column, its cell, the field that is made of it
    (0, LARGE, "Id", {"from": ["No"], "part": r"(\d+)"}),
    (0, LONG, "Id", {"from": ["No"], "part": r"(\d+)"}),
    (0, LONG, "Id", {"from": ["No"], "part": r"^(\d)", "default": "5"}),
    (0, LARGE, "Id", {"from": ["No"], "part": r"(\d+) ", "prefix": "0"}),
    (0, LARGE, "Id", {"from": ["No"], "part": r"before|(\d+)", "map": {"9007199254740992": 3}}),
    (0, LARGE, "Id", {"from": ["On", "No"], "join": " ", "part": r"-01 (\d+)"}),
    (0, LARGE, "Id", {"from": ["On", "No"], "join": "-01 ", "part": r"-01 (\d+)"}),
    (1, LARGE, "PaidAmount", {"from": ["Paid"], "part": r"([\d.]+)"}),
    (1, LONG, "PaidAmount", {"sum": ["Paid"], "minus": ["No"]}),
    (2, EARLY, "PaymentDate", {"from": ["On"], "part": DAY}),
    (2, EARLY, "PaymentDate", {"from": ["On"], "part": DAY, "date_format": "%Y-%m-%d"}),
]


@pytest.mark.parametrize("strict_bytes", [0, 1 << 20], ids=["fast", "strict"])
@pytest.mark.parametrize(("column", "cell", "field", "told"), PARTS)
def test_nothing_is_cut_out_of_a_cell_that_is_not_read(
    tmp_path: Path, column: int, cell: object, field: str, told: dict[str, Any], strict_bytes: int
) -> None:
    settings = Settings(tmp_path / "home", limits=Limits(strict_bytes=strict_bytes))
    wrong: list[Any] = [*GOOD]
    wrong[column] = cell
    verdict = examined(settings, tmp_path, with_fields(SHAPE, **{field: told}), HEADER, wrong)
    (reject,) = verdict.rejects
    assert [(one["FieldName"], one["ErrorCode"]) for one in reject.errors] == [
        (field, "UnreadCell")
    ]


ERRORS = ["#N/A", "#DIV/0!", "#REF!", "#NAME?", "#VALUE!", "#NUM!", "#NULL!", "#SPILL!", "Err:502"]
REMARKED = [remarked("100", why) for why in (TOO_LARGE, TOO_EARLY, NO_DAY, NOT_READ)]
UNITS: list[dict[str, Any]] = [
    {"map": {"JPY": 100}, "others": 1},
    {"part": r"([A-Z]+|\d+)", "map": {"JPY": 100}, "others": 1},
    {"part": r"(\d)"},
]
DEFAULTS = [
    {"from": ["No"], "default": "5"},
    {"from": ["No"], "part": r"(\d)", "default": "5"},
    {"from": ["No"], "part": r"(\d)", "map": {"1": 1, "5": 5, "0": 3}, "default": "5"},
]


@pytest.mark.parametrize("strict_bytes", [0, 1 << 20], ids=["fast", "strict"])
@pytest.mark.parametrize(
    ("field", "told"),
    [("PaidAmount", {"sum": ["Paid"], "per": {"column": "Unit", **one}}) for one in UNITS]
    + [("Id", one) for one in DEFAULTS],
)
def test_nothing_else_stands_for_it_or_for_an_error(
    tmp_path: Path, field: str, told: dict[str, Any], strict_bytes: int
) -> None:
    settings = Settings(tmp_path / "home", limits=Limits(strict_bytes=strict_bytes))
    rows = [
        [at, 2.5, "2026-11-01", cell] if field == "PaidAmount" else [cell, 2.5, "2026-11-01", "JPY"]
        for at, cell in enumerate((*ERRORS, *REMARKED))
    ]
    profile = with_fields({**SHAPE, "unknown_columns": "ignore"}, **{field: told})
    verdict = examined(settings, tmp_path, profile, [*HEADER, "Unit"], *rows)
    assert [one.errors[0]["FieldName"] for one in verdict.rejects] == [field] * len(rows)


@pytest.mark.parametrize(
    "told",
    [
        {"from": ["Name"]},
        {"from": ["Name"], "part": r"(\d+)"},
        {"from": ["Name"], "prefix": "T-"},
        {"from": ["No", "Name"], "join": "/"},
        {"from": ["Name", "No"], "join": "/"},
        {"from": ["Name"], "part": r"(\d+)", "map": {"9007199254740992": "kind"}},
    ],
)
@pytest.mark.parametrize("cell", [LARGE, EARLY], ids=["large", "early"])
def test_a_text_is_none_either(
    settings: Settings, tmp_path: Path, cell: object, told: dict[str, Any]
) -> None:
    profile = with_fields(TEXTS, Name=told)
    verdict = examined(settings, tmp_path, profile, ["No", "Name"], [1, cell], [2, "firm 5"])
    (reject, *others) = verdict.rejects
    assert [one["FieldName"] for one in reject.errors] == ["Name"]
    assert reject.errors[0]["ErrorCode"] == "UnreadCell"
    assert "\0" not in reject.errors[0]["Message"]
    assert [one.errors[0]["FieldName"] for one in others] == ["Name"] * ("map" in told)


def test_no_number_is_made_of_it(settings: Settings, tmp_path: Path) -> None:
    profile = read_profile(
        {
            "feed": "files",
            "record": "invoice_file",
            "constants": {"TenantsId": 7, "DebtsId": 5},
            "fields": {"Id": {"key": ["InvoiceUrl"]}},
        }
    )
    verdict = examined(settings, tmp_path, profile, ["InvoiceUrl"], [LARGE], [LARGE], ["a.pdf"])
    assert [[one["FieldName"] for one in row.errors] for row in verdict.rejects] == [
        ["InvoiceUrl"],
        ["InvoiceUrl"],
    ]


def test_a_row_that_is_left_out_by_it_shows_it_as_it_is(settings: Settings, tmp_path: Path) -> None:
    profile = read_profile(
        {**TEXTS, "columns": {"No": "AvatarsId"}, "keep_only": {"Name": ["firm"]}}
    )
    verdict = examined(settings, tmp_path, profile, ["No", "Name"], [1, LARGE], [2, "firm"])
    assert (verdict.excluded, len(verdict.rejects)) == (1, 0)


def test_a_rejected_row_that_comes_back_as_it_was_is_rejected_again(
    settings: Settings, tmp_path: Path
) -> None:
    profile = with_fields(SHAPE, Id={"from": ["No"], "part": r"(\d+)"})
    verdict = examined(settings, tmp_path, profile, HEADER, [LARGE, *GOOD[1:]])
    (reject,) = verdict.rejects
    path = tmp_path / "rejects.csv"
    path.write_text(f"{PARENT_COLUMN},No,Paid,On\na.xlsx:2,{reject.data}\n")
    (again,) = examine(settings, [str(path)], profile)
    assert [one.errors[0]["FieldName"] for one in again.rejects] == ["Id"]


FOOTERS = [
    (["Total", LARGE], [r"Total,(?P<PaidAmount>[0-9.]+).*"]),
    (["Total", LONG], [r"Total,(?P<PaidAmount>[0-9.e+]+).*"]),
    (["Rows", LARGE], [r"Rows,(?P<rows>\d).*"]),
]


@pytest.mark.parametrize("part", [{}, {"part": r"([\d.]+)"}], ids=["whole", "part"])
@pytest.mark.parametrize(("footer", "patterns"), FOOTERS)
def test_a_total_is_none_either(
    settings: Settings, tmp_path: Path, footer: list[Any], patterns: list[str], part: dict[str, str]
) -> None:
    shape = {**SHAPE, "footer": patterns}
    profile = with_fields(shape, PaidAmount={"from": ["Paid"], **part})
    verdict = examined(settings, tmp_path, profile, HEADER, GOOD, footer)
    assert verdict.refused == "incomplete_file"
    assert "(a workbook does not hold whole numbers of this size exactly)" in str(verdict.message)


def test_what_stands_beside_it_in_a_footer_is_read(settings: Settings, tmp_path: Path) -> None:
    profile = read_profile({**SHAPE, "footer": [r"Total,(?P<PaidAmount>[0-9.]+),.*"]})
    verdict = examined(settings, tmp_path, profile, HEADER, GOOD, ["Total", 2.5, LARGE])
    assert (verdict.refused, verdict.rows_in, len(verdict.rejects)) == (None, 1, 0)
