"""Sign-off: two people, the files as they were written, and no open break left unaccepted."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from connectors.audit import verify
from connectors.breaks import Decision
from connectors.errors import DecisionsMissing, ScopeHeldElsewhere, SignatureRefused
from connectors.reconciliations import hold_scope
from flows.stages.breaks import Chosen, decide_breaks
from flows.stages.sign import (
    MANIFEST,
    RECORDS,
    approve,
    last_sign_off,
    prepare,
    signed_sources,
)
from flows.stages.workspace import Workspace
from flows.steps.reconcile.sources import LINEAGE, record_schema
from schemas.life import Choice, Role
from schemas.tables import EXTRACTS
from tests.governance.runs import SCOPE, found, reconcile, tamper

ACCEPT = Decision(Choice.ACCEPT, "agreed", "ann", until=date(2026, 12, 31))


def test_two_people_stand_for_a_report(workspace: Workspace, rows: Any) -> None:
    run = reconcile(workspace, found())
    prepare(workspace, None, by="Ann  Meyer", comment="month end")
    signed = approve(workspace, run.id, by="Bo Osei", comment="")
    assert {role: one.by for role, one in signed.signatures.items()} == {
        Role.PREPARED: "Ann Meyer",
        Role.APPROVED: "Bo Osei",
    }
    assert {one.report_hash for one in signed.signatures.values()} == {run.report_hash}
    assert rows("SELECT what, by, reason FROM event ORDER BY id OFFSET 1") == [
        ("report prepared", "Ann Meyer", "month end"),
        ("report approved", "Bo Osei", ""),
    ]
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
        told = last_sign_off(connection, SCOPE)
    assert told is not None
    assert (told.prepared_by, told.approved_by, told.comment) == (
        "Ann Meyer",
        "Bo Osei",
        "month end",
    )
    assert (told.report_hash, told.chain_hash) == (run.report_hash, run.chain_hash)
    for sign, word in ((prepare, "prepared by Ann"), (approve, "approved by Bo")):
        with pytest.raises(SignatureRefused, match=word):
            sign(workspace, run.id, by="Cleo", comment="again")


@pytest.mark.parametrize("name", ["Ann Meyer", "ann meyer", " ANN\tMEYER ", "\uff21nn Meyer"])
def test_nobody_approves_their_own_report(workspace: Workspace, name: str) -> None:
    reconcile(workspace, found())
    with pytest.raises(SignatureRefused, match="Nobody has prepared"):
        approve(workspace, None, by=name, comment="")
    prepare(workspace, None, by="Ann Meyer", comment="")
    with pytest.raises(SignatureRefused, match="somebody else has to approve"):
        approve(workspace, None, by=name, comment="")


def test_the_user_of_the_process_is_one_person_in_every_process(workspace: Workspace) -> None:
    reconcile(workspace, found())
    prepare(workspace, None, by=None, comment="")
    with pytest.raises(SignatureRefused, match="somebody else"):
        approve(workspace, None, by=None, comment="")
    with pytest.raises(SignatureRefused, match="--by is empty"):
        approve(workspace, None, by=" ", comment="")


def test_open_breaks_wait_for_a_decision(workspace: Workspace) -> None:
    reconcile(workspace, found("1", "2"))
    prepare(workspace, None, by="ann", comment="")
    with pytest.raises(DecisionsMissing, match="Open breaks of reconciliation 1: 2") as missing:
        approve(workspace, None, by="bo", comment="")
    assert missing.value.exit_code == 1
    decide_breaks(
        workspace, None, Chosen(state="open"), Decision(Choice.RESOLVE, "soon", side="source")
    )
    with pytest.raises(DecisionsMissing, match="1: 2"):
        approve(workspace, None, by="bo", comment="")
    decide_breaks(workspace, None, Chosen(state="open"), ACCEPT)
    with pytest.raises(DecisionsMissing, match="says NOT_RECONCILED"):
        approve(workspace, None, by="bo", comment="")
    reconcile(workspace, found("1", "2"), verdict="RECONCILED_WITH_ACCEPTED")
    prepare(workspace, None, by="ann", comment="")
    approve(workspace, None, by="bo", comment="")


def test_an_acceptance_taken_back_is_an_open_break_again(workspace: Workspace) -> None:
    reconcile(workspace, found("1"))
    decide_breaks(workspace, None, Chosen(state="open"), ACCEPT)
    run = reconcile(workspace, found("1"), verdict="RECONCILED_WITH_ACCEPTED")
    prepare(workspace, None, by="ann", comment="")
    decide_breaks(workspace, None, Chosen(state="ACCEPTED"), Decision(Choice.REOPEN, "no", "cleo"))
    with pytest.raises(DecisionsMissing, match="2: 1"):
        approve(workspace, run.id, by="bo", comment="")


@pytest.mark.parametrize("verdict", ["NOT_RECONCILED", "INCOMPLETE"])
def test_what_is_unreconciled_for_no_break_cannot_be_waved_through(
    workspace: Workspace, verdict: str
) -> None:
    reconcile(workspace, found(), verdict=verdict)
    prepare(workspace, None, by="ann", comment="")
    with pytest.raises(DecisionsMissing, match=f"says {verdict}"):
        approve(workspace, None, by="bo", comment="")


def test_nothing_is_signed_while_the_scope_is_reconciled(workspace: Workspace) -> None:
    reconcile(workspace, found())
    held = pytest.raises(ScopeHeldElsewhere)
    with workspace.database.connect() as connection, hold_scope(connection, SCOPE), held:
        prepare(workspace, None, by="ann", comment="")


def test_one_of_two_who_sign_at_once_signs(workspace: Workspace, rows: Any) -> None:
    reconcile(workspace, found())
    ready = threading.Barrier(3)

    def sign(name: str) -> bool:
        ready.wait(timeout=30)
        try:
            return bool(prepare(workspace, None, by=name, comment=""))
        except SignatureRefused:
            return False

    with ThreadPoolExecutor(3) as people:
        assert sorted(people.map(sign, ("ann", "bo", "cleo"))) == [False, False, True]
    assert rows("SELECT count(*) FROM event WHERE what = 'report prepared'") == [(1,)]


def changed(folder: Path) -> None:
    (folder / "report.html").write_text("0 breaks ")


def manifest_too(folder: Path) -> None:
    import hashlib

    old = hashlib.sha256((folder / "report.html").read_bytes()).hexdigest()
    changed(folder)
    new = hashlib.sha256((folder / "report.html").read_bytes()).hexdigest()
    (folder / MANIFEST).write_text((folder / MANIFEST).read_text().replace(old, new))


def unlisted(folder: Path) -> None:
    (folder / MANIFEST).write_text('{"sha256": {}}')


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (changed, "changed since: report.html"),
        (manifest_too, "not those manifest.json had"),
        (unlisted, "not those manifest.json had"),
        (lambda folder: (folder / RECORDS).unlink(), "changed since: records.parquet"),
        (lambda folder: (folder / MANIFEST).unlink(), "no manifest.json that can be read"),
        (lambda folder: (folder / MANIFEST).write_text("[]"), "no manifest.json that can be read"),
        (shutil.rmtree, "no manifest.json that can be read"),
    ],
)
def test_a_file_that_changed_after_writing_is_not_signed(
    workspace: Workspace, damage: Callable[[Path], None], told: str, rows: Any
) -> None:
    run = reconcile(workspace, found())
    prepare(workspace, None, by="ann", comment="")
    damage(workspace.settings.reports / run.folder)
    with pytest.raises(SignatureRefused, match=told) as refused:
        approve(workspace, None, by="bo", comment="")
    assert refused.value.exit_code == 2
    assert rows("SELECT role FROM signature") == [("prepared",)]


def payments(*numbers: int) -> pl.DataFrame:
    schema = {**record_schema(EXTRACTS["payment"]), **LINEAGE}
    return pl.DataFrame([{"Id": number, "TenantsId": 7} for number in numbers], schema=schema)


def test_the_records_of_the_last_approved_run_are_read_back(workspace: Workspace) -> None:
    assert signed_sources(workspace, SCOPE) == {}
    reconcile(workspace, found(), records={"payment": payments(2, 1)})
    assert signed_sources(workspace, SCOPE) == {}
    prepare(workspace, None, by="ann", comment="")
    approve(workspace, None, by="bo", comment="")
    later = reconcile(workspace, found(), records={"payment": payments(3)})
    prepare(workspace, None, by="ann", comment="")
    signed = signed_sources(workspace, SCOPE)
    assert signed["payment"].equals(payments(1, 2))
    assert signed["currency_rate"].height == 0
    approve(workspace, later.id, by="bo", comment="")
    assert signed_sources(workspace, SCOPE)["payment"].equals(payments(3))
    assert signed_sources(workspace, "another") == {}
    (workspace.settings.reports / later.folder / RECORDS).write_bytes(b"PAR1")
    with pytest.raises(SignatureRefused, match=r"changed since: records\.parquet"):
        signed_sources(workspace, SCOPE)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE signature SET by = 'mallory' WHERE role = 'approved'",
        "UPDATE signature SET report_hash = 'x' WHERE role = 'approved'",
        "UPDATE signature SET role = 'approved ' WHERE role = 'approved'",
        "DELETE FROM signature WHERE role = 'approved'",
    ],
)
def test_a_forged_signature_breaks_the_audit_trail(workspace: Workspace, statement: str) -> None:
    reconcile(workspace, found())
    prepare(workspace, None, by="ann", comment="")
    approve(workspace, None, by="bo", comment="")
    tamper(workspace, "signature", statement)
    with workspace.database.connect() as connection:
        assert "signature" in (verify(connection).broken or "")
