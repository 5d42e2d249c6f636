"""Apply ranges: consecutive chunks of an extract that are applied together, with one receipt."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from operator import attrgetter

from connectors.files.disk.spool import Spooled, spool_path
from connectors.postgres.batches.ledger import Receipt, by_extract
from connectors.postgres.batches.ranges import Range, WholeExtracts
from connectors.settings import Settings
from flows.stages.side_by_side import CONNECTIONS
from flows.steps.validate.states import READY
from schemas.field import Table

ROWS_AT_ONCE = 1_000_000
"""A range is joined with the target as one: many small ones would read the target many times."""
TOGETHER_ROWS, TOGETHER_EXTRACTS = 50_000, 1_000
"""At most of a group."""


@dataclass(frozen=True, slots=True)
class ApplyRange:
    """Clean rows of one record kind in consecutive chunks of one extract."""

    table: Table
    chunk: int
    where: Range
    rows: int
    spooled: tuple[Spooled, ...] = ()
    """Chunks whose rows were kept."""
    spans: tuple[tuple[int, int] | None, ...] = ()
    """Of each chunk: the least and the greatest value of the key's first column."""
    whole: bool = False
    """Whether these are all clean rows of the extract."""

    @property
    def span(self) -> tuple[int, int] | None:
        """The same of all chunks; None where that of one is not known."""
        return _around(self.spans)

    @property
    def is_small(self) -> bool:
        """Whether it may be applied together with others."""
        return self.whole and not self.spooled and self.rows <= TOGETHER_ROWS


@dataclass(frozen=True, slots=True)
class ApplyGroup:
    """Ranges of one record kind that are applied in one transaction, in their order."""

    ranges: tuple[ApplyRange, ...]

    @property
    def where(self) -> WholeExtracts:
        """All of their records, where they are whole extracts."""
        extracts = tuple(one.where.extract_id for one in self.ranges)
        return WholeExtracts(self.ranges[0].where.batch_id, extracts)

    @property
    def span(self) -> tuple[int, int] | None:
        """The least and the greatest value of the key's first column, where it is known."""
        return _around([one.span for one in self.ranges])


def in_groups(apply_ranges: Iterable[ApplyRange]) -> Iterator[ApplyGroup]:
    """Ranges in their order: small ones that follow each other together, all others alone."""
    group: list[ApplyRange] = []
    rows = 0
    for one in apply_ranges:
        rows += one.rows
        if group and not (
            one.is_small
            and group[-1].is_small
            and rows <= TOGETHER_ROWS
            and len(group) < TOGETHER_EXTRACTS
        ):
            yield ApplyGroup(tuple(group))
            group, rows = [], one.rows
        group.append(one)
    if group:
        yield ApplyGroup(tuple(group))


def _around(spans: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def cut_ranges(
    table: Table, staged: Sequence[Receipt], applied: Sequence[Receipt], settings: Settings
) -> Iterator[ApplyRange]:
    """What is not applied yet, in even ranges.

    The same chunks are always cut alike, whatever of them is applied, so that a run that goes on
    writes the receipts of a run that was never interrupted.
    """
    done = by_extract(applied)
    for extract, receipts in groupby(staged, attrgetter("extract_id")):
        chunks = [one for one in receipts if clean_rows(table, one)]
        total = sum(clean_rows(table, one) for one in chunks)
        # As many for one connection as for the other, or one ends alone.
        number = CONNECTIONS * ceil(total / (CONNECTIONS * ROWS_AT_ONCE))
        shares: dict[int, list[Receipt]] = {}
        before = 0
        for one in chunks:
            rows = clean_rows(table, one)
            # A chunk goes where its middle lies.
            share = (2 * before + rows) * number // (2 * total)
            before += rows
            if not any(_covers(receipt, one) for receipt in done[extract]):
                shares.setdefault(share, []).append(one)
        for share_of in shares.values():
            whole = len(share_of) == len(chunks)
            yield replace(_apply_range(table, share_of, settings), whole=whole)


def clean_rows(table: Table, receipt: Receipt) -> int:
    """How many clean rows of a record kind are in a staged chunk."""
    return int(receipt.totals.get(table.name, {}).get(READY, {}).get("rows", 0))


def _apply_range(table: Table, chunks: Sequence[Receipt], settings: Settings) -> ApplyRange:
    first, last = chunks[0], chunks[-1]
    return ApplyRange(
        table,
        first.chunk,
        Range(first.batch_id, first.extract_id, first.first_record, last.last_record),
        sum(clean_rows(table, one) for one in chunks),
        tuple(spooled for one in chunks for spooled in _spooled(table, one, settings)),
        tuple(_span(table, one) for one in chunks),
    )


def _covers(applied: Receipt, chunk: Receipt) -> bool:
    return applied.first_record <= chunk.first_record and chunk.last_record <= applied.last_record


def _spooled(table: Table, receipt: Receipt, settings: Settings) -> Iterator[Spooled]:
    sha256 = receipt.clues.get(table.name, {}).get("spool")
    if sha256:
        path = spool_path(settings, receipt.batch_id, receipt.extract_id, receipt.chunk)
        rows = clean_rows(table, receipt)
        yield Spooled(path, sha256, receipt.first_record, receipt.last_record, rows)


def _span(table: Table, receipt: Receipt) -> tuple[int, int] | None:
    span = receipt.clues.get(table.name, {}).get("span")
    return None if span is None else (span[0], span[1])
