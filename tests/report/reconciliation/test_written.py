"""The files of a reconciliation as its stage writes them, and corrections that come back."""

import csv
import hashlib
import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.auditing.removals import note_removal
from connectors.settings import Settings
from flows.stages.reconcile.corrections import corrections
from flows.stages.reconcile.report_files import check_files
from flows.stages.reconcile.rules import read_rules
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sources import gather_sources
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.frames.parts import held_rows
from schemas.guards.trail_rules import GENESIS, chain_hash, report_hash
from tests.stages.payments import HEADER, line, write

MONDAY, TUESDAY = date(2026, 1, 5), date(2026, 1, 6)
RULES = replace(read_rules(None), references=frozenset())
"""The payments here name no rate that is there; what they refer to is not asked."""
SECRET = "hunter2-of-the-gateway"


def reconciled(workspace: Workspace, day: date = MONDAY) -> Reconciled:
    return reconcile(workspace, Asked(Scope(), day, RULES))


def execute(workspace: Workspace, statement: str) -> None:
    with workspace.database.connect() as connection:
        connection.execute(statement)


def correction(folder: Path, name: str = "payment.csv") -> list[dict[str, str]]:
    with (folder / "corrections" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def codes(done: Reconciled) -> dict[str, str]:
    """Break id -> code, of the breaks that are about a payment's own row."""
    mine = ("REJECTED", "AMOUNT")
    return {one.id: one.code for one in done.report.breaks if one.code in mine}


@pytest.fixture
def first(workspace: Workspace, tmp_path: Path) -> Reconciled:
    """Three payments: one as delivered, one that was changed in the target, one rejected."""
    lines = [line(1), line(2, amount="20.00"), line(3, amount="thirty")]
    import_delivery(workspace, [write(tmp_path / "payments.csv", *lines)], DEFAULT)
    execute(workspace, 'UPDATE payment SET "PaidAmount" = 20.01 WHERE "Id" = 2')
    return reconciled(workspace)


@pytest.mark.long
def test_the_manifest_binds_every_file_and_comes_with_the_chain(first: Reconciled) -> None:
    folder = first.written.folder
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    there = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert manifest["sha256"] == there
    assert set(there) == {
        *("report.html", "report.xlsx", "report.txt", "breaks.csv", "breaks.parquet"),
        *("totals.json", "records.parquet", "corrections/payment.csv"),
    }
    assert set(first.written.files) == {*there, "manifest.json"}
    assert manifest["report_hash"] == report_hash(there) == first.run.report_hash
    assert manifest["chain_hash"] == chain_hash(None, report_hash(there)) == first.run.chain_hash
    assert manifest["previous_chain_hash"] is None
    assert (
        hashlib.sha256(f"{GENESIS}{report_hash(there)}".encode()).hexdigest()
        == (manifest["chain_hash"])
    )


@pytest.mark.long
def test_the_next_run_of_the_scope_is_chained_to_this_one(
    workspace: Workspace, first: Reconciled
) -> None:
    second = reconciled(workspace, TUESDAY)
    manifest = json.loads((second.written.folder / "manifest.json").read_text())
    assert manifest["previous_chain_hash"] == first.run.chain_hash
    assert second.run.chain_hash == chain_hash(first.run.chain_hash, second.run.report_hash)


@pytest.mark.long
def test_nothing_but_the_manifest_knows_the_run_and_its_time(
    workspace: Workspace, first: Reconciled
) -> None:
    """The same truths, rules and day in a scope of another name but for its title."""
    again = reconcile(workspace, Asked(Scope(), MONDAY, RULES))
    assert again.run.id != first.run.id
    same = [
        name
        for name in ("records.parquet", "corrections/payment.csv")
        if (again.written.folder / name).read_bytes() == (first.written.folder / name).read_bytes()
    ]
    assert same == ["records.parquet", "corrections/payment.csv"]


@pytest.mark.long
def test_files_that_were_written_are_those_that_are_checked(
    workspace: Workspace, first: Reconciled
) -> None:
    with workspace.database.connect() as connection:
        assert check_files(workspace, connection, first.run) == first.written.folder


@pytest.mark.long
def test_corrections_are_the_broken_rows_with_their_breaks(first: Reconciled) -> None:
    rows = correction(first.written.folder)
    ids = codes(first)
    assert [row["Id"] for row in rows] == ["2", "3"]
    assert [row["ReconRow"] for row in rows] == ["1:2", "1:3"]
    assert [ids[row["BreakId"].split()[0]] for row in rows] == ["AMOUNT", "REJECTED"]
    assert rows[1]["PaidAmount"] == "thirty"
    assert list(rows[0]) == ["ReconRow", "BreakId", *HEADER.split(",")]


@pytest.mark.long
def test_rows_of_files_in_several_encodings_are_corrected_apart(
    workspace: Workspace, tmp_path: Path
) -> None:
    for name, encoding, text in (("a", "cp1252", "\u00fc"), ("b", "utf-8-sig", "\u0141")):
        lines = ["TenantsId,Name,Gender", f"x,,{text}"]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines), encoding=encoding)
    paths = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    import_delivery(workspace, paths, replace(DEFAULT, feed="avatars", encoding="cp1252"))
    folder = reconciled(workspace).written.folder / "corrections"
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert [text.rsplit(b",", 1)[1].strip() for _, text in sorted(found.items())] == [
        "\u0141".encode(),
        "\u00fc".encode("cp1252"),
    ]


@pytest.mark.long
def test_corrections_that_are_edited_and_delivered_close_their_breaks(
    workspace: Workspace, first: Reconciled, tmp_path: Path
) -> None:
    text = (first.written.folder / "corrections" / "payment.csv").read_text()
    fixed = tmp_path / "payment.csv"
    fixed.write_text(text.replace("thirty", "30.00").replace("20.00", "20.01"))
    import_delivery(workspace, [str(fixed)], DEFAULT, corrects=1)
    second = reconciled(workspace, TUESDAY)
    assert {one.id for one in second.report.breaks}.isdisjoint(codes(first))
    assert [one.unexplained for one in second.report.proofs] == [0] * len(second.report.proofs)
    assert not (second.written.folder / "corrections" / "payment.csv").exists()


@pytest.mark.long
def test_a_correction_that_is_rejected_again_can_be_corrected_again(
    workspace: Workspace, first: Reconciled, tmp_path: Path
) -> None:
    text = (first.written.folder / "corrections" / "payment.csv").read_text()
    fixed = tmp_path / "payment.csv"
    fixed.write_text(text.replace("thirty", "30x"))
    import_delivery(workspace, [str(fixed)], DEFAULT, corrects=1)
    folder = reconciled(workspace, TUESDAY).written.folder
    name = next(one.name for one in (folder / "corrections").iterdir() if "batch-2" in one.name)
    rows = correction(folder, name)
    # Columns of our own are written anew, not twice.
    assert list(rows[0]) == ["ReconRow", "BreakId", *HEADER.split(",")]
    assert [row["ReconRow"] for row in rows if row["PaidAmount"] == "30x"] == ["2:2"]


@pytest.mark.long
def test_rows_of_several_batches_come_in_files_of_their_own(
    workspace: Workspace, first: Reconciled, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "b.csv", line(9, amount="x"))], DEFAULT)
    folder = reconciled(workspace, TUESDAY).written.folder
    assert {path.name for path in (folder / "corrections").iterdir()} == {
        "payment-batch-1.csv",
        "payment-batch-2.csv",
    }
    assert [row["ReconRow"] for row in correction(folder, "payment-batch-2.csv")] == ["2:1"]


def test_accepted_breaks_are_not_asked_to_be_corrected(workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        gathered = gather_sources(workspace, connection, Scope(), {})
        nothing = pl.DataFrame(
            schema={
                **dict.fromkeys(("id", "record", "file", "state", "code", "key"), pl.String()),
                "line": pl.Int64(),
                "batch_id": pl.Int32(),
            }
        )
        assert corrections(workspace, connection, held_rows(nothing), gathered) == {}


@pytest.mark.long
def test_no_file_holds_a_secret(workspace: Workspace, tmp_path: Path) -> None:
    gateways = tmp_path / "payment_gateways.csv"
    gateways.write_text(
        "TenantsId,PaymentActionsId,Name,ServiceKey,NotifyUrl,RedirectUrl\n"
        f"7,1,first,{SECRET},,\n"
        f"x,2,second,{SECRET},,\n"
        f'7,3,"third,{SECRET},,\n'
    )
    import_delivery(workspace, [str(gateways)], DEFAULT)
    done = reconciled(workspace)
    folder = done.written.folder
    rows = correction(folder, "payment_gateway.csv")
    assert rows[0]["Name"] == "second"
    assert {row["ServiceKey"] for row in rows} == {""}
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "records.parquet":
            assert SECRET.encode() not in path.read_bytes(), path.name
    kept = pl.read_parquet(folder / "records.parquet")
    assert [one["ServiceKey"] for one in kept["payment_gateway"]] == ["(secret)"]
    assert SECRET not in json.dumps(kept.to_dicts(), default=str)


@pytest.mark.long
def test_content_that_was_cleared_away_costs_its_corrections_only(
    workspace: Workspace, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, amount="x"))], DEFAULT)
    settings: Settings = workspace.settings
    with workspace.database.connect() as connection:
        for path in settings.archive.rglob("*.csv"):
            note_removal(connection, path.stem)
            path.unlink()
    done = reconciled(workspace)
    assert [one.code for one in done.report.breaks if one.code == "REJECTED"] == ["REJECTED"]
    assert not (done.written.folder / "corrections").exists()
