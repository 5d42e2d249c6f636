"""What `recon profile draft` says of days whose months are words of another language."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from connectors.files.profiles.profile import date_forms, written_of
from connectors.files.profiles.profile_file import read_profile
from schemas.cells.dates import date_form
from tests.feeds.test_draft import drafted

WORDED = [
    # cells, their form, the words that are there
    (("3 janv. 2026", "14 févr. 2026", "1 JANV. 2026"), '"%d %B %Y"', "janv., févr."),
    (("03-ene-2026",), '"%d-%B-%Y"', "ene"),
    (("03-ene-26", "14-dic-26"), '"%d-%B-%y" or "%y-%B-%d"', "ene, dic"),
    (("33-ene-26",), '"%y-%B-%d"', "ene"),
    (("3 de enero de 2026", "4 de marzo de 2026"), '"%d de %B de %Y"', "enero, marzo"),
    (("2026. március 3.",), '"%Y. %B %d."', "március"),
    (("enero 3, 2026",), '"%B %d, %Y"', "enero"),
    (("3 stycznia 2026 r.",), '"%d %B %Y r."', "stycznia"),
    (("3 stycznia 2026 10:30", "4 maja 2026 9:15"), '"%d %B %Y %H:%M"', "stycznia, maja"),
    (("03.Mai.2026", "-", "04.Okt.2026"), '"%d.%B.%Y"', "Mai, Okt"),
    (("3/V/2026", "4/XI/2026"), '"%d/%B/%Y"', "V, XI"),
]


@pytest.mark.parametrize(("cells", "form", "names"), WORDED)
def test_months_in_another_language_are_asked_for(
    tmp_path: Path, cells: Sequence[str], form: str, names: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Name|Value\n" + "".join(f"x|{cell}\n" for cell in cells))
    lines = drafted(str(path))[0].splitlines()
    assert [line for line in lines if line.startswith(("# ? date_format", "# ? months"))] == [
        f'# ? date_format = {form}  # of "Value", such as {cells[0]}',
        f"# ? months = []  # all twelve, from January on, as in the file: here {names}",
    ]
    assert any(line.startswith("# ? zone = ") for line in lines)
    # So stated, all of them are read.
    found = names.split(", ")
    months = [*found, *("abcdefghijkl"[len(found) :])]
    for one in form.replace('"', "").split(" or "):
        stated = read_profile({"feed": "x", "date_format": one, "months": months})
        forms = date_forms(written_of(stated))
        wall = date_form(one, months=forms.months).wall
        assert all(isinstance(wall(cell), datetime) for cell in cells if cell != "-")


def test_months_of_which_some_are_called_as_in_english_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Name|Value\nx|03 Apr 2026\nx|04 Nov 2026\nx|05 Okt 2026\n")
    text, _ = drafted(str(path))
    assert '# ? date_format = "%d %b %Y"  # of most cells\n' in text
    assert (
        "# ? months = []  # all twelve, from January on, as in the file: here Apr, Nov, Okt\n"
        in text
    )


@pytest.mark.parametrize(
    "cells",
    [
        ("3 Jan 2026", "4 Feb 2026"),
        ("3 Mai 2026", "Mai 3 2026"),
        ("3 Mai 2026", "soon"),
        ("lundi 3 janvier 2026",),
        ("3 Mai 4711",),
        ("33 Mai 2026",),
        ("3 {Mai} 2026",),
        ("3 % 2026",),
        ("Room 12", "Room 13"),
        ("-", ""),
        tuple(f"3 {letter * 3} 2026" for letter in "abcdefghijklm"),
    ],
)
def test_nothing_is_said_of_months_where_cells_are_other_texts(
    tmp_path: Path, cells: Sequence[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Name|Value\n" + "".join(f"x|{cell}\n" for cell in cells))
    assert "months" not in drafted(str(path))[0].replace(str(path), "")
