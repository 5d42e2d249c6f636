"""Amounts no exact decimal column can add up end in a verdict that says so, never in a match."""

from datetime import date
from pathlib import Path

import pytest

from connectors.extracts.profile import DEFAULT
from flows.stages.reconcile import Asked, reconcile
from flows.stages.sequence import import_delivery
from flows.stages.truths import Scope
from flows.stages.workspace import Workspace
from flows.steps.reconcile.rules import Rules
from tests.stages.payments import line, write

TOLD = "too large or too long to be added up exactly"


@pytest.mark.parametrize(
    ("amounts", "told"),
    [
        (["9223372036854775807"[:17] + "00"] * 2, False),
        (["90000000000000000000", "90000000000000000000", "1.5"], True),
        (["-9e19", "-9e19"], True),
        (["9e18"] * 20, True),
    ],
)
def test_payments(workspace: Workspace, tmp_path: Path, amounts: list[str], told: bool) -> None:
    lines = [line(number, amount=amount) for number, amount in enumerate(amounts, 1)]
    import_delivery(workspace, [write(tmp_path / "payments.csv", *lines)], DEFAULT)
    report = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules())).report
    assert any(TOLD in because for because in report.cover.because) is told
    assert (report.cover.verdict == "INCOMPLETE") is told
    assert all(proof.unexplained == 0 for proof in report.proofs)


def test_one_that_no_column_holds_is_a_break(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "payments.csv", line(1, amount="1e300"))
    import_delivery(workspace, [path], DEFAULT)
    report = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules())).report
    assert report.cover.verdict == "NOT_RECONCILED"
    assert "PRECISION" in {one.code for one in report.breaks}


def test_a_plan_whose_amount_cannot_be_held_is_not_reconciled(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "plans.csv"
    path.write_text(
        "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId\n"
        "1,2026-01-02,1e25,978,,1\n"
    )
    import_delivery(workspace, [str(path)], DEFAULT)
    cover = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules())).report.cover
    assert cover.verdict == "INCOMPLETE"
    assert any(TOLD in because for because in cover.because)
