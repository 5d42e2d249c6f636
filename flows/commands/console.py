"""What the commands share with a terminal: progress, tables, JSON."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from connectors.database import open_database
from connectors.settings import read_settings
from flows.stages.workspace import Progress as Told
from flows.stages.workspace import Workspace, silent

TITLES = {
    "receive": "receiving files",
    "stage": "staging rows",
    "check": "checking",
    "apply": "applying",
    "report": "recounting",
}


def out() -> Console:
    """Where results go; delivered text in it is never taken for markup."""
    return Console(markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output, for scripts."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


@contextmanager
def told(*, quiet: bool) -> Iterator[Told]:
    """A progress bar per stage on standard error; silent for scripts and where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    columns = (TextColumn("{task.description:16}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        known: dict[str, TaskID] = {}

        def tell(stage: str, done: int, total: int | None) -> None:
            if stage not in known:
                known[stage] = bars.add_task(TITLES.get(stage, stage), total=total)
            bars.update(known[stage], completed=done, total=total)

        yield tell


@contextmanager
def workspace(*, quiet: bool = False) -> Iterator[Workspace]:
    """The workspace of this command, its database opened and migrated."""
    settings = read_settings()
    database = open_database(settings)
    with told(quiet=quiet) as progress:
        yield Workspace(settings, database, progress)
