"""Records above the others: over the header, or over the line that is stated as the first.

What stands there is not read, so a file that was sorted, or lacks a line of the text that its
sender puts on top, would lose its first records without a word.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from connectors.files.content import Content, refused
from connectors.files.header import Header
from connectors.files.profile import Profile
from connectors.files.reader import first_place, read_chunks
from connectors.settings import Limits
from flows.stages.validate_chunk import validate_chunk
from schemas.field import NUMBERS, TIMES

_TELLING = (*NUMBERS, *TIMES)
"""Kinds whose values are told from any other text."""
_AT_LEAST = 2
"""Such values that a record has: a label with a number behind it has one."""


def check_rows_above(content: Content, header: Header, profile: Profile, limits: Limits) -> None:
    """Refuse a file with a record above those that are read; raises ExtractRefused.

    A line is one if more of the numbers and times that it should have are there than are not. What
    the profile leaves out, or says is no record, is none there either.
    """
    if header.text_line <= 1:
        return
    for row in _rows(content, header, profile, limits):
        wrong = {error["FieldName"] for error in json.loads(row["error_data"] or "[]")}
        read = failed = 0
        for field in header.table.delivered:
            if field.kind in _TELLING and header.places(field.name):
                failed += field.name in wrong
                read += field.name not in wrong and row[field.name] is not None
        if read >= _AT_LEAST and read > failed:
            raise refused(
                "records_above", content.name, line=row["first_line"], first=header.body_line
            )


def _rows(
    content: Content, header: Header, profile: Profile, limits: Limits
) -> Iterator[dict[str, Any]]:
    """What becomes of the lines above, as if records began with the first of the file."""
    top = replace(header, body_start=content.text_start, body_line=1, columns=None)
    # Not what is inside of insert-batch data: the columns of the file are those of the rows around.
    outer = replace(profile, compare_only=True)
    for chunk in read_chunks(content, top, first_place(top), limits.block_bytes):
        if chunk.start.line >= header.text_line:
            return
        above = chunk.records.last_line < header.text_line
        if not above.any():
            continue
        validated = validate_chunk(chunk.only(above), top, outer, 0, 1)
        staged = validated.rows[header.table.name]
        for piece in staged.only(staged.frame["raw"].is_null()).pieces():
            yield from validated.taken(piece).sort("record_number").iter_rows(named=True)
