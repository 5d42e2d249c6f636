"""A reconciliation looked at again, from the files that its run wrote."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.desk_links import DeskPage, desk_link
from connectors.postgres.reconciliations import Reconciliation, find_run
from flows.report.reconciled.verdicts import word_of
from flows.stages.reconcile.report_files import PAGE, TEXT, TOTALS, check_files
from flows.stages.workspace import Workspace
from schemas.life import RECONCILED


@dataclass(frozen=True, slots=True)
class Shown:
    run: Reconciliation
    folder: Path
    text: str

    @property
    def exit_code(self) -> int:
        """As `Reconciled.exit_code`."""
        return 0 if self.run.verdict in RECONCILED else 1

    def as_json(self) -> dict[str, Any]:
        return run_as_json(self.run, self.folder)


def shown(workspace: Workspace, number: int | None) -> Shown:
    """A reconciliation from its files, proven to be those it was saved with."""
    with workspace.database.connect() as connection:
        run = find_run(connection, number)
        folder = check_files(workspace, connection, run)
    told = (folder / TEXT).read_text(encoding="utf-8")
    return Shown(run, folder, f"{told}\n{where_told(run, folder)}")


def where_told(run: Reconciliation, folder: Path) -> str:
    lines = [
        f"reconciliation {run.id} of {run.scope}: {word_of(run.verdict)}",
        f"report: {folder / PAGE}",
        f"report hash {run.report_hash}",
    ]
    if link := desk_link(DeskPage.RUN, run.id):
        lines.insert(2, f"desk: {link}")
    return "\n".join(lines)


def run_as_json(run: Reconciliation, folder: Path) -> dict[str, Any]:
    totals = json.loads((folder / TOTALS).read_text(encoding="utf-8"))
    return {
        "reconciliation": run.id,
        "scope": run.scope,
        "as_of": run.as_of.isoformat(),
        "verdict": run.verdict,
        "report_hash": run.report_hash,
        "chain_hash": run.chain_hash,
        "folder": str(folder),
        "totals": totals,
    }
