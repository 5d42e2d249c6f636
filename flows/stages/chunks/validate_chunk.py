"""Validate the records of a chunk by the profile of their feed."""

import numpy as np
import polars as pl

from connectors.files.chunks.cells import as_delivered, unread_cells
from connectors.files.chunks.chunk import Chunk
from connectors.files.chunks.divided import divided_records, fields_counted
from connectors.files.chunks.rewriting import names_in_front
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from flows.stages.comparing.currency_names import NO_NAMES, Names, named_currencies
from flows.stages.rows.writing import writing_of
from flows.steps.validate.chunk import Validated, validate_rows
from flows.steps.validate.excluded import Exclusions
from flows.steps.validate.field_errors import empty_texts
from flows.steps.validate.omitted_secrets import FindRepaired, Repaired
from flows.steps.validate.rows import broken_details
from schemas.own_columns import ROW_NAME


def validate_chunk(
    chunk: Chunk,
    header: Header,
    profile: Profile,
    batch_id: int,
    extract_id: int,
    *,
    with_texts: bool = True,
    repaired: FindRepaired | None = None,
    names: Names = NO_NAMES,
) -> Validated:
    """The rows of a chunk with their verdicts, by the record kind they are staged under.

    `names`: the codes of its records' currencies, from `currency_names`.
    """
    cells = as_delivered(chunk.cells(header.width), header)
    return validate_rows(
        header.table,
        cells,
        header.fields,
        positions=_with_parent(chunk, cells, header) if with_texts else chunk.places(),
        faults=chunk.codes,
        writing=writing_of(profile, unread_cells(header)),
        sources=header.sources,
        batch_id=batch_id,
        extract_id=extract_id,
        tenant=profile.tenant,
        inner_record=profile.inner_record,
        unwrapped=not profile.compare_only,
        repaired=_repaired(header, cells, repaired),
        excluded=Exclusions(profile.leave_out, profile.keep_only).of(cells, header.names),
        details=_details(chunk, header) if any(chunk.records.fault) else None,
        named=named_currencies(chunk, header, profile, names),
    )


def _details(chunk: Chunk, header: Header) -> pl.Series | None:
    if header.unpivot:
        return None
    above = np.flatnonzero(chunk.faulty_above).tolist()
    if header.positions:
        counted = pl.repeat(None, chunk.height, dtype=pl.Int64, eager=True)
        return broken_details(counted, header.width, 0, {}, above)
    divided = divided_records(chunk, header.line_width)
    counted = fields_counted(chunk)
    return broken_details(counted, header.line_width, header.unnamed, divided, above)


def _repaired(header: Header, cells: pl.DataFrame, find: FindRepaired | None) -> Repaired | None:
    """The rows that a correction repairs, if its rows may take secrets from them; else None."""
    if find is None or not header.table.unquotable:
        return None
    names: list[str] = []
    if header.parent_column is not None:
        names = _parents(cells, header.parent_column).drop_nulls().unique().to_list()
    columns = frozenset(name for name in header.fields if name)
    return Repaired(find.rows(names), find.correction, columns)


def _with_parent(chunk: Chunk, cells: pl.DataFrame, header: Header) -> pl.DataFrame:
    positions = chunk.positions()
    if header.parent_column is None:
        return positions
    parents = _parents(cells, header.parent_column)
    codes = chunk.codes
    if codes.null_count() < chunk.height:
        parents = empty_texts(chunk.height).scatter(codes.is_null().arg_true(), parents)
        broken = codes.is_not_null().arg_true()
        names = names_in_front(positions["data"].gather(broken), header)
        parents = parents.scatter(broken, _parents(names.to_frame("0"), 0))
    return positions.with_columns(parents.alias("parent"))


def _parents(cells: pl.DataFrame, column: int) -> pl.Series:
    """The names of the repaired rows, in the form in which they are looked up."""
    names = cells[str(column)].str.replace(ROW_NAME, "$1:$2")
    # A blank name is none: writers that quote every cell write empty ones like this.
    return pl.select(pl.when(names.str.strip_chars() != "").then(names)).to_series()
