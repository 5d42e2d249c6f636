"""What is stated of a file, by its footer or a manifest, against what was read of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

import polars as pl
import psycopg

from connectors.files.manifest import ManifestEntry, differences, read_entry
from connectors.files.profile import Profile
from connectors.postgres.ledger import Extract, Receipt
from connectors.postgres.staging import count_unread
from flows.steps.totals import Totals, add
from flows.steps.validate.states import EXCLUDED
from schemas.counting import agree, quantity
from schemas.field import Table
from schemas.tables import EXTRACTS


class Tied(NamedTuple):
    """How a file agrees with what is stated of it."""

    details: Sequence[str]
    """Each difference, with both numbers; none: all tie."""
    unread: int
    """Rows with errors, or left out, that have no value where one is added up."""
    whole: bool
    """Whether it has as many rows as are stated, so that these rows can be the difference."""

    @property
    def is_refused(self) -> bool:
        """Whether it is not the file that was stated."""
        return bool(self.details) and not (self.unread and self.whole)

    @property
    def unproven(self) -> str | None:
        """Why it may be the file that was stated, which cannot be told."""
        if not self.details or self.is_refused:
            return None
        told = f"{quantity(self.unread, 'row')} {agree(self.unread, 'has', 'have')} no amount there"
        return f"{'; '.join(self.details)}, and {told} that can be read"


class TotalsRead(NamedTuple):
    """What the rows of one record kind and state add up to."""

    record: str
    state: str
    totals: Totals


def totals_read(totals: Mapping[str, Mapping[str, Totals]]) -> Iterator[TotalsRead]:
    """The same of totals by record kind and state."""
    for record, states in totals.items():
        for state, total in states.items():
            yield TotalsRead(record, state, total)


def tied(
    entry: ManifestEntry, parts: Sequence[TotalsRead], profile: Profile, record: str, unread: int
) -> Tied:
    """How what was read agrees with what is stated.

    `record` is the kind of the file, `unread` as `Tied` has it.
    """
    read = add(part.totals for part in parts if is_added(part.state, profile))
    amounts = (EXTRACTS[name].amounts for name in (record, *(part.record for part in parts)))
    sums: dict[str, dict[str, Decimal]] = {name: {} for of in amounts for name in of}
    for currency, values in read.amounts.items():
        for name, value in values.items():
            sums[name][currency] = value
    details = differences(entry, read.rows, sums, read.keys)
    counted = replace(entry, sums=None, hash_total=None)
    known = all(name in sums for name in entry.sums or ())
    whole = known and not differences(counted, read.rows, sums, read.keys)
    return Tied(details, unread, whole)


def is_added(state: str, profile: Profile) -> bool:
    """Whether rows in this state are part of what is stated."""
    return state != EXCLUDED or profile.totals == "all"


def added_up(entry: ManifestEntry, table: Table) -> list[str]:
    """The fields of a record that are added up in what is stated."""
    keys = [] if entry.hash_total is None else list(table.key)
    return [name for name in (*keys, *(entry.sums or ())) if name in table.columns]


def unread_of(entry: ManifestEntry, table: Table, rows: pl.DataFrame) -> int:
    """How many of these rows lack a value where one is added up."""
    names = [name for name in added_up(entry, table) if name in rows.columns]
    return rows.filter(pl.any_horizontal(pl.col(names).is_null())).height if names else 0


def tied_in_batch(
    connection: psycopg.Connection,
    extract: Extract,
    profile: Profile,
    receipts: Iterable[Receipt],
) -> Tied | None:
    """The same of a file that is staged, with these receipts; None: nothing is stated of it."""
    if extract.manifest is None:
        return None
    entry = read_entry(extract.manifest)
    parts = [
        TotalsRead(record, state, Totals.from_json(shape))
        for receipt in receipts
        for record, states in receipt.totals.items()
        for state, shape in states.items()
    ]
    found = tied(entry, parts, profile, str(extract.record), 0)
    if not found.details:
        return found
    excluded = is_added(EXCLUDED, profile)
    unread = sum(
        count_unread(connection, table, extract.id, names, excluded=excluded)
        for table in map(EXTRACTS.__getitem__, {part.record for part in parts})
        if (names := added_up(entry, table))
    )
    return found._replace(unread=unread)
