"""Write out the rows of a chunk with their verdicts, for COPY and the later stages.

Rows of the fast path are typed from their bytes and sent in binary. So are other clean rows if all
values of their record kind have a fixed size; everything else is sent as text.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
import polars.selectors as cs

from connectors.files.chunks.chunk import Chunk
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.postgres.batches.ledger import Extract
from connectors.postgres.batches.staging import CopyRows, copy_binary, copy_staged
from connectors.postgres.bulk.binary_copy import Texts
from flows.stages.chunks.split_chunk import SplitChunk, is_compact, keeps_texts, split_chunk
from flows.stages.chunks.validate_chunk import validate_chunk
from flows.stages.comparing.currency_names import NO_NAMES, Names
from flows.steps.totals import Totals
from flows.steps.validate.chunk import Validated
from flows.steps.validate.frame_totals import totals_of_millionths
from flows.steps.validate.key_filter import looked_at
from flows.steps.validate.omitted_secrets import FindRepaired
from flows.steps.validate.rows import StagedRows
from flows.steps.validate.states import READY
from schemas.derived.sql_names import target_columns
from schemas.field import Table
from schemas.kinds import SCALE
from schemas.millionths import in_millionths, plain_rows
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA


@dataclass(slots=True)
class WrittenChunk:
    """A chunk's rows, ready to be sent."""

    validated: Validated
    """The verdicts on its rows, which are written out."""
    copies: list[CopyRows] = field(default_factory=list)
    keys: dict[str, pl.DataFrame] = field(default_factory=dict)
    """The columns `KeyFilter` looks at, by record kind."""
    spool: list[pl.DataFrame] | None = None
    """All clean rows in the target's form, if they could be written out in binary; else None."""


def write_out(
    chunk: Chunk,
    header: Header,
    profile: Profile,
    extract: Extract,
    repaired: FindRepaired | None = None,
    *,
    strict_bytes: int,
    names: Names = NO_NAMES,
) -> WrittenChunk:
    """Validate and write out a chunk; one of up to `strict_bytes` without compiled loops.

    `names`: the codes of its records' currencies, from `currency_names`.

    Raises SchemaBroken if rows that were found clean break their record's schema.
    """
    table, ids = header.table, (extract.batch_id, extract.id)
    binary = chunk.size > strict_bytes and is_compact(chunk, header)
    split = split_chunk(chunk, header, profile, *ids, names) if binary else SplitChunk(None, chunk)
    validated = Validated()
    if split.rest.height:
        validated = validate_chunk(
            split.rest, header, profile, *ids, with_texts=not binary, repaired=repaired, names=names
        )
    written = WrittenChunk(validated)
    kept = keeps_texts(chunk, header, profile)
    exact: list[pl.DataFrame] = []  # Clean rows in millionths, which are sent in binary.
    if split.fast is not None:
        exact.append(split.fast)
        states = validated.totals.setdefault(table.name, {})
        states[READY] = totals_of_millionths(table, split.fast) + states.get(READY, Totals())
        _add_keys(written, table, split.fast)
    for name, staged in validated.rows.items():
        of, rows, clean = EXTRACTS[name], staged.frame, staged.clean
        if of is not INSERT_BATCH_DATA:
            _add_keys(written, of, validated.taken(rows.filter(clean)))
        left = staged
        if binary:
            short = clean & plain_rows(of, rows) & ~rows["record_number"].is_in(validated.excluded)
            if short.any():
                exact.append(in_millionths(of, rows.filter(short)))
                left = staged.only(~short)
            places = left.frame["record_number"] - chunk.start.record
            left = replace(left, frame=left.frame.with_columns(chunk.texts(places.to_list())))
        if not kept:
            left = replace(left, frame=_without_texts(left, validated.excluded))
        if left.frame.height:
            pieces = left.pieces if left.errors else None
            written.copies.append(copy_staged(of, left.frame, pieces))
    validated.rows.clear()
    exact = [rows for rows in exact if rows.height]
    written.copies += [
        copy_binary(table, rows, _texts(chunk, rows) if kept else None) for rows in exact
    ]
    if exact and not profile.compare_only:
        ready = validated.totals[table.name][READY].rows
        if sum(rows.height for rows in exact) == ready:
            written.spool = [
                rows.select(*target_columns(table), cs.ends_with(SCALE)) for rows in exact
            ]
    return written


def _without_texts(staged: StagedRows, excluded: Collection[int]) -> pl.DataFrame:
    """Staged rows, with no text for those that are clean and not left out."""
    rows = staged.frame
    kept = ~staged.clean | rows["record_number"].is_in(excluded)
    return rows.with_columns(pl.when(kept).then("data").alias("data"))


def _texts(chunk: Chunk, rows: pl.DataFrame) -> Texts:
    assert chunk.utf8 is not None
    text, start, end = chunk.utf8
    places = rows["record_number"].to_numpy() - chunk.start.record
    return Texts(np.frombuffer(text, np.uint8), start[places], end[places])


def _add_keys(written: WrittenChunk, table: Table, rows: pl.DataFrame) -> None:
    keys = rows.select(looked_at(table))
    before = written.keys.get(table.name)
    written.keys[table.name] = keys if before is None else before.vstack(keys)
