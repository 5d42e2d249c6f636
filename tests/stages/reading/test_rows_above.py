"""A record that stands above the header, or above the line that is stated as the first."""

from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches.ledger import State
from flows.stages.examining.examine import examine
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.stages.reading.test_no_header import FIXED, SHAPE

ONE, TWO = "1;12.50;01.11.2026;E", "2;20.00;02.11.2026;E"
NAMES = "No.;Amount;Day;Sort"
BARE = {key: of for key, of in SHAPE.items() if key != "names"}
FOUND = {**BARE, "header_line": "found"}
RATES: dict[str, Any] = {
    "feed": "rates",
    "record": "currency_rate",
    "offset": "Z",
    "header_line": "found",
    "unpivot": {"keep": ["Date"], "name": "Currency", "value": "ExchangeRate"},
    "columns": {"Date": "EffectiveDate"},
    "fields": {
        "ToCurrenciesId": {"from": ["Currency"], "map": {"USD": 840, "JPY": 392}},
        "Id": {"key": ["EffectiveDate", "ToCurrenciesId"], "namespace": "X"},
    },
    "constants": {"TenantsId": 7, "FromCurrenciesId": 978},
}
KEYED: dict[str, Any] = {
    "feed": "statement",
    "record": "payment",
    "header_line": "found",
    "delimiter": ";",
    "date_format": "%d.%m.%Y",
    "offset": "Z",
    "unknown_columns": "ignore",
    "columns": {"Day": "PaymentDate", "Amount": "PaidAmount"},
    "fields": {
        "Id": {"key": ["PaymentDate"], "namespace": "X"},
        "CurrenciesId": {"from": ["Currency"], "default": "978", "map": {"EUR": "978"}},
    },
    "constants": {
        "TenantsId": 7,
        "ActionsId": 1,
        "DebtsId": 1,
        "DiscountAmount": 0,
        "CurrencyRatesId": 1,
    },
}
CASES = [
    # the text, its profile, and the line of the record above the others, if there is one
    (f"{ONE}\n{TWO}", {**SHAPE, "first_line": 2}, 1),
    (f"Terminal 7\n{ONE}\n{TWO}", {**SHAPE, "first_line": 3}, 2),
    (f"Terminal 7\n\n{TWO}", {**SHAPE, "first_line": 3}, None),
    # One of its cells is wrong, and it is a record all the same.
    (f"{ONE.replace('12.50', 'x')}\n{TWO}", {**SHAPE, "first_line": 2}, 1),
    (f"Terminal 7;30.11.2026;;\n{TWO}", {**SHAPE, "first_line": 2}, None),
    (f"7;;;\n{TWO}", {**SHAPE, "first_line": 2}, None),
    # It is left out above as it would be below, and so are lines that are not records.
    (f"{ONE}\n{TWO}", {**SHAPE, "first_line": 2, "keep_only": {"Sort": ["G"]}}, None),
    (f"{ONE}\n{TWO}", {**SHAPE, "first_line": 2, "skip_lines": ["1;.*"]}, None),
    (f"#{ONE}\n{TWO}", {**SHAPE, "first_line": 2, "comment": "#"}, None),
    ("1     12.50 01.11.2026\n2     20.00 02.11.2026", {**FIXED, "first_line": 2}, 1),
    ("PAYMENTS OF 01.11.2026\n2     20.00 02.11.2026", {**FIXED, "first_line": 2}, None),
    # A sorted file has its header among the records.
    (f"{ONE}\n{NAMES}\n{TWO}", FOUND, 1),
    (f"Terminal 7\n{NAMES}\n{TWO}", FOUND, None),
    (f"Terminal 7\n{ONE}\n{NAMES}\n{TWO}", {**BARE, "header_line": 3}, 2),
    # A line with one date or amount is text, whatever is made of its cells or stands in for some.
    ("As of;01.11.2026;\nText;Day;Amount;Currency\nx;02.11.2026;1;EUR", KEYED, None),
    ("Opening;01.11.2026;9.50;\nText;Day;Amount;Currency\nx;02.11.2026;1;EUR", KEYED, 1),
    # So is a line whose key is none.
    (f"Opening;12.50;01.11.2026;E\n{NAMES}\n{TWO}", FOUND, None),
    ("2026-11-01,1.1,130\nDate,USD,JPY\n2026-11-02,1.2,131", RATES, 1),
    # Nor is a key made from a day that is none: the line says by how much all rates are multiplied.
    ("Multiplier:,1,1\nDate,USD,JPY\n2026-11-02,1.2,131", RATES, None),
    ("Rates of,2026-11-01,\nDate,USD,JPY\n2026-11-02,1.2,131", RATES, None),
]


@pytest.mark.parametrize(("text", "shape", "line"), CASES)
def test_no_record_is_lost_above_the_others(
    still: Workspace, tmp_path: Path, text: str, shape: dict[str, Any], line: int | None
) -> None:
    (tmp_path / "list.csv").write_text(text)
    (verdict,) = examine(still.settings, [str(tmp_path / "list.csv")], read_profile(shape))
    if line is None:
        assert (verdict.refused, verdict.rows_in > 0) == (None, True), verdict.message
    else:
        assert (verdict.refused, verdict.rows_in) == ("records_above", 0)
        assert f"list.csv, line {line}: this is a record" in (verdict.message or "")


def test_nor_of_a_sheet_nor_by_an_import(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    book = xlsxwriter.Workbook(str(tmp_path / "list.xlsx"))
    sheet = book.add_worksheet("Data")
    for at, text in enumerate((ONE, NAMES, TWO)):
        sheet.write_row(at, 0, text.split(";"))
    book.close()
    shape = {key: of for key, of in FOUND.items() if key != "delimiter"}
    run = import_delivery(workspace, [str(tmp_path / "list.xlsx")], read_profile(shape))
    assert run.batch.state is State.COMPLETE_WITH_ERRORS
    assert rows("SELECT refused FROM extract") == [("records_above",)]
