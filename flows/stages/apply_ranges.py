"""Apply ranges: consecutive chunks of an extract that are applied together, with one receipt."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from operator import attrgetter

from connectors.files.disk.spool import Spooled, spool_path
from connectors.postgres.batches.ledger import Receipt, by_extract
from connectors.postgres.batches.ranges import Range
from connectors.settings import Settings
from flows.stages.side_by_side import CONNECTIONS
from flows.steps.validate.states import READY
from schemas.field import Table

ROWS_AT_ONCE = 1_000_000
"""About the most rows of a range; smaller ranges would read the target more often."""
TOGETHER_ROWS, TOGETHER_EXTRACTS = 50_000, 1_000
"""The most rows and extracts of a group."""


@dataclass(frozen=True, slots=True)
class ApplyRange:
    """Clean rows of one record kind in consecutive chunks of one extract."""

    table: Table
    chunk: int
    where: Range
    rows: int
    spooled: tuple[Spooled, ...]
    """Chunks whose rows are still spooled."""
    span: tuple[int, int] | None
    """The lowest and highest value of the key's first column; None if unknown for any chunk."""
    whole: bool
    """Whether these are all clean rows of the extract."""

    @property
    def is_small(self) -> bool:
        """Whether the range may be applied together with others."""
        return self.whole and not self.spooled and self.rows <= TOGETHER_ROWS


def in_groups(apply_ranges: Iterable[ApplyRange]) -> Iterator[list[ApplyRange]]:
    """Group ranges of a record kind in order, a group per transaction; small ranges share one."""
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
            yield group
            group, rows = [], one.rows
        group.append(one)
    if group:
        yield group


def span_around(spans: Sequence[Sequence[int] | None]) -> tuple[int, int] | None:
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def cut_ranges(
    table: Table, staged: Sequence[Receipt], applied: Sequence[Receipt], settings: Settings
) -> Iterator[ApplyRange]:
    """Cut what is not applied yet into even ranges.

    Ranges do not depend on how far applying has come, so that a resumed run writes the same
    receipts as one that was never interrupted.
    """
    done = by_extract(applied)
    for extract, receipts in groupby(staged, attrgetter("extract_id")):
        chunks = [one for one in receipts if clean_rows(table, one)]
        total = sum(clean_rows(table, one) for one in chunks)
        # A multiple of the connections, so that none of them works alone at the end.
        number = CONNECTIONS * ceil(total / (CONNECTIONS * ROWS_AT_ONCE))
        shares: dict[int, list[Receipt]] = {}
        before = 0
        for one in chunks:
            rows = clean_rows(table, one)
            # A chunk belongs to the range in which its middle lies.
            share = (2 * before + rows) * number // (2 * total)
            before += rows
            if not any(
                receipt.first_record <= one.first_record and one.last_record <= receipt.last_record
                for receipt in done[extract]
            ):
                shares.setdefault(share, []).append(one)
        for share_of in shares.values():
            first, last = share_of[0], share_of[-1]
            yield ApplyRange(
                table,
                first.chunk,
                Range(first.batch_id, extract, first.first_record, last.last_record),
                sum(clean_rows(table, one) for one in share_of),
                tuple(spooled for one in share_of for spooled in _spooled(table, one, settings)),
                span_around([one.clues.get(table.name, {}).get("span") for one in share_of]),
                whole=len(share_of) == len(chunks),
            )


def clean_rows(table: Table, receipt: Receipt) -> int:
    """The number of clean rows of a record kind in a staged chunk."""
    return int(receipt.totals.get(table.name, {}).get(READY, {}).get("rows", 0))


def _spooled(table: Table, receipt: Receipt, settings: Settings) -> Iterator[Spooled]:
    sha256 = receipt.clues.get(table.name, {}).get("spool")
    if sha256:
        path = spool_path(settings, receipt.batch_id, receipt.extract_id, receipt.chunk)
        rows = clean_rows(table, receipt)
        yield Spooled(path, sha256, receipt.first_record, receipt.last_record, rows)
