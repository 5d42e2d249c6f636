"""NUL, half a character, NaN and numbers that do not fit: flagged by the check, never sent.

Where such a value can come from besides a cell: names of files, profiles, reasons.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import StatementRefused
from connectors.files.profiles.profile import DEFAULT
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from schemas.field import Field, Kind, Table
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA
from tests.faults.commands import command
from tests.stages.payments import HEADER, line, write

TEXT = {"NUL": b"a\0b", "half a character": b"a\xed\xa0\x80b", "cut short": b"a\xf0\x9f\x98"}
NUMBER = {
    "NaN": b"NaN",
    "infinity": b"-Infinity",
    "2^63": b"9223372036854775808",
    "-2^63-1": b"-9223372036854775809",
    "1e400": b"1e400",
    "NUL": b"1\x002",
}
WHEN = {"NUL": b"2026-01-01\x00", "the year 10000": b"10000-01-01T00:00:00Z", "NaN": b"NaN"}
FITS_A_DOUBLE = {"2^63", "-2^63-1"}


def poisons(field: Field) -> dict[str, bytes]:
    if field.kind in (Kind.DATETIME, Kind.DATETIME_OFFSET):
        return WHEN
    if field.kind in (Kind.INTEGER, Kind.INTEGER64, Kind.BOOLEAN):
        return NUMBER
    if field.kind is Kind.DOUBLE:
        return {name: value for name, value in NUMBER.items() if name not in FITS_A_DOUBLE}
    return TEXT


@pytest.mark.long(
    but=(
        "payment",
        "avatar",
        "invoice_file",
    )
)
@pytest.mark.parametrize("name", sorted(EXTRACTS.keys() - {INSERT_BATCH_DATA.name}))
def test_no_field_lets_it_through(workspace: Workspace, tmp_path: Path, name: str) -> None:
    """Every field of a record, one poisoned row each; the database refuses none of them."""
    table: Table = EXTRACTS[name]
    names = [field.name for field in table.delivered]
    poisoned = [
        (field, what, poison)
        for field in table.delivered
        for what, poison in poisons(field).items()
    ]
    rows = [
        b",".join(poison if field is one else b"" for one in table.delivered)
        for field, _, poison in poisoned
    ]
    path = tmp_path / f"{name}.csv"
    path.write_bytes(b"\n".join([",".join(names).encode(), *rows, b""]))
    ended = import_delivery(workspace, [str(path)], DEFAULT, record=name)
    assert ended.batch.state == "complete_with_errors"
    (chain,) = ended.report.chains
    assert chain.ties
    with workspace.database.connect() as connection:
        found = connection.execute(
            "SELECT state, error_data FROM staged_row ORDER BY record_number"
        ).fetchall()
    for (field, what, _), (state, errors) in zip(poisoned, found, strict=True):
        named = {error["FieldName"] for error in json.loads(errors)}
        # A byte that is no text, or a NUL, is told of the row where its field cannot be told.
        assert state == "rejected", (field.name, what)
        assert named & {field.name, ""}, (field.name, what, errors)


def test_a_name_that_is_no_text(workspace: Workspace, tmp_path: Path, rows: Any) -> None:
    path = os.fsdecode(bytes(tmp_path) + b"/payments-\xff\xfe.csv")
    Path(path).write_text(f"{HEADER}\n{line(1)}\n")
    ended = import_delivery(workspace, [path], DEFAULT)
    assert ended.batch.state == "complete"
    assert rows("SELECT count(*) FROM payment") == [(1,)]
    ((name,),) = rows("SELECT name FROM extract")
    assert name.startswith("payments-")


def test_a_profile_with_a_nul(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(1))
    ended = import_delivery(workspace, [path], replace(DEFAULT, null=("\0", "")))
    assert ended.report.errors == 0


def test_a_reason_that_is_no_text(
    workspace: Workspace, database_url: str, tmp_path: Path, rows: Any
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    home = workspace.settings.home
    reason = os.fsdecode(b"wrong \xff month")
    code, told = command(database_url, home, "undo", "1", "--reason", reason)
    assert code == 2, told
    assert "is not UTF-8" in told
    assert rows("SELECT state FROM batch") == [("complete",)]


def test_a_reason_with_a_nul(workspace: Workspace, tmp_path: Path, rows: Any) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    with pytest.raises(StatementRefused, match="cannot contain NUL"):
        undo_batch(workspace, 1, by="a", reason="c\0d")
    assert rows("SELECT state FROM batch") == [("complete",)]
