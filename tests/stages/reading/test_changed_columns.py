"""A file with a header of other columns among its rows: none of it is taken."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from connectors.files.profiles.profile import DEFAULT
from flows.stages.examining.examine import examine
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.examples import in_long
from tests.stages.payments import HEADER, line, write

SWAPPED = HEADER.replace("PaidAmount,DiscountAmount", "DiscountAmount,PaidAmount")
TOLD = "line 42: this is another header, with other columns: its column 6 is 'DiscountAmount'"


@pytest.mark.parametrize("block_bytes", [4 << 20, in_long(500)])
def test_nothing_of_a_file_stays_whose_columns_change(
    workspace: Workspace, rows: Any, tmp_path: Path, block_bytes: int
) -> None:
    limits = replace(workspace.settings.limits, block_bytes=block_bytes)
    workspace = replace(workspace, settings=replace(workspace.settings, limits=limits))
    # Its rows conflict with none: they do not count.
    mixed = [line(50, amount="3"), *map(line, range(1, 40)), SWAPPED, *map(line, range(40, 43))]
    paths = [
        write(tmp_path / "mixed.csv", *mixed),
        write(tmp_path / "whole.csv", line(50), HEADER, line(51)),
    ]
    import_delivery(workspace, paths, DEFAULT)
    assert rows("SELECT name, refused FROM extract ORDER BY id") == [
        ("mixed.csv", "changed_columns"),
        ("whole.csv", None),
    ]
    ((message,),) = rows("SELECT message FROM extract WHERE refused IS NOT NULL")
    assert TOLD in message
    assert "and line 1 has 'PaidAmount' there. Split the file above this line" in message
    staged = rows("SELECT record_number, state FROM staged_row ORDER BY 1")
    assert staged == [(1, "inserted"), (2, "rejected"), (3, "inserted")]
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(50,), (51,)]
    # What is said when it comes again has nothing to do with a manifest.
    (again,) = import_delivery(workspace, paths, DEFAULT).messages
    assert again.endswith(
        "nothing to do. It refused mixed.csv (changed_columns): to have it read anew, as by "
        "another feed profile, `recon undo 1 --reason ...` and import it again."
    )
    checked, whole = examine(workspace.settings, paths, DEFAULT)
    assert (checked.refused, checked.message, checked.rows_in) == ("changed_columns", message, 0)
    assert (whole.refused, whole.rows_in, len(whole.rejects)) == (None, 3, 1)


@pytest.mark.long
def test_nor_of_a_sheet(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        for number, text in enumerate((HEADER, line(1), SWAPPED, line(2))):
            sheet.write_row(number, 0, text.split(","))
    import_delivery(workspace, [str(path)], DEFAULT)
    ((refused, message),) = rows("SELECT refused, message FROM extract")
    assert refused == "changed_columns"
    assert "a.xlsx, line 3: " in message
    assert rows("SELECT count(*) FROM staged_row") == [(0,)]
