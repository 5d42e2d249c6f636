"""Commands as they are typed, in this process."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from flows.__main__ import main
from flows.stages.workspace import Workspace


class Ran(NamedTuple):
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def recon(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    assert workspace.settings.database_url is not None
    monkeypatch.setenv("RECON_DATABASE_URL", workspace.settings.database_url)
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        told = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, told.out, told.err)

    return run
