"""Sign-off: two people, the files as they were written, and no open break left unaccepted."""

import json
import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from connectors.errors import (
    DecisionsMissing,
    ReconciliationUnknown,
    ScopeHeldElsewhere,
    SignatureRefused,
)
from connectors.postgres.auditing.audit import verify
from connectors.postgres.runs.breaks import Decision
from connectors.postgres.runs.reconciliations import Reconciliation, hold_scope
from connectors.postgres.runs.signatures import signatures_of
from flows.report.reconciled.verdicts import word_of
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.report_files import MANIFEST
from flows.stages.reconcile.sign import (
    RECORDS,
    approve,
    last_sign_off,
    prepare,
    signed_sources,
)
from flows.stages.workspace import Workspace
from flows.steps.frames.sources import LINEAGE, record_schema
from schemas.life import Choice, Role
from schemas.tables import EXTRACTS
from tests.governance.runs import SCOPE, found, ids, reconcile, tamper

ACCEPT = Decision(Choice.ACCEPT, "agreed", "ann", until=date(2026, 12, 31))


@pytest.mark.long
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
        "Ann Meyer (self-declared)",
        "Bo Osei (self-declared)",
        "month end",
    )
    assert (told.report_hash, told.chain_hash) == (run.report_hash, run.chain_hash)
    for sign, word in ((prepare, "prepared by Ann"), (approve, "approved by Bo")):
        with pytest.raises(SignatureRefused, match=word):
            sign(workspace, run.id, by="Cleo", comment="again")


def test_without_a_number_the_run_is_signed_that_alone_can_be_meant(workspace: Workspace) -> None:
    first = reconcile(workspace, found())
    second = reconcile(workspace, found())
    assert prepare(workspace, None, by="Ann", comment="").run == second
    with pytest.raises(ReconciliationUnknown, match="no reconciliation 0"):
        prepare(workspace, 0, by="Ann", comment="")
    reconcile(workspace, found(), scope="feed rates")
    told = f"latest of each: {second.id} ({SCOPE}), {second.id + 1} (feed rates)"
    with pytest.raises(SignatureRefused, match=re.escape(told)):
        prepare(workspace, None, by="Ann", comment="")
    assert prepare(workspace, first.id, by="Ann", comment="").run == first


@pytest.mark.long(but=(" ANN\\tMEYER ",))
@pytest.mark.parametrize(
    "name", ["Ann Meyer", "ann meyer", " ANN\tMEYER ", "\uff21nn Meyer", "Ann\u200b Meyer"]
)
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


@pytest.mark.long
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
    with pytest.raises(DecisionsMissing, match="says “Not reconciled”"):
        approve(workspace, None, by="bo", comment="")
    reconcile(workspace, found("1", "2"), verdict="RECONCILED_WITH_ACCEPTED")
    prepare(workspace, None, by="ann", comment="")
    approve(workspace, None, by="bo", comment="")


@pytest.mark.long
def test_what_waits_is_told_gravest_first_with_the_command_that_goes_on(
    workspace: Workspace, recon: Callable[..., Any]
) -> None:
    """Of three severities: the largest amount is not the gravest break."""
    breaks = pl.concat(
        [
            found("1", amount="20000", code="OFFSET", field="PaymentDate"),
            found("2", amount="300"),
            found("3", amount="20"),
            found("4", amount="2000"),
            found("5", amount="1", code="TENANT_CROSS", field=""),
        ]
    )
    reconcile(workspace, breaks, scope="tenants 7")
    prepared = recon("sign", "prepare", "1", "--by", "ann")
    assert prepared.returncode == 0, prepared.stderr
    refused = recon("sign", "approve", "1", "--by", "bo")
    assert (refused.returncode, refused.stdout) == (1, "")
    told = " ".join(refused.stderr.split())
    assert told.endswith(
        "Open breaks of reconciliation 1: 5 (Not reconciled), 1 high (TENANT_CROSS 1), 2 medium "
        "(AMOUNT 2), 2 low (AMOUNT 1, OFFSET 1). Gravest first: TENANT_CROSS payment 5; AMOUNT "
        "payment 4 PaidAmount; AMOUNT payment 2 PaidAmount; AMOUNT payment 3 PaidAmount; OFFSET "
        "payment 1 PaymentDate. See them: recon breaks list --run 1 --state open. Resolve them, or "
        "accept them: recon breaks accept --run 1 --state open --reason REASON --until YYYY-MM-DD. "
        "Then reconcile again: recon reconcile --tenant 7 --as-of 2026-01-31 --rules FILE"
    ), told
    # Whoever prepares it is told the same, and has prepared it.
    assert "is prepared by ann" in prepared.stdout
    warned = " ".join(prepared.stdout.split())
    assert "It cannot be approved as it stands. Open breaks of reconciliation 1: 5" in warned
    assert warned.endswith("recon reconcile --tenant 7 --as-of 2026-01-31 --rules FILE")


WAITS = [
    # breaks, verdict, what prepare says beside
    ((), None, None),
    (("1",), None, "Open breaks of reconciliation 1: 1 (Not reconciled)"),
    ((), "INCOMPLETE", "The report of reconciliation 1 says “Incomplete”"),
]


@pytest.mark.long(but=("incomplete",))
@pytest.mark.parametrize(("keys", "verdict", "waits"), WAITS, ids=["nothing", "open", "incomplete"])
def test_who_prepares_is_told_what_keeps_it_from_being_approved(
    workspace: Workspace, keys: tuple[str, ...], verdict: str | None, waits: str | None
) -> None:
    reconcile(workspace, found(*keys), verdict=verdict)
    signed = prepare(workspace, None, by="ann", comment="")
    assert signed.signatures[Role.PREPARED].by == "ann"
    assert (signed.waits or "").startswith(waits or "")
    assert (signed.waits is None) == (waits is None)


@pytest.mark.long
def test_an_acceptance_taken_back_is_an_open_break_again(workspace: Workspace) -> None:
    reconcile(workspace, found("1"))
    decide_breaks(workspace, None, Chosen(state="open"), ACCEPT)
    run = reconcile(workspace, found("1"), verdict="RECONCILED_WITH_ACCEPTED")
    prepare(workspace, None, by="ann", comment="")
    decide_breaks(workspace, None, Chosen(state="ACCEPTED"), Decision(Choice.REOPEN, "no", "cleo"))
    with pytest.raises(DecisionsMissing, match="2: 1"):
        approve(workspace, run.id, by="bo", comment="")
    # Whoever accepts it now stands in no report, so that they could approve this one.
    decide(workspace, run, replace(ACCEPT, by="bo"))
    with pytest.raises(DecisionsMissing, match="reopened on reconciliation 2 by cleo"):
        approve(workspace, run.id, by="bo", comment="")
    decide(workspace, run, ACCEPT)
    approve(workspace, run.id, by="bo", comment="")


def decide(workspace: Workspace, run: Reconciliation, what: Decision) -> None:
    decide_breaks(workspace, run.id, Chosen(ids=ids(found("1"))), what)


REOPEN = Decision(Choice.REOPEN, "the bank has not paid", "cleo")
LATER = [
    # what was decided on the run after, and its amount; how a run after that has the break, and
    # what was decided there; whether the report before can be approved
    ("left", [], True),
    ("prolonged", [("10", ACCEPT)], True),
    ("only assigned", [("10", Decision(Choice.ASSIGN, "look", "ann", owner="cleo"))], True),
    ("other by then", [("12", None)], True),
    ("taken back", [("10", REOPEN)], False),
    ("and run once more", [("10", REOPEN), ("10", None)], False),
    ("and accepted again", [("10", REOPEN), ("10", ACCEPT)], True),
    ("by somebody else", [("10", REOPEN), ("10", replace(ACCEPT, by="dora"))], False),
    ("as something else", [("10", REOPEN), ("12", ACCEPT)], False),
    ("up to more", [("10", REOPEN), ("12", replace(ACCEPT, up_to=Decimal(20)))], True),
]


@pytest.mark.long(but=("taken back",))
@pytest.mark.parametrize(("later", "approved"), [one[1:] for one in LATER],
                         ids=[one[0] for one in LATER])  # fmt: skip
def test_no_report_is_approved_by_an_acceptance_that_a_later_run_has_not(
    workspace: Workspace, later: list[tuple[str, Decision | None]], *, approved: bool
) -> None:
    decide(workspace, reconcile(workspace, found("1")), ACCEPT)
    run = reconcile(workspace, found("1"))
    prepare(workspace, run.id, by="ann", comment="")
    for amount, decision in later:
        after = reconcile(workspace, found("1", amount=amount), as_of=date(2026, 2, 28))
        if decision:
            decide(workspace, after, decision)
    if approved:
        assert approve(workspace, run.id, by="bo", comment="").approval
        return
    with pytest.raises(DecisionsMissing) as refused:
        approve(workspace, run.id, by="bo", comment="")
    last = run.id + len(later)
    assert str(refused.value) == (
        f"The report of reconciliation {run.id} shows 1 break as accepted that was reopened since: "
        f"AMOUNT payment 1 PaidAmount, reopened on reconciliation {run.id + 1} by cleo (the bank "
        "has not paid). Nobody approves a report by an acceptance that was taken back. Resolve or "
        f"accept what is open (recon breaks list --run {last} --state open), reconcile again, and "
        'have that report signed: recon reconcile (its scope is {"tenants": [7]}) '
        "--as-of 2026-02-28 --rules FILE"
    )


@pytest.mark.long(but=("INCOMPLETE",))
@pytest.mark.parametrize("verdict", ["NOT_RECONCILED", "INCOMPLETE"])
def test_what_is_unreconciled_for_no_break_cannot_be_waved_through(
    workspace: Workspace, verdict: str
) -> None:
    reconcile(workspace, found(), verdict=verdict)
    prepare(workspace, None, by="ann", comment="")
    with pytest.raises(DecisionsMissing, match=f"says “{word_of(verdict)}”"):
        approve(workspace, None, by="bo", comment="")


def test_nothing_is_signed_while_the_scope_is_reconciled(workspace: Workspace) -> None:
    reconcile(workspace, found())
    held = pytest.raises(ScopeHeldElsewhere)
    with workspace.database.connect() as connection, hold_scope(connection, SCOPE), held:
        prepare(workspace, None, by="ann", comment="")


@pytest.mark.long
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


def says(name: str, told: object) -> Callable[[Path], None]:
    """What the manifest says beside its files is another than it was."""

    def say(folder: Path) -> None:
        said = json.loads((folder / MANIFEST).read_text())
        assert said[name] != told
        (folder / MANIFEST).write_text(json.dumps(said | {name: told}))

    return say


def slipped_in(name: str) -> Callable[[Path], None]:
    def slip(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("0 breaks")

    return slip


def unlisted(folder: Path) -> None:
    (folder / MANIFEST).write_text('{"sha256": {}}')


@pytest.mark.long(
    but=("changed-changed since: report.html", "manifest_too-not those manifest.json had")
)
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (changed, "changed since: report.html"),
        (manifest_too, "not those manifest.json had"),
        (unlisted, "not those manifest.json had"),
        (lambda folder: (folder / RECORDS).unlink(), "changed since: records.parquet"),
        (lambda folder: (folder / MANIFEST).unlink(), "no manifest.json that can be read"),
        (lambda folder: (folder / MANIFEST).write_text("[]"), "no manifest.json that can be read"),
        *(
            (says(name, told), rf"manifest\.json in .* is changed since: {name}\. Find")
            for name, told in (
                *(("reconciliation", 9), ("as_of", "2026-02-28"), ("verdict", "INCOMPLETE")),
                *(("report_hash", "0" * 64), ("chain_hash", "f" * 64)),
            )
        ),
        (says("written_at", "2026-01-01T10:00:00+00:00"), "its text, such as when it was written"),
        (
            slipped_in("report-final.html"),
            r"has files that do not belong to it: report-final\.html",
        ),
        (slipped_in("corrections/payment.csv"), r"do not belong to it: corrections/payment\.csv"),
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


def test_only_what_was_written_stands_in_the_folder_of_a_report(workspace: Workspace) -> None:
    run = reconcile(workspace, found())
    folder = workspace.settings.reports / run.folder
    for name in (".~lock.report.xlsx#", "~$report.xlsx"):  # As long as somebody has it open.
        (folder / name).write_text("ann")
    prepare(workspace, None, by="ann", comment="")
    slipped_in("notes.txt")(folder)
    with pytest.raises(SignatureRefused, match=r"do not belong to it: notes\.txt"):
        approve(workspace, None, by="bo", comment="")
    says("as_of", "2026-02-28")(folder)
    with pytest.raises(SignatureRefused, match=r"changed since: as_of"):
        approve(workspace, None, by="bo", comment="")


def payments(*numbers: int) -> pl.DataFrame:
    schema = {**record_schema(EXTRACTS["payment"]), **LINEAGE}
    return pl.DataFrame([{"Id": number, "TenantsId": 7} for number in numbers], schema=schema)


def signed_of(workspace: Workspace, scope: str) -> dict[str, pl.DataFrame]:
    with workspace.database.connect() as connection:
        return signed_sources(workspace, connection, scope)


@pytest.mark.long
def test_a_report_of_an_earlier_day_shows_who_stood_for_one_of_then(workspace: Workspace) -> None:
    """Also where nobody approved one: what was prepared for a later day is none of it."""
    earlier, first = date(2026, 1, 30), reconcile(workspace, found())
    reconcile(workspace, found(), as_of=date(2026, 2, 28))
    prepare(workspace, None, by="ann", comment="February")
    with workspace.database.connect() as connection:
        told = [last_sign_off(connection, SCOPE, day) for day in (None, first.as_of, earlier)]
    assert [one and (one.report, one.comment) for one in told] == [
        ("reconciliation 2 as of 2026-02-28", "February"),
        ("reconciliation 1 as of 2026-01-31", ""),
        None,
    ]


@pytest.mark.long
def test_the_records_of_the_last_approved_run_are_read_back(workspace: Workspace) -> None:
    assert signed_of(workspace, SCOPE) == {}
    reconcile(workspace, found(), records={"payment": payments(2, 1)})
    assert signed_of(workspace, SCOPE) == {}
    prepare(workspace, None, by="ann", comment="")
    approve(workspace, None, by="bo", comment="")
    later = reconcile(workspace, found(), records={"payment": payments(3)})
    prepare(workspace, None, by="ann", comment="")
    signed = signed_of(workspace, SCOPE)
    assert signed["payment"].equals(payments(1, 2))
    assert signed["currency_rate"].height == 0
    # A file that somebody put there is in nobody's way here.
    slipped_in("notes.txt")(workspace.settings.reports / "reconciliation-1")
    assert signed_of(workspace, SCOPE)["payment"].height == 2
    approve(workspace, later.id, by="bo", comment="")
    assert signed_of(workspace, SCOPE)["payment"].equals(payments(3))
    assert signed_of(workspace, "another") == {}
    (workspace.settings.reports / later.folder / RECORDS).write_bytes(b"PAR1")
    with pytest.raises(SignatureRefused, match=r"changed since: records\.parquet"):
        signed_of(workspace, SCOPE)


@pytest.mark.long
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


def test_a_signature_is_of_the_time_of_its_event(workspace: Workspace, rows: Any) -> None:
    run = reconcile(workspace, found())
    prepare(workspace, None, by="ann", comment="")
    tamper(workspace, "signature", "UPDATE signature SET at = at - interval '1 year'")
    with workspace.database.connect() as connection:
        shown = signatures_of(connection, run.id)[Role.PREPARED].at
    assert [(shown,)] == rows("SELECT at FROM event WHERE what = 'report prepared'")
