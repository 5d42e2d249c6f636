"""The folder of a batch's report: its files, and those of another batch with the same number."""

import hashlib
import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connectors.files.disk.atomic import as_it_is, write_files
from connectors.postgres.batches.batch_reports import MANIFEST, PAGE, TEXT, folder_of
from connectors.postgres.batches.ledger import Batch
from flows.report.html import render_html
from flows.report.text import render_text
from flows.stages.workspace import Workspace
from flows.steps.batch_report import BatchReport

log = logging.getLogger("recon.report")


def write_report(
    workspace: Workspace, batch: Batch, report: BatchReport
) -> tuple[Path, dict[str, str]]:
    """Write the renderings and a manifest that names the batch, which comes last.

    Returns their folder and the SHA-256 of each file, the manifest among them.
    """
    folder = folder_of(workspace.settings.reports, batch.id)
    _put_aside(folder, batch)
    texts = {PAGE: render_html(report), TEXT: render_text(report)}
    manifest = {
        "batch": batch.id,
        "opened_at": batch.opened_at.isoformat(),
        "content_id": batch.content_id,
        "sha256": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
    }
    texts[MANIFEST] = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
    files = {name: as_it_is(text.encode()) for name, text in texts.items()}
    return folder, write_files(folder, files)


def opened_at(folder: Path) -> datetime | None:
    """When the batch of the report in a folder was opened; None if its manifest does not say."""
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_bytes())
        return datetime.fromisoformat(manifest["opened_at"]).astimezone(UTC)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _put_aside(folder: Path, batch: Batch) -> None:
    """Keep the report of another batch that had this number before a restore gave it out again."""
    opened = opened_at(folder)
    if opened in (None, batch.opened_at):
        return
    name, copies = f"{folder.name}-opened-{opened:%Y%m%dT%H%M%S}Z", 0
    aside = folder.with_name(name)
    while aside.exists():
        copies += 1
        aside = folder.with_name(f"{name}-{copies}")
    folder.rename(aside)
    log.warning(
        "%s had the report of another batch %s, which this database does not know: it is in %s now",
        folder, batch.id, aside,
    )  # fmt: skip
