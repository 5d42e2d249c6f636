"""The files of a report: which were written, and the proof that they are unchanged."""

import hashlib
import json
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from connectors.errors import SignatureRefused
from connectors.postgres.runs.reconciliations import Reconciliation, manifest_noted
from flows.report.spelling import visible
from flows.stages.reconcile.kept_signatures import SIGNATURES
from flows.stages.workspace import Workspace
from schemas.guards.trail_rules import report_hash

PAGE, WORKBOOK, TEXT = READ_BY_PEOPLE = "report.html", "report.xlsx", "report.txt"
RECORDS = "records.parquet"
"""The database records as a run found them, with which a signature is later compared."""
BREAKS_CSV, BREAKS_PARQUET = "breaks.csv", "breaks.parquet"
TOTALS = "totals.json"
MANIFEST = "manifest.json"
PASSING = (".", "~$")
"""Prefixes of temporary files, which exist while somebody writes or opens a file."""
ANOTHER = (
    "Bring the folder back as it was written, or reconcile again for a report that can be signed."
)


def check_files(
    workspace: Workspace,
    connection: psycopg.Connection,
    run: Reconciliation,
    way_out: str = ANOTHER,
    *,
    alone: bool = True,
) -> Path:
    """The folder of a run, with proof that its files are those it was saved with.

    The manifest's facts about the run are proven too. With `alone`, the folder must have no other
    file, which a reader would take for part of the report.
    """
    folder = workspace.settings.reports / run.folder
    listed = listed_files(folder, run, way_out)
    hashes = {name: sha256_of(folder / name) for name in sorted(listed)}
    if report_hash(hashes) != run.report_hash:
        changed = [name for name, hash_ in listed.items() if hashes[name] != hash_]
        what = (
            f"changed since: {', '.join(sorted(changed))}"
            if changed
            else f"not those {MANIFEST} had"
        )
        raise _not_as_written(run, f"its files in {folder} are {what}", way_out)
    if other := _altered_in_manifest(connection, run, folder):
        raise _not_as_written(run, f"{MANIFEST} in {folder} is changed since: {other}", way_out)
    strange = ", ".join(_strange(folder, {*listed, MANIFEST, SIGNATURES})) if alone else ""
    if strange:
        raise _not_as_written(
            run, f"{folder} has files that are not of it: {visible(strange)}", "Take them out."
        )
    return folder


def listed_files(folder: Path, run: Reconciliation, way_out: str = ANOTHER) -> dict[str, str]:
    """File -> sha256 according to a run's manifest; raises SignatureRefused."""
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_bytes())
        return {str(name): str(value) for name, value in manifest["sha256"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise SignatureRefused(
            f"Reconciliation {run.id} has no {MANIFEST} that can be read in {folder}. {way_out}"
        ) from None


def read_totals(workspace: Workspace, run: Reconciliation) -> Any:
    """The totals of a run; raises SignatureRefused if they are not as written.

    Raises ValueError if they are not JSON, or nested too deeply. Other files are not hashed.
    """
    folder = workspace.settings.reports / run.folder
    listed, content = listed_files(folder, run), b""
    with suppress(OSError):
        content = (folder / TOTALS).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if report_hash(listed) != run.report_hash or digest != listed.get(TOTALS):
        raise _not_as_written(run, f"{TOTALS} in {folder} is changed since", ANOTHER)
    try:
        return json.loads(content)
    except RecursionError as error:
        # Nested deeper than any report.
        raise ValueError(str(error)) from None


def _altered_in_manifest(connection: psycopg.Connection, run: Reconciliation, folder: Path) -> str:
    """What the manifest of a run says differently from the ledger and the audit trail."""
    manifest: Any = json.loads((folder / MANIFEST).read_bytes())
    facts = {
        "reconciliation": run.id,
        "as_of": run.as_of.isoformat(),
        "verdict": run.verdict,
        "report_hash": run.report_hash,
        "chain_hash": run.chain_hash,
    }
    other = [name for name, fact in facts.items() if manifest.get(name) != fact]
    noted = manifest_noted(connection, run)
    if not other and noted not in (None, sha256_of(folder / MANIFEST)):
        return "its text, such as when it was written"
    return ", ".join(other)


def _strange(folder: Path, known: Collection[str]) -> list[str]:
    """Files in a folder that are not `known`, without drafts and markers of open files.

    A folder that cannot be looked into counts as such a file.
    """
    there: list[Path] = []
    closed: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=closed.append):
        linked = [name for name in folders if Path(place, name).is_symlink()]
        there += [Path(place, name) for name in (*names, *linked) if not name.startswith(PASSING)]
    there += [Path(error.filename) for error in closed]
    return sorted({path.relative_to(folder).as_posix() for path in there}.difference(known))


def _not_as_written(run: Reconciliation, what: str, way_out: str) -> SignatureRefused:
    return SignatureRefused(
        f"The report of reconciliation {run.id} is not what was written: {what}. "
        f"Find out who did that. {way_out}"
    )


def sha256_of(path: Path) -> str:
    """The hash of a file; `missing` if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "missing"
