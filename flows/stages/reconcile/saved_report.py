"""A reconciliation shown again from the files that its run wrote."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from connectors.desk_links import DeskPage, desk_link
from connectors.errors import AccountRefused
from connectors.postgres.accounts import acting, scopes_seen
from connectors.postgres.runs.reconciliations import Reconciliation, find_run, latest_runs
from flows.report.reconciled.verdicts import word_of
from flows.stages.reconcile.report_files import PAGE, TEXT, TOTALS, check_files
from flows.stages.workspace import Workspace
from schemas.life import RECONCILED


@dataclass(frozen=True, slots=True)
class SavedReport:
    run: Reconciliation
    folder: Path
    text: str

    @property
    def exit_code(self) -> int:
        """As `Reconciled.exit_code`."""
        return 0 if self.run.verdict in RECONCILED else 1

    def as_json(self) -> dict[str, Any]:
        return run_as_json(self.run, self.folder)


def saved_report(workspace: Workspace, number: int | None) -> SavedReport:
    """A reconciliation from its files, proven to be those it was saved with."""
    with workspace.database.connect() as connection:
        run = find_run(connection, number)
        if number is None:
            run = latest_seen(connection) or run
        refuse_other_scope(connection, run)
        folder = check_files(workspace, connection, run)
    text = (folder / TEXT).read_text(encoding="utf-8")
    return SavedReport(run, folder, f"{text}\n{where_text(run, folder)}")


def refuse_other_scope(connection: psycopg.Connection, run: Reconciliation) -> None:
    """Raise AccountRefused if the account is bound to tenants and a run covers others too.

    Such an account sees the run, and its breaks about these tenants; the files have everything.
    """
    if not scopes_seen(connection, [run.scope]):
        person = acting(connection)
        raise AccountRefused(
            f"{person.name if person else 'Nobody'} has no right to '{run.scope}': the report of "
            f"reconciliation {run.id} is about other tenants too. Ask somebody who has the right, "
            "or for a report of your tenants (`recon reconcile --tenant`). Nothing was changed."
        )


def latest_seen(connection: psycopg.Connection) -> Reconciliation | None:
    """The latest run whose report the acting account may see; None if there is none."""
    latest = sorted(latest_runs(connection), key=lambda run: run.id)
    seen = scopes_seen(connection, [run.scope for run in latest])
    return next((run for run in reversed(latest) if run.scope in seen), None)


def where_text(run: Reconciliation, folder: Path) -> str:
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
