"""A bank's statement: text above the header, a total below the records, and a row that is wrong."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchUnknown
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches.ledger import State
from flows.stages.examining.examine import examine
from flows.stages.rows.locate import locate
from flows.stages.rows.rejects import write_rejects
from flows.stages.rows.spots import Spot
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

TOP = "Kontoauszug;11/2026\nerstellt am;22.11.2026\n\n"
HEADER = "Zahlung;Betrag;Schuld;Datum;Währung\n"
ROWS = "1;1.234,56;5;01.11.2026 10:00;1\n2;20,00-;5;02.11.2026 10:00;EUR\n"
FOOTER = "\nSumme;{sum};;;\n2 Buchungen;;;;\n"
PROFILE = read_profile(
    {
        "feed": "bank",
        "record": "payment",
        "decimal": ",",
        "thousands": ".",
        "negative": ["1-"],
        "date_format": "%d.%m.%Y %H:%M",
        "zone": "Europe/Berlin",
        "header_line": "found",
        "footer": [r"Summe;(?P<PaidAmount>[^;]*);*", r"(?P<rows>\d+) Buchungen;*"],
        "columns": {
            "Zahlung": "Id",
            "Betrag": "PaidAmount",
            "Schuld": "DebtsId",
            "Datum": "PaymentDate",
            "Währung": "CurrenciesId",
        },
        "constants": {
            "TenantsId": 7,
            "ActionsId": 1,
            "DiscountAmount": "0.00",
            "CurrencyRatesId": 9,
        },
    }
)


def statement(folder: Path, total: str) -> str:
    path = folder / "statement.csv"
    path.write_text(TOP + HEADER + ROWS + FOOTER.format(sum=total))
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize("stated", [DEFAULT, PROFILE], ids=["inherited", "stated"])
def test_a_statement_is_imported_and_its_wrong_row_corrected(
    workspace: Workspace, rows: Any, tmp_path: Path, stated: Profile
) -> None:
    batch = import_delivery(workspace, [statement(tmp_path, "1.214,56")], PROFILE).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    assert rows('SELECT "Id", "PaidAmount" FROM payment') == [(1, Decimal("1234.56"))]
    lines = rows(
        "SELECT first_line, data FROM staged_row WHERE batch_id = %s ORDER BY 1", [batch.id]
    )
    assert lines == [*zip((5, 6), ROWS.splitlines(), strict=True)]
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    header, row = rejects.read_text().splitlines()
    assert header == "ReconRow;" + HEADER.strip()
    rejects.write_text(f"{header}\n{row.replace('EUR', '1')}\n")
    corrected = import_delivery(workspace, [str(rejects)], stated, corrects=batch.id).batch
    assert corrected.state is State.COMPLETE
    assert rows('SELECT sum("PaidAmount") FROM payment') == [(Decimal("1214.56"),)]


@pytest.mark.long
@pytest.mark.parametrize("stated", [DEFAULT, replace(PROFILE, unnamed_columns=2)])
def test_records_may_end_with_cells_that_the_header_does_not_name(
    workspace: Workspace, rows: Any, tmp_path: Path, stated: Profile
) -> None:
    path = tmp_path / "statement.csv"
    body = [f"{row};;" for row in ROWS.splitlines()]
    path.write_text(TOP + HEADER + "\n".join([*body, body[0][:-1]]) + FOOTER.format(sum="1.214,56"))
    profile = replace(
        PROFILE,
        unnamed_columns=2,
        unknown_columns="ignore",
        footer=("Summe;.*", r"\d+ Buchungen;*"),
    )
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    assert [one.line for one in verdict.rejects] == [6, 7]
    # A header that ends so itself has no more cells than it says.
    path.write_text(path.read_text().replace("Währung\n", "Währung;;\n"))
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    assert [one.line for one in verdict.rejects] == [6, 7]
    path.write_text(path.read_text().replace("Währung;;\n", "Währung\n"))
    batch = import_delivery(workspace, [str(path)], profile).batch
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    header, wrong, short = rejects.read_text().splitlines()
    assert header == "ReconRow;" + HEADER.strip() + ";;"
    assert short.endswith(body[0][:-1])
    right = short.replace("1;1.234,56", "3;5,00") + ";"
    rejects.write_text("\n".join([header, wrong.replace("EUR", "1"), right]))
    stated = replace(stated, unknown_columns="ignore") if stated.feed == "bank" else stated
    corrected = import_delivery(workspace, [str(rejects)], stated, corrects=batch.id).batch
    assert corrected.state is State.COMPLETE
    assert rows('SELECT sum("PaidAmount") FROM payment') == [(Decimal("1219.56"),)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("header", "row", "said"),
    [
        (f"{HEADER.strip()};", "note", "column 6 of the header has no name"),
        (f"{HEADER.strip()};;", "note;", "column 6, column 7 of the header have no name"),
        (f";{HEADER.strip()}", "", "column 1 of the header has no name"),
        (HEADER.strip(), "", None),
    ],
)
def test_a_text_that_no_field_is_made_of_for_want_of_a_name_is_told(
    workspace: Workspace, tmp_path: Path, header: str, row: str, said: str | None
) -> None:
    path = tmp_path / "plain.csv"
    first = ROWS.splitlines()[0]
    cells = f"note;{first}" if header.startswith(";") else f"{first};{row}" if row else first
    path.write_text(f"{header}\n{cells}\n")
    profile = replace(PROFILE, unknown_columns="ignore", header_line=1, footer=())
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    assert (verdict.refused, len(verdict.rejects)) == (None, 0)
    assert [said in one for one in verdict.remarks] == [True] * (said is not None)  # type: ignore[operator]
    # Where the profile says that there are such cells, they are no news.
    stated = replace(profile, unnamed_columns=2)
    (verdict,) = examine(workspace.settings, [str(path)], stated)
    assert bool(verdict.remarks) == header.startswith(";")
    done = import_delivery(workspace, [str(path)], profile)
    assert [said in one for one in done.messages] == [True] * (said is not None)  # type: ignore[operator]


AROUND = {
    1: "Line 1 of statement.csv is its header, or above it",
    4: "Line 4 of statement.csv is its header, or above it",
    8: "Line 8 of statement.csv is of its footer",
    11: "statement.csv has 9 lines",
}


def test_a_line_around_the_records_is_told_as_such(workspace: Workspace, tmp_path: Path) -> None:
    batch = import_delivery(workspace, [statement(tmp_path, "1.214,56")], PROFILE).batch
    with workspace.database.connect() as connection:
        for line, told in AROUND.items():
            with pytest.raises(BatchUnknown, match=told):
                locate(workspace, connection, batch.id, "statement.csv", Spot(line=line))


@pytest.mark.long
def test_a_total_that_does_not_tie_refuses_the_file_with_both_numbers(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = statement(tmp_path, "1.214,65")
    told = (
        "statement.csv: not what is stated about it: sum of PaidAmount: stated 1214.65, "
        "the file has 1214.56 (its footer). "
        "Deliver the whole file, or correct what is stated about it."
    )
    (verdict,) = examine(workspace.settings, [path], PROFILE)
    assert verdict.message == told
    batch = import_delivery(workspace, [path], PROFILE).batch
    assert rows("SELECT message FROM extract WHERE batch_id = %s", [batch.id]) == [(told,)]
    assert rows("SELECT count(*) FROM payment") == [(0,)]
