"""Records above the others: above the header, or above the line stated as the first.

Lines there are not read, so a file that was sorted, or that lacks a line of its sender's usual
title text, would silently lose its first records.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from connectors.files.chunks.cells import as_delivered
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.files.text.content import Content, refused
from connectors.settings import Limits
from flows.stages.chunks.validate_chunk import validate_chunk
from schemas.field import NUMBERS, TIMES

Cells = Sequence[str | None]
_TELLING = (*NUMBERS, *TIMES)
"""Kinds whose values can be told from any other text."""
_AT_LEAST = 2
"""The least number of such values in a record; a label followed by a number has only one."""


def check_rows_above(content: Content, header: Header, profile: Profile, limits: Limits) -> None:
    """Refuse a file with a record above those that are read; raises ExtractRefused.

    A line counts as a record if it has its key, and if more of its number and time fields are valid
    than not. Lines that the profile leaves out, or says are no records, do not count.
    """
    if header.text_line <= 1:
        return
    # A key made from other fields is as good as they are.
    key = {one for of in header.table.key for one in profile.fields.get(of, {}).get("key", (of,))}
    for row, cells in _rows(content, header, profile, limits):
        wrong = {error["FieldName"] for error in json.loads(row["error_data"] or "[]")}
        read, failed = _counted(header, profile, cells, wrong)
        if wrong.isdisjoint(key) and read >= _AT_LEAST and read > failed:
            raise refused(
                "records_above", content.name, line=row["first_line"], first=header.body_line
            )


def _counted(
    header: Header, profile: Profile, cells: Cells, wrong: Collection[str]
) -> tuple[int, int]:
    """How many cells of a line give a number or a time, and how many fields have an invalid one."""
    read, failed = set[tuple[int, ...]](), 0
    for field in header.table.delivered:
        places = header.places(field.name)
        if field.kind not in _TELLING or not places:
            continue
        if field.name in wrong:
            failed += 1
        # A number made from a text, or standing in for an empty cell, proves nothing.
        elif "key" not in profile.fields.get(field.name, {}):
            read.add(tuple(place for place in places if (cells[place] or "").strip()))
    return len(read - {()}), failed


def _rows(
    content: Content, header: Header, profile: Profile, limits: Limits
) -> Iterator[tuple[dict[str, Any], Cells]]:
    """The rows that the lines above give, as if records began with the file's first line."""
    top = replace(header, body_start=content.text_start, body_line=1, columns=None)
    # Do not look inside insert-batch data: the file's columns are those of the rows around.
    outer = replace(profile, compare_only=True)
    for chunk in read_chunks(content, top, first_place(top), limits.block_bytes):
        if chunk.start.line >= header.text_line:
            return
        lines = chunk.records.last_line < header.text_line
        if not lines.any():
            continue
        above = chunk.only(lines)
        sound = above.numbers[above.codes.is_null().to_numpy()].tolist()
        cells = dict(zip(sound, as_delivered(above.cells(top.width), top).rows(), strict=True))
        validated = validate_chunk(above, top, outer, 0, 1)
        for piece in validated.rows[header.table.name].pieces():
            for row in validated.taken(piece).sort("record_number").iter_rows(named=True):
                if row["record_number"] in cells:
                    yield row, cells[row["record_number"]]
