"""Both sides of every record kind as they are read: the rows that count, large sides in files."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

import polars as pl
import psycopg

from connectors.postgres.batches.ledger import Extract, in_force_after
from connectors.postgres.batches.overtaken import overtaken, written_late
from connectors.postgres.runs import sources
from connectors.postgres.runs.lost_references import lost_references
from connectors.postgres.runs.side_sizes import bytes_of_sides, sampled_numbers
from connectors.postgres.runs.sources import by_row
from connectors.settings import MIB
from flows.stages.reconcile.around import records_around
from flows.stages.reconcile.arrived import Arrived
from flows.stages.reconcile.listings import of_scope
from flows.stages.reconcile.put_aside import has_ranges, keeper, put_aside, ranges
from flows.stages.reconcile.tied import Found, add_found, found_in
from flows.steps.frames.beyond import texts_last
from flows.steps.frames.parts import Change, Load, held, whole
from flows.steps.frames.ranges import Ranges
from flows.steps.reconcile.countable import (
    addable,
    among,
    disputed,
    no_numbers,
    not_overtaken,
    of_batches,
    spoken_of,
    unfit,
)
from schemas.breaks import Status
from schemas.derived.left_out import OWN
from schemas.derived.views import WRITTEN
from schemas.field import TENANT, Table
from schemas.operations import PUSHES
from schemas.tables import DOCUMENTED, EXTRACTS, PAYMENT_PLAN_DETAIL

_HELD = 4
"""Sides up to this multiple of the bytes reconciled at once are held while they are read."""
_LEFT_OUT = [state for state, (status, _) in OWN.items() if status is Status.EXCLUDED]
STREAMED = 16 * MIB
"""The least bytes of a larger side read at once; each range has rows of most parts."""


@dataclass
class SideFrames:
    """Frames by record kind as they are read; for large kinds, the readers of their parts."""

    connection: psycopg.Connection
    others: Sequence[psycopg.Connection]
    """Connections at the same snapshot, which read along with it."""
    tenants: Collection[int]
    bound: Collection[int]
    """Batches of the scope that are bound to one of the tenants."""
    broken: Collection[int]
    at_once: int
    narrow: bool = field(kw_only=True)
    extract: dict[str, Sequence[Load]] = field(default_factory=dict)
    database: dict[str, Sequence[Load]] = field(default_factory=dict)
    answers: dict[str, pl.DataFrame] = field(default_factory=dict)
    listed: dict[str, Sequence[Load]] = field(default_factory=dict)
    ranges: dict[str, Ranges] = field(default_factory=dict)
    """The ranges of kinds that are in parts."""
    unfit: dict[str, int] = field(default_factory=dict)
    found: Found = field(default_factory=dict)
    unproven: dict[str, pl.DataFrame] = field(default_factory=dict)
    unshown: Found = field(default_factory=dict)
    nameless: Found = field(default_factory=dict)
    overtaken: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Rows whose record a batch with a lower number wrote after them."""
    lost: dict[str, pl.DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keep = keeper()
        self._written_late = written_late(self.connection)

    def add(
        self, record: str, batches: Sequence[int], places: pl.DataFrame, *, service: bool
    ) -> None:
        table = EXTRACTS[record]
        expected, found = Arrived(table), Arrived(table)
        self._look_for_texts(table)
        # Before the rows are read, which occupies the connection.
        late = self._written_late.get(record, {})
        self.overtaken[record] = overtaken(self.connection, table, late)
        of_key = self._ranges_ahead(table)
        at_once = self._streamed(of_key)
        with closing(self._extract_rows(table, batches, places, at_once)) as source:
            delivered: Iterator[pl.DataFrame] = map(
                partial(self._delivered, table, expected), source
            )
            if of_key is None:
                (rows,) = delivered
                of_key = None if self._is_of_batches(table) else self._ranges(table, rows)
                delivered = iter((rows,))
                del rows
            # A large side is put aside before the other side is read.
            aside = _aside(of_key, delivered, by_row)
        of_target = max(self.at_once, STREAMED) if self.narrow else at_once
        with closing(
            sources.database_rows(self.connection, table, self.others, of_target)
        ) as source:
            records: Iterator[pl.DataFrame] = map(partial(self._there, found), source)
            if self.narrow:
                records = iter((spoken_of(table, whole(aside), records, batches),))
            there = _aside(of_key, records)
        if of_key is not None and expected.in_parts and found.in_parts:
            self._tell(table, expected.unfit + found.unfit, expected.no_numbers + found.no_numbers)
            self.ranges[record] = of_key
            self.extract[record], self.database[record] = aside, there
        else:
            self._add_whole(table, whole(aside), whole(there), batches, places)
        if record not in DOCUMENTED and table.references:
            self.lost[record] = lost_references(self.connection, table)
        if service and record in PUSHES:
            self.answers[record] = sources.answers(self.connection, PUSHES[record].name, batches)

    def around(self) -> dict[str, pl.DataFrame]:
        """Records outside the scope that its own belong with; none if the scope is everything."""
        if not self.narrow and not self.tenants:
            return {}
        read = partial(
            sources.database_rows,
            self.connection,
            others=self.others,
            at_once=max(self.at_once, STREAMED),
        )
        around = records_around(read, self.database, narrow=self.narrow)
        return {name: self._addable(EXTRACTS[name], rows)[0] for name, rows in around.items()}

    def _streamed(self, of_key: Ranges | None) -> int | None:
        """How many bytes of a side are read at once; None: all of it."""
        return None if of_key is None else max(self.at_once, STREAMED)

    def _extract_rows(
        self, table: Table, batches: Sequence[int], places: pl.DataFrame, at_once: int | None
    ) -> sources.Rows:
        return sources.extract_rows(self.connection, table, batches, places, self.others, at_once)

    def _delivered(self, table: Table, arrived: Arrived, rows: pl.DataFrame) -> pl.DataFrame:
        add_found(self.found, found_in(table, rows))
        unproven = self.unproven.get(table.name)
        if unproven is not None:
            unshown = rows.join(unproven, on=unproven.columns, how="semi")
            add_found(self.unshown, found_in(table, unshown))
        self._add_nameless(table, rows)
        # Receipts say what became of overtaken rows when they were applied.
        rows = not_overtaken(rows, self.overtaken[table.name])
        return _noted(arrived, self._of_tenants(rows))

    def _there(self, arrived: Arrived, rows: pl.DataFrame) -> pl.DataFrame:
        return _noted(arrived, self._may_be_of_tenants(rows))

    def _add_whole(
        self,
        table: Table,
        expected: pl.DataFrame,
        found: pl.DataFrame,
        batches: Sequence[int],
        places: pl.DataFrame,
    ) -> None:
        """Add both sides of a kind if one has to be looked at beside the other first."""
        if self.narrow:
            expected, found = self._of_batches(table, expected, found, batches, places)
        if self._may_name_none(table):
            named = [side.filter(~_names_none(side)) for side in (expected, found)]
            rows, records = (side.filter(_names_none(side)) for side in (expected, found))
            others = self._of_batches(table, rows, records, self.bound, places)
            expected, found = map(pl.concat, zip(named, others, strict=True))
        expected, found = self._addable(table, expected, found)
        of_key = self._ranges(table, *sorted((expected, found), key=pl.DataFrame.estimated_size))
        if of_key is None:
            self.extract[table.name] = (self.keep(by_row(expected)),)
            self.database[table.name] = (self.keep(found.rechunk()),)
        else:
            self.ranges[table.name] = of_key
            self.extract[table.name] = put_aside(of_key, (expected,), by_row)
            self.database[table.name] = put_aside(of_key, (found,))

    def _of_batches(
        self,
        table: Table,
        expected: pl.DataFrame,
        found: pl.DataFrame,
        batches: Collection[int],
        places: pl.DataFrame,
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The part of delivered rows and of records that concerns some batches."""
        claims = disputed(table, expected, found, batches)
        wrote = self._written_by_others(table, claims, batches, places)
        return of_batches(table, expected, found, batches, wrote)

    def _written_by_others(
        self,
        table: Table,
        claims: pl.DataFrame,
        batches: Collection[int],
        places: pl.DataFrame,
    ) -> pl.DataFrame:
        """Rows of later batches outside the scope that wrote the records of disputed rows.

        A record that somebody deleted names no batch; any later batch may then have written it.
        """
        nobody = claims.drop("writer").clear()
        if claims.is_empty():
            return nobody
        behind = in_force_after(self.connection, min(claims["batch_id"]))
        others = {*behind}.difference(batches)
        if not claims["writer"].null_count():
            others.intersection_update(claims["writer"])
        later = sorted(others)
        if not later:
            return nobody
        rows = self._extract_rows(table, later, places, max(self.at_once, STREAMED))
        over, wrote = self.overtaken[table.name], pl.col("state").is_in(WRITTEN)
        parts = [
            some.filter(among(table, some, claims))
            for some in (not_overtaken(part, over).filter(wrote) for part in rows)
        ]
        return pl.concat([nobody, *parts], how="diagonal")

    def _ranges_ahead(self, table: Table) -> Ranges | None:
        """Ranges of a kind that is too large to hold while it is read, by a sample of its numbers.

        None if it is not, and for a scope of batches, where the rows that count are only known at
        the end.
        """
        if self._is_of_batches(table) or not has_ranges(table):
            return None
        size = bytes_of_sides(self.connection, table)
        if size <= _HELD * self.at_once:
            return None
        numbers = sampled_numbers(self.connection, table, table.identity[0])
        return ranges(table, numbers, -(-2 * size // self.at_once))

    def _ranges(self, table: Table, *sides: pl.DataFrame) -> Ranges | None:
        """Ranges of a large kind, by its last side; None if it stays whole.

        If only one side is known, the other one is assumed to be as large.
        """
        size = sum(side.estimated_size() for side in sides) * 2 // len(sides)
        if not all(_in_parts(table, side) for side in sides):
            return None
        numbers = sides[-1][table.identity[0]]
        return ranges(table, numbers, -(-int(size) // self.at_once))

    def _look_for_texts(self, table: Table) -> None:
        """Find rows of unproven extracts whose text is nowhere else."""
        if not self.broken:
            return
        # Before the rows are read, because that occupies the connection until the last row.
        without_text = sources.without_text(self.connection, table, self.broken)
        if without_text.height:
            self.unproven[table.name] = without_text

    def _add_nameless(self, table: Table, rows: pl.DataFrame) -> None:
        """Count rows that no scope of tenants has, and that count or are in error."""
        if self.tenants:
            left_out = pl.col("state").is_in(_LEFT_OUT).fill_null(value=False)
            bound = pl.col("batch_id").is_in(self.bound)
            nameless = rows.filter(_names_none(rows), ~bound, ~left_out)
            add_found(self.nameless, found_in(table, nameless))

    def add_listing(
        self, listing: Extract, places: pl.DataFrame, batches: Sequence[int], zone: str
    ) -> None:
        """Add a listing of the service, whose server is in this time zone."""
        assert listing.record is not None
        table = EXTRACTS[listing.record]
        of_key, arrived = self.ranges.get(table.name), Arrived(table)
        at_once = self._streamed(of_key)
        with closing(self._extract_rows(table, [listing.batch_id], places, at_once)) as source:
            aside = _aside(of_key, map(partial(self._of_listing, listing, arrived), source), by_row)
        if of_key is None or not arrived.in_parts:
            (mine,) = self._addable(table, self._of_scope(table, whole(aside), batches, zone))
            self.listed[table.name] = (
                (self.keep(by_row(mine)),) if of_key is None else put_aside(of_key, (mine,), by_row)
            )
            return
        if self._is_known_by_join(table):
            arrived, parts = Arrived(table), aside
            aside = []
            for number, load in enumerate(parts):
                mine = self._of_scope(table, load(), batches, zone, number)
                arrived.add(mine)
                aside.append(self.keep(mine))
        self._tell(table, arrived.unfit, arrived.no_numbers)
        self.listed[table.name] = aside

    def _of_scope(
        self,
        table: Table,
        listed: pl.DataFrame,
        batches: Sequence[int],
        zone: str,
        part: int | None = None,
    ) -> pl.DataFrame:
        """The rows of a listing, or of a part of it, that concern the scope."""
        if not self._is_known_by_join(table):
            return listed
        own = [of[table.name] for of in (self.extract, self.database) if table.name in of]
        if not own:
            return listed.clear()
        if self.tenants and table.tenant is None:
            batches = [one for one in batches if one in self.bound]
        sides = [whole(loads) if part is None else loads[part]() for loads in own]
        return of_scope(self.connection, table, listed, sides, batches, zone)

    def _of_listing(self, listing: Extract, arrived: Arrived, rows: pl.DataFrame) -> pl.DataFrame:
        rows = rows.filter(pl.col("extract_id") == listing.id)
        if self.tenants and TENANT in rows.columns:
            rows = rows.filter(self._names_one(rows))
        return _noted(arrived, rows)

    def _is_known_by_join(self, table: Table) -> bool:
        """Whether only a join with the scope's records tells which listed rows concern it."""
        return self.narrow or (bool(self.tenants) and table.tenant is None)

    def _addable(self, table: Table, *sides: pl.DataFrame) -> list[pl.DataFrame]:
        """The sides with amounts that can be added up; others are counted in `unfit`."""
        frames, large = addable(table, *sides)
        self._tell(table, unfit(table, *sides), large + no_numbers(table, *frames))
        return frames

    def _tell(self, table: Table, without_column: int, large: int) -> None:
        # An amount that no column holds is a PRECISION break, or is held as it is; only plans and
        # their payments are not compared with any.
        unfit_rows = without_column + large if table is PAYMENT_PLAN_DETAIL else large
        if unfit_rows:
            self.unfit[table.name] = self.unfit.get(table.name, 0) + unfit_rows

    def _is_of_batches(self, table: Table) -> bool:
        """Whether all rows of the scope's batches have to be there to know which ones count."""
        return self.narrow or self._may_name_none(table)

    def _may_name_none(self, table: Table) -> bool:
        """Whether the scope is of tenants, and records of a kind may name none."""
        named = table.tenant is not None and table.by_name[table.tenant].required
        return bool(self.tenants) and not named

    def _of_tenants(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows that name a tenant of the scope, and rows of its batches that name none.

        PostgreSQL shows accounts of these tenants the same rows (`schemas.guards.tenants`).
        """
        if not self.tenants:
            return rows
        theirs = _names_none(rows) & pl.col("batch_id").is_in(self.bound)
        return rows.filter(theirs | self._names_one(rows))

    def _may_be_of_tenants(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The same for database records, whose last writer need not have delivered them."""
        if not self.tenants:
            return rows
        return rows.filter(_names_none(rows) | self._names_one(rows))

    def _names_one(self, rows: pl.DataFrame) -> pl.Expr:
        """Whether rows name a tenant of the scope."""
        if TENANT not in rows.columns:
            return pl.lit(value=False)
        return pl.col(TENANT).is_in(self.tenants).fill_null(value=False)


def _names_none(rows: pl.DataFrame) -> pl.Expr:
    return pl.col(TENANT).is_null() if TENANT in rows.columns else pl.lit(value=True)


def _noted(arrived: Arrived, rows: pl.DataFrame) -> pl.DataFrame:
    rows = texts_last(rows)
    arrived.add(rows)
    return rows


def _aside(
    of_key: Ranges | None, frames: Iterator[pl.DataFrame], arranged: Change = pl.DataFrame.rechunk
) -> Sequence[Load]:
    """Readers of a side's rows: one for each range, or one for all, which come as one frame."""
    return (held(next(frames)),) if of_key is None else put_aside(of_key, frames, arranged)


def _in_parts(table: Table, side: pl.DataFrame) -> bool:
    arrived = Arrived(table)
    arrived.add(side)
    return arrived.in_parts
