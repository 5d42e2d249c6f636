"""A row of a file, given by its line, as reports show it, or by its record number.

Lines count from 1 at the file's first line, records from 1 after the header. They differ from the
first row on, so neither is taken for the other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import psycopg

from connectors.postgres.batches.findings import find_row, records_of_line
from connectors.postgres.batches.ledger import Extract
from connectors.printable import shown
from flows.stages.advised import advised


@dataclass(frozen=True, slots=True)
class Spot:
    """A row of a file; exactly one of the two is given."""

    line: int | None = None
    record: int | None = None


def of_name(extracts: Iterable[Extract], name: str) -> list[Extract]:
    """The files with a name, as delivered or as shown."""
    return [one for one in extracts if one.name in (name, shown(name))]


def show_command(batch_id: int, file: str, spot: Spot) -> str:
    asked = {"record": spot.record} if spot.line is None else {"line": spot.line}
    return advised("row", (batch_id, file), asked)


def places(
    connection: psycopg.Connection, extract: Extract, spot: Spot
) -> Iterator[tuple[int, int]]:
    """Extract and record number of each row, if it was staged; a line may hold several."""
    numbers = [spot.record] if spot.record is not None else []
    if spot.line is not None:
        numbers = records_of_line(connection, extract, spot.line)
    for number in numbers:
        if find_row(connection, extract.id, number):
            yield extract.id, number
