"""Listings for a sandbox to serve, read from files in the service's CSV or JSON."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from connectors.errors import ListingUnusable
from connectors.sandbox.binding import read_cells, read_members
from connectors.sandbox.bodies import BadBody, Cells, read_csv, read_json
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.values import Reader, Record, Tree
from schemas.field import Table

# The service writes cells with inner braces and brackets unquoted; in a request it would read
# those marks as the end of a cell.
_CELL = re.compile(r'(?:"([^"]*+(?:""[^"]*+)*+)"|([^",\r\n][^,\r\n]*+)|)(,|\r?\n|\Z)')


def read_listing(options: SandboxOptions, table: Table, path: Path) -> Iterator[Record]:
    """The records of a file; nothing between two commas is null, two quotes an empty text.

    A datetime keeps its `Z`, its offset or the lack of both. Raises ListingUnusable.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise ListingUnusable(f"{path} cannot be read: {problem}") from problem
    reader = Reader(options, as_written=True)
    if text.lstrip()[:1] in ("[", "{"):
        yield from _objects(reader, table, text, path)
        return
    rows = _rows(text, path)
    known = {column.lower() for column in table.columns}
    if rows and not known & rows[0].keys():
        raise ListingUnusable(
            f"{path}: no column of {table.name}. Its header is {','.join(table.columns)}."
        )
    for number, row in enumerate(rows, 1):
        try:
            yield read_cells(reader, table, row)
        except BadBody:
            message = f"{path}: record {number} has a cell that is no value of its column."
            raise ListingUnusable(message) from None


def _objects(reader: Reader, table: Table, text: str, path: Path) -> Iterator[Record]:
    try:
        tree = read_json(text, strict=True)
    except (BadBody, RecursionError):
        raise ListingUnusable(f"{path}: it is no whole JSON.") from None
    listed: Sequence[Tree] = tree if isinstance(tree, list) else [tree]
    known = {column.lower() for column in table.columns}
    for number, member in enumerate(listed, 1):
        if not isinstance(member, dict) or (
            member and not known & {name.lower() for name in member}
        ):
            raise ListingUnusable(
                f"{path}: record {number} has no field of {table.name}. "
                f"Its fields are {', '.join(table.columns)}."
            )
        try:
            yield read_members(reader, table, member, strict=True)
        except BadBody:
            message = f"{path}: record {number} has a member that is no value of its field."
            raise ListingUnusable(message) from None


def _rows(text: str, path: Path) -> list[Cells]:
    rows = _answered(text)
    if rows is not None:
        return rows
    try:
        return read_csv(text, trimmed=True)
    except BadBody:
        message = f"{path}: a row has more cells than the header."
        raise ListingUnusable(message) from None


def _answered(text: str) -> list[Cells] | None:
    """The rows as the service writes them; None if the text is written in another way."""
    rows: list[list[str | None]] = []
    row: list[str | None] = []
    position = 0
    while position < len(text):
        cell = _CELL.match(text, position)
        if cell is None:
            return None
        quoted, bare, mark = cell.groups()
        row.append(bare if quoted is None else quoted.replace('""', '"'))
        if mark != ",":
            rows.append(row)
            row = []
        position = cell.end()
    if row:
        rows.append([*row, None])
    rows = [row for row in rows if row != [None]]
    if not rows:
        return []
    names = [(name or "").strip().lower() for name in rows[0]]
    if any(len(row) > len(names) for row in rows):
        return None
    return [dict(zip(names, row, strict=False)) for row in rows[1:]]
