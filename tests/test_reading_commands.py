"""Commands that only read the ledger start quickly: they import no library that they do not need.

What a command imports is told by a process of its own, so no clock is asked. What all of them
import is there already, and is held to the same.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.__main__ import COMMANDS
from flows.stages.reconcile.as_of import today
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests.stages.payments import line, write

NEVER = (
    *("alembic", "fastapi", "holidays", "httpx", "jinja2", "numba", "pandera"),
    *("prefect", "sqlalchemy", "starlette", "uvicorn", "xlsxwriter"),
)
"""What no command needs that only reads the ledger."""
FRAMES = ("numpy", "polars")
TOLD = """
import os, sys
import flows.__main__, psycopg
never, *commands = sys.argv[1:]
for command in commands:
    if os.fork():
        os.wait()
        continue
    code = 0
    for one in command.split("; "):
        try:
            flows.__main__.main(one.split())
        except SystemExit as ended:
            code = max(code, ended.code)
    found = [name for name in never.split(",") if name in sys.modules]
    sys.stderr.write(f"\\n{command}: exit {code}, imported: {' '.join(found)}\\n")
    sys.stderr.flush()
    os._exit(0)
"""
"""Each command in a process that has what all of them need, and nothing of what another one has.

Several of one process have `; ` between them, and the highest exit code."""

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
    "row 1 payments.csv --line 2": ("numpy", "polars"),
}
"""Command -> what it may import of FRAMES."""


def imported(commands: Iterable[str], **environment: str) -> dict[str, tuple[int, set[str]]]:
    """The exit code of each command, and which of these libraries it imported."""
    names = ",".join((*NEVER, *FRAMES))
    run = subprocess.run(
        [sys.executable, "-c", TOLD, names, *commands],
        env=dict(os.environ) | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    told = re.findall(r"^(.+): exit (\d+), imported: (.*)$", run.stderr, re.MULTILINE)
    assert [command for command, _, _ in told] == [*commands], run.stderr
    return {command: (int(code), set(found.split())) for command, code, found in told}


@pytest.mark.long
def test_commands_that_read_import_what_they_need_alone(
    workspace: Workspace, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "payments.csv", line(1), line(2))], DEFAULT)
    reconcile(workspace, Asked(Scope(), today(workspace.settings.time_zone), Rules()))
    ours = workspace.settings
    told = imported(READING, RECON_HOME=str(ours.home), RECON_DATABASE_URL=str(ours.database_url))
    for command, (code, found) in told.items():
        assert code in (0, 1), command  # A report with breaks is told by 1.
        assert found <= set(READING[command]), command


def test_help_imports_no_library_of_what_is_done() -> None:
    """All help of one process: none of it may import any of them."""
    every = "; ".join(f"{command} --help" for command in COMMANDS)
    assert imported([every]) == {every: (0, set())}
