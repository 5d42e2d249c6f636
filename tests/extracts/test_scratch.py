import os
import signal
import tempfile
from pathlib import Path

import pytest

from connectors.files.disk.scratch import scratch_folder


def killed_within(place: Path | None) -> None:
    """A process that writes into a folder of its own and is killed there."""
    child = os.fork()
    if not child:
        with scratch_folder(place) as folder:
            (folder / "rows.csv").write_text("secret")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.rglob("*"))


@pytest.fixture(params=["of its own", "of the system"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders are made; those of the system where nothing else is said."""
    place = tmp_path / "home" / "scratch"
    if request.param == "of the system":
        place.mkdir(parents=True)
        monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_a_folder_of_a_process_that_was_killed_goes_and_one_in_use_stays(place: Path) -> None:
    asked = None if place.exists() else place
    with scratch_folder(asked) as mine:
        (mine / "mine.csv").touch(mode=0o600)
        killed_within(asked)
        assert "rows.csv" in names(place)
        with scratch_folder(asked) as other:
            assert list(other.iterdir()) == []
            there = [mine.name, f"{mine.name}.lock", "mine.csv", other.name, f"{other.name}.lock"]
            assert names(place) == sorted(there)
        assert mine.stat().st_mode & 0o077 == 0
    assert names(place) == []


def test_what_lies_beside_them_is_left_alone(tmp_path: Path) -> None:
    """A place may be shared: links and other files that are named alike are nobody's folder."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "rows.csv").touch()
    (tmp_path / "file").touch()
    (tmp_path / ".recon-link.lock").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / ".recon-pipe.lock")
    for name in (".recon-link", ".recon-pipe", ".recon-folder-without-a-lock"):
        (tmp_path / name).mkdir()
    (tmp_path / ".recon-linked.lock").touch()
    (tmp_path / ".recon-linked").symlink_to(kept, target_is_directory=True)
    before = names(tmp_path)
    with scratch_folder(tmp_path):
        pass
    assert names(tmp_path) == before
    assert (kept / "rows.csv").exists()
