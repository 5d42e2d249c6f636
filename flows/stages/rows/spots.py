"""Which row of a file is meant: by a line, as reports show it, or by its record number.

Lines count from 1 at the first line of the file, records from 1 behind the header. The two differ
from the first row on, so nothing here takes one for the other.
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
    """Which row of a file is meant; one of the two is given."""

    line: int | None = None
    record: int | None = None


def of_name(extracts: Iterable[Extract], name: str) -> list[Extract]:
    """The files of a name, as it was delivered or as it is shown."""
    return [one for one in extracts if one.name in (name, shown(name))]


def show_command(batch_id: int, file: str, spot: Spot) -> str:
    asked = {"record": spot.record} if spot.line is None else {"line": spot.line}
    return advised("row", (batch_id, file), asked)


def places(
    connection: psycopg.Connection, extract: Extract, spot: Spot
) -> Iterator[tuple[int, int]]:
    """Extract and record number of the rows, if they were staged: a line may be several."""
    numbers = [spot.record] if spot.record is not None else []
    if spot.line is not None:
        numbers = records_of_line(connection, extract, spot.line)
    for number in numbers:
        if find_row(connection, extract.id, number):
            yield extract.id, number
