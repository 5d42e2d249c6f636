"""Commands that are advised run as they stand there, whatever the file is called."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from flows.__main__ import main
from flows.stages.workspace import Workspace
from tests.examples import in_long
from tests.stages.payments import line, write


@pytest.fixture
def recon(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    monkeypatch.setenv("RECON_DATABASE_URL", str(workspace.settings.database_url))
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))

    def ask(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        told = capsys.readouterr()
        return int(end.value.code or 0), told.out + told.err

    return ask


@pytest.mark.long(but=("--json",))
@pytest.mark.parametrize(
    "path",
    ["--json", in_long("-p.csv"), in_long("a b.csv"), "in/it's $HOME.csv", in_long("#.csv")],
)
def test_an_advised_command_runs_whatever_the_file_is_called(
    recon: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """It took a name for an option, and looked for a file of a folder in the one where one is."""
    monkeypatch.chdir(tmp_path)
    write(Path(path), line(1), line(2, amount="ten"))
    (draft,) = re.findall("^# (recon .*)$", recon("profile", "draft", "--", path)[1], re.MULTILINE)
    Path("THIS_FILE").write_text('feed = "x"\n')
    advised = {draft}
    code, told = recon(*shlex.split(draft)[1:])
    assert code == 1, told
    advised |= set(re.findall("To list them all: (recon .*)", told))
    assert recon("import", "--", path)[0] == 1
    recon("rejects", "1")
    advised |= set(
        re.findall("^recon .*", Path("rejects/what-is-wrong-batch-1.txt").read_text(), re.MULTILINE)
    )
    advised |= set(re.findall("`(recon [^`]*)`", recon("row", "--", "1", Path(path).name, "2")[1]))
    ends = [(shlex.split(one)[1], *recon(*shlex.split(one)[1:])) for one in sorted(advised)]
    assert [(name, code) for name, code, _ in ends] == [
        ("check", 1),
        ("profile", 1),
        *[("row", 0)] * 3,
    ], ends
