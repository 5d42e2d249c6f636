"""Commands that only read the ledger start quickly: they import no library that they do not need.

What a command imports is told by a process of its own, so no clock is asked.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from connectors.files.profile import DEFAULT
from flows.__main__ import COMMANDS
from flows.stages.reconcile.as_of import today
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.sources import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests.stages.payments import line, write

NEVER = (
    *("alembic", "fastapi", "holidays", "httpx", "jinja2", "numba", "openpyxl", "pandera"),
    *("prefect", "sqlalchemy", "starlette", "uvicorn", "xlsxwriter"),
)
"""What no command needs that only reads the ledger."""
FRAMES = ("numpy", "polars")
TOLD = """
import sys
from flows.__main__ import main
code = 0
try:
    main(sys.argv[2:])
except SystemExit as ended:
    code = ended.code
found = [name for name in sys.argv[1].split(",") if name in sys.modules]
sys.stderr.write(f"exit {code}, imported: {' '.join(found)}")
"""

READING = {
    "status": (),
    "sends 1": (),
    "jobs": (),
    "report": (),
    "audit list": (),
    "audit verify": (),
    "user list": (),
    "whoami": (),
    "acceptance list": (),
    "records list": (),
    "fields payment": (),
    # Breaks are a frame, and a row is read as its file is.
    "breaks list": ("polars",),
    "row 1 payments.csv --line 2": ("polars",),
}
"""Command -> what it may import of FRAMES."""


def imported(workspace: Workspace, *arguments: str) -> tuple[str, str]:
    """The exit code of a command, and which of these libraries it imported."""
    environment = dict(os.environ) | {
        "RECON_HOME": str(workspace.settings.home),
        "RECON_DATABASE_URL": str(workspace.settings.database_url),
    }
    run = subprocess.run(
        [sys.executable, "-c", TOLD, ",".join((*NEVER, *FRAMES)), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    code, _, found = run.stderr.rpartition("exit ")[2].partition(", imported: ")
    assert found or run.stderr.endswith("imported: "), run.stderr
    return code, found


def test_commands_that_read_import_what_they_need_alone(
    workspace: Workspace, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "payments.csv", line(1), line(2))], DEFAULT)
    reconcile(workspace, Asked(Scope(), today(workspace.settings.time_zone), Rules()))
    for command, may in READING.items():
        code, found = imported(workspace, *command.split())
        assert code in ("0", "1"), command  # A report with breaks is told by 1.
        assert set(found.split()) <= set(may), f"{command} imports {found}"


@pytest.mark.long
def test_help_imports_no_library_of_what_is_done(workspace: Workspace) -> None:
    """All help of one process: what one command imports would be there for the next one too."""
    program = TOLD.replace("main(sys.argv[2:])", "help_of(sys.argv[2:])").replace(
        "code = 0",
        "def help_of(names):\n"
        "    for name in names:\n"
        "        try:\n"
        "            main([name, '--help'])\n"
        "        except SystemExit:\n"
        "            pass\n"
        "code = 0",
    )
    run = subprocess.run(
        [sys.executable, "-c", program, ",".join((*NEVER, *FRAMES)), *COMMANDS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == "exit 0, imported: "
