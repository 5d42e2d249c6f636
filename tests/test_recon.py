"""`recon` in a process that is forked: what of that is left."""

from pathlib import Path

import psutil

from tests.recon import _forker, run


def test_of_processes_that_have_other_imports_the_newest_alone_is_left(tmp_path: Path) -> None:
    """Each has all of the product in memory, a hundred of them more than a machine has."""
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = run("postgresql://", tmp_path, "fields", RECON_RECORDS=str(folder))
        assert done.returncode == 0, done.stderr
    *older, newest = sorted(
        psutil.Process(_forker()[1].pid).children(), key=lambda one: one.create_time()
    )
    assert psutil.wait_procs(older, timeout=60)[1] == []
    assert newest.is_running()
