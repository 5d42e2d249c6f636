"""Small files that are alike, validated together, so that their rows share the cost of a frame.

Only clean files are decided in this way. A file with a row in error is validated by itself like
every other file, and so is a file that is not plain: every verdict is made in one place.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl

from connectors.files.chunks.chunk import Chunk, joined_cells, joined_places, joined_positions
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.files.text.shadow import is_csv
from connectors.settings import KIB, MIB
from flows.stages.rows.writing import writing_of
from flows.steps.validate.chunk import validate_rows
from flows.steps.validate.field_errors import empty_texts
from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.tables import INSERT_BATCH_DATA

SMALL_BYTES = 64 * KIB
"""A larger file gets a frame of its own."""
HELD_BYTES = 4 * MIB
"""The most bytes of files that wait for others like them."""
MOST_FILES = 1_000
"""The most files that wait, however small, since a run that dies has to read them again."""


class SmallFile(NamedTuple):
    """A file that consists of one chunk of sound records."""

    number: int
    header: Header
    chunk: Chunk

    @property
    def alike(self) -> Hashable:
        """A value that is equal for files whose cells can stand in the same columns."""
        header = self.header
        sources = tuple(header.sources.items())
        return header.table.name, header.fields, header.names, sources, header.dialect


class CleanFiles(NamedTuple):
    files: list[SmallFile]
    rows: pl.DataFrame
    """Staged rows of the clean files; `extract_id` is the number of the file."""
    left: list[SmallFile]
    """Files that have to be validated by themselves."""


def is_plain(header: Header, profile: Profile) -> bool:
    """Whether the verdict on a row of a file depends on its cells alone."""
    table = header.table
    by_place = profile.leave_out or profile.keep_only or profile.keys or header.unpivot
    named = header.parent_column is not None or header.quoted_column is not None
    # If its key lacks a part, the file is part of a row's identity.
    identified = key_columns(table) != (IDENTITY,) or not table.key
    return not (
        by_place
        or named
        or header.positions
        or header.carried
        or header.footer
        or header.of_workbook
        or table is INSERT_BATCH_DATA
        or not identified
    )


def is_simple(chunk: Chunk) -> bool:
    """Whether each line of a chunk is exactly one record."""
    return (
        not chunk.records.fault.any()
        and is_csv(chunk.dialect)
        and not chunk.dialect.skips
        and chunk.dialect.encoding == "utf-8"
        and chunk.dialect.quote not in chunk.block
    )


@dataclass(slots=True)
class WaitingFiles:
    """Small files waiting for others like them."""

    groups: dict[Hashable, list[SmallFile]] = field(default_factory=dict)
    held: int = 0

    def add(self, file: SmallFile) -> None:
        self.groups.setdefault(file.alike, []).append(file)
        self.held += len(file.chunk.block)

    @property
    def are_many(self) -> bool:
        """Whether they have to be validated before more are added."""
        return self.held >= HELD_BYTES

    def take(self) -> Iterator[list[SmallFile]]:
        """Hand over all files, group by group; none waits any more."""
        groups, self.groups, self.held = self.groups, {}, 0
        yield from groups.values()


def validate_together(
    files: Sequence[SmallFile], profile: Profile, batch_id: int = 0, *, with_texts: bool = False
) -> CleanFiles:
    """Validate files that are alike; raises SchemaBroken, which does not name the file."""
    header, chunks = files[0].header, [one.chunk for one in files]
    cells = joined_cells(chunks, header.width)
    if cells is None:
        return CleanFiles([], pl.DataFrame(), [*files])
    validated = validate_rows(
        header.table,
        cells,
        header.fields,
        positions=joined_positions(chunks) if with_texts else joined_places(chunks),
        faults=empty_texts(sum(chunk.height for chunk in chunks)),
        writing=writing_of(profile),
        sources=header.sources,
        batch_id=batch_id,
        extract_id=0,
        tenant=profile.tenant,
        inner_record=None,
    )
    heights = [chunk.height for chunk in chunks]
    whose = pl.Series("extract_id", np.repeat([one.number for one in files], heights), pl.Int32)
    staged = validated.rows[header.table.name]
    errors = set(whose.filter(~staged.clean).to_list())
    clean = staged.frame.with_columns(whose)
    if errors:
        clean = clean.filter(~whose.is_in(list(errors)))
    return CleanFiles(
        [one for one in files if one.number not in errors],
        clean,
        [one for one in files if one.number in errors],
    )


def single(chunks: Iterator[Chunk]) -> Chunk | None:
    """The only chunk of a file; None if there is none, or more than one."""
    first = next(chunks, None)
    return None if first is None or next(chunks, None) is not None else first
