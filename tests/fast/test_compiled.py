"""Machine code is kept, never stale, never in the way: each case is a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHILD = """
import os, sys
import numpy as np
from loops.loop import read
from concurrent.futures import ThreadPoolExecutor
text = np.frombuffer(b"42", np.uint8)
with ThreadPoolExecutor(4) as threads:
    value, = set(threads.map(read, [text] * 8))
print(value, int("numba" not in sys.modules))
"""
LOOP = """
from loops.beside import factor
from schemas.compiled import compiled

@compiled
def read(text) -> int:
    return factor() * len(text)
"""
BESIDE = """
from schemas.compiled import loop_part

@loop_part
def factor():
    return {}
"""

WHOLE = """
import sys
from hashlib import sha256
from pathlib import Path
from flows.stages.chunks.write_out import write_out
from tests.stages.payments import HEADER, line
from tests.stages.reading.test_fast_feeds import FEEDS, read, samples
from tests.stages.reading.test_fast_path import DEFAULT, EXTRACT, chunks

path = Path(sys.argv[1])
amounts = [f"{sign}{whole}.{part}" for sign in ("", "-") for whole in (0, 12345678)
           for part in ("00", "5", "05", "1234", "00001", "000010", "012300", "999999", "5000000")]
lines = [line(number, amount=amount) for number, amount in enumerate(amounts, 10**15)]
path.write_text("\\n".join([HEADER, *lines, "x", "12345678901234567890,7", ""]))
header, (chunk,) = chunks(path, DEFAULT)
written = write_out(chunk, header, DEFAULT, EXTRACT, strict_bytes=0)
print(sum(len(one) for one in written.spool))
copies = written.copies
for feed, profile in FEEDS.items():
    before, body, behind, _, _ = samples(feed)
    path.write_bytes((before + body * 9 + behind).encode(profile.encoding or "utf-8"))
    header, (chunk,) = read(path, profile)
    copies += write_out(chunk, header, profile, EXTRACT, strict_bytes=0).copies
print(*(sha256(part).hexdigest() for copy in copies for part in copy.parts()))
"""


@pytest.fixture
def loops(tmp_path: Path) -> Path:
    """Two modules with a loop each; one uses the other's."""
    folder = tmp_path / "loops"
    folder.mkdir()
    (folder / "loop.py").write_text(LOOP)
    (folder / "beside.py").write_text(BESIDE.format(5))
    return folder


def start(loops: Path, cache: Path | None, **environment: str) -> "subprocess.Popen[str]":
    known = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    known |= {} if cache is None else {"NUMBA_CACHE_DIR": str(cache)}
    known |= {"PYTHONPATH": f"{loops.parent}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CHILD],
        env=known | environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def ended(child: "subprocess.Popen[str]") -> tuple[int, int]:
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    value, hits = out.split()
    return int(value), int(hits)


def run(loops: Path, cache: Path | None, **environment: str) -> tuple[int, int]:
    """What the loop says, and whether its code was found."""
    return ended(start(loops, cache, **environment))


@pytest.mark.long
def test_code_is_kept_for_the_next_process(loops: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert {ended(one) for one in [start(loops, kept) for _ in range(2)]} <= {(10, 0), (10, 1)}
    assert run(loops, kept) == (10, 1)
    (folder,) = kept.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [one.suffix for one in folder.iterdir()] == [".o"]


@pytest.mark.long
def test_what_a_loop_uses_is_another_one_after_an_upgrade(loops: Path, tmp_path: Path) -> None:
    """A file as long and as old as the one before it, as installers write them."""
    kept, beside = tmp_path / "kept", loops / "beside.py"
    assert run(loops, kept) == (10, 0)
    before = beside.stat()
    beside.write_text(BESIDE.format(7))
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(loops, kept) == (14, 0)
    assert run(loops, kept) == (14, 1)


@pytest.mark.long
@pytest.mark.parametrize("left", [0, 20, 60, -1])
def test_files_that_are_cut_are_made_again(left: int, loops: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert run(loops, kept) == (10, 0)
    (code,) = kept.glob("*/*.o")
    code.write_bytes(code.read_bytes()[:left])
    assert run(loops, kept) == (10, 0)
    assert run(loops, kept) == (10, 1)


@pytest.mark.long
def test_code_that_cannot_be_kept_leaves_nothing(loops: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert run(loops, kept) == (10, 0)
    (code,) = kept.glob("*/*.o")
    code.unlink()
    code.mkdir()
    assert run(loops, kept) == (10, 0)
    assert [*code.parent.iterdir()] == [code]


@pytest.mark.long
def test_code_of_another_version_is_not_run(loops: Path, tmp_path: Path) -> None:
    """Whole, and as it was written, but not here."""
    kept = tmp_path / "kept"
    assert run(loops, kept) == (10, 0)
    (before,) = kept.iterdir()
    (loops / "beside.py").write_text(BESIDE.format(7))
    assert run(loops, kept) == (14, 0)
    (after,) = set(kept.iterdir()) - {before}
    for code in before.iterdir():
        code.replace(after / code.name)
    assert run(loops, kept) == (14, 0)
    assert run(loops, kept) == (14, 1)


def link(code: Path) -> None:
    code.symlink_to(code.rename(code.parents[2] / "elsewhere.o"))


def pipe(code: Path) -> None:
    code.unlink()
    os.mkfifo(code)


def open_to_others(code: Path) -> None:
    code.chmod(0o666)


@pytest.mark.long
@pytest.mark.parametrize("bend", [link, pipe, open_to_others])
def test_what_others_may_have_put_there_is_made_again(
    bend: Callable[[Path], None], loops: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    assert run(loops, kept) == (10, 0)
    (code,) = kept.glob("*/*.o")
    bend(code)
    assert run(loops, kept) == (10, 0)
    assert run(loops, kept) == (10, 1)


@pytest.mark.long
def test_a_folder_that_cannot_be_used_is_none(loops: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run(loops, tmp_path / "file") == (10, 0)
    assert run(loops, None) == (10, 0)
    kept = tmp_path / "kept"
    assert run(loops, kept) == (10, 0)
    (folder,) = kept.iterdir()
    folder.chmod(0o777)
    assert run(loops, kept) == (10, 0)


@pytest.mark.long
def test_nothing_is_compiled_where_that_is_switched_off(tmp_path: Path) -> None:
    """The same loops, as plain Python, write the same bytes."""
    kept, told = tmp_path / "kept", []
    for off in ({"NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(kept)}, {}):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", WHOLE, str(tmp_path / "payments.csv")],
            env=os.environ | {"PYTHONPATH": str(ROOT)} | off,
            check=True,
            timeout=120,
            stdout=subprocess.PIPE,
            text=True,
        )
        told.append(done.stdout.split())
    assert told[0] == told[1]
    assert told[0][0] == "36"
    assert not kept.exists()


def test_a_loop_uses_what_its_folder_is_named_by() -> None:
    """Code that is kept would outlive what another folder says."""
    found = [
        path
        for path in ROOT.glob("[cfs]*/**/*.py")
        if "schemas.compiled import" in path.read_text()
    ]
    assert found
    for path in found:
        beside = ".".join(path.parent.relative_to(ROOT).parts)
        for text in path.read_text().splitlines():
            words = text.split()
            if words[:1] == ["from"] and words[1].split(".")[0] in {
                "schemas",
                "flows",
                "connectors",
            }:
                package = words[1].rpartition(".")[0]
                assert package == beside or package.startswith("schemas"), (path, text)
