"""A line of `recon status`: one of something is no plural, and columns stay below each other."""

import pytest

from flows.commands.batches import overview_line


@pytest.mark.parametrize("number", [0, 1, 2, 1000])
def test_one_of_something_is_no_plural(number: int) -> None:
    line = overview_line(
        {"batch": 1, "opened": "2026-01-01", "state": "complete", "next": "nothing"}
        | dict.fromkeys(("files", "rows", "errors"), number)
    )
    assert len(line) == len("     1  2026-01-01  complete              ") + 51
    ending = "" if number == 1 else "s"
    for noun in ("file", "row", "error"):
        assert f" {number} {noun}{ending} " in line
