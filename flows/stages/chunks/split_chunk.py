"""Split a chunk into rows that take the fast path, and all others, which are read one by one."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from connectors.files.chunks.cells import unread_cells
from connectors.files.chunks.chunk import Chunk
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.postgres.bulk.binary_copy import has_fixed_width
from flows.stages.comparing.currency_names import NO_NAMES, Names, named_currencies
from flows.stages.rows.writing import writing_of
from flows.steps.fast.fast_path import FastRows, only_clean
from flows.steps.fast.typed import Delivered, typed_records
from flows.steps.validate.excluded import Exclusions
from schemas.derived.pandera_schemas import validate


@dataclass(frozen=True, slots=True)
class SplitChunk:
    """The records of a chunk, by how they are read."""

    fast: pl.DataFrame | None
    """Clean rows as SQL stores them, with their places and ids; doubles are in millionths."""
    rest: Chunk


def split_chunk(
    chunk: Chunk,
    header: Header,
    profile: Profile,
    batch_id: int,
    extract_id: int,
    names: Names = NO_NAMES,
) -> SplitChunk:
    """Split a chunk that `is_compact`; `names` are the codes of its records' currencies.

    Raises SchemaBroken if rows that were found clean break their record's schema.
    """
    fast = fast_rows(chunk, header, profile)
    if fast is None:
        return SplitChunk(None, chunk)
    fast = _in_their_currency(fast, chunk, header, profile, names)
    rows = _placed(fast, chunk, batch_id, extract_id)
    validate(header.table, fast.frame, rows["first_line"], millionths=True)
    return SplitChunk(rows, chunk.only(~fast.rows))


def _in_their_currency(
    fast: FastRows, chunk: Chunk, header: Header, profile: Profile, names: Names
) -> FastRows:
    """The rows, without those whose cells name another currency than their record's."""
    of = header.table.currency
    if of is None or chunk.currencies is None or not names:
        return fast
    named = named_currencies(chunk.only(fast.rows), header, profile, names)
    agrees = np.ones(fast.frame.height, np.bool_)
    for _, _, _, rows in named.differing(fast.frame[of]):
        agrees[rows] = False
    left = fast.rows.copy()
    left[np.flatnonzero(left)[~agrees]] = False
    return FastRows(left, fast.frame.filter(pl.Series(agrees)))


def is_compact(chunk: Chunk, header: Header) -> bool:
    """Whether a clean row's text is its bytes, and all its values have a fixed size."""
    return (
        has_fixed_width(header.table)
        and header.parent_column is None
        and header.quoted_column is None
        and not (header.positions and header.carried)
        and chunk.utf8 is not None
    )


def keeps_texts(chunk: Chunk, header: Header, profile: Profile) -> bool:
    """Whether the database keeps texts of clean rows, or only their places in the file."""
    return profile.keep != "reference" or not is_compact(chunk, header)


def fast_rows(chunk: Chunk, header: Header, profile: Profile) -> FastRows | None:
    """The rows of a chunk that take the fast path; None if they are too few."""
    dialect, utf8, known = chunk.dialect, chunk.utf8, chunk.plainly_delimited
    assert utf8 is not None
    if not known.any():
        return None
    delivered = Delivered(
        np.frombuffer(utf8.text, np.uint8),
        utf8.start,
        utf8.end,
        known,
        dialect.delimiter,
        dialect.quote,
        header.positions.ranges if header.positions else (),
    )
    read = typed_records(
        header.table,
        header.fields,
        delivered,
        writing_of(profile, unread_cells(header)),
        header.sources,
        Exclusions(profile.leave_out, profile.keep_only).rules(header.names),
    )
    return None if read is None else only_clean(header.table, read, tenant=profile.tenant)


def _placed(fast: FastRows, chunk: Chunk, batch_id: int, extract_id: int) -> pl.DataFrame:
    """Rows of the fast path, with their places and the ids of batch and extract."""
    places = chunk.places()
    if not fast.rows.all():
        places = places.filter(pl.Series(fast.rows))
    ids = {"batch_id": batch_id, "extract_id": extract_id}
    of = [pl.lit(number, pl.Int32).alias(name) for name, number in ids.items()]
    return places.with_columns(of).hstack(fast.frame)
