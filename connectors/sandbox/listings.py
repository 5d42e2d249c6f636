"""Listings that a sandbox serves, read from CSV files as the service itself writes them."""

from collections.abc import Iterator
from pathlib import Path

from connectors.errors import ExtractRefused
from connectors.sandbox.binding import read_cells
from connectors.sandbox.bodies import BadBody, Cells, read_csv
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.values import Reader, Record
from schemas.field import Table


def read_listing(options: SandboxOptions, table: Table, path: Path) -> Iterator[Record]:
    """The records of a file; nothing between two commas is null, two quotes are an empty text.

    A datetime keeps its `Z`, offset or lack of both. Raises ExtractRefused.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise ExtractRefused("no_data", f"{path} cannot be read: {problem}") from problem
    rows = _rows(text, path)
    known = {column.lower() for column in table.columns}
    if rows and not known & rows[0].keys():
        raise ExtractRefused(
            "missing_header",
            f"{path}: no column of {table.name}. Its header is {','.join(table.columns)}.",
            line=1,
        )
    reader = Reader(options, as_written=True)
    for number, row in enumerate(rows, 1):
        try:
            yield read_cells(reader, table, row)
        except BadBody:
            message = f"{path}: record {number} has a cell that is no value of its column."
            raise ExtractRefused("malformed_csv", message) from None


def _rows(text: str, path: Path) -> list[Cells]:
    try:
        return read_csv(text, trimmed=True)
    except BadBody:
        message = f"{path}: a row has more cells than the header."
        raise ExtractRefused("malformed_csv", message) from None
