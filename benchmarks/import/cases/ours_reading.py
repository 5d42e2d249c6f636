"""Our reading alone: positions, raw text, types, verdicts and control totals, no database."""

import sys
from pathlib import Path

import polars as pl
from clock import Clock

from connectors.files.content import open_content
from connectors.files.header import read_header
from connectors.files.profile import DEFAULT
from connectors.files.reader import first_place, read_chunks
from connectors.settings import Limits
from flows.stages.validate_chunk import validate_chunk


def main(path: Path) -> None:
    """Read the file chunk by chunk and keep only counts, as a run with a database does."""
    clock = Clock()
    limits = Limits()
    content = open_content(path)
    header = read_header(content, None, None, DEFAULT, limits)
    rows = rejected = 0
    for chunk in read_chunks(content, header, first_place(header), limits.block_bytes):
        validated = validate_chunk(chunk, header, DEFAULT, 1, 1)
        rows += chunk.height
        rejected += sum(
            states["rejected"].rows for states in validated.totals.values() if "rejected" in states
        )
    clock.lap("read")
    clock.report(rows=rows, rejected=rejected, polars=pl.__version__)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
