"""The commands of those who decide and sign, as they are typed: words, documents, exit codes."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import DatabaseUnusable
from connectors.postgres.database import open_database
from flows.stages.workspace import Workspace
from tests.governance.runs import found, ids, reconcile, tamper


def test_a_trigger_that_is_switched_off_is_told_with_the_statement_that_switches_it_on(
    recon: Any, workspace: Workspace, database_url: str
) -> None:
    opened = open_database(workspace.settings)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("ALTER TABLE recon.batch DISABLE TRIGGER batch_state_checked")
        owner.execute("ALTER TABLE recon.event DISABLE TRIGGER event_append_only")
        mend = (
            "ALTER TABLE recon.batch ENABLE TRIGGER batch_state_checked; "
            "ALTER TABLE recon.event ENABLE TRIGGER event_append_only;"
        )
        # Nor does an upgrade begin.
        for revision in ("0038", opened.revision):
            owner.execute("UPDATE recon.alembic_version SET version_num = %s", [revision])
            refused = recon("status")
            assert refused.returncode == 2
            assert f"`{mend}`" in " ".join(refused.stderr.split())
        # Nor does what runs already, such as a desk or a worker, write past them.
        with (
            pytest.raises(DatabaseUnusable, match="triggers are switched off"),
            opened.connect(),
        ):
            pass
        proof = recon("audit", "verify", "--json")
        assert proof.returncode == 1
        assert f"`{mend}`" in json.loads(proof.stdout)["broken"]
        owner.execute(mend)
    assert recon("audit", "verify").returncode == 0
    with opened.connect():
        pass


def test_from_open_breaks_to_a_signed_report(recon: Any, workspace: Workspace) -> None:
    at = {"file": "payments.csv", "line": 48_113, "batch_id": 5}
    breaks = found("1/7", amount="10.50", expected="1\t0", found="0", **at).vstack(
        found("2/7", amount="99", code="OFFSET", currency=None)
    )
    run = reconcile(workspace, breaks)
    one, other = ids(found("1/7"))[0], ids(found("2/7", code="OFFSET"))[0]

    listed = recon("breaks", "list", "--code", "AMOUNT", "--state", "open")
    assert listed.returncode == 0, listed.stderr
    for word in (
        one,
        "AMOUNT",
        "payment",
        "1/7",
        "NEW",
        "10.50",
        r"1\t0",
        "2026-01-31",
        "payments.csv",
        "48113",
        "recon row BATCH FILE --line LINE",
    ):
        assert word in listed.stdout, word
    assert other not in listed.stdout
    assert "1 break of reconciliation 1, as of 2026-01-31." in listed.stdout

    assert recon("sign", "prepare", "--by", "Ann", "--comment", "January").returncode == 0
    early = recon("sign", "approve", str(run.id), "--by", "Bo")
    assert (early.returncode, early.stdout) == (1, "")
    assert "Open breaks of reconciliation 1: 2 (Not reconciled)" in early.stderr

    late = recon("breaks", "accept", one, "--reason", "why", "--until", "2026-01-01")
    assert (late.returncode, late.stdout) == (2, "")
    assert "--until 2026-01-01 has passed" in late.stderr
    accepted = recon(
        "breaks", "accept", one, other, "--reason", "agreed", "--by", "Ann", "--until", "2026-12-31"
    )
    assert accepted.returncode == 0, accepted.stderr
    assert (
        "2 breaks of reconciliation 1 accepted until 2026-12-31: "
        "10.50 in currency 1." in accepted.stdout
    )

    again = recon("sign", "approve", "--by", "Bo")
    assert (again.returncode, again.stdout) == (1, "")
    assert "says “Not reconciled”" in again.stderr

    run = reconcile(workspace, breaks, verdict="RECONCILED_WITH_ACCEPTED")
    assert recon("sign", "prepare", "--by", "Ann", "--comment", "January").returncode == 0
    own = recon("sign", "approve", "--by", "ANN")
    assert own.returncode == 2
    assert "somebody else has to approve it" in own.stderr
    approved = recon("sign", "approve", "--by", "Bo", "--json")
    assert approved.returncode == 0, approved.stderr
    told = json.loads(approved.stdout)
    assert (told["reconciliation"], told["report_hash"]) == (run.id, run.report_hash)
    assert {role: one["by"] for role, one in told["signatures"].items()} == {
        "prepared": "Ann",
        "approved": "Bo",
    }

    trail = recon("audit", "list")
    for word in ("report approved", "report prepared", "breaks accepted", "agreed", "January"):
        assert word in trail.stdout, word
    proof = recon("audit", "verify", "--json")
    assert proof.returncode == 0
    head = json.loads(proof.stdout)["head"]
    told = json.loads(proof.stdout)
    assert "nobody witnesses this trail" in told.pop("witnesses")["notes"][0]
    assert told == {"events": 6, "head": head, "broken": None, "unchecked": []}
    tamper(workspace, "event", "UPDATE event SET reason = 'never' WHERE what = 'breaks accepted'")
    broken = recon("audit", "verify", "--noted", head)
    assert broken.returncode == 1
    assert "link 3: event 3 (breaks accepted) was changed" in broken.stdout
    for part in (head[:16], head.upper(), f"{head}0"):
        told = recon("audit", "verify", "--noted", part)
        assert (told.returncode, "the whole hash" in " ".join(told.stderr.split())) == (2, True)


def test_a_sum_of_very_different_amounts_is_told_as_reports_tell_it(
    recon: Any, workspace: Workspace
) -> None:
    large = found("2", amount=None, amount_beyond="1e308")
    reconcile(workspace, found("1", amount="346.95").vstack(large.select(found().columns)))
    accept = ("--state", "open", "--reason", "ok", "--until", "2026-12-31")
    told = " ".join(recon("breaks", "accept", *accept).stdout.split())
    assert "accepted until 2026-12-31: 1e308 + 346.95 in currency 1." in told


def test_the_code_of_a_break_stays_in_one_piece(recon: Any, workspace: Workspace) -> None:
    long = "x" * 90
    reconcile(
        workspace,
        found("1", code="CHANGED_AFTER_SIGNOFF", expected=long, found=long, file=long),
    )
    assert "CHANGED_AFTER_SIGNOFF" in recon("breaks", "list").stdout


def test_decisions_as_documents(
    recon: Any, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconcile(workspace, found("1/7", "2/7"))
    one, other = sorted(ids(found("1/7", "2/7")))
    accept = ("breaks", "accept", "--code", "AMOUNT", "--reason", "ok", "--until", "2026-12-31")
    assert json.loads(recon(*accept, "--json").stdout) == {
        "reconciliation": 1,
        "decision": "accept",
        "count": 2,
        "amounts": {"1": "20"},
        "gross": {},
        "unreadable": 0,
        "counted_elsewhere": 0,
        "until": "2026-12-31",
        "breaks": [one, other],
    }
    assert recon(*accept).returncode == 2
    names = tmp_path / "currencies.csv"
    names.write_text("CurrenciesId,Code\n1,EUR\n")
    monkeypatch.setenv("RECON_CURRENCIES", str(names))
    assert "1 EUR" in recon("breaks", "list").stdout
    reopened = recon("breaks", "reopen", one, "--reason", "not paid")
    assert "1 break of reconciliation 1 reopened: 10.00 in 1 EUR." in reopened.stdout
    resolved = recon("breaks", "resolve", one, "--at", "service", "--reason", "put right")
    assert "said to be resolved at the target (database or service)" in resolved.stdout
    assert recon("breaks", "assign", "--state", "open", "--owner", "treasury").returncode == 0
    listed = json.loads(recon("breaks", "list", "--json").stdout)
    assert listed["as_of"] == "2026-01-31"
    lines = {line["id"]: line for line in listed["breaks"]}
    assert {
        name: lines[one][name] for name in ("state", "claimed", "owner", "amount", "currency")
    } == {
        "state": "NEW",
        "claimed": "service",
        "owner": "treasury",
        "amount": "10",
        "currency": 1,
    }
    assert lines[other]["accepted_until"] == "2026-12-31"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("breaks", "list"), "There is no reconciliation yet"),
        (("breaks", "accept", "x", "--until", "2026-01-01"), "--reason"),
        (("breaks", "accept", "x", "--reason", "r"), "--until"),
        (("breaks", "accept", "x", "--reason", "r", "--until", "soon"), "soon"),
        (("breaks", "accept", "x", "--reason", "r", "--until", "2026-02-30"), "2026-02-30"),
        (("breaks", "resolve", "x", "--reason", "r"), "--at"),
        (("sign", "approve", "9"), "There is no reconciliation 9"),
        (("audit", "prove"), "prove"),
    ],
)
def test_what_cannot_run_says_why(recon: Any, arguments: tuple[str, ...], told: str) -> None:
    run = recon(*arguments)
    assert run.returncode == 2, run.stderr
    assert told in run.stderr
    assert "Traceback" not in run.stderr


def test_rules_of_acceptance_from_a_terminal(recon: Any, workspace: Workspace) -> None:
    reconcile(workspace, found("1"))
    proposed = recon(
        *("acceptance", "propose", "--code", "AMOUNT", "--currency", "1", "--each", "10"),
        *("--total", "25", "--until", "2026-12-31", "--reason", "bank charges", "--by", "Ann"),
        "--json",
    )
    assert proposed.returncode == 0, proposed.stderr
    number = str(json.loads(proposed.stdout)["rule"])
    none = recon("acceptance", "approve", "1042", "--by", "bo")
    assert "no rule of acceptance 1042. " in none.stderr
    assert "`recon acceptance list` show what there is" in none.stderr
    own = recon("acceptance", "approve", number, "--by", "ann")
    assert (own.returncode, "Nobody approves a rule" in own.stderr) == (2, True), own.stderr
    assert recon("acceptance", "approve", number, "--by", "Bo").returncode == 0
    (rule,) = json.loads(recon("acceptance", "list", "--json").stdout)["rules"]
    assert (rule["state"], rule["each"], rule["proposed"]["by"]) == ("in force", "10", "Ann")
    assert number in recon("acceptance", "list").stdout
    ended = recon("acceptance", "withdraw", number, "--reason", "booked", "--by", "Ann")
    assert (ended.returncode, ended.stdout) == (0, f"Rule {number} is withdrawn.\n")
