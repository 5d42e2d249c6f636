"""The whole of `recon reconcile` over what a database holds: one case in a process."""

import sys
from dataclasses import replace
from pathlib import Path

from clock import Clock
from four_records_truths import AS_OF

from connectors.postgres.database import open_database
from connectors.settings import Settings
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules

ENDS = {1: "gather", 2: "judge, conclude", 3: "write, save"}
"""What has come to its end when so much of the run is told to be done."""


def main(url: str, home: Path, server: int) -> None:
    """Print what each stage cost and which breaks were found."""
    settings = Settings(home, url)
    workspace = Workspace(settings, open_database(settings))
    clock = Clock(server)

    def note_end(stage: str, done: int, total: int | None) -> None:  # noqa: ARG001 -- as Progress.
        if stage == "reconcile" and done in ENDS:
            clock.lap(ENDS[done])

    done = reconcile(replace(workspace, progress=note_end), Asked(Scope(), AS_OF, Rules()))
    breaks = done.report.breaks.counts("code")
    clock.report(verdict=done.run.verdict, breaks=dict(sorted(breaks.items())))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
