"""Records with too few or too many fields: how many they have, and records divided in parts.

A line break within a text that is neither quoted nor escaped leaves records below each other that
together have the fields of one. They are not put together again: only the sender knows which text
continues where.
"""

from itertools import pairwise

import numpy as np
import polars as pl

from connectors.files.chunks.chunk import Chunk
from connectors.files.text.dialect import Dialect, RecordFault
from connectors.files.text.record_cells import cells_of
from connectors.files.text.shadow import covered, covered_width, shadow

_PARTS = (RecordFault.TOO_FEW_FIELDS, RecordFault.STRAY_ESCAPE)
_COUNTED = (RecordFault.TOO_FEW_FIELDS, RecordFault.TOO_MANY_FIELDS)


def fields_counted(chunk: Chunk) -> pl.Series:
    """The number of fields of records with too few or too many; null for all others."""
    dialect, rows = chunk.dialect, np.flatnonzero(np.isin(chunk.records.fault, _COUNTED))
    found = pl.repeat(None, chunk.height, dtype=pl.Int64, eager=True)
    if not len(rows):
        return found
    texts = chunk.own_lines.texts(rows.tolist())["data"]
    counts = texts.str.count_matches(dialect.delimiter.decode(), literal=True).cast(pl.Int64) + 1
    signs = [sign.decode() for sign in (dialect.quote, dialect.escape) if sign]
    quoted = texts.str.contains_any(signs).arg_true()
    counts = counts.scatter(quoted, [_fields_of(text, dialect) for text in texts[quoted]])
    return found.scatter(rows, counts)


def _fields_of(text: str, dialect: Dialect) -> int:
    """The number of fields of a record in which an escape may have no meaning."""
    covers = shadow(text.encode(), dialect).decode(errors="replace")
    empty_ones = len(dialect.delimiter) - 1  # Per delimiter.
    return (len(cells_of(covers, covered(dialect))) + empty_ones) // (1 + empty_ones)


def divided_records(chunk: Chunk, width: int) -> dict[int, tuple[int, int]]:
    """By index in the chunk: first and last line of the records that look like parts of one.

    `width` is the number of fields of a record. Records with a quote are left out.
    """
    records, dialect = chunk.records, chunk.dialect
    part = np.isin(records.fault, _PARTS)
    below = part[1:] & part[:-1] & (records.last_line[:-1] + 1 == records.first_line[1:])
    if not below.any():
        return {}
    text = np.frombuffer(shadow(chunk.block[: records.consumed], dialect), np.uint8)
    delimited, quotes = (
        np.searchsorted(places, records.end) - np.searchsorted(places, records.start)
        for places in (
            np.flatnonzero(text == ord(sign))
            for sign in (covered(dialect).delimiter, dialect.quote)
        )
    )
    unquoted = quotes == 0
    edges = np.flatnonzero(np.concatenate([[True], ~below, [True]]))
    found: dict[int, tuple[int, int]] = {}
    whole = covered_width(width, dialect) - 1
    for first, beyond in pairwise(edges.tolist()):
        run, counted = list[int](), 0
        for row in range(first, beyond if beyond - first > 1 else first):
            run, counted = [*run, row], counted + int(delimited[row])
            if counted > whole or not unquoted[row]:
                run, counted = ([row], int(delimited[row])) if unquoted[row] else ([], 0)
            elif counted == whole and len(run) > 1:
                lines = int(records.first_line[run[0]]), int(records.last_line[row])
                found |= dict.fromkeys(run, lines)
                run, counted = [], 0
    return found
