"""Files of a folder or a zip that are no extracts by their names are not passed over in silence."""

import zipfile
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.examining.examine import examine
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

TONES = "TenantsId,AvatarsId,Name\n7,3,{}\n"
SEVERAL = (
    "Left alone: deep/, march.xlsx, more.txt, whose names are not those of extracts. If any of "
    "them holds records, name it, or give it the ending .csv."
)
ONE = (
    "Left alone: all.zip/more.txt, whose name is not that of an extract. If it holds records, name "
    "it, or give it the ending .csv."
)


def folder(of: Path) -> Path:
    (of / "deep").mkdir(parents=True)
    for name in ("a.csv", "more.txt", "march.xlsx", "README.md", "feed.toml", ".b.csv", "a.csv.ok"):
        (of / name).write_text(TONES.format(name))
    return of


def archive(of: Path) -> Path:
    of.mkdir()
    with zipfile.ZipFile(of / "all.zip", "w") as members:
        for name in ("a.csv", "more.txt", "README.md", "__MACOSX/._a.csv"):
            members.writestr(name, TONES.format(name))
    return of / "all.zip"


@pytest.mark.parametrize(("make", "said"), [(folder, SEVERAL), (archive, ONE)])
def test_what_may_hold_records_is_named(
    workspace: Workspace, tmp_path: Path, make: object, said: str
) -> None:
    assert callable(make)
    path = str(make(tmp_path / "in"))
    (verdict,) = examine(workspace.settings, [path], DEFAULT)
    assert verdict.remarks == (said,)
    for new in (True, False):
        run = import_delivery(workspace, [path], DEFAULT)
        assert (run.new, run.messages[-1]) == (new, said)


def test_a_file_that_is_named_stands_for_itself(workspace: Workspace, tmp_path: Path) -> None:
    path = str(folder(tmp_path / "in") / "a.csv")
    assert examine(workspace.settings, [path], DEFAULT)[0].remarks == ()
    assert import_delivery(workspace, [path], DEFAULT).messages == ()
