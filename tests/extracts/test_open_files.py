"""A process that may have few files open keeps as many at once as it may."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.stages.payments import line, write

FILES = 150
STORE = """
import resource, sys
from pathlib import Path
from connectors.errors import ReconError
from connectors.files.archived.archive import store_all
from connectors.files.incoming.delivery import find_extracts
from connectors.settings import Limits

delivery = find_extracts([sys.argv[1]], Limits())
held = [open("/dev/null") for _ in range(int(sys.argv[3]))]
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]),) * 2)
try:
    stored = list(store_all(delivery.sources, Path(sys.argv[4]), Limits()))
    print(len(stored))
except ReconError as error:
    print(error)
"""


def stored(folder: Path, limit: int, held: int = 0) -> str:
    arguments = [str(folder / "delivery"), str(limit), str(held), str(folder / "archive")]
    command = [sys.executable, "-c", STORE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def many(tmp_path: Path) -> Path:
    (tmp_path / "delivery").mkdir()
    for number in range(FILES):
        write(tmp_path / "delivery" / f"{number:03}.csv", line(number))
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(("limit", "held"), [(100, 0), (40, 10), (4096, 0)])
def test_small_files_are_kept_however_few_may_be_open(many: Path, limit: int, held: int) -> None:
    assert stored(many, limit, held) == str(FILES)


def test_the_limit_is_blamed_and_not_the_file(many: Path) -> None:
    said = stored(many, 20, 17)
    assert "Too many open files" in said
    assert "This process may have 20 files open at once" in said
    assert "nothing is wrong with the file" in said
    assert "ulimit -n" in said
    assert "Check that it exists" not in said
    assert "Make room" not in said
