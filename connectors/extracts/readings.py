"""Read CSV strictly from the start of every line of a block, all lines at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from connectors.extracts.bits import (
    NEVER,
    ONE,
    TOP,
    Bytes,
    Flags,
    Places,
    Tally,
    Words,
    bits_at,
    next_set,
    pack,
    set_bit,
    set_positions,
    toggle,
)
from connectors.extracts.dialect import Dialect
from connectors.extracts.lines import CARRIAGE_RETURN, LINE_FEED, Lines


class Readings(NamedTuple):
    """What strict reading from the start of each line comes to, for all lines of the block.

    `stray_at` is the first quote out of place, `ends_at` the line end outside quotes that ends the
    reading (both NEVER if there is none), `closes_on` the line of that end, or -1 if the reading
    fails. `suspects` are the lines whose record may not end with the line, `rivals` the lines that
    begin a record of the right width, or (`undecided`) may do so once more bytes are known.
    """

    fields: Places
    stray_at: Places
    ends_at: Places
    closes_on: Places
    suspects: Places
    rivals: Places
    undecided: Flags


def read_plain(text: Bytes, lines: Lines, dialect: Dialect) -> Readings:
    """Read a block without quotes, where every record is one line."""
    delimiters = Tally(pack(text == ord(dialect.delimiter)))
    fields = delimiters.before(lines.stop) - delimiters.before(lines.start) + 1
    none = np.empty(0, np.int64)
    never = np.broadcast_to(np.int64(NEVER), len(fields))
    return Readings(fields, never, lines.stop, none, none, none, np.empty(0, np.bool_))


def read_quoted(
    text: Bytes, lines: Lines, width: int, dialect: Dialect, *, final: bool
) -> Readings:
    start, stop, after, complete, size = lines
    masks = _masks(text, lines, dialect)
    outer, inner = Tally(masks.delimiter & ~masks.inside), Tally(masks.delimiter & masks.inside)
    fields = outer.before(stop) - outer.before(start) + 1

    stray_at = np.full(len(start), NEVER)
    places = set_positions(masks.misplaced)
    holder = np.searchsorted(start, places, "right") - 1
    stray_at[holder[::-1]] = places[::-1]  # The last to be written, the first on its line, stays.

    # A line with an odd number of quotes is read on, with inside and outside exchanged, up to the
    # next such line. The last line is open as long as its terminator is not known.
    crossing = np.flatnonzero(masks.odd & (stray_at == NEVER))
    closing = np.flatnonzero(masks.odd[:complete])
    closes = np.append(closing, -1)[np.searchsorted(closing, crossing, "right")]
    ends_at = np.where(masks.odd, NEVER, stop)
    ends_at[complete:] = NEVER
    ends_at[crossing] = np.where(closes < 0, NEVER, stop[closes])
    stray_at[crossing] = next_set(masks.misplaced_within, after[crossing])
    stray_at[stray_at > ends_at] = NEVER
    fields[crossing] += inner.before(np.minimum(ends_at[crossing], size))
    fields[crossing] -= inner.before(after[crossing])

    # A bad quote may close a field, and then counts among the bytes of that field.
    reach = np.minimum(np.minimum(ends_at, stray_at + 1), size)
    runaway = np.zeros(len(start), np.bool_)
    for at in np.flatnonzero(reach - start > dialect.max_field_bytes).tolist():
        runaway[at] = has_large_field(text[start[at] : reach[at]], dialect, quoted_only=True)
    fits = ~runaway & (stray_at == NEVER)
    legal = fits & (ends_at - start <= dialect.max_record_bytes)
    closes_on = np.arange(len(start))
    closes_on[crossing] = closes
    closes_on[~legal] = -1
    undecided = fits & (ends_at == NEVER) & (size - start <= dialect.max_record_bytes)
    undecided &= not final
    rivals = np.flatnonzero((legal & (fields == width) & (stop > start)) | undecided)
    suspicious = runaway.copy()
    suspicious[crossing] = True
    suspects = np.flatnonzero(suspicious[:complete])
    return Readings(fields, stray_at, ends_at, closes_on, suspects, rivals, undecided)


class _Masks(NamedTuple):
    """One bit per byte of the block; `odd` is one flag per line.

    `inside` is by the quotes since the start of the line. `misplaced` are the quotes out of place
    in such a reading, `misplaced_within` in one that began its line inside quotes.
    """

    delimiter: Words
    inside: Words
    misplaced: Words
    misplaced_within: Words
    odd: Flags


def _masks(text: Bytes, lines: Lines, dialect: Dialect) -> _Masks:
    quote = pack(text == ord(dialect.quote))
    delimiter = pack(text == ord(dialect.delimiter))
    inside = toggle(quote)
    uneven = bits_at(inside, lines.stop)
    odd = uneven.copy()
    odd[1:] ^= uneven[:-1]
    if odd.any():
        resets = np.zeros(len(text), np.bool_)
        resets[lines.start[1:][odd[:-1]]] = True
        inside = toggle(quote ^ pack(resets))
    # An opening quote follows, a closing one precedes, a delimiter, a line end or another quote.
    border = quote | delimiter | pack(text == LINE_FEED) | pack(text == CARRIAGE_RETURN)
    set_bit(border, len(text))
    follows, precedes = border << ONE, border >> ONE
    follows[1:] |= border[:-1] >> TOP
    precedes[:-1] |= border[1:] << TOP
    set_bit(follows, 0)
    unopened, unclosed = quote & ~follows, quote & ~precedes
    misplaced = (inside & unopened) | (~inside & unclosed)
    misplaced_within = (~inside & unopened) | (inside & unclosed)
    return _Masks(delimiter, inside, misplaced, misplaced_within, odd)


def has_large_field(record: Bytes, dialect: Dialect, *, quoted_only: bool) -> bool:
    quote = record == ord(dialect.quote)
    inside = np.bitwise_xor.accumulate(quote.view(np.uint8)).view(np.bool_)
    delimiters = np.flatnonzero((record == ord(dialect.delimiter)) & ~inside)
    start = np.insert(delimiters + 1, 0, 0)
    large = np.append(delimiters, len(record)) - start > dialect.max_field_bytes
    return bool(quote[start[large]].any() if quoted_only else large.any())
