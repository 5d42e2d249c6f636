"""The files of a report: which were written, and that they are the ones that are there."""

import hashlib
import json
from pathlib import Path
from typing import Any

from connectors.errors import SignatureRefused
from connectors.postgres.reconciliations import Reconciliation
from flows.stages.workspace import Workspace
from schemas.guards.trail_rules import report_hash

MANIFEST = "manifest.json"
TEXT = "report.txt"
BLOCK = 1024 * 1024
ANOTHER = (
    "Bring the folder back as it was written, or reconcile again for a report that can be signed."
)


def check_files(workspace: Workspace, run: Reconciliation, way_out: str = ANOTHER) -> Path:
    """The folder of a run, its files proven to be those it was saved with."""
    folder = workspace.settings.reports / run.folder
    hashes = {name: sha256_of(folder / name) for name in sorted(listed_files(folder, run, way_out))}
    if report_hash(hashes) == run.report_hash:
        return folder
    changed = [
        name for name, told in listed_files(folder, run, way_out).items() if hashes[name] != told
    ]
    what = (
        f"changed since: {', '.join(sorted(changed))}" if changed else f"not those {MANIFEST} had"
    )
    raise SignatureRefused(
        f"The report of reconciliation {run.id} is not what was written: its files in {folder} are "
        f"{what}. Find out who changed them. {way_out}"
    )


def listed_files(folder: Path, run: Reconciliation, way_out: str = ANOTHER) -> dict[str, str]:
    """File -> sha256, as the manifest of a run has them; raises SignatureRefused."""
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_bytes())
        return {str(name): str(value) for name, value in manifest["sha256"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise SignatureRefused(
            f"Reconciliation {run.id} has no {MANIFEST} that can be read in {folder}. {way_out}"
        ) from None


def sha256_of(path: Path) -> str:
    """The hash of a file; `missing` where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    except OSError:
        return "missing"
    return digest.hexdigest()
