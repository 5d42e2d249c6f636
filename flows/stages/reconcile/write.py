"""Write a reconciliation: every rendering, the data behind it, and the manifest that binds them.

Everything is written before the first file appears under its name; the manifest comes last. Only
the manifest has the run's number and time, so that equal sources give equal files.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from connectors.files.disk.atomic import Write, write_file, write_files
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.report.reconciled.data import (
    breaks_frame,
    totals_json,
    write_breaks_csv,
    write_parquet,
    write_parts,
)
from flows.report.reconciled.html import render_html
from flows.report.reconciled.text import render_text
from flows.report.reconciled.workbook import render_workbook
from flows.stages.reconcile.report_files import (
    BREAKS_CSV,
    BREAKS_PARQUET,
    MANIFEST,
    PAGE,
    RECORDS,
    TEXT,
    TOTALS,
    WORKBOOK,
)
from flows.stages.reconcile.sources import Gathered
from flows.stages.workspace import Workspace
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.signed import packed_parts, packed_schema
from schemas.guards.trail_rules import chain_hash, report_hash


@dataclass(frozen=True, slots=True)
class Written:
    folder: Path
    report_hash: str
    chain_hash: str
    manifest_hash: str
    files: tuple[str, ...]


def write_reconciliation(
    workspace: Workspace,
    folder: str,
    number: int,
    report: ReconciliationReport,
    corrected: Mapping[str, Write],
    gathered: Gathered,
    previous: Reconciliation | None,
) -> Written:
    """Write all files of a run, with the rows to correct; raises ReconError if one fails."""
    path = workspace.settings.reports / folder
    records = gathered.sources.database
    schema = packed_schema(records)
    hashes = write_files(
        path,
        {
            **rendered(report),
            RECORDS: partial(write_parts, schema, packed_parts(records, schema)),
            **corrected,
        },
        # Polars writes them while Python renders the others.
        meanwhile=RECORDS,
    )
    hash_ = report_hash(hashes)
    chained = chain_hash(previous.chain_hash if previous else None, hash_)
    manifest = {
        "reconciliation": number,
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "as_of": report.cover.as_of.isoformat(),
        "verdict": report.cover.verdict,
        "sha256": dict(sorted(hashes.items())),
        "report_hash": hash_,
        "previous_chain_hash": previous.chain_hash if previous else None,
        "chain_hash": chained,
    }
    content = (json.dumps(manifest, indent=1) + "\n").encode()
    write_file(path / MANIFEST, content)
    noted = hashlib.sha256(content).hexdigest()
    return Written(path, hash_, chained, noted, (*sorted(hashes), MANIFEST))


def rendered(report: ReconciliationReport) -> Mapping[str, Write]:
    """The functions that write a report's renderings, by file name."""
    frame = breaks_frame(report)
    return {
        PAGE: lambda file: file.write(render_html(report).encode()),
        WORKBOOK: lambda file: file.write(render_workbook(report, frame)),
        TEXT: lambda file: file.write(render_text(report).encode()),
        BREAKS_CSV: partial(write_breaks_csv, frame),
        BREAKS_PARQUET: partial(write_parquet, frame),
        TOTALS: lambda file: file.write(totals_json(report)),
    }
