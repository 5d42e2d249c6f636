"""Which chunks of an extract are left to stage after some were staged before.

The receipts show which. They end early after a crash, and leave gaps where chunks were written side
by side or shared out among workers.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from connectors.errors import ConservationError
from connectors.files.chunks.chunk import Chunk, Place
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import Header
from connectors.files.text.content import Content
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Extract, Receipt
from connectors.postgres.batches.staging import withdraw_staged
from schemas.tables import EXTRACTS

STAGE = "stage"
log = logging.getLogger("recon.stage")


class ChunkRange(NamedTuple):
    first: int
    """Number of the first chunk; the extract's first chunk has number 0."""
    beyond: int | None
    """Number of the chunk after the last one; None: up to the end of the extract."""
    place: Place
    """Where the first chunk begins."""


def first_gap(receipts: Sequence[Receipt], header: Header) -> ChunkRange:
    """All chunks of an extract from the first one without a receipt."""
    number, place = 0, first_place(header)
    for receipt in receipts:
        if receipt.chunk != number:
            break
        if receipt.first_record != place.record:
            raise ConservationError(
                f"Chunk {number} of extract {receipt.extract_id} begins with record "
                f"{receipt.first_record} and not {place.record}: its receipts were changed outside "
                f"of the program. `recon rerun {receipt.batch_id} --from-start` reads it again."
            )
        number, place = number + 1, place_after(receipt)
    return ChunkRange(number, None, place)


def missing(
    chunks: Iterable[Chunk], chunk_range: ChunkRange, receipts: Sequence[Receipt]
) -> Iterator[tuple[int, Chunk]]:
    """The chunks of a range without a receipt, with their numbers."""
    done = {receipt.chunk for receipt in receipts}
    most = None if chunk_range.beyond is None else chunk_range.beyond - chunk_range.first
    for number, chunk in enumerate(islice(chunks, most), chunk_range.first):
        if number not in done:
            yield number, chunk


def take_back_misfits(
    lease: Lease, extract: Extract, content: Content, header: Header, block_bytes: int
) -> list[Receipt]:
    """Take back rows after a gap that were staged in chunks of another size.

    That happens when limits were changed in between; the rows are then read and validated again.
    Returns the remaining receipts.
    """
    receipts = ledger.list_receipts(lease.connection, lease.batch_id, STAGE, extract.id)
    gap = first_gap(receipts, header)
    left = {receipt.chunk: receipt for receipt in receipts[gap.first :]}
    chunks = enumerate(read_chunks(content, header, gap.place, block_bytes), gap.first)
    while left:
        number, chunk = next(chunks, (None, None))
        if number is not None and chunk is not None and _fits(chunk, number, left):
            left.pop(number, None)
            continue
        first = min(left.values(), key=lambda receipt: receipt.chunk)
        _take_back(lease, extract, first, left)
        return [receipt for receipt in receipts if receipt.chunk < first.chunk]
    return receipts


def _fits(chunk: Chunk, number: int, left: dict[int, Receipt]) -> bool:
    receipt = left.get(number)
    if receipt is None:
        return all(chunk.end.record <= later.first_record for later in left.values())
    return receipt.byte_end == chunk.end.byte and (
        (receipt.byte_start, receipt.first_record) == (chunk.start.byte, chunk.start.record)
    )


def _take_back(lease: Lease, extract: Extract, first: Receipt, left: dict[int, Receipt]) -> None:
    with lease.transaction() as connection:
        for record in {record for receipt in left.values() for record in receipt.totals}:
            withdraw_staged(connection, EXTRACTS[record], extract.id, first.first_record)
        ledger.withdraw_receipts(connection, extract.id, first.chunk, first.first_record)
    log.info("%s: read again from record %s on", extract.name, f"{first.first_record:,}")


def place_after(receipt: Receipt) -> Place:
    """Where the next chunk after a receipt's chunk begins."""
    assert receipt.byte_end is not None
    assert receipt.last_line is not None
    return Place(
        receipt.byte_end, receipt.last_line + 1, receipt.last_record + 1, bool(receipt.inside)
    )
