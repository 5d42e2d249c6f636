"""A run that is begun again, by Retry or by an answer: it goes on from where it was.

The runs belong to deployments and are carried out here, as a worker does it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.files.profile import DEFAULT
from flows.stages.sequence import discard_batch, import_delivery, release_batch
from flows.stages.workspace import Workspace
from tests.flows.runs import DeployedRun
from tests.flows.test_approval import DISCARD, RELEASE, decisions
from tests.flows.test_import_batch import FAIL_ONCE, on_payment
from tests.flows.test_rerun_batch import RATES
from tests.stages.payments import line, write

pytestmark = pytest.mark.flows

OVER_BUDGET = replace(DEFAULT, budget_errors=0)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(tmp_path / "a.csv", line(1), line(2, amount="x"))


def rerun(batch_id: int, **terms: Any) -> DeployedRun:
    from flows.rerun_batch import rerun_batch

    return DeployedRun(rerun_batch, batch_id=batch_id, **terms)


def test_a_rerun_from_the_start_that_waited_reads_once_and_does_what_was_answered(
    path: str, rows: Any, workspace: Workspace
) -> None:
    import_delivery(workspace, [path], OVER_BUDGET)
    waiting = rerun(1, from_stage="stage")
    assert waiting.work().name == "Suspended"
    waiting.answer(RELEASE)
    assert waiting.work().name == "CompletedWithErrors"
    assert rows("SELECT what FROM event WHERE what IN ('rewound', 'batch held', 'released')") == [
        ("batch held",), ("rewound",), ("batch held",), ("released",)
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("settle", "name"), [(release_batch, "CompletedWithErrors"), (discard_batch, "Rejected")]
)
@pytest.mark.parametrize("from_stage", ["stage", "where it stopped"])
def test_what_was_decided_while_a_rerun_waits_stands(
    path: str, rows: Any, workspace: Workspace, settle: Any, name: str, from_stage: str
) -> None:
    import_delivery(workspace, [path], OVER_BUDGET)
    waiting = rerun(1, from_stage=from_stage)
    assert waiting.work().name == "Suspended"
    settle(workspace, 1, by="B. Roth", reason="by telephone")
    waiting.answer(RELEASE if name == "Rejected" else DISCARD)
    assert waiting.work().name == name
    assert [one[2:] for one in decisions(rows)] == [("B. Roth", "by telephone")]


@pytest.mark.long
def test_a_rerun_from_the_start_that_failed_half_way_goes_on_behind_what_is_applied(
    tmp_path: Path, rows: Any, workspace: Workspace, database_url: str
) -> None:
    folder = tmp_path / "in"
    write(folder / "payments.csv", line(1), line(2, amount="x"))
    (folder / "currency_rates.csv").write_text(RATES)
    import_delivery(workspace, [str(folder)], OVER_BUDGET)
    on_payment(database_url, FAIL_ONCE)
    asked = rerun(1, from_stage="stage", over_budget="release")
    assert asked.work().name == "Failed"
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM recon.currency_rate").fetchone() == (1,)
    asked.retry()
    assert asked.work().name == "CompletedWithErrors"
    assert rows('SELECT "Id" FROM payment') == [(1,)]
    assert rows("SELECT count(*) FROM event WHERE what = 'rewound'") == [(1,)]
