"""Stage together: small extracts in sequence, as many as go into one transaction.

They share the cost of a transaction, a COPY and a frame. Each gets the same verdicts, receipts and
rows as when it is staged by itself; an extract with an error is validated by itself.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import polars as pl
import psycopg

from connectors.errors import ExtractRefused
from connectors.files.chunks.chunk import joined_conserved
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.profiles.profile import Profile
from connectors.memory import keep_arrays
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import Extract, find_batch
from connectors.postgres.batches.staging import CopyRows, copy_staged
from connectors.settings import Limits, Settings
from flows.stages.chunks.prepared import (
    Prepared,
    ReadChunk,
    prepare_chunk,
    sha256_of,
    write_chunks,
    write_once,
)
from flows.stages.chunks.small_files import (
    HELD_BYTES,
    MOST_FILES,
    SMALL_BYTES,
    SmallFile,
    is_plain,
    is_simple,
    validate_together,
)
from flows.stages.chunks.split_chunk import keeps_texts
from flows.stages.chunks.write_out import WrittenChunk
from flows.stages.comparing.currency_names import currency_names
from flows.stages.receiving.kept import headers_of, open_extract_kept, open_to_stage
from flows.stages.receiving.terms import with_secrets
from flows.stages.rows.repaired import RepairedRows
from flows.stages.workspace import Workspace
from flows.steps.validate.chunk import Validated
from flows.steps.validate.frame_totals import totals_by
from flows.steps.validate.key_filter import Clues, KeyFilter, looked_at
from flows.steps.validate.omitted_secrets import FindRepaired
from flows.steps.validate.states import READY
from schemas.derived.pandera_schemas import SchemaBroken
from schemas.tables import EXTRACTS

_CHUNK = "place"
"""Column with the place of a row's chunk among those that are written together."""


def small_bytes(limits: Limits) -> int:
    """The largest size of an extract that is staged together with others."""
    return min(SMALL_BYTES, limits.block_bytes, limits.strict_bytes)


def in_groups(
    extracts: Iterable[Extract], begun: Collection[int], staged: Collection[int], limits: Limits
) -> Iterator[list[Extract]]:
    """Group extracts in their order: consecutive small ones together, all others alone.

    An extract that an earlier run has `begun` but not `staged` to its end is alone too, because the
    place to continue has to be found.
    """
    small = small_bytes(limits)
    group: list[Extract] = []
    held = 0
    for extract in extracts:
        size = extract.bytes or 0
        alone = size > small or (extract.id in begun and extract.id not in staged)
        if group and (alone or len(group) == MOST_FILES or held >= HELD_BYTES):
            yield group
            group, held = [], 0
        if alone:
            yield [extract]
        else:
            group.append(extract)
            held += size
    if group:
        yield group


def staged_whole(
    workspace: Workspace,
    extracts: Iterable[Extract],
    begun: Mapping[int, int | None],
    profile: Profile,
) -> set[int]:
    """The extracts whose only receipt, from an earlier run, ends where their bytes end.

    Receipts of transcoded texts and of workbooks count other bytes, so these are never included.
    """
    return {
        extract.id
        for extract in extracts
        if begun.get(extract.id) == extract.bytes
        and not open_extract_kept(workspace, extract, profile).transcoded
    }


def stage_together(
    workspace: Workspace,
    lease: Lease,
    extracts: Sequence[Extract],
    staged: Collection[int],
    profile: Profile,
    key_filter: KeyFilter,
) -> dict[int, ExtractRefused]:
    """Stage the extracts of a group that are not staged yet; raises what staging each would raise.

    Returns why some are refused; their rows before the refused line are staged.
    """
    keep_arrays()
    limits = workspace.settings.limits
    profile = with_secrets(lease.connection, lease.batch_id, profile)
    repaired = RepairedRows(workspace, find_batch(lease.connection, lease.batch_id))
    headers = headers_of(profile, workspace.settings)
    run = _Together(workspace.settings, lease, profile, repaired, key_filter)
    refusals: dict[int, ExtractRefused] = {}
    for extract in extracts:
        if extract.id in staged:
            continue
        content, header = open_to_stage(workspace, extract, profile, headers)
        place = first_place(header)
        chunks = read_chunks(content, header, place, limits.block_bytes, limits.strict_bytes)
        names = currency_names(workspace.settings, header, profile)
        for number, chunk in enumerate(chunks):
            if chunk.other_header:
                refusals[extract.id] = chunk.other_header.refusal(extract.name)
                break
            run.add(ReadChunk(extract, header, number, chunk, names))
    run.write()
    return refusals


@dataclass(slots=True)
class _Together:
    """Chunks that wait to be written together."""

    settings: Settings
    lease: Lease
    profile: Profile
    repaired: FindRepaired
    key_filter: KeyFilter
    waiting: list[ReadChunk] = field(default_factory=list)
    held: int = 0

    def add(self, read: ReadChunk) -> None:
        """Add a chunk; write if there is much, since a small workbook may be a large text."""
        self.waiting.append(read)
        self.held += len(read.chunk.block)
        if self.held >= 2 * HELD_BYTES:
            self.write()

    def write(self) -> None:
        waiting, self.waiting, self.held = self.waiting, [], 0
        if not waiting:
            return
        prepare = partial(prepare_chunk, self.settings.limits, self.profile, self.repaired)
        clean = _validated_together(waiting, self.profile)
        chunks = [
            clean.chunks[place] if place in clean.chunks else prepare(read)
            for place, read in enumerate(waiting)
        ]
        _look(self.key_filter, chunks, clean.keys)
        copies = [*clean.copies, *(rows for one in chunks for rows in one.written.copies)]
        try:
            write_chunks(self.settings, chunks, copies, self.lease)
        except psycopg.errors.UniqueViolation:
            # A worker that was taken for dead has already written some of them.
            for read, one in zip(waiting, chunks, strict=True):
                alone = replace(prepare(read), clues=one.clues)
                write_once(self.settings, alone, self.lease)


@dataclass(slots=True)
class _Clean:
    """Chunks without an error, validated as one frame with others like them."""

    chunks: dict[int, Prepared] = field(default_factory=dict)
    """By their place among the chunks that are written together."""
    copies: list[CopyRows] = field(default_factory=list)
    keys: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: defaultdict(list))
    """The columns `KeyFilter` looks at and _CHUNK, by record kind."""


def _validated_together(waiting: Sequence[ReadChunk], profile: Profile) -> _Clean:
    """The clean chunks that can be validated together; all others are validated by themselves."""
    alike: dict[Hashable, list[SmallFile]] = defaultdict(list)
    for place, (_, header, _, chunk, _) in enumerate(waiting):
        # A row with a secret left out may take it from the row that it repairs.
        if is_plain(header, profile) and not header.table.unquotable and is_simple(chunk):
            small = SmallFile(place, header, chunk)
            alike[small.alike].append(small)
    clean = _Clean()
    for files in alike.values():
        if not joined_conserved([one.chunk for one in files]):
            continue  # Validated by itself, the error names its file.
        try:
            found = validate_together(files, profile, waiting[0].extract.batch_id, with_texts=True)
        except SchemaBroken:
            continue  # As above.
        if not found.files:
            continue
        table, places = files[0].header.table, found.rows["extract_id"].alias(_CHUNK)
        totals = totals_by(table, found.rows, "extract_id")
        for place, _, chunk in found.files:
            extract, _, number, _, _ = waiting[place]
            states = {table.name: {READY: totals[place]}}
            clean.chunks[place] = Prepared(
                extract, number, chunk, sha256_of(chunk), WrittenChunk(Validated(totals=states))
            )
        numbers = pl.Series([read.extract.id for read in waiting], dtype=pl.Int32)
        rows = found.rows.with_columns(numbers.gather(places).alias("extract_id"))
        if not keeps_texts(files[0].chunk, files[0].header, profile):
            rows = rows.with_columns(pl.lit(None, pl.String).alias("data"))
        clean.copies.append(copy_staged(table, rows))
        clean.keys[table.name].append(rows.select(looked_at(table)).with_columns(places))
    return clean


def _look(
    key_filter: KeyFilter, chunks: Sequence[Prepared], clean: dict[str, list[pl.DataFrame]]
) -> None:
    """Gather the clues of chunks that are written together, in their order."""
    frames = defaultdict(list, {record: [*keys] for record, keys in clean.items()})
    for place, one in enumerate(chunks):
        for record, keys in one.written.keys.items():
            frames[record].append(keys.with_columns(pl.lit(place, pl.Int32).alias(_CHUNK)))
    key_filter.begin(chunks[0].at)
    found: list[dict[str, Clues]] = [{} for _ in chunks]
    for record, parts in frames.items():
        rows = pl.concat(parts).sort(_CHUNK, maintain_order=True)
        heights = dict(rows.group_by(_CHUNK).len().iter_rows())
        places = [
            place
            for place, one in enumerate(chunks)
            if record in one.written.keys or record in one.written.validated.totals
        ]
        each = key_filter.add_together(
            EXTRACTS[record],
            rows.drop(_CHUNK),
            [(chunks[place].at, heights.get(place, 0)) for place in places],
        )
        for place, clues in zip(places, each, strict=True):
            found[place][record] = clues
    for one, of_chunk in zip(chunks, found, strict=True):
        one.tell(of_chunk)
