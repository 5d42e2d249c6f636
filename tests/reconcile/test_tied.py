"""Side E is tied to its receipts: whatever is bent is named."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.extracts.profile import DEFAULT
from flows.stages.reconcile import Asked, Reconciled, reconcile
from flows.stages.sequence import import_delivery
from flows.stages.truths import Scope
from flows.stages.workspace import Workspace
from flows.steps.reconcile.rules import Rules
from tests.stages.payments import line, write


def run(workspace: Workspace) -> Reconciled:
    return reconcile(workspace, Asked(Scope(), date(2026, 1, 31), Rules(references=())))


@pytest.fixture
def delivered(workspace: Workspace, tmp_path: Path) -> Workspace:
    lines = [line(1), line(2), line(2), line(3, amount="x"), line(5)]
    import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT)
    import_delivery(workspace, [write(tmp_path / "b.csv", line(6), line(7))], DEFAULT)
    return workspace


def bend(workspace: Workspace, statement: str) -> None:
    """Change the ledger as only its owner can, whatever refuses it."""
    with workspace.database.connect() as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement)  # type: ignore[call-overload]


def test_as_it_was_taken_in_it_ties(delivered: Workspace) -> None:
    cover = run(delivered).report.cover
    assert cover.verdict == "NOT_RECONCILED", cover.because
    assert not any("taken in" in one for one in cover.because)


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (
            [
                'DELETE FROM staged_payment WHERE "Id" = 1',
                'DELETE FROM outcome WHERE record_number = 1',
                'DELETE FROM payment WHERE "Id" = 1',
            ],
            ["a.csv of batch 1", "4 rows, and 5 were read (-1)", "2 rows inserted, and"],
        ),
        (
            ['UPDATE staged_payment SET "PaidAmount" = 1 WHERE "Id" = 1'],
            ["a.csv of batch 1", "PaidAmount of 32.5 in currency 1, and it was 42"],
        ),
        (
            ['UPDATE staged_payment SET "Id" = 9 WHERE "Id" = 1'],
            ["a hash total of keys of 21, and it was 13"],
        ),
        (
            ['UPDATE staged_payment SET "CurrenciesId" = 2 WHERE "Id" = 6'],
            ["b.csv of batch 2", "in currency 2, and it was 0"],
        ),
        (["DELETE FROM outcome WHERE verdict = 'superseded'"], ["4 rows inserted", "say 3"]),
        (
            ["INSERT INTO outcome (batch_id, extract_id, record_number, verdict) "
             "VALUES (2, 2, 1, 'superseded')"],
            ["b.csv of batch 2", "1 rows inserted, and its receipts say 2"],
        ),
        (["DELETE FROM receipt WHERE stage = 'stage' AND extract_id = 2"], ["0 were read (+2)"]),
        (["DELETE FROM receipt WHERE stage LIKE 'apply%' AND extract_id = 2"], ["b.csv"]),
        (["DELETE FROM batch WHERE id = 2"], ["batch 2 is gone"]),
        (
            ["DELETE FROM batch WHERE id = 2", "DELETE FROM extract WHERE id = 2",
             "DELETE FROM receipt WHERE batch_id = 2",
             "DELETE FROM staged_payment WHERE batch_id = 2"],
            ["batch 2 is gone, and the ledger tells of it"],
        ),
        (["DELETE FROM extract WHERE id = 2"], ["extract 2 of batch 2 is gone"]),
    ],
)  # fmt: skip
def test_what_was_bent_is_named(
    delivered: Workspace, statements: list[str], told: list[str]
) -> None:
    for statement in statements:
        bend(delivered, statement)
    cover = run(delivered).report.cover
    assert cover.verdict == "INCOMPLETE"
    because = "\n".join(cover.because)
    for word in told:
        assert word in because, because


def test_a_corrected_batch_ties(delivered: Workspace, tmp_path: Path, rows: Any) -> None:
    import_delivery(delivered, [write(tmp_path / "c.csv", line(3))], DEFAULT, corrects=1)
    cover = run(delivered).report.cover
    assert not any("taken in" in one or "gone" in one for one in cover.because), cover.because
