"""The page about a server of its own says what the programs really need."""

import re
import shlex
from pathlib import Path

import pytest

pytestmark = [pytest.mark.flows, pytest.mark.usefixtures("no_database")]

PAGE = (Path(__file__).parents[2] / "docs" / "production.md").read_text()


def exports(after: str) -> dict[str, str]:
    """What the first block of commands behind this line sets."""
    found = re.search(r"```sh\n(.*?)```", PAGE.split(after, 1)[1], re.DOTALL)
    assert found is not None, after
    words = shlex.split(found[1], comments=True)
    return dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))


def test_a_server_of_its_own_is_told_what_that_of_one_machine_is() -> None:
    from flows.ops.laptop import SERVER

    assert SERVER.items() <= exports("On the host of the Prefect server:").items()


def test_prefect_reads_what_a_server_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.settings.models.root import Settings

    for name, value in exports("On the host of the Prefect server:").items():
        if "..." not in value:
            monkeypatch.setenv(name, value)
    server = Settings().server
    assert server.concurrency.lease_storage.endswith(".filesystem")
    assert server.deployments.concurrency_slot_wait_seconds == 5
    assert not server.register_blocks_on_start
    assert not server.analytics_enabled


def test_what_a_retry_goes_by_is_shared_with_the_home() -> None:
    worker = exports("On each worker's host:")
    assert Path(worker["PREFECT_LOCAL_STORAGE_PATH"]).parent == Path(worker["RECON_HOME"])
