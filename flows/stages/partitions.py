"""Stage one large delivery in partitions that run side by side, in other processes or machines.

A partition holds places, never rows: some megabytes of an extract, or several extracts. One run
holds the batch and hands partitions out; a worker writes its chunks under the lease of that run, so
nothing more is written once another run has taken the batch over. Chunks are cut, numbered and
judged as without partitions, so either way can finish what the other began. Small extracts are in
no partition: the run stages many of them at once, sooner than workers would one by one.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Any, Self

import psycopg

from connectors.errors import BatchUnknown, ExtractRefused, SettingsError
from connectors.files.chunks.chunk import Chunk, Place
from connectors.files.chunks.reader import read_chunks, reads_what_is_before
from connectors.files.profiles.profile import Profile
from connectors.forms import form_of_code
from connectors.postgres.batches import ledger
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Batch, Extract, State
from connectors.settings import Limits
from flows.stages.chunk_ranges import STAGE, ChunkRange, first_gap, take_back_misfits
from flows.stages.chunks.stage_together import small_bytes
from flows.stages.receiving.kept import evidence_of, open_to_stage
from flows.stages.receiving.terms import restored_profile
from flows.stages.stage import Span, stage, stage_extract
from flows.stages.workspace import Workspace, silent
from flows.steps.validate.key_filter import KeyFilter

CHUNKS_AT_LEAST = 8
"""Approximate minimum per partition: 32 MiB with the usual limits, a second or two of work."""
MOST_PARTITIONS = 128
"""Approximate maximum per delivery, since each partition costs its runner something."""
FROZEN_SECONDS = 60
"""How long a worker that freezes within a chunk keeps others from the batch."""
QUIET_SECONDS = 60
"""If no partition ends for this long, a warning is logged."""

log = logging.getLogger("recon.stage")

Run = Callable[["Partition"], int]
"""Runs a partition somewhere, waits for it, and returns the number of rows it staged."""

LetGo = Callable[[], None]
"""Makes pending `Run`s return at once, without their partitions."""


def _nothing() -> None:
    """The `LetGo` for runs that do not wait for partitions elsewhere."""


@dataclass(frozen=True, slots=True)
class Part:
    """A range of an extract's chunks; all of it if the range is None."""

    extract_id: int
    chunk_range: ChunkRange | None
    bytes: int


@dataclass(frozen=True, slots=True)
class Partition:
    """What one worker stages in one go, in the order of the files."""

    batch_id: int
    epoch: int
    content_id: str
    """The batch's content; in another database its number may belong to another batch."""
    lease_owner: str | None
    """Who holds the batch, and since when; a copy of the database has another holder."""
    limits: Mapping[str, int]
    """Limits of the run that holds the batch; other limits would cut other chunks."""
    parts: tuple[Part, ...]
    code: str
    """The form of the run's code; another version might validate rows differently."""

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, shape: Mapping[str, Any]) -> Self:
        """Rebuild a partition from `as_json`, also after a round trip through JSON.

        Raises SettingsError if another version wrote it.
        """
        if shape.get("code") != form_of_code():
            raise SettingsError(
                "A worker has another version of recon than the run that imports, or other record "
                "kinds of your own: install the same on both, each with constraints.txt, and give "
                "both the same RECON_RECORDS. Nothing was written."
            )
        parts = tuple(
            Part(**part | {"chunk_range": _chunk_range(part["chunk_range"])})
            for part in shape["parts"]
        )
        return cls(**{**shape, "parts": parts})


def _chunk_range(shape: Any) -> ChunkRange | None:
    if shape is None:
        return None
    first, beyond, place = shape
    return ChunkRange(first, beyond, Place(**place))


def stage_in_partitions(
    workspace: Workspace,
    lease: Lease,
    run: Run,
    *,
    at_once: int = MOST_PARTITIONS,
    chunks: int = CHUNKS_AT_LEAST,
    take_back: LetGo = _nothing,
    give_up: LetGo = _nothing,
) -> bool:
    """Stage the batch, at most `at_once` partitions at a time; raises what a partition raised.

    Returns, like `stage`, whether anything was left to do.

    A partition has about `chunks` chunks or more, or what is left. After a failure, `take_back`
    releases partitions that nobody has begun; `give_up` releases all when this process has to end.
    """
    if ledger.find_batch(lease.connection, lease.batch_id).state is State.RECEIVED:
        with ThreadPoolExecutor(at_once) as threads:
            try:
                running = {
                    threads.submit(copy_context().run, run, partition): partition.bytes
                    for partition in partitions(workspace, lease, chunks)
                }
                _wait(workspace, running, take_back)
            except BaseException as ended:
                threads.shutdown(wait=False, cancel_futures=True)
                # A partition that has begun is waited for, since it would go on writing; but not
                # when this process has to end, and with it the lease that others write under.
                let_go = take_back if isinstance(ended, Exception) else give_up
                let_go()
                raise
    # Small extracts and leftovers are staged here; then the files are closed as always.
    return stage(workspace, lease)


def _wait(workspace: Workspace, running: Mapping[Future[int], int], take_back: LetGo) -> None:
    done, total = 0, sum(running.values())
    failed: Exception | None = None
    for future in _as_they_end(running):
        try:
            future.result()
        except CancelledError:
            continue
        except Exception as error:  # noqa: BLE001 - Raised below.
            if failed is None:
                failed = error
                for other in running:
                    other.cancel()
                take_back()
        else:
            done += running[future]
            workspace.progress(STAGE, done, total)
    if failed is not None:
        raise failed


def _as_they_end(running: Collection[Future[int]]) -> Iterator[Future[int]]:
    """Yield each once it has ended; warn when none ends for long."""
    left, last = set(running), datetime.now(UTC)
    while left:
        ended, left = wait(left, QUIET_SECONDS, FIRST_COMPLETED)
        if ended:
            last = datetime.now(UTC)
        else:
            log.warning(
                "%s of %s partitions wait, and none has ended since %s: see that their workers run",
                len(left),
                len(running),
                f"{last:%Y-%m-%d %H:%M} UTC",
            )
        yield from ended


def is_large(workspace: Workspace, lease: Lease) -> bool:
    """Whether more than one partition may be left to stage for the batch."""
    if ledger.find_batch(lease.connection, lease.batch_id).state is not State.RECEIVED:
        return False
    limits = workspace.settings.limits
    return _bytes_of(_shared_out(lease, limits)) > CHUNKS_AT_LEAST * limits.block_bytes


def _shared_out(lease: Lease, limits: Limits) -> list[Extract]:
    """The extracts of a batch that are large enough to be partitioned."""
    return [
        extract
        for extract in ledger.list_extracts(lease.connection, lease.batch_id)
        if extract.refused is None and (extract.bytes or 0) > small_bytes(limits)
    ]


def _bytes_of(extracts: Iterable[Extract]) -> int:
    return sum(extract.bytes or 0 for extract in extracts)


def partitions(workspace: Workspace, lease: Lease, chunks: int) -> Iterator[Partition]:
    """What is left to stage of a held batch, in the order of the files."""
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    limits = workspace.settings.limits
    extracts = _shared_out(lease, limits)
    blocks = _bytes_of(extracts) // limits.block_bytes
    chunks = max(chunks, blocks // MOST_PARTITIONS + 1)
    held_by = batch.id, lease.epoch, batch.content_id, batch.lease_owner
    made = partial(Partition, *held_by, asdict(limits), code=form_of_code())
    waiting, held = list[Part](), 0
    for extract in extracts:
        for part in _parts(workspace, lease, extract, restored_profile(batch), chunks):
            waiting.append(part)
            held += part.bytes
            if held > (chunks - 1) * limits.block_bytes:
                yield made(tuple(waiting))
                waiting, held = [], 0
    if waiting:
        yield made(tuple(waiting))


Found = tuple[int, Place, int]
"""A chunk's number, the end of the chunk before it, and the position after its last byte."""


def _parts(
    workspace: Workspace, lease: Lease, extract: Extract, profile: Profile, chunks: int
) -> Iterator[Part]:
    """Cut an extract into ranges of `chunks` chunks; reading it once finds their borders.

    An extract that cannot be read from its middle is one range, as each would read all before it.
    """
    content, header = open_to_stage(workspace, extract, profile)
    block_bytes = workspace.settings.limits.block_bytes
    take_back_misfits(lease, extract, content, header, block_bytes)
    if content.size <= chunks * block_bytes or reads_what_is_before(content, header):
        yield Part(extract.id, None, content.size)
        return
    receipts = ledger.list_receipts(lease.connection, lease.batch_id, STAGE, extract.id)
    done = {receipt.chunk for receipt in receipts}
    gap = first_gap(receipts, header)
    found = _found(read_chunks(content, header, gap.place, block_bytes), gap)
    for _, group in groupby(found, key=lambda one: one[0] // chunks):
        left = [one for one in group if one[0] not in done]
        if left:
            (first, place, _), (last, _, end) = left[0], left[-1]
            yield Part(extract.id, ChunkRange(first, last + 1, place), end - place.byte)


def _found(chunks: Iterable[Chunk], gap: ChunkRange) -> Iterator[Found]:
    # A chunk includes the lines between it and the chunk before, which may contain no record.
    place = gap.place
    for number, chunk in enumerate(chunks, gap.first):
        yield number, place, chunk.end.byte
        place = chunk.end


def stage_partition(
    workspace: Workspace, connection: psycopg.Connection, partition: Partition
) -> int:
    """Stage a partition; returns its rows, without those that were staged before.

    Raises BatchHeldElsewhere once another run has taken the batch over, and SettingsError if this
    worker has another database or archive than the run.
    """
    try:
        batch = ledger.find_batch(connection, partition.batch_id)
    except BatchUnknown:
        raise other_database(partition) from None
    extracts = {one.id: one for one in ledger.list_extracts(connection, partition.batch_id)}
    _refuse_elsewhere(workspace, batch, extracts, partition)
    settings = replace(workspace.settings, limits=Limits(**partition.limits))
    workspace = replace(workspace, settings=settings, progress=silent)
    connection.execute(f"SET idle_in_transaction_session_timeout = '{FROZEN_SECONDS}s'")
    lease = Lease(connection, partition.batch_id, partition.epoch)
    profile = restored_profile(batch)
    key_filter, span, rows = KeyFilter(), Span(0, partition.bytes), 0
    for part in partition.parts:
        extract = extracts[part.extract_id]
        # Over one connection, because only that one is given up when this worker freezes.
        refused = False
        try:
            rows += stage_extract(
                workspace, lease, extract, profile, span, key_filter, part.chunk_range, 1
            )
        except ExtractRefused:
            refused = True  # The run refuses the file once nobody writes any more.
        if refused or extract.manifest is not None:
            key_filter.forget()  # Its rows may still be taken back.
    return rows


def other_database(partition: Partition) -> SettingsError:
    """The error of a worker whose database is not the run's."""
    return SettingsError(
        f"Batch {partition.batch_id} of the run that imports is not in the database of this "
        "worker: give it the RECON_DATABASE_URL of that run, or its RECON_HOME where that has "
        "none. Nothing was written."
    )


def _refuse_elsewhere(
    workspace: Workspace, batch: Batch, extracts: Mapping[int, Extract], partition: Partition
) -> None:
    # Under a later epoch the batch was taken over, and this epoch can write nothing.
    is_copy = batch.lease_epoch == partition.epoch and batch.lease_owner != partition.lease_owner
    if batch.content_id != partition.content_id or is_copy:
        raise other_database(partition)
    for part in partition.parts:
        if not evidence_of(workspace, extracts[part.extract_id]).path.exists():
            raise SettingsError(
                f"{extracts[part.extract_id].name} is not in the archive of this worker: its "
                "RECON_HOME has to be the folder of the run that imports, shared over the network "
                "if that is another machine. Nothing was written."
            )
