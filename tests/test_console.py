"""What the command line prints as a table."""

import pytest

from flows.commands.console import print_table


def test_an_id_stays_in_one_piece_however_long_its_neighbours_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ("Id", *(f"Column {number}" for number in range(16)))
    print_table(names, [("88e9526d8d5ce72a", *["came after it was signed, dated " * 3] * 16)])
    assert "88e9526d8d5ce72a " in capsys.readouterr().out
