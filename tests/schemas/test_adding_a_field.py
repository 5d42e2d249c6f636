"""A field is one line in `schemas/tables.py`; `make fields` writes everything that follows."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BEHIND = '        Field("CurrencyRatesId", INTEGER64, required=True),\n'
ADDED = (
    '        Field("BankReference", STRING),\n        Field("Settled", BOOLEAN, required=True),\n'
)
FOLLOW = (
    "tests/schemas/test_reference.py",
    "tests/stages/database/test_database.py::test_migrations_lead_to_the_field_tables",
    "tests/stages/database/test_database.py::test_the_numbers_of_the_files_are_the_revisions",
    "tests/stages/database/test_database.py::test_the_newest_migration_brings_views_functions_and_triggers_along",
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The repository with two more fields."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("only in a checkout")
    for name in listed.stdout.split("\n"):
        source = ROOT / name
        if source.is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, tmp_path / name)
    tables = tmp_path / "schemas" / "tables.py"
    text = tables.read_text()
    assert BEHIND in text
    tables.write_text(text.replace(BEHIND, BEHIND + ADDED, 1))
    return tmp_path


def run(copy: Path, *command: str, code: Path | None = None) -> tuple[int, str]:
    done = subprocess.run(
        command,
        cwd=code or copy,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(code or copy), "RECON_HOME": str(copy / "home")},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
def test_one_line_and_one_command(copy: Path) -> None:
    recon = (sys.executable, "-m", "flows")
    code, told = run(copy, *recon, "import", str(ROOT / "data_samples" / "clean"), code=ROOT)
    assert code == 0, told
    tests = (sys.executable, "-m", "pytest", "-q", *FOLLOW)
    code, told = run(copy, *tests)
    assert code == 1
    assert told.count("run `make fields`") >= 3, told
    fields = ("make", "fields", f"PYTHON={sys.executable}")
    code, told = run(copy, *fields)
    assert code == 0, told
    assert "follow_the_field_tables.py" in told
    code, told = run(copy, *tests)
    assert code == 0, told
    # The rows that a database has are there, and have no value of a field that came after them.
    code, told = run(copy, *recon, "status")
    assert (code, told.count("applied") + told.count("complete")) == (0, 1), told
    code, told = run(copy, *recon, "reconcile")
    assert code == 1, told
    # Once more changes nothing.
    before = {path: path.read_bytes() for path in copy.rglob("*.py")}
    code, told = run(copy, *fields)
    assert code == 0, told
    assert "The migrations lead to the field tables." in told
    assert {path: path.read_bytes() for path in copy.rglob("*.py")} == before
