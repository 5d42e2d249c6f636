"""Cells as feeds write them: read as the profile states, or rejected with the delivered text."""

from pathlib import Path

import polars as pl
import pytest

from connectors.extracts.profile import read_profile
from connectors.settings import Settings
from flows.stages.examine import examine
from flows.stages.judge_chunk import writing_of
from flows.steps.normalise import normalise
from schemas.tables import EXTRACTS

PAYMENT = EXTRACTS["payment"]


def normal(field: str, cell: str, **stated: str) -> str:
    writing = writing_of(read_profile({"feed": "bank-x", **stated}))
    cells = pl.DataFrame({"0": [cell]})
    text: str = normalise(PAYMENT, cells, [field], writing)[field][0]
    return text


COMMA = {"decimal": ",", "thousands": "."}


@pytest.mark.parametrize(
    ("stated", "cell", "number"),
    [
        (COMMA, "1.234.567,80", "1234567.80"),
        (COMMA, " -1.234 ", "-1234"),
        (COMMA, ",5", ".5"),
        (COMMA, "1,5e-3", "1.5e-3"),
        ({"thousands": ","}, "1,234.50", "1234.50"),
        ({"thousands": ","}, "1234.50", "1234.50"),
        ({"thousands": "'"}, "+1'234'567", "+1234567"),
        ({"thousands": "\N{NO-BREAK SPACE}"}, "1\N{NO-BREAK SPACE}234.5", "1234.5"),
    ],
)
def test_number(stated: dict[str, str], cell: str, number: str) -> None:
    assert normal("PaidAmount", cell, **stated) == number


@pytest.mark.parametrize(
    ("stated", "cell"),
    [
        (COMMA, "0.923"),
        (COMMA, "00.123"),
        (COMMA, "1.23,4"),
        (COMMA, "1234.567"),
        (COMMA, "1,234,567"),
        (COMMA, "1,"),
        (COMMA, "\N{NO-BREAK SPACE}1,5"),
        (COMMA, "1.2e4,5"),
        ({"decimal": ","}, "1.5"),
        ({"thousands": ","}, "12,34.50"),
        ({"thousands": ","}, "1,234,5"),
    ],
)
def test_a_number_of_another_writing_is_not_guessed(stated: dict[str, str], cell: str) -> None:
    assert normal("PaidAmount", cell, **stated).startswith(f"{cell} (decimal sign is ")


@pytest.mark.parametrize(
    ("stated", "cell", "time"),
    [
        ({"date_format": "%d.%m.%Y %H:%M%z"}, "31.12.2026 23:59+0130", "2026-12-31T23:59:00+01:30"),
        ({"zone": "Europe/Berlin"}, "2026-07-01T10:00:00", "2026-07-01T10:00:00+02:00"),
        ({"zone": "Europe/Berlin"}, "2026-07-01T10:00:00Z", "2026-07-01T10:00:00Z"),
    ],
)
def test_time(stated: dict[str, str], cell: str, time: str) -> None:
    assert normal("PaymentDate", cell, **stated) == time


DAY = {"date_format": "%d.%m.%Y", "zone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("stated", "cell", "why"),
    [
        (DAY, "1\N{ARABIC-INDIC DIGIT THREE}.01.2026", "not written as %d.%m.%Y"),
        (DAY, "31.02.2026", "not written as %d.%m.%Y"),
        (DAY, "01.01.1890", "its offset in Europe/Berlin has seconds"),
        ({"zone": "Europe/Berlin"}, "2026-03-29T02:30:00", "does not exist once"),
        ({"zone": "Europe/Berlin"}, "2026-10-25T02:30:00", "does not exist once"),
    ],
)
def test_a_time_that_may_be_another_is_not_guessed(
    stated: dict[str, str], cell: str, why: str
) -> None:
    text = normal("PaymentDate", cell, **stated)
    assert text.startswith(f"{cell} (")
    assert why in text


@pytest.mark.parametrize(
    ("stated", "rejected"),
    [
        ({}, ["bare"]),
        ({"null": [""]}, ["bare"]),
        ({"null": ["NULL"]}, ["NULL", '"NULL"', "bare"]),
        ({"null": ["", "NULL"]}, ["NULL", '"NULL"', "bare", '""']),
    ],
)
def test_a_null_text_counts_in_quotes_too(
    tmp_path: Path, stated: dict[str, list[str]], rejected: list[str]
) -> None:
    cells = {"NULL": "NULL", '"NULL"': '"NULL"', "bare": "", '""': '""', "null": "null"}
    lines = [f"7,{number},{cell}" for number, cell in enumerate(cells.values())]
    path = tmp_path / "tones.csv"
    path.write_text("\n".join(["TenantsId,AvatarsId,Name", *lines, "7,9, NULL"]) + "\n")
    profile = read_profile({"feed": "bank-x", **stated})
    [verdict] = examine(Settings(tmp_path), [str(path)], profile)
    assert [list(cells)[one.record_number - 1] for one in verdict.rejects] == rejected
