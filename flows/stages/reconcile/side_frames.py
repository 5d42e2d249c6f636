"""Both sides of every record kind as they are read: what counts of them, large ones put aside."""

from collections.abc import Collection, Sequence

import polars as pl
import psycopg

from connectors.postgres import sources as truths
from connectors.postgres.ledger import Extract
from connectors.postgres.lost_references import lost_references
from connectors.postgres.sources import by_row
from flows.stages.reconcile.listings import of_scope
from flows.stages.reconcile.put_aside import Ranges, keeper, one_second_key, put_aside, ranges
from flows.stages.reconcile.tied import Found, found_in
from flows.steps.frames.parts import Load, held, whole
from flows.steps.reconcile.countable import addable, adds_up, no_numbers, of_batches
from schemas.field import Table
from schemas.operations import PUSHES
from schemas.tables import DOCUMENTED, EXTRACTS


class SideFrames:
    """Frames by record kind as they are read; of large kinds what reads their parts."""

    def __init__(
        self,
        connection: psycopg.Connection,
        others: Sequence[psycopg.Connection],
        tenants: Collection[int],
        broken: Collection[int],
        at_once: int,
        *,
        narrow: bool,
    ) -> None:
        self.connection = connection
        self.others = others
        """What sees the same as the connection does, and reads with it."""
        self.tenants = tenants
        self.narrow = narrow
        self.broken = broken
        self.at_once = at_once
        self.keep = keeper()
        self.extract: dict[str, Sequence[Load]] = {}
        self.database: dict[str, Sequence[Load]] = {}
        self.answers: dict[str, pl.DataFrame] = {}
        self.listed: dict[str, Sequence[Load]] = {}
        self.ranges: dict[str, Ranges] = {}
        """Of the kinds that are in parts."""
        self.unfit: dict[str, int] = {}
        self.found: Found = {}
        self.unproven: dict[str, pl.DataFrame] = {}
        self.unshown: Found = {}
        self.lost: dict[str, pl.DataFrame] = {}

    def add(
        self, record: str, batches: Sequence[int], places: pl.DataFrame, *, service: bool
    ) -> None:
        table = EXTRACTS[record]
        expected, unfit = self._delivered(table, batches, places)
        of_key = None if self.narrow else self._ranges(table, expected)
        told = no_numbers(table, expected)
        # What is large is put aside before the other side is read.
        aside = (held(expected),) if of_key is None else put_aside(of_key, expected, by_row)
        del expected
        there = truths.database_rows(self.connection, table, self.others)
        found, unfit = self._of_tenants(there.rows), unfit + there.unfit
        del there
        if of_key is None or not _in_parts(table, found):
            self._add_whole(table, whole(aside), found, batches, unfit)
        else:
            self._tell(table, unfit, told + no_numbers(table, found))
            self._add_parts(table, of_key, aside, found)
        if record not in DOCUMENTED and table.references:
            self.lost[record] = lost_references(self.connection, table)
        if service and record in PUSHES:
            self.answers[record] = truths.answers(self.connection, PUSHES[record].name, batches)

    def _delivered(
        self, table: Table, batches: Sequence[int], places: pl.DataFrame
    ) -> tuple[pl.DataFrame, int]:
        truth = truths.extract_rows(self.connection, table, batches, places, self.others)
        self.found |= found_in(table, truth.rows)
        self._add_unshown(table, truth.rows)
        return self._of_tenants(truth.rows), truth.unfit

    def _add_whole(
        self,
        table: Table,
        expected: pl.DataFrame,
        found: pl.DataFrame,
        batches: Sequence[int],
        unfit: int,
    ) -> None:
        """Both sides of a kind, where one has to be looked at beside the other first."""
        if self.narrow:
            expected, found = of_batches(table, expected, found, batches)
        (expected, found), large = addable(table, expected, found)
        self._tell(table, unfit, large + no_numbers(table, expected, found))
        of_key = self._ranges(table, *sorted((expected, found), key=pl.DataFrame.estimated_size))
        if of_key is None:
            self.extract[table.name] = (self.keep(by_row(expected)),)
            self.database[table.name] = (self.keep(found.rechunk()),)
        else:
            self._add_parts(table, of_key, put_aside(of_key, expected, by_row), found)

    def _add_parts(
        self, table: Table, of_key: Ranges, expected: Sequence[Load], found: pl.DataFrame
    ) -> None:
        self.ranges[table.name] = of_key
        self.extract[table.name], self.database[table.name] = expected, put_aside(of_key, found)

    def _ranges(self, table: Table, *sides: pl.DataFrame) -> Ranges | None:
        """Ranges of a kind that is large, by its last side; None where it is to stay whole.

        Of a kind of which one side is known the other one is taken to be as large.
        """
        size = sum(side.estimated_size() for side in sides) * 2 // len(sides)
        if not all(_in_parts(table, side) for side in sides):
            return None
        return ranges(table, sides[-1], -(-int(size) // self.at_once))

    def _add_unshown(self, table: Table, rows: pl.DataFrame) -> None:
        """Rows of an extract that cannot be proven and whose text is nowhere else."""
        if not self.broken:
            return
        told = truths.without_text(self.connection, table, self.broken)
        if told.height:
            self.unproven[table.name] = told
            self.unshown |= found_in(table, rows.join(told, on=told.columns, how="semi"))

    def add_listing(self, listing: Extract, places: pl.DataFrame, batches: Sequence[int]) -> None:
        assert listing.record is not None
        table = EXTRACTS[listing.record]
        truth = truths.extract_rows(self.connection, table, [listing.batch_id], places, self.others)
        mine = self._of_tenants(truth.rows.filter(pl.col("extract_id") == listing.id))
        if self.narrow:
            own = (self.extract, self.database)
            sides = [whole(of[table.name]) for of in own if table.name in of]
            mine = of_scope(self.connection, table, mine, sides, batches)
        (mine,), large = addable(table, mine)
        self._tell(table, truth.unfit, large + no_numbers(table, mine))
        of_key = self.ranges.get(table.name)
        self.listed[table.name] = (
            (self.keep(by_row(mine)),) if of_key is None else put_aside(of_key, mine, by_row)
        )

    def _tell(self, table: Table, unfit: int, large: int) -> None:
        # A required amount that is null here is a PRECISION break, or is held as it is.
        a_break = all(field.required for field in table.delivered if field.amount)
        told = large if a_break else unfit + large
        if told:
            self.unfit[table.name] = self.unfit.get(table.name, 0) + told

    def _of_tenants(self, rows: pl.DataFrame) -> pl.DataFrame:
        if not self.tenants or "TenantsId" not in rows.columns:
            return rows
        # A row whose tenant cannot be read is kept: nobody else would tell of it.
        return rows.filter(pl.col("TenantsId").is_in(self.tenants) | pl.col("TenantsId").is_null())


def _in_parts(table: Table, side: pl.DataFrame) -> bool:
    """Whether nothing of a side has to be looked at as a whole."""
    return adds_up(table, side) and one_second_key(table, side)
