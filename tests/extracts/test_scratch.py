import os
import signal
from pathlib import Path

from connectors.files.scratch import scratch_folder


def killed_within(place: Path) -> None:
    """A process that writes into a folder of its own and is killed there."""
    child = os.fork()
    if not child:
        with scratch_folder(place) as folder:
            (folder / "rows.csv").write_text("secret")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.rglob("*"))


def test_a_folder_of_a_process_that_was_killed_goes_and_one_in_use_stays(tmp_path: Path) -> None:
    place = tmp_path / "home" / "scratch"
    with scratch_folder(place) as mine:
        (mine / "mine.csv").touch(mode=0o600)
        killed_within(place)
        assert "rows.csv" in names(place)
        with scratch_folder(place) as other:
            assert list(other.iterdir()) == []
            there = [mine.name, f"{mine.name}.lock", "mine.csv", other.name, f"{other.name}.lock"]
            assert names(place) == sorted([*there, "lock"])
        assert mine.stat().st_mode & 0o077 == 0
    assert names(place) == ["lock"]
