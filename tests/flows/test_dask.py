"""A delivery over the workers of a Dask cluster, one of which dies, against the same without."""

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import SettingsError
from data_samples.generate import write_payments
from flows.stages.partitions import MOST_PARTITIONS
from flows.stages.workspace import Workspace
from tests.flows.runs import flow_run, kept_files, kept_results, log_lines, run
from tests.scale.conftest import new_workspace  # noqa: F401 - A fixture.
from tests.scale.workers import left_behind

pytestmark = [
    pytest.mark.flows,
    # Looked for, not imported: that takes as long as to read all other tests.
    pytest.mark.skipif(not find_spec("prefect_dask"), reason="the extra `scale` is not installed"),
]

ROWS, SEED = 8_000, 29


def point_at(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert workspace.settings.database_url is not None
    monkeypatch.setenv("RECON_DATABASE_URL", workspace.settings.database_url)
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))


def partition_runs(state: Any) -> list[Any]:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    wanted = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run(state).id]))
    with get_client(sync_client=True) as client:
        found = client.read_task_runs(flow_run_filter=wanted)
    return [one for one in found if one.name.startswith("stage partition")]


@pytest.mark.long
def test_killed_workers_change_nothing(
    new_workspace: Any,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    prefect_home: Path,
) -> None:
    write_payments(tmp_path / "delivery", ROWS, 0.03, SEED)
    path = str(tmp_path / "delivery" / "payments.csv")
    monkeypatch.setenv("RECON_LIMIT_BLOCK_BYTES", str(16 * 1024))
    monkeypatch.setenv("RECON_LIMIT_STRICT_BYTES", "1")
    # Dask keeps its lines to itself.
    monkeypatch.setattr(logging.getLogger("distributed.nanny"), "handlers", [caplog.handler])
    found = []
    for cluster in (None, "local:2"):
        workspace = new_workspace(16 * 1024)
        point_at(workspace, monkeypatch)
        if cluster:
            monkeypatch.setenv("RECON_DASK", cluster)
            # Every worker dies at the tenth chunk it has written, within its second partition.
            monkeypatch.setenv("CRASH_AT", "chunk:10")
        state = run(path)
        assert state.name == "CompletedWithErrors", state.message
        found.append(left_behind(workspace))
    assert found[1] == found[0]
    assert len(partition_runs(state)) > 3
    assert "Restarting worker" in caplog.text
    # Prefect keeps JSON, and nothing of a partition but that it ran.
    assert list(kept_results(prefect_home))
    assert workspace.settings.database_url not in "\n".join(log_lines(state))
    kept = b"".join(file.read_bytes() for file in kept_files(prefect_home))
    assert str(workspace.settings.database_url).encode() not in kept
    assert b'"chunk_range"' not in kept


@pytest.mark.parametrize("cluster", ["2", "local", "local:0", "host:8786", "tcp://me:pw@host:1"])
def test_a_cluster_that_is_none(cluster: str) -> None:
    from flows.tasks.partitions import dask_runner

    with pytest.raises(SettingsError, match="neither local:NUMBER nor tcp://HOST:PORT") as refused:
        dask_runner(cluster)
    assert "me:pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "feed", "most"),
    [
        ("", "ledger", MOST_PARTITIONS),
        ("16", "ledger", 16),
        ("16, ledger=4", "ledger", 4),
        ("16,ledger=4", "other", 16),
        ("ledger=4", "other", MOST_PARTITIONS),
        ("a=b=3", "a=b", 3),
    ],
)
def test_partitions_at_once(setting: str, feed: str, most: int) -> None:
    from flows.tasks.partitions import at_once

    assert at_once(setting, feed) == most


@pytest.mark.parametrize("setting", ["0", "many", "ledger=", "ledger=0", "4;5"])
def test_no_number_of_partitions(setting: str) -> None:
    from flows.tasks.partitions import at_once

    with pytest.raises(SettingsError, match="is neither a number nor FEED=NUMBER"):
        at_once(setting, "ledger")
