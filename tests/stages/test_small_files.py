"""Small files that are alike are validated together, and each has the verdict it has alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.settings import Settings
from flows.stages.chunks.small_files import (
    HELD_BYTES,
    SMALL_BYTES,
    CleanFiles,
    SmallFile,
    validate_together,
)
from flows.stages.examining import examine as examination
from flows.stages.examining.examine import examine
from tests.stages.payments import HEADER, line, write

TURNED = (
    "TenantsId,Id,ActionsId,DebtsId,PaymentDate,PaidAmount,DiscountAmount,CurrenciesId,"
    "CurrencyRatesId"
)


def verdicts(folder: Path, *names: str) -> dict[str, dict[str, Any]]:
    paths = [str(folder / name) for name in names] or [str(folder)]
    found = examine(Settings(folder / "home"), paths, DEFAULT)
    return {
        one.name: one.as_json() | {"rejects": [reject._asdict() for reject in one.rejects]}
        for one in found
    }


def codes(verdict: dict[str, Any]) -> list[tuple[int, str]]:
    return [
        (reject["line"], error["ErrorCode"])
        for reject in verdict["rejects"]
        for error in reject["errors"]
    ]


@pytest.mark.long
def test_a_bad_row_is_that_of_its_file(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", line(1), line(2))
    write(tmp_path / "b.csv", line(3), line(4, amount="ten"), line(5))
    write(tmp_path / "c.csv", line(6))
    write(tmp_path / "d.csv", line(7), "8,7,1")
    write(tmp_path / "e.csv", line(9).replace("10.50", '"10.50"'), line(10))
    write(tmp_path / "f.csv")
    (tmp_path / "g.csv").write_text(f"{TURNED}\n7,11{line(11)[4:]}\n")
    (tmp_path / "h.csv").write_text("What,Is,This\n1,2,3\n")
    (tmp_path / "i.csv").write_text(f"{HEADER}\r\n{line(12)}\r\n\r\n{line(13)}")
    found = verdicts(tmp_path)
    assert {name: (one["rows_in"], one["refused"]) for name, one in found.items()} == {
        "a.csv": (2, None),
        "b.csv": (3, None),
        "c.csv": (1, None),
        "d.csv": (2, None),
        "e.csv": (2, None),
        "f.csv": (0, None),
        "g.csv": (1, None),
        "h.csv": (0, "missing_column"),
        "i.csv": (2, None),
    }
    rejects = {name: codes(one) for name, one in found.items() if one["rejects"]}
    assert rejects == {"b.csv": [(3, "Number")], "d.csv": [(3, "TooFewFields")]}
    for name in found:
        assert verdicts(tmp_path, name) == {name: found[name]}


def test_keys_and_references_are_settled_over_all_files(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", line(1), line(2))
    write(tmp_path / "b.csv", line(3), line(1, amount="11.50"))
    write(tmp_path / "c.csv", line(4), line(5, amount="ten"))
    found = verdicts(tmp_path)
    assert {name: codes(one) for name, one in found.items()} == {
        "a.csv": [(2, "ConflictingKey")],
        "b.csv": [(3, "ConflictingKey")],
        "c.csv": [(3, "Number")],
    }
    unsettled = {name: [one["rows"] for one in found[name]["unsettled"]] for name in found}
    assert unsettled == {"a.csv": [1], "b.csv": [1], "c.csv": [1]}


@pytest.mark.long(but=("701",))
@pytest.mark.parametrize("rows", [1, 700, 701, 1400])
def test_files_of_every_size_are_counted_and_few_wait_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Some are small, some not, and of the small ones more than wait at once."""
    bytes_of_a_row = len(line(100_000)) + 1
    assert 700 * bytes_of_a_row < SMALL_BYTES < 1400 * bytes_of_a_row
    waited: list[int] = []

    def watched(files: Sequence[SmallFile], profile: Profile) -> CleanFiles:
        waited.append(sum(len(one.chunk.block) for one in files))
        return validate_together(files, profile)

    monkeypatch.setattr(examination, "validate_together", watched)
    files = 5 if rows > 1 else 300
    if rows == 700:
        files = HELD_BYTES // (700 * bytes_of_a_row) * 2
    for file in range(files):
        first = 100_000 + file * rows
        write(tmp_path / f"{file:03}.csv", *map(line, range(first, first + rows)))
    found = verdicts(tmp_path)
    assert [one["rows_in"] for one in found.values()] == [rows] * files
    assert not any(one["rejects"] for one in found.values())
    assert len(waited) == {1: 1, 700: 2, 701: 1, 1400: 0}[rows]
    assert max(waited, default=0) < HELD_BYTES + SMALL_BYTES


OTHER_FORMS = {
    # keys of the profile, the rows of a file
    "comments": ({"comment": "#"}, ["# one", line(1), "# two", line(2)]),
    "escapes": ({"escape": "\\"}, [line(1, amount="10\\.50"), line(2)]),
    "several signs": (
        {"delimiter": "||"},
        [line(1).replace(",", "||"), line(2).replace(",", "||")],
    ),
}


@pytest.mark.parametrize("title", OTHER_FORMS)
def test_files_in_other_forms_are_what_each_is_by_itself(tmp_path: Path, title: str) -> None:
    keys, rows = OTHER_FORMS[title]
    profile = replace(DEFAULT, **keys)
    header = HEADER.replace(",", keys.get("delimiter", ","))
    for name, lines in (("a.csv", rows), ("b.csv", rows[::-1])):
        (tmp_path / name).write_text("\n".join([header, *lines, ""]))
    comments = sum(row.startswith("#") for row in rows)
    for names in (["a.csv"], ["a.csv", "b.csv"]):
        paths = [str(tmp_path / name) for name in names]
        for one in examine(Settings(tmp_path / "home"), paths, profile):
            told = one.rows_in, one.comments.lines, one.refused, len(one.rejects)
            assert told == (2, comments, None, 0)
