"""Rules of runs whose ledger does not keep them are read from their totals, if they still fit."""

import json
from pathlib import Path

import pytest

from flows.stages.reconcile.report_files import TOTALS
from flows.stages.reconcile.rules import rules_of, text_of
from flows.stages.workspace import Workspace
from flows.steps.rules.canonical import rules_hash, rules_text
from flows.steps.rules.file import read_rules_text
from tests.governance.runs import found, reconcile, tamper

RULES = read_rules_text('name = "strict"\nreferences = []\n')
HASH, TEXT = rules_hash(RULES), rules_text(RULES)
UNUSABLE = [
    # What the totals of a run may be, and tell no rules
    None,
    b"",
    b"\xff",
    b"{",
    b"[]",
    b"null",
    b"{}",
    b'{"cover": null}',
    b'{"cover": []}',
    b'{"cover": {}}',
    b'{"cover": {"rules_text": null}}',
    b'{"cover": {"rules_text": 1}}',
    rb'{"cover": {"rules_text": "\ud800"}}',
    json.dumps({"cover": {"rules_text": [TEXT]}}).encode(),
    json.dumps({"cover": {"rules_text": TEXT + "\n"}}).encode(),
    json.dumps({"cover": {"rules_text": TEXT.replace("strict", "strong")}}).encode(),
]


def test_rules_are_read_from_the_totals_of_any_run_that_used_them(workspace: Workspace) -> None:
    first, last = (_totals(workspace, key) for key in "ab")
    tamper(workspace, "reconciliation", f"UPDATE reconciliation SET rules_hash = '{HASH}'")
    first.write_text(json.dumps({"cover": {"rules_text": TEXT}}))
    with workspace.database.connect() as connection:
        for told in UNUSABLE:
            _write(last, told)
            assert text_of(workspace, connection, HASH) == TEXT, told
        assert rules_of(workspace, connection, HASH) == RULES
        assert text_of(workspace, connection, "0" * 64) is None


def test_rules_that_no_totals_tell_are_unknown(workspace: Workspace) -> None:
    totals = _totals(workspace, "a")
    tamper(workspace, "reconciliation", f"UPDATE reconciliation SET rules_hash = '{HASH}'")
    with workspace.database.connect() as connection:
        for told in UNUSABLE:
            _write(totals, told)
            assert text_of(workspace, connection, HASH) is None, told
        assert rules_of(workspace, connection, HASH) is None


@pytest.mark.long
def test_rules_that_were_altered_in_the_database_are_none(workspace: Workspace) -> None:
    """They are those of another run by the same rules, or of its totals."""
    totals, _ = (_totals(workspace, key) for key in "ab")
    kept = f"rules_hash = '{HASH}', rules_text = '{TEXT}'"
    tamper(workspace, "reconciliation", f"UPDATE reconciliation SET {kept}")
    told = []
    with workspace.database.connect() as connection:
        for run in (1, 2):
            looser = f"UPDATE reconciliation SET rules_text = '# looser' WHERE id = {run}"
            tamper(workspace, "reconciliation", looser)
            told.append(text_of(workspace, connection, HASH))
        _write(totals, json.dumps({"cover": {"rules_text": TEXT}}).encode())
        told.append(text_of(workspace, connection, HASH))
    assert told == [TEXT, None, TEXT]


def _totals(workspace: Workspace, key: str) -> Path:
    """The totals of a run as an earlier version saved it."""
    return workspace.settings.reports / reconcile(workspace, found(key)).folder / TOTALS


def _write(path: Path, told: bytes | None) -> None:
    path.unlink(missing_ok=True)
    if told is not None:
        path.write_bytes(told)
