"""What the command line prints as a table, and as progress."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from connectors.currencies import read_currencies
from connectors.errors import SettingsError
from connectors.postgres.session import Session
from flows.commands.console import TITLES, out, print_table, show_warnings, workspace


def test_an_id_stays_in_one_piece_however_long_its_neighbours_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ("Id", *(f"Column {number}" for number in range(16)))
    print_table(names, [("88e9526d8d5ce72a", *["came after it was signed, dated " * 3] * 16)])
    assert "88e9526d8d5ce72a " in capsys.readouterr().out


def test_a_table_that_is_too_wide_for_the_terminal_is_told_in_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of two letters cannot be read, and 80 columns are what terminals open with."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    names = ("Id", "Code", "Record", "Key", "Field", "State", "Amount", "File", "Line", "Owner")
    row = (
        *("88e9526d8d5ce72a", "CHANGED_AFTER_SIGNOFF", "payment_plan_detail", "9007199254740993/7"),
        *("PaidAmount", "REOPENED", "1250.00", "month-end/payments.csv", 48113, None),
    )
    print_table(names, [row, row], right=("Amount", "Line"))
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert told.count("88e9526d8d5ce72a\n") == 2
    for one in ("CHANGED_AFTER_SIGNOFF", "payment_plan_detail", "month-end/payments.csv"):
        assert one in told
    assert "Owner" not in told
    monkeypatch.setenv("COLUMNS", "200")
    print_table(names, [row], right=("Amount", "Line"))
    assert capsys.readouterr().out.startswith("Id ")


def test_to_say_that_pushes_are_held_takes_no_connection_of_its_own(
    server: str, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role may be limited to few, and each costs a command some milliseconds."""
    monkeypatch.setenv("RECON_DATABASE_URL", database_url)
    monkeypatch.setenv("RECON_HOME", str(tmp_path))
    opened: list[object] = []
    connect = Session.connect

    def counted(*arguments: Any, **options: Any) -> Any:
        # The databases of the tests are made over connections of their own meanwhile.
        if arguments[:1] != (server,):
            opened.append(arguments)
        return connect(*arguments, **options)

    monkeypatch.setattr(Session, "connect", counted)
    with workspace(quiet=True):
        assert len(opened) == 1


def test_a_warning_names_what_was_delivered_as_a_table_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No name moves the cursor of a terminal, or hides what stands before it."""
    with show_warnings():
        logging.getLogger("recon.reconcile").warning("%s: cleared away", "a\x1b[2J\u202eb.csv")
    assert capsys.readouterr().err == "recon: a\\x1b[2J\\u202eb.csv: cleared away\n"


def test_every_progress_has_a_title_and_a_name_gets_to_its_end() -> None:
    """A name that never gets there leaves a bar that stands still for good."""
    root = Path(__file__).parents[1] / "flows"
    told = [
        call
        for path in root.rglob("*.py")
        for call in re.findall(r'progress\("(\w+)", ([^,]+), ', path.read_text(encoding="utf-8"))
    ]
    assert told
    assert {name for name, _ in told} <= TITLES.keys()
    reconcile = [int(done) for name, done in told if name == "reconcile"]
    assert reconcile == [0, 1, 2, 3]


@pytest.mark.parametrize("columns", ["0", "00", "1", "", "-1", "many"])
def test_no_width_of_a_terminal_loses_what_is_told(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out().print("nothing was lost")
    print_table(("Id",), [("7",)])
    told = capsys.readouterr().out
    assert "nothing was lost" in told
    assert "7" in told


@pytest.mark.parametrize("kind", ["folder", "missing", "binary"])
def test_a_table_of_currencies_is_read_before_anything_begins(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path if kind == "folder" else tmp_path / "currencies.csv"
    if kind == "binary":
        path.write_bytes(b"\x00\xff\xfe")
    monkeypatch.setenv("RECON_CURRENCIES", str(path))
    monkeypatch.setenv("RECON_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(SettingsError, match="unset it"), workspace():
        pass


def test_a_currency_is_known_by_its_number_however_that_is_written(tmp_path: Path) -> None:
    path = tmp_path / "currencies.csv"
    path.write_text("CurrenciesId,Code\n0978,EUR\n2147483647,USD\n")
    assert read_currencies(path) == {"978": "EUR", "2147483647": "USD"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("978,EUR\n840\n", "line 3: \\['840'\\] is not a CurrenciesId and its code"),
        ("978,EUR\neuro,EUR\n", "line 3: .* is not a CurrenciesId and its code"),
        ("978, \n", "line 2: .* is not a CurrenciesId and its code"),
        ("978,EUR\n840,USD\n978,DEM\n", "line 4: CurrenciesId 978 is named twice"),
        ("978,EUR\n0978,USD\n", "line 3: CurrenciesId 978 is named twice"),
        ("2147483648,EUR\n", "line 2: .* is not a CurrenciesId and its code"),
        (f"{'9' * 5000},EUR\n", "line 2: .* is not a CurrenciesId and its code"),
        ("٩٧٨,EUR\n", "line 2: .* is not a CurrenciesId and its code"),
        ("-1,EUR\n", "line 2: .* is not a CurrenciesId and its code"),
    ],
)
def test_a_table_of_currencies_names_the_line_that_cannot_be_used(
    rows: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "currencies.csv"
    path.write_text(f"CurrenciesId,Code\n{rows}")
    with pytest.raises(SettingsError, match=said):
        read_currencies(path)
