"""Our reading alone, to the bytes that are sent to a database: text, types, verdicts, totals."""

import importlib
import sys
from pathlib import Path

import polars as pl
from clock import Clock

from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile import DEFAULT
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import Extract
from connectors.settings import Limits
from flows.stages.chunks.write_out import write_out

EXTRACT = Extract(
    id=1, batch_id=1, name="a.csv", sha256=None, bytes=None, record="payment", header=None,
    manifest=None, refused=None, message=None, pieces=None,
)  # fmt: skip


def main(path: Path) -> None:
    """Read the file chunk by chunk and keep only counts, as a run with a database does."""
    clock = Clock()
    importlib.import_module("loops")
    clock.lap("load")
    limits = Limits()
    content = open_content(path)
    header = read_header(content, None, DEFAULT, limits)
    rows = rejected = 0
    for chunk in read_chunks(content, header, first_place(header), limits.block_bytes):
        written = write_out(chunk, header, DEFAULT, EXTRACT, strict_bytes=limits.strict_bytes)
        rows += chunk.height
        rejected += sum(
            states["rejected"].rows
            for states in written.validated.totals.values()
            if "rejected" in states
        )
    clock.lap("read")
    clock.report(rows=rows, rejected=rejected, polars=pl.__version__)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
