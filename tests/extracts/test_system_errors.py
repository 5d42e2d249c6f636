"""What the system refuses is told with its own cure, and not with that of another thing."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from connectors.errors import ReconError
from connectors.files.disk.atomic import write_file
from flows.tasks.error_lines import error_line

WORKING = "the folder that this runs in, or a file: No such file"


@pytest.mark.parametrize(
    ("number", "named", "begins", "cure"),
    [
        (errno.ENOSPC, None, "standard output or a file: No space", "Free space, and"),
        (errno.EDQUOT, "/data", "'/data': ", "Free space, and"),
        (errno.EACCES, "/data", "'/data': Permission denied", "Give the rights, and"),
        (errno.EROFS, "/data", "'/data': Read-only", "Make it writable, and"),
        (errno.ENOENT, None, WORKING, "Check that it exists, and"),
        (errno.ENOTDIR, "/data", "'/data': Not a directory", "Move away what stands where"),
        (errno.EISDIR, "/data", "'/data': Is a directory", "Move away what stands where"),
        (errno.EMFILE, "/data", "'/data': Too many", "Raise the limit of open files"),
        (
            errno.EXDEV,
            "/data",
            "'/data': Invalid cross-device",
            "Have both places on one file system",
        ),
        (errno.ELOOP, "/data", "'/data': ", "Do what the system asks for, and"),
    ],
)
def test_each_error_of_the_system_has_its_own_cure(
    number: int, named: str | None, begins: str, cure: str
) -> None:
    told = error_line(OSError(number, os.strerror(number), named)) or ""
    assert told.startswith(begins)
    assert cure in told
    assert ("Free space" in told) == (number in (errno.ENOSPC, errno.EDQUOT))


def test_a_file_where_a_folder_is_needed_asks_for_no_space(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("")
    with pytest.raises(ReconError, match=r"p\.csv.* Move away what stands where a folder"):
        write_file(tmp_path / "p.csv" / "a.csv", b"")


@pytest.mark.long
def test_a_folder_that_was_removed_under_a_command_is_told(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = (
        "import os, sys; os.chdir(sys.argv.pop()); os.rmdir(os.getcwd()); "
        "from flows.__main__ import main; main()"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, "check", "a.csv", str(tmp_path / "gone")],
        env=dict(os.environ) | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr.startswith(f"recon: {WORKING}")) == (2, True), run.stderr
