"""What `recon profile draft` says of amounts with a sign of money, and of percents."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from connectors.files.profiles.profile import number_form, written_of
from schemas.toml_text import read_toml
from tests.feeds.test_draft import drafted
from tests.feeds.test_draft_cells import PERCENT


def test_percents_of_one_column_are_asked_of_its_field_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Rate;Paid\n5 %;2.50\n7 %;3.50\n")
    text, _ = drafted(str(path))
    asked = '"Rate", such as 5 %: 5 % is 0.05, or it is 5; in [fields.NAME], as others have none\n'
    assert f"{PERCENT}{asked}" in text
    assert text.replace(str(path), "").count("percent") == 1


MONEY = [
    # cells of one column, the example that is stated, the sign between thousands, what is read
    (("R$ 1.234,50", "R$ -2,00"), "R$ 1", ".", ["1234.50", "-2.00"]),
    (("US$ 1,234.50", "(US$ 2.00)"), "US$ 1", ",", ["1234.50", "-2.00"]),
    (("1234.50 zł", "-2 zł"), "1 zł", None, ["1234.50", "-2"]),
    (("kr 1 234,50", "kr 2,00"), "kr 1", "blank", ["1234.50", "2.00"]),
    (("A$1,234.50", "-A$2.00"), "A$1", ",", ["1234.50", "-2.00"]),
    (("Rp1.500.000", "Rp500"), "Rp1", ".", ["1500000", "500"]),
    (("S/ 1,234.50", "S/ 2.00"), "S/ 1", ",", ["1234.50", "2.00"]),
    (("Rs.1,234.50", "Rs.2.00"), "Rs.1", ",", ["1234.50", "2.00"]),
    (("1 234,50 лв.", "2,00 лв."), "1 лв.", "blank", ["1234.50", "2.00"]),
    (("$1,234.50 MXN", "$2.00 MXN"), "$1 MXN", ",", ["1234.50", "2.00"]),
    (("- € 1.234,50", "€ 2,00"), "€ 1", ".", ["-1234.50", "2.00"]),
    (("EUR1,234.50", "EUR2"), "EUR1", ",", ["1234.50", "2"]),
]


@pytest.mark.parametrize(("cells", "example", "thousands", "read"), MONEY)
def test_a_sign_of_money_that_all_cells_have_is_stated(
    tmp_path: Path, cells: Sequence[str], example: str, thousands: str | None, read: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Name|Value\n" + "".join(f"x|{cell}\n" for cell in cells))
    text, draft = drafted(str(path))
    assert (draft.currency, draft.thousands) == ((example,), thousands)
    assert "? currency" not in text
    assert "what stands around" not in text
    plain = number_form(written_of(draft)).plain(pl.lit(pl.Series(cells)))
    assert pl.select(plain).to_series().to_list() == read


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (("Kz 1.234,50", "Kz 2,00"), '"Kz 1"]  # if it is one, 2 cells such as Kz 1.234,50'),
        (("1,5 KM", "3 KM", "4"), '"1 KM"]  # if it is one, 2 cells such as 1,5 KM'),
        (("12.5 kg", "3 kg"), '"1 kg"]  # if it is one, 2 cells such as 12.5 kg'),
        (("R 1.234",), '"R 1"]  # if it is one, 1 cell such as R 1.234'),
        (("Rs.1,234.50", "Rs2.00"), '"Rs.1", "Rs1"]  # not both: is the point before the 1 of'),
        # Numbers of articles, rooms and quarters, units that differ, and words.
        (("A12", "A13"), None),
        (("Q 1", "Q 2"), None),
        (("1.5 kg", "3 lb"), None),
        (("12.5", "3", "4 b"), None),
        (("Floor 1.5", "Floor 2.5"), None),
        (("'1.50", "'2.50"), None),
        # What may be a minus is of no currency.
        (("\N{EN DASH}$1.50", "\N{EN DASH}$2.50"), None),
    ],
)
def test_what_may_be_a_sign_of_money_is_marked(
    tmp_path: Path, cells: Sequence[str], told: str | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Name|Value\n" + "".join(f"x|{cell}\n" for cell in cells))
    text, draft = drafted(str(path))
    assert draft.currency == ()
    assert ("currency =" in text) == bool(told)
    if told:
        assert f"# ? currency = [{told}" in text
    # 1.234 stays one or the other, whatever stands beside it.
    assert ("# ? decimal or thousands" in text) == ("R 1.234" in cells)


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        (("1,234.50;1'234.50",), "columns differ in them, see [fields.NAME]"),
        (("1,234.50;2", "1'234.50;2"), "cells differ in them"),
        (("R$ 1.234,50;2", "R$ 1 234,50;2"), "cells differ in them"),
    ],
)
def test_numbers_that_differ_in_their_thousands_are_marked(
    tmp_path: Path, rows: Sequence[str], where: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{row}\n" for row in ("Net;Tax", *rows)))
    text, draft = drafted(str(path))
    assert f"# ? decimal and thousands: {where}\n" in text
    assert (draft.decimal, draft.thousands) == (".", None)


BY_OTHERS = [
    # names and rows, what is stated live, what is asked of a column that does not tell itself
    (
        ("Paid;Version", "2.500;2.1", "3.500;2.2"),
        {},
        '"Paid": "." is decimal or thousands in 2 cells such as 2.500; only "Version" says which',
    ),
    (
        ("Paid;Ip", "12.500;192.168.101.201"),
        {"decimal": ",", "thousands": "."},
        '"Paid": "." is decimal or thousands in 1 cell such as 12.500; only "Ip" says which',
    ),
    (
        ("Paid;Rate", "2.234,50;1.081", "3.234,50;1.082"),
        {"decimal": ",", "thousands": "."},
        '"Rate": "." is decimal or thousands in 2 cells such as 1.081; only "Paid" says which',
    ),
    (
        ("Paid;A;B", "1.234;1'234'567;1'234'567"),
        {"thousands": "'"},
        '"Paid": "." is decimal or thousands in 1 cell such as 1.234',
    ),
    # What a column tells of itself needs no other one.
    (("Paid;Rate", "2.234,50;1", "1.234;2"), {"decimal": ",", "thousands": "."}, None),
    (("Paid;Rate", "2.50;1", "0.125;2"), {}, None),
    (("Paid;Rate", "1.234;1.081"), {}, 'decimal or thousands = "."  # one or the other in 1.234'),
]


@pytest.mark.parametrize(("rows", "live", "asked"), BY_OTHERS)
def test_what_the_numbers_of_a_column_do_not_tell_no_other_column_decides(
    tmp_path: Path, rows: Sequence[str], live: dict[str, str], asked: str | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{row}\n" for row in rows))
    text, _ = drafted(str(path))
    stated = read_toml(text)
    assert {key: stated[key] for key in ("decimal", "thousands") if key in stated} == live
    told = [line.removeprefix("# ? ") for line in text.splitlines() if "decimal or" in line]
    assert told == ([asked] if asked else [])
