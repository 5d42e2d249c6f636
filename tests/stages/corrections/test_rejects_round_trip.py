"""Rejects hold nothing a spreadsheet would run, and taken in as they are they are what was."""

import csv
import random
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from connectors.files.profiles.profile import DEFAULT
from flows.stages.rows.rejects import EXPLANATION, write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.recon import run
from tests.stages.payments import line, write

SIGNS = "=+-@'\"\t\r\n ,;|\uff1d\uff0b\u200b0a"
NAMES = [
    *("=1+1", "+1", "-5.00", "@SUM(A1)", "'quoted", "''", "'", "\t=1", "\r=1", " =1", "\uff1dA1"),
    *('"=1"', "a,=b", "a;=b", "a\n=b", "a\r\n-b", "\u200b=1", "%0A", "|x", "-1e5", "+49 170", ""),
]
RISKY = re.compile(r"[\s\u200b\"]*[=@\uff1d\uff0b]|[\t\r]|[\s\"]*[+-](?![0-9.,e]+$)")


def names() -> list[str]:
    chance = random.Random(11)
    made = ["".join(chance.choices(SIGNS, k=chance.randint(1, 9))) for _ in range(60)]
    return [*NAMES, *made]


@pytest.mark.long
@pytest.mark.parametrize(("delimiter", "quote"), [(",", '"'), (";", '"'), ("\t", "'")])
def test_rejects_taken_in_unchanged_are_the_same_texts(
    workspace: Workspace, rows: Any, tmp_path: Path, delimiter: str, quote: str
) -> None:
    profile = replace(DEFAULT, feed="tones", delimiter=delimiter, quote=quote)
    path = tmp_path / "tones.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quotechar=quote, quoting=csv.QUOTE_MINIMAL)
        writer.writerow(["TenantsId", "AvatarsId", "Name"])
        writer.writerows([["x", "1", name] for name in names()])
        file.write(delimiter.join(["x", "=1+1", f"{quote}open", "=2"]) + "\r\n")
    import_delivery(workspace, [str(path)], profile)
    ((first, count),) = write_rejects(workspace, 1, tmp_path / "1", with_secrets=False).items()
    assert count == len(names()) + 1
    with first.open(newline="", encoding="utf-8") as file:
        sound = [
            row
            for row in csv.reader(file, delimiter=delimiter, quotechar=quote)
            if len(row) == 5 and row[0] != "ReconRow"
        ]
    assert len(sound) >= len(names())
    # Where a tab separates cells, the sign stands behind it and not before.
    cells = [cell.lstrip(delimiter.strip(",;")) for row in sound for cell in row]
    assert not [cell for cell in cells if RISKY.match(cell)]
    import_delivery(workspace, [str(first)], DEFAULT, corrects=1)
    texts = 'SELECT "Name" FROM staged_message_tone WHERE batch_id = %s ORDER BY record_number'
    assert rows(texts, [2]) == rows(texts, [1])
    assert [name or "" for (name,) in rows(texts, [1])][:-1] == names()
    ((second, _),) = write_rejects(workspace, 2, tmp_path / "2", with_secrets=False).items()
    again = re.sub(r"(?m)^2:(\d+)", r"1:\1", second.read_bytes().decode())
    assert again == first.read_bytes().decode()


@pytest.mark.long(but=("two bytes a letter",))
@pytest.mark.parametrize("stem", ["a" * 250, "\u00e9" * 125], ids=["ascii", "two bytes a letter"])
def test_rejects_of_files_with_the_longest_names_are_written(
    workspace: Workspace, tmp_path: Path, stem: str
) -> None:
    for ending in ("", "b")[: 252 - len(stem.encode())]:
        write(tmp_path / "in" / f"{stem}{ending}.csv", line(len(ending) + 1, amount="ten"))
    import_delivery(workspace, [str(tmp_path / "in")], DEFAULT)
    written = write_rejects(workspace, 1, tmp_path / "out", with_secrets=False)
    assert set(written.values()) == {1}
    assert {path.name for path in written} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert all(re.search(r"-batch-1(-\d+)?\.csv$", path.name) for path in written)


LINES = [["TenantsId", "Name", "Gender"], ["x", "", "\u00fc,'~"]]


def as_text(path: Path, encoding: str, delimiter: str, first: str = "") -> Path:
    with path.open("w", encoding=encoding, newline="") as file:
        file.write(first)
        csv.writer(file, delimiter=delimiter).writerows(LINES)
    return path


def as_workbook(path: Path) -> Path:
    book = Workbook()
    for cells in LINES:
        book.active.append(cells)
    book.save(path)
    return path


WRITTEN: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
    "utf-16": (lambda to: as_text(to / "a.csv", "utf-16", ","), {"encoding": "utf-16"}),
    "utf-16-le": (lambda to: as_text(to / "a.csv", "utf-16-le", ","), {"encoding": "utf-16-le"}),
    "bar": (lambda to: as_text(to / "a.csv", "utf-8", "|"), {"delimiter": "|"}),
    # A mark says more than the profile, and so does the first line.
    "marked": (lambda to: as_text(to / "a.csv", "utf-8-sig", ","), {"encoding": "cp1252"}),
    "marked utf-16": (lambda to: as_text(to / "a.csv", "utf-16", ","), {"encoding": "cp1252"}),
    "sign stated": (lambda to: as_text(to / "a.csv", "utf-8", "~", "sep=~\r\n"), {}),
    "workbook": (
        lambda to: as_workbook(to / "a.xlsx"),
        {"delimiter": ";", "quote": "'", "encoding": "cp1252"},
    ),
}


@pytest.mark.long(but=("utf-16",))
@pytest.mark.parametrize("way", WRITTEN)
def test_rejects_are_read_again_by_the_profile_of_their_feed(
    workspace: Workspace, rows: Any, tmp_path: Path, way: str
) -> None:
    """What was empty is empty again, whatever tells how the file is written."""
    write_to, keys = WRITTEN[way]
    profile = replace(DEFAULT, feed="avatars", record="avatar", **keys)
    import_delivery(workspace, [str(write_to(tmp_path))], profile)
    (rejects,) = write_rejects(workspace, 1, tmp_path / "1", with_secrets=False)
    rejects.write_bytes(rejects.read_bytes().replace(b"x", b"5", 1))
    import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    assert rows('SELECT "TenantsId", "Name", "Gender" FROM avatar') == [(5, None, LINES[1][2])]


@pytest.mark.long(but=("file-renamed",))
@pytest.mark.parametrize("point", ["file-written:2", "names-free", "file-renamed", "file-renamed:2"])
def test_rejects_of_two_runs_are_never_explained_together(
    workspace: Workspace, tmp_path: Path, point: str
) -> None:
    """A run that is killed leaves the files of before, or no explanation, which comes last."""
    texts = {"a": line(1, amount="x"), "b": line(2, amount="y")}
    files = [write(tmp_path / f"{name}.csv", text) for name, text in texts.items()]
    import_delivery(workspace, files, DEFAULT)
    folder, place = tmp_path / "out", workspace.settings
    asked = (str(place.database_url), place.home, "rejects", "1", "--out", str(folder))
    assert run(*asked).returncode == 0
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(whole) == ["a-batch-1.csv", "b-batch-1.csv", EXPLANATION.format(1)]
    for path in folder.iterdir():
        path.write_bytes(b"before")
    assert run(*asked, CRASH_AT=point).returncode == -signal.SIGKILL
    left = {one.name: one.read_bytes() for one in folder.glob("[!.]*")}
    if point.startswith("file-written"):
        assert left == dict.fromkeys(whole, b"before")
    else:
        assert EXPLANATION.format(1) not in left
        assert left.items() <= whole.items()
    assert run(*asked).returncode == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole
