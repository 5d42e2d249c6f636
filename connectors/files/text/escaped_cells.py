"""Cells of records with escapes, column by column; same results as `record_cells` row by row."""

import re

import numpy as np
import polars as pl

from connectors.files.text.bitmask import Flags, Places
from connectors.files.text.dialect import Dialect
from connectors.files.text.record_cells import ESCAPES, KNOWN, NULL
from connectors.files.text.shadow import covered, shadow

_PAIRS = {
    f"\\{sign}": ESCAPES.get(sign, sign)
    for sign in map(chr, range(128))
    if re.fullmatch(rf"[{KNOWN}\r\n]", sign)
}


def escaped_cells(
    text: bytes, start: Places, end: Places, width: int, dialect: Dialect
) -> pl.DataFrame | None:
    """Cells of sound UTF-8 records in columns "0", "1" ...; null for a cell without a value.

    None if blanks may stand beside quotes, or if some record does not have `width` cells.
    """
    if dialect.blanks:
        return None
    step = len(dialect.delimiter)
    shade = np.frombuffer(shadow(text, dialect), np.uint8)
    quote = shade == ord(dialect.quote)
    quotes = np.flatnonzero(quote)
    at = np.flatnonzero(shade == ord(covered(dialect).delimiter))
    of = np.searchsorted(start, at, "right") - 1
    within = (of >= 0) & (at < np.append(end, 0)[of])
    at, of = at[within], of[within]
    # A delimiter within quotes has an odd number of quotes before it in its record.
    before = np.searchsorted(quotes, at) - np.searchsorted(quotes, start[of])
    is_border = before % 2 == 0
    at, of = at[is_border][::step], of[is_border][::step]
    if not np.array_equal(np.bincount(of, minlength=len(start)), np.full(len(start), width - 1)):
        return None
    borders = at.reshape(len(start), width - 1)
    begins = np.column_stack([start, borders + step])
    ends = np.column_stack([borders, end])
    return pl.DataFrame(
        _column(text, quote, begins[:, column].copy(), ends[:, column].copy(), dialect).alias(
            str(column)
        )
        for column in range(width)
    )


def _column(text: bytes, quote: Flags, begin: Places, end: Places, dialect: Dialect) -> pl.Series:
    quoted = np.append(quote, [False])[begin] & (begin < end)
    begin, end = begin + quoted, end - quoted
    cut = pl.lit(text).bin.slice(pl.lit(pl.Series(begin)), pl.lit(pl.Series(end - begin)))
    cells = pl.select(cut.cast(pl.String)).to_series()
    bare = pl.Series(~quoted)
    nothing = bare & cells.is_in(["", NULL])
    pairs = dict(_PAIRS)
    if quoted.any():
        sign = dialect.quote.decode()
        pairs[sign * 2] = sign
    unescaped = cells.str.replace_many([*pairs], [*pairs.values()])
    return pl.select(pl.when(~nothing).then(unescaped)).to_series()
