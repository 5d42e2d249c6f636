"""Write out: the rows of a chunk with their verdicts, as COPY and the later stages take them.

Rows of the fast path are typed from their bytes and go in binary. So do other clean rows, where all
values of their record kind are of a fixed size; whatever else there is goes as text.
"""

from dataclasses import dataclass, field

import numpy as np
import polars as pl
import polars.selectors as cs

from connectors.files.dialect import RecordFault
from connectors.files.header import Header
from connectors.files.profile import Profile
from connectors.files.reader import Chunk
from connectors.postgres.binary_copy import (
    has_fixed_width,
    in_millionths,
    plain_rows,
)
from connectors.postgres.ledger import Extract
from connectors.postgres.staging import CopyRows, copy_binary, copy_staged
from flows.stages.validate_chunk import validate_chunk, writing_of
from flows.steps.fast.fast_path import FastRows, read_fast
from flows.steps.fast.typed import Delivered
from flows.steps.totals import Totals, totals_of_millionths
from flows.steps.validate.chunk import READY, Validated
from flows.steps.validate.key_filter import looked_at
from flows.steps.validate.left_out import FindRepaired
from schemas.derived.pandera_schemas import validate
from schemas.derived.sql import target_columns
from schemas.field import Table
from schemas.kinds import SCALE
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA


@dataclass(slots=True)
class WrittenChunk:
    """A chunk's rows, ready to be sent."""

    validated: Validated
    """The totals, and which rows were merged before they came to us; its rows are written out."""
    copies: list[CopyRows] = field(default_factory=list)
    keys: dict[str, pl.DataFrame] = field(default_factory=dict)
    """What `KeyFilter` looks at, by record kind."""
    spool: list[pl.DataFrame] | None = None
    """All clean rows as the target takes them, where they could be written out in binary."""


def write_out(
    chunk: Chunk,
    header: Header,
    profile: Profile,
    extract: Extract,
    repaired: FindRepaired | None = None,
    *,
    strict_bytes: int,
) -> WrittenChunk:
    """A chunk validated and written out; one of up to `strict_bytes` by nothing compiled.

    Raises SchemaBroken when rows that were found clean are not what their record's schema says.
    """
    binary = chunk.records.consumed > strict_bytes and _goes_in_binary(chunk, header)
    fast = fast_rows(chunk, header, profile) if binary else None
    rest = chunk if fast is None else chunk.only(~fast.rows)
    validated = Validated()
    if rest.height:
        ids = extract.batch_id, extract.id
        validated = validate_chunk(
            rest, header, profile, *ids, with_texts=not binary, repaired=repaired
        )
    written = WrittenChunk(validated)
    if binary:
        written.spool = []
        if fast is not None:
            _add_fast(written, chunk, header.table, profile, extract, fast)
        for rows in validated.rows.values():
            _add_validated(written, chunk, header.table, profile, rows)
        if profile.compare_only or not written.spool:
            written.spool = None
    else:
        written.copies += [copy_staged(EXTRACTS[name], one) for name, one in validated.rows.items()]
    for name, rows in validated.rows.items():
        if name != INSERT_BATCH_DATA.name:
            _add_keys(written, EXTRACTS[name], rows.filter(pl.col("error_data").is_null()))
    validated.rows.clear()
    return written


def _goes_in_binary(chunk: Chunk, header: Header) -> bool:
    """Whether the text of a clean row is its bytes and all its values are of a fixed size."""
    return (
        has_fixed_width(header.table)
        and header.parent_column is None
        and chunk.dialect.encoding == "utf-8"
    )


def fast_rows(chunk: Chunk, header: Header, profile: Profile) -> FastRows | None:
    """The rows of a chunk that take the fast path, if it has enough of them."""
    records, dialect = chunk.records, chunk.dialect
    delivered = Delivered(
        np.frombuffer(chunk.block, np.uint8)[: records.consumed],
        records.start,
        records.end,
        records.fault == RecordFault.NONE,
        dialect.delimiter,
        dialect.quote,
    )
    names, writing = header.fields, writing_of(profile)
    return read_fast(header.table, names, delivered, writing, tenant=profile.tenant)


def _add_fast(
    written: WrittenChunk,
    chunk: Chunk,
    table: Table,
    profile: Profile,
    extract: Extract,
    fast: FastRows,
) -> None:
    places = chunk.places()
    if not fast.rows.all():
        places = places.filter(pl.Series(fast.rows))
    ids = {"batch_id": extract.batch_id, "extract_id": extract.id}
    of = [pl.lit(number, pl.Int32).alias(name) for name, number in ids.items()]
    validate(table, fast.frame, places["first_line"], millionths=True)
    rows = places.with_columns(of).hstack(fast.frame)
    _add_binary(written, chunk, table, profile, rows)
    _add_keys(written, table, rows)
    states = written.validated.totals.setdefault(table.name, {})
    states[READY] = totals_of_millionths(table, fast.frame) + states.get(READY, Totals())


def _add_validated(
    written: WrittenChunk, chunk: Chunk, table: Table, profile: Profile, rows: pl.DataFrame
) -> None:
    clean = rows["error_data"].is_null()
    short = clean & plain_rows(table, rows)
    if short.any():
        exact = in_millionths(table, rows.filter(short))
        _add_binary(written, chunk, table, profile, exact)
    if short.sum() < clean.sum():
        written.spool = None
    left = rows.filter(~short)
    if left.height:
        texts = chunk.texts((left["record_number"] - chunk.start.record).to_list())
        written.copies.append(copy_staged(table, left.with_columns(texts)))


def _add_binary(
    written: WrittenChunk, chunk: Chunk, table: Table, profile: Profile, rows: pl.DataFrame
) -> None:
    text = None if profile.keep == "reference" else chunk.block
    written.copies.append(copy_binary(table, rows, text, chunk.start.byte))
    if written.spool is not None:
        written.spool.append(rows.select(*target_columns(table), cs.ends_with(SCALE)))


def _add_keys(written: WrittenChunk, table: Table, rows: pl.DataFrame) -> None:
    keys = rows.select(looked_at(table))
    before = written.keys.get(table.name)
    written.keys[table.name] = keys if before is None else before.vstack(keys)
