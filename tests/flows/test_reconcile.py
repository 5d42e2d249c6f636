"""The flow reconcile: its end states, its artifacts, and what it keeps of a run."""

import asyncio
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.pull import wanted
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.flows.runs import artifact, flow_run
from tests.flows.test_missed_runs import schedule
from tests.push.conftest import PUSHED, USER, sandbox_at
from tests.push.conftest import towards as at
from tests.reconcile.scenario import FOLDER

pytestmark = pytest.mark.flows


def reconcile(**terms: Any) -> Any:
    from flows.reconcile import reconcile as flow

    return flow(**terms, return_state=True)


@pytest.fixture
def delivered(workspace: Workspace) -> None:
    import_delivery(workspace, [str(FOLDER / "monday")], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute((FOLDER / "monday.sql").read_bytes())


@pytest.mark.long
def test_breaks_have_a_state_and_a_table(delivered: None) -> None:
    state = reconcile(as_of=date(2026, 3, 9), rules=str(FOLDER / "rules.toml"))
    assert (state.type.value, state.name) == ("COMPLETED", "Breaks")
    kept = state.result()
    assert kept["verdict"] == "NOT_RECONCILED"
    assert f"{kept['open_breaks']} open breaks" in state.message
    assert flow_run(state).name == "reconcile as of 2026-03-09"
    assert "differences that nobody has resolved" in artifact("reconciliation-report").data
    table = artifact("breaks").table
    assert 0 < len(table) <= 200
    assert len(table[0]) <= 8
    json.dumps(kept)


def test_nothing_to_hold_against_is_incomplete(workspace: Workspace) -> None:
    state = reconcile(as_of=date(2026, 3, 9))
    assert (state.type.value, state.name) == ("FAILED", "Incomplete")


@pytest.mark.long
def test_an_incomplete_run_names_the_listing_to_pull(delivered: None, workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET service = 'service'")
    state = reconcile(as_of=date(2026, 3, 9), rules=str(FOLDER / "rules.toml"))
    assert (state.type.value, state.name) == ("FAILED", "Incomplete")
    assert "listing of insert batch data was not pulled" in state.message.lower()
    assert "recon pull insert_batch_data, or a run of pull-listings/pull" in state.message


@pytest.mark.long
def test_a_run_of_a_day_that_has_passed_pulls_nothing_and_is_told_how_to_ask_for_its_day(
    delivered: None, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.flow_engine import run_flow

    from flows.reconcile import reconcile as flow

    for name, value in (("URL", "http://127.0.0.1:9"), ("USER", "ann"), ("PASSWORD", "x")):
        monkeypatch.setenv(f"RECON_SERVICE_{name}", value)
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET service = 'service'")
    deployment = flow.to_deployment("late").apply()
    with get_client(sync_client=True) as client:
        made_of = client.read_deployment(deployment).flow_id
    due = [datetime.now(UTC) - timedelta(days=ago) for ago in (2, 1)]
    ids = [asyncio.run(schedule(made_of, deployment, one, {})) for one in due]
    with get_client(sync_client=True) as client:
        runs = [client.read_flow_run(one) for one in ids]
    states = [
        run_flow(flow, flow_run=one, parameters=one.parameters, return_type="state") for one in runs
    ]
    with get_client(sync_client=True) as client:
        client.delete_deployment(deployment)
    told = [str(state.message) for state in states]
    assert told[0].endswith("reconcile/any-day with as_of and restate reports that day.")
    assert "was not pulled" in told[1]
    assert "could not be pulled" not in told[1]


@pytest.mark.long
def test_a_refused_day_names_the_parameters_of_the_deployment(delivered: None) -> None:
    assert reconcile(as_of=date(2026, 3, 9)).name == "Breaks"
    state = reconcile(as_of=date(2026, 3, 1))
    assert state.type.value == "FAILED"
    assert "arameter as_of 2026-03-01 is before the last run" in state.message
    assert "say why: parameter restate" in state.message
    assert "--" not in state.message


@pytest.mark.long
def test_a_rule_file_that_cannot_be_meant_fails_with_its_line(
    delivered: None, tmp_path: Any
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[rates]\nstale_day = 7\n")
    state = reconcile(as_of=date(2026, 3, 9), rules=str(rules))
    assert state.type.value == "FAILED"
    assert "line 2" in state.message
    assert "stale_days" in state.message


@pytest.mark.long
def test_what_was_pushed_is_pulled_first(
    workspace: Workspace, database_url: str, monkeypatch: pytest.MonkeyPatch, rows: Any
) -> None:
    monkeypatch.setenv("RECON_SERVICE_BACKOFF_SECONDS", "0.001")
    with sandbox_at(database_url) as (_, url):
        for name, value in (("URL", url), ("USER", USER.name), ("PASSWORD", USER.password)):
            monkeypatch.setenv(f"RECON_SERVICE_{name}", value)
        place = at(workspace, url)
        import_delivery(place, [str(FOLDER / "monday" / "insert_batch_data.csv")], PUSHED)
        assert wanted(place, Scope()) == ["insert_batch_data"]
        alone = reconcile(pull=False)
        assert "was not pulled" in alone.message
        state = reconcile(batches=[1])
        assert "was not pulled" not in state.message
        assert rows("SELECT feed FROM batch ORDER BY id DESC LIMIT 1") == [("service-listing",)]
    # The listing is newer than the push, and still the run says that it is not of this day.
    state = reconcile()
    assert (state.type.value, state.name) == ("FAILED", "Incomplete")
    assert "listing of insert batch data could not be pulled: " in state.message
    assert "mend that, then reconcile again" in state.message
    assert len(artifact("breaks").table) > 0
