"""Reports that are to be written again, where the run that made them false ended before it did."""

import psycopg

from connectors.postgres.batch_reports import owed_by
from flows.stages.finish import report_if_written
from flows.stages.workspace import Workspace


def write_owed(workspace: Workspace, connection: psycopg.Connection, batch_id: int) -> bool:
    """Write the reports that a batch made false and that are not written yet; whether there were.

    Call it for a batch that has ended: one that goes on writes them when it ends.
    """
    owed = owed_by(connection, batch_id)
    for one in owed:
        report_if_written(workspace, connection, one)
    return bool(owed)
