"""What names a batch or a run elsewhere leads to its page at the desk, where one is set."""

from collections.abc import Callable
from typing import Any

import pytest

from connectors.desk_links import DeskPage, desk_link, desk_url, told_at_desk
from connectors.errors import SettingsError
from flows.stages.workspace import Workspace
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line, write


def test_commands_name_the_page(
    workspace: Workspace,
    recon: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    path = write(tmp_path / "payments.csv", line(1))
    assert "desk:" not in recon("import", path).stdout
    monkeypatch.setenv("RECON_DESK_URL", "https://desk.example.com/")
    told = recon("import", write(tmp_path / "more.csv", line(2)))
    assert "\ndesk: https://desk.example.com/batches/2\n" in told.stdout
    told = recon("reconcile", "--as-of", "2026-07-01")
    assert "\ndesk: https://desk.example.com/runs/1\n" in told.stdout
    assert "\ndesk: https://desk.example.com/runs/1\n" in recon("report", "1").stdout


def test_artifacts_say_where(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told_at_desk(DeskPage.RUN, 7) == ""
    monkeypatch.setenv("RECON_DESK_URL", "https://desk.example.com")
    assert desk_link(DeskPage.BATCH, 7) == "https://desk.example.com/batches/7"
    assert told_at_desk(DeskPage.RUN, 7) == (
        " [Open it at the desk](https://desk.example.com/runs/7)."
    )


@pytest.mark.parametrize(
    "url",
    [
        "desk.example.com",
        "ftp://desk.example.com",
        "https://",
        "https://desk.example.com/recon",
        "https://desk.example.com?x=1",
        "https://anna:secret@desk.example.com",
        "https://desk.example.com:x",
        "https://[",
    ],
)
def test_an_address_that_is_none_of_a_desk(url: str) -> None:
    with pytest.raises(SettingsError, match="no address of a desk") as refused:
        desk_url({"RECON_DESK_URL": url})
    assert "secret" not in str(refused.value)
