"""Commands as they are typed, in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from flows.__main__ import main
from flows.stages.workspace import Workspace
from tests.governance.witnesses import Book


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


@pytest.fixture
def book(
    recon: Callable[..., Ran], workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Book:
    """One file is set and a key is there, which lies outside of the home."""
    (tmp_path / "far").mkdir()
    monkeypatch.setenv("RECON_AUDIT_WITNESS", str(tmp_path / "far" / "witnesses"))
    monkeypatch.setenv("RECON_AUDIT_KEY", str(tmp_path / "keys" / "key.pem"))
    assert recon("audit", "key").returncode == 0
    return Book(tmp_path / "far" / "witnesses")
