"""What a line is that is in no record, as whoever asks for a row of it is told."""

from pathlib import Path
from typing import Any

import pytest

from connectors.files.layout.header import read_header
from connectors.files.layout.no_record import why_no_record
from connectors.files.text.content import open_content
from connectors.settings import Limits
from tests.extracts.test_around import COUNT, HEADER, ROWS, SUM, bank

LINES = [
    # keys of the profile, what stands behind the rows, the number of a line, what it is
    ({}, "\n", 4, "blank"),
    ({}, " \t\n", 4, "blank"),
    ({"comment": "#"}, "# x\n", 4, "a comment"),
    ({"comment": "#"}, "# x\n\n", 5, "blank"),
    (
        {"skip_lines": ["x", "-+"]},
        "---\n",
        4,
        "one that skip_lines of the feed profile says (-+)",
    ),
    ({"comment": "#", "skip_lines": ["#-+"]}, "#--\n", 4, "a comment"),
    ({"footer": [SUM, COUNT]}, "Summe;1;\n\n2 Buchungen;;\n", 5, "of its footer"),
    ({"footer": [COUNT], "comment": "#"}, "#\n2 Buchungen;;", 5, "of its footer"),
    ({"footer": [COUNT], "comment": "#"}, "#\n2 Buchungen;;", 4, "a comment"),
]


@pytest.mark.parametrize(("keys", "behind", "number", "said"), LINES)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_the_one_thing_that_a_line_is_is_said(
    tmp_path: Path,
    keys: dict[str, Any],
    behind: str,
    number: int,
    said: str,
    end: str,
    block_bytes: int,
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes((HEADER + ROWS + behind).replace("\n", end).encode())
    profile = bank(**keys)
    content = open_content(path, profile.encoding)
    header = read_header(content, None, profile, Limits())
    assert why_no_record(content, header, number, block_bytes) == said
