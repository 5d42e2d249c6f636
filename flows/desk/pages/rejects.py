"""The rows with errors of a batch, each with its text, why, and what to do; also as files."""

import shutil
import tempfile
from contextlib import closing
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from starlette.responses import Response

from connectors.errors import AccountRefused
from connectors.files.disk.scratch import scratch_folder
from connectors.postgres.batches.attempts import later_attempts
from connectors.postgres.batches.ledger import IN_DATABASE
from flows.desk.forms import read_row
from flows.desk.pages.files import BLOCK_BYTES, sent_file
from flows.desk.seen import batch_of, named_batch, shows_text
from flows.desk.visit import Visit
from flows.report.reject_book import RejectLine, write_reject_book
from flows.stages.reconcile.behind_break import WITHHELD
from flows.stages.rows.locate import prove_rows
from flows.stages.rows.reject_page import ShownReject, shown_rejects
from flows.stages.rows.rejects import is_left_to_correct, repaired_elsewhere, write_rejects

ON_A_PAGE = 50
FIRST = 0, 0
"""The position before the first row."""
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ASK = "Ask an operator for the rows that you are to correct."


def show(visit: Visit) -> Response:
    """Some of the rows, in the order of delivery."""
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
        _refuse_without_text(visit)
        elsewhere = later_attempts(connection, batch.id)
        after = read_row(visit.asked.get("after", "")) or FIRST
        most = ON_A_PAGE + 1
        found = shown_rejects(visit.place, connection, batch.id, elsewhere, most=most, after=after)
        rows = [*found]
        left = is_left_to_correct(connection, batch.id, elsewhere)
    last = rows[ON_A_PAGE - 1] if len(rows) > ON_A_PAGE else None
    return visit.page(
        "rejects.html.jinja",
        batch=batch,
        applied=batch.state in IN_DATABASE,
        rows=rows[:ON_A_PAGE],
        left=left,
        left_out=repaired_elsewhere(elsewhere),
        behind=visit.asked.get("after", ""),
        more=f"{last.extract_id}:{last.record_number}" if last else None,
    )


def download(visit: Visit) -> Response:
    """The delivery to correct and import again, as from `recon rejects`, without secrets."""
    batch = named_batch(visit)
    _refuse_without_text(visit)
    packed = tempfile.TemporaryFile()  # noqa: SIM115 -- closed when it is sent; it has no name.
    with scratch_folder(visit.place.settings.scratch) as folder:
        if not write_rejects(visit.place, batch.id, folder, with_secrets=False):
            packed.close()
            return visit.nothing_here(f"Batch {batch.id} has no rows with errors left to correct.")
        with ZipFile(packed, "w", ZIP_DEFLATED) as into:
            for path in sorted(folder.iterdir()):
                entry = ZipInfo(path.name)  # Without a time, so that equal rows make equal files.
                entry.compress_type = ZIP_DEFLATED
                with path.open("rb") as of, into.open(entry, "w") as to:
                    shutil.copyfileobj(of, to, BLOCK_BYTES)
    return sent_file(packed, f"rejects-of-batch-{batch.id}.zip", "application/zip")


def workbook(visit: Visit) -> Response:
    """All of the rows in a workbook, a line each."""
    with visit.place.database.connect() as connection:
        batch = batch_of(visit, connection)
        _refuse_without_text(visit)
        prove_rows(connection, batch.id)
        elsewhere = later_attempts(connection, batch.id)
        book = tempfile.TemporaryFile()  # noqa: SIM115 -- closed when it is sent.
        # Closed before the connection, which has no other use while rows may come.
        with closing(shown_rejects(visit.place, connection, batch.id, elsewhere)) as rows:
            title = f"Rows with errors of batch {batch.id}"
            write_reject_book(book, title, map(_line, rows))
    return sent_file(book, f"rejects-of-batch-{batch.id}.xlsx", WORKBOOK)


def _line(row: ShownReject) -> RejectLine:
    return (
        row.file,
        row.line,
        row.record,
        row.record_number,
        row.text,
        ", ".join(str(error["ErrorCode"]) for error in row.errors),
        tuple(str(error["Message"]) for error in row.errors),
        tuple(row.remedies),
        row.later.batch_id if row.later else None,
    )


def _refuse_without_text(visit: Visit) -> None:
    if not shows_text(visit):
        raise AccountRefused(f"{WITHHELD} {ASK}")
