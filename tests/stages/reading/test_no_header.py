"""Files without a header: the profile names their columns, and every line is a record."""

import re
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from connectors.errors import ProfileError
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches.ledger import State
from flows.stages.draft.profile import draft_profile
from flows.stages.examining.examine import examine
from flows.stages.examining.try_profile import try_profile
from flows.stages.rows.locate import Spot, locate
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

SHAPE: dict[str, Any] = {
    "feed": "terminal",
    "record": "payment",
    "delimiter": ";",
    "names": ["No.", "Amount", "Day", "Sort"],
    "unknown_columns": "ignore",
    "date_format": "%d.%m.%Y",
    "offset": "Z",
    "columns": {"No.": "Id", "Amount": "PaidAmount", "Day": "PaymentDate"},
    "constants": {
        **dict.fromkeys(("TenantsId", "ActionsId", "DebtsId", "CurrenciesId"), 7),
        "CurrencyRatesId": 9,
        "DiscountAmount": "0.00",
    },
}
PROFILE = read_profile(SHAPE)
ROWS = ["1;12.50;01.11.2026;E", "2;1,5;02.11.2026;E", "3;7.00;03.11.2026", "4;8;04.11.2026;G"]


@pytest.mark.long
@pytest.mark.parametrize("stated", [DEFAULT, PROFILE], ids=["inherited", "stated"])
@pytest.mark.parametrize("top", ["", "\ufeff", "Terminal 7\n\n"])
def test_every_line_is_a_record(
    workspace: Workspace, rows: Any, tmp_path: Path, stated: Profile, top: str
) -> None:
    path = tmp_path / "list.csv"
    path.write_text(top + "\n".join(ROWS), encoding="utf-8")
    first = 3 if "\n" in top else 1
    profile = read_profile({**SHAPE, "first_line": first})
    batch = import_delivery(workspace, [str(path)], profile).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    with workspace.database.connect() as connection:
        for number, text in enumerate(ROWS):
            spot = Spot(line=first + number)
            (row,) = locate(workspace, connection, batch.id, "list.csv", spot)
            assert (row.data, row.record_number) == (text, number + 1)
            assert path.read_bytes()[row.byte_start : row.byte_end].decode() == text
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "out", with_secrets=False)
    header, wrong, short = rejects.read_text().splitlines()
    assert header == "ReconRow;No.;Amount;Day;Sort"
    assert [one.split(";", 1)[1] for one in (wrong, short)] == ROWS[1:3]
    rejects.write_text(f"{header}\n{wrong.replace('1,5', '1.5')}\n{short};\n")
    corrected = import_delivery(workspace, [str(rejects)], stated, corrects=batch.id).batch
    assert corrected.state is State.COMPLETE
    found = rows('SELECT "Id", "PaidAmount"::text FROM payment ORDER BY 1')
    assert found == [(1, "12.50"), (2, "1.5"), (3, "7.00"), (4, "8")]


@pytest.mark.long
def test_it_is_tried_and_a_sheet_may_lack_a_header_too(still: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("\n".join(ROWS))
    tried = try_profile(still.settings, str(path), PROFILE, record=None, rows=4)
    assert [one.text for one in tried.rows] == ROWS
    assert tried.rows[0].values["PaidAmount"] == ("12.50", "12.50")
    book = xlsxwriter.Workbook(str(tmp_path / "list.xlsx"))
    sheet = book.add_worksheet("Data")
    for row, text in enumerate(ROWS):
        sheet.write_row(row, 0, text.split(";"))
    book.close()
    profile = read_profile({**{k: v for k, v in SHAPE.items() if k != "delimiter"}, "sheet": 1})
    (verdict,) = examine(still.settings, [str(tmp_path / "list.xlsx")], profile)
    assert (verdict.rows_in, [one.line for one in verdict.rejects]) == (4, [2])


@pytest.mark.long
def test_a_header_where_none_is_expected_is_a_row_in_error(
    still: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "list.csv"
    path.write_text("No.;Amount;Day;Sort\n" + ROWS[0])
    (verdict,) = examine(still.settings, [str(path)], PROFILE)
    assert (verdict.rows_in, [one.line for one in verdict.rejects]) == (2, [1])


NAMES = "No.;Amount;Day;Sort"
FIXED = {
    **{key: of for key, of in SHAPE.items() if key not in ("names", "delimiter")},
    "positions": {"No.": "1-6", "Amount": "7-12", "Day": "13-22"},
}
ABOVE = [
    # lines above the first record, keys of the profile, the line and what is other in it
    ("Terminal 7\nNo.;Day;Amount;Sort\n", {}, (2, "column 2 is 'Day', which .* as column 3")),
    ('"No.";" amount ";"Sort";"Day"\n\n', {}, (1, "column 3 is 'Sort', which .* as column 4")),
    ("#No.;Sort;Amount;Day\n# by hand\n", {"comment": "#"}, (1, "column 2 is 'Sort'")),
    ("Day;No.;Amount;Sort;More\n", {}, (1, "column 1 is 'Day', which .* as column 3")),
    (f"{NAMES}\n", {}, None),
    (f"{NAMES.upper()};\n", {}, None),
    ("Number;Sum;Day;Kind\n", {}, None),
    # A title that is called like a column, and names that are there twice.
    ("Amount;in EUR;;\n", {}, None),
    ("Day;30.11.2026;Amount;21.00\n", {}, None),
    ("No.;Amount;Amount;Day\n", {"names": ["No.", "Amount", "Amount 2", "Day"]}, None),
    (
        "No.;Day;Amount;Day\n",
        {"names": ["No.", "Amount", "Day", "Day 2"]},
        (1, "column 2 is 'Day', which .* as column 3"),
    ),
    ("Day;Amount\nNo.;Amount;Day;Sort\n", {}, None),
    ("No.;Day;Amount;Sort\n;;EUR;\n", {}, (1, "column 2 is 'Day'")),
    ("No.   Day   Amount    \n", FIXED, (1, "column 2 is 'Day', which .* as column 3")),
    ("No.   AmountDay       \n", FIXED, None),
]


@pytest.mark.parametrize(("above", "keys", "told"), ABOVE)
def test_a_header_above_the_records_may_not_have_their_columns_in_another_order(
    still: Workspace, tmp_path: Path, above: str, keys: dict[str, Any], told: Any
) -> None:
    fixed = "positions" in keys
    path = tmp_path / "list.csv"
    path.write_text(above + ("1      12.5001.11.2026\n" if fixed else ROWS[0]))
    shape = {**({} if fixed else SHAPE), **keys, "first_line": above.count("\n") + 1}
    (verdict,) = examine(still.settings, [str(path)], read_profile(shape))
    if told is None:
        assert (verdict.refused, verdict.rows_in) == (None, 1)
    else:
        line, said = told
        assert verdict.refused == "reordered_columns"
        assert re.search(f"list.csv, line {line}: .*{said}", verdict.message or "")


def test_a_draft_says_that_there_may_be_none(still: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("\n".join(ROWS))
    assert "# ? names = [" in draft_profile(still.settings, str(path), "x", "payment")
    path.write_text("No.;Amount;Day;Sort\n" + "\n".join(ROWS))
    assert "names" not in draft_profile(still.settings, str(path), "x", "payment")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"delimiter": None}, "files with names have none. State it; of a workbook, state sheet"),
        ({"record": None}, "names are of a record. Say which"),
        ({"header_line": 2}, "header_line is not for files without a header"),
        ({"positions": {"No.": "1-4"}}, "is not for files without a header"),
        ({"names": ["No.", "no."]}, "each of them once"),
        ({"names": ["No.", "Amount"]}, "names: .*missing: Day"),
        ({"names": None, "first_line": 2}, "first_line is for files without a header"),
        (
            {"unpivot": {"keep": ["X"], "name": "a", "value": "b"}},
            "a column that is not among them",
        ),
    ],
)
def test_a_profile_that_cannot_be_meant(keys: dict[str, Any], said: str) -> None:
    shape = {key: of for key, of in (SHAPE | keys).items() if of is not None}
    with pytest.raises(ProfileError, match=said):
        read_profile(shape)
