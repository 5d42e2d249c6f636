"""`recon profile try`: what a feed profile makes of a file, as somebody who writes one sees it."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.feeds.test_gallery import GALLERY
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.

BANK = GALLERY / "german-bank"
ASKED = ("--profile", str(BANK / "profile.toml"))


@pytest.mark.long
def test_columns_rows_and_reasons_are_shown(recon: Any) -> None:
    code, out, _ = recon("profile", "try", str(BANK / "dirty.csv"), *ASKED, "--rows", "2")
    assert code == 1
    words = " ".join(out.split())
    for told in (
        "dirty.csv: Payment, cp1252, columns divided by ;, records from line 5 on",
        "Its footer states rows: 4, PaidAmount: 1221.61",
        "DebtsId 64-bit integer yes Verwendungszweck",
        "DiscountAmount double yes constant '0.00'",
        "Gegenkonto becomes nothing",
        "Line 5: 100201;02.11.2026;1.234,56;EUR;Forderung 4711 Müller;DE11",
        "DebtsId Forderung 4711 Müller 4711",
        "PaidAmount 20,00- -20.00",
        "DateTime: 'PaymentDate' is not a date",
        "1 of 4 rows passes",
        "PaymentDate DateTime 2 6",
        f"recon check {BANK}/dirty.csv --json --profile {BANK}/profile.toml",
    ):
        assert told in words, told
    assert "Line 7" not in out, "two rows were asked for"


def test_rows_that_contradict_each_other_have_their_reason(recon: Any, tmp_path: Path) -> None:
    path, profile = tmp_path / "a.csv", tmp_path / "a.toml"
    path.write_text("Id;PaidAmount\n1;1.00\n2;2.00\n1;3.00\n")
    profile.write_text(
        'feed = "x"\nrecord = "payment"\n[constants]\nTenantsId = 7\nActionsId = 1\nDebtsId = 1\n'
        'PaymentDate = "2026-11-01T00:00:00Z"\nDiscountAmount = "0.00"\nCurrenciesId = 978\n'
        "CurrencyRatesId = 1\n"
    )
    code, out, _ = recon("profile", "try", str(path), "--profile", str(profile), "--json")
    rows = json.loads(out)["rows"]
    assert code == 1
    codes = [(one["line"], [why["ErrorCode"] for why in one["errors"]]) for one in rows]
    assert codes == [(2, ["ConflictingKey"]), (3, []), (4, ["ConflictingKey"])]


def test_a_column_that_leaves_rows_out_is_used(recon: Any, tmp_path: Path) -> None:
    path, profile = tmp_path / "a.csv", tmp_path / "a.toml"
    path.write_text("Id,No,State,Url\n1,1,paid,a\n2,2,open,b\n")
    profile.write_text(
        'feed = "x"\nrecord = "invoice_file"\nunknown_columns = "ignore"\n[columns]\n'
        'No = "DebtsId"\nUrl = "InvoiceUrl"\n[leave_out]\n" state" = ["open"]\n'
        "[constants]\nTenantsId = 7\n"
    )
    code, out, _ = recon("profile", "try", str(path), "--profile", str(profile))
    assert (code, "State becomes nothing" in out) == (0, False)
    assert "1 of 2 rows passes, 1 left out" in out


def test_no_row_below_a_header_of_other_columns_is_shown(recon: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("TenantsId,Name,Style\n7,a,b\nTenantsId,Style,Name\n7,c,d\n")
    code, out, _ = recon("profile", "try", str(path), "--record", "avatar", "--json")
    tried = json.loads(out)
    assert (code, tried["refused"]) == (1, "changed_columns")
    assert [one["line"] for one in tried["rows"]] == [2]


@pytest.mark.long
def test_no_library_warns_of_how_it_is_used(recon: Any, recwarn: pytest.WarningsRecorder) -> None:
    """One that warns from compiled code is not stopped by an error."""
    recon("profile", "try", str(BANK / "dirty.csv"), *ASKED, "--rows", "2")
    assert [*recwarn] == []


def test_all_rows_of_a_clean_file_pass(recon: Any) -> None:
    code, out, _ = recon("profile", "try", str(BANK / "clean.csv"), *ASKED, "--rows", "0")
    assert code == 0
    assert "3 of 3 rows pass" in out
    assert "Line" not in out


@pytest.mark.long
def test_the_same_as_one_document(recon: Any) -> None:
    code, out, _ = recon("profile", "try", str(BANK / "dirty.csv"), *ASKED, "--json")
    told = json.loads(out)
    assert code == 1
    assert (told["rows_in"], told["rejected"], told["first_line"]) == (4, 3, 5)
    assert told["rows"][0]["values"]["PaidAmount"] == ["1.234,56", "1234.56"]
    assert told["unused_columns"] == ["Gegenkonto"]


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("no.csv", 2, "no such file"),
        ("folder", 2, "has several extracts: a.csv, b.csv. Name one of them."),
        ("a.zip", 2, "a.zip/a.csv, a.zip/b.csv. Unpack the zip and name one of its files."),
        ("a.csv", 1, "a.csv: refused (missing_column)"),
    ],
)
def test_what_cannot_be_tried(recon: Any, tmp_path: Path, name: str, code: int, told: str) -> None:
    (tmp_path / "folder").mkdir()
    for path in ("a.csv", "folder/a.csv", "folder/b.csv"):
        (tmp_path / path).write_text("x,y\n1,2\n")
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        for path in ("a.csv", "b.csv"):
            archive.writestr(path, "x,y\n1,2\n")
    ended, out, err = recon("profile", "try", str(tmp_path / name))
    assert ended == code
    assert told in " ".join(f"{out} {err}".split())


@pytest.mark.long
def test_values_are_those_that_a_row_has_once_it_is_imported(recon: Any, tmp_path: Path) -> None:
    """A time in the offset of its zone, and numbers as the service document writes them."""
    feed, path = tmp_path / "feed.toml", tmp_path / "a.csv"
    feed.write_text(
        'feed = "swiss"\nrecord = "payment"\ndelimiter = ";"\ndecimal = ","\n'
        'date_format = "%d.%m.%Y"\nzone = "Europe/Zurich"\n[constants]\nTenantsId = 7\n'
        "ActionsId = 1\nDebtsId = 2\nCurrenciesId = 756\nCurrencyRatesId = 9\n"
    )
    path.write_text("Id;PaymentDate;PaidAmount;DiscountAmount\n1;01.10.2026;5,50;007,10\n")
    asked = (str(path), "--profile", str(feed))
    _, out, err = recon("profile", "try", *asked, "--json")
    tried = json.loads(out)["rows"][0]["values"]
    recon("import", *asked)
    [row] = json.loads(recon("row", "1", "a.csv", "--line", "2", "--json")[1])["rows"]
    assert tried == {one["field"]: [one["delivered"], one["becomes"]] for one in row["fields"]}
    assert tried["PaymentDate"] == ["01.10.2026", "2026-10-01T00:00:00+02:00"], err


@pytest.mark.long
def test_no_secret_is_shown(recon: Any, tmp_path: Path) -> None:
    path = tmp_path / "registrations.csv"
    path.write_text(
        "EMail,FirstName,LastName,Password,ConfirmPassword,Company\n"
        "ann@mail.example,Ann,Lee,canary-secret,canary-secret,Acme\n"
        "no-address,Ann,Lee,canary-secret,canary-other,Acme\n"
    )
    for more in ((), ("--json",)):
        _, out, err = recon("profile", "try", str(path), *more)
        assert "canary" not in out + err
        assert "Password" in out


def test_a_manifest_beside_the_file_may_name_another_one(recon: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with ZipFile(path, "w") as archive:
        archive.write(BANK / "clean.csv", "clean.csv")
        archive.writestr("manifest.json", json.dumps({"files": {"b.csv": {"rows": 1}}}))
    _, out, err = recon("profile", "try", str(path), *ASKED, "--json")
    assert err == ""
    assert json.loads(out)["name"] == "a.zip/clean.csv"
