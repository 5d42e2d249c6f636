"""Our import of one file, stage by stage; the headline ends when the rows are applied."""

import argparse
import importlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

from clock import Clock

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.database import open_database
from connectors.settings import Settings
from flows.stages.apply import apply
from flows.stages.check import check
from flows.stages.finish import finish
from flows.stages.receive import receive
from flows.stages.receiving.terms import StatedTerms
from flows.stages.stage import stage
from flows.stages.workspace import Workspace
from schemas.derived.views import apply_stage


def main() -> None:
    """Import the file and print what every stage cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--server", type=int, help="process id of the postmaster")
    parser.add_argument("--keep", default=DEFAULT.keep, help="text or reference")
    parser.add_argument("file")
    asked = parser.parse_args()
    settings = Settings(asked.home, asked.url)
    workspace = Workspace(settings, open_database(settings))
    clock = Clock(asked.server)
    received = receive(workspace, [asked.file], StatedTerms(replace(DEFAULT, keep=asked.keep)))
    assert received.new, received.messages
    clock.lap("receive")
    importlib.import_module("loops")
    clock.lap("load")
    with (
        workspace.database.connect() as connection,
        hold_batch(connection, received.batch_id) as lease,
    ):
        proven = stage(workspace, lease)
        clock.lap("stage")
        check(workspace, lease)
        clock.lap("check")
        apply(workspace, lease, proven=proven)
        clock.lap("apply")
        report = finish(workspace, lease)
        clock.lap("finish")
        state = ledger.find_batch(connection, lease.batch_id).state
        applied: Counter[str] = Counter()
        for table in ledger.staged_tables(lease.connection, lease.batch_id):
            for receipt in ledger.list_receipts(connection, lease.batch_id, apply_stage(table)):
                applied.update(receipt.counts)
    clock.report(
        total="apply",
        state=str(state),
        rows=sum(file.rows for file in report.files),
        rejected=sum(file.rejected for file in report.files),
        applied={verdict: rows for verdict, rows in applied.items() if rows},
    )


if __name__ == "__main__":
    main()
