"""Where every row lies in its file is told, though most of it is not stored."""

from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from data_samples.generate import write_payments
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

PLACE = "record_number, first_line, last_line, byte_start, byte_end"
ROWS, SEED = 2_000, 23
HEADER = "TenantsId,Name,Gender,AgeGroup,Style,ImageUrl,EthnicGroup\n"
AVATARS = HEADER + (
    '7,"one\r\nover three\nlines",,,,,\n'
    "7,plain,,,,,\n"
    '7,"zwei Wörter",,,,,\n'
    "7,ü,,,,,\n"
    "seven,not a tenant,,,,,\n"
)


def lines_of(content: bytes) -> int:
    return len(content.splitlines())


@pytest.fixture
def delivery(tmp_path: Path) -> Path:
    """Rows of one line and of several, sound ones and others."""
    folder = tmp_path / "delivery"
    write_payments(folder, ROWS, 0.05, SEED)
    (folder / "truth.csv").unlink()
    tall = HEADER.replace("Gender", '"\nGender"')
    (folder / "tall.csv").write_text(f"{tall}8,ü,,,,,\r\n", "utf-8", newline="")
    (folder / "avatars.csv").write_text(AVATARS, "utf-8", newline="")
    return folder


@pytest.mark.long
def test_every_row_lies_where_it_is_told_to(
    workspace: Workspace, rows: Any, delivery: Path
) -> None:
    import_delivery(workspace, [str(path) for path in delivery.glob("*.csv")], DEFAULT)
    told = rows(
        f"SELECT e.name, {PLACE}, data FROM staged_row s JOIN extract e ON e.id = s.extract_id"
    )
    assert len(told) == ROWS + 6
    for name, number, first, last, start, end, text in told:
        content = (delivery / name).read_bytes()
        assert (number, content[start:end].decode()) == (number, text)
        assert (number, first) == (number, lines_of(content[:start]) + 1)
        assert (number, last) == (number, first + max(1, lines_of(content[start:end])) - 1)


@pytest.mark.long
def test_what_follows_from_others_is_not_stored(
    workspace: Workspace, rows: Any, delivery: Path
) -> None:
    import_delivery(workspace, [str(path) for path in delivery.glob("*.csv")], DEFAULT)
    stored = rows(
        "SELECT record_number, s.first_line, s.last_line, s.byte_end FROM staged_avatar s "
        "JOIN extract e ON e.id = s.extract_id WHERE e.name = 'avatars.csv' ORDER BY 1"
    )
    # The first is of three lines, so the others are not on the line after their number.
    assert stored == [
        (1, None, 4, None),
        (2, 5, None, None),
        (3, 6, None, None),
        (4, 7, None, None),
        (5, 8, None, None),
    ]
    assert rows("SELECT count(*), count(byte_end) FROM staged_payment") == [(ROWS, 0)]
