"""Strict reading of CSV from the start of every line of a block, for all lines at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from connectors.files.text.bitmask import (
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
from connectors.files.text.dialect import Dialect
from connectors.files.text.lines import CARRIAGE_RETURN, LINE_FEED, PhysicalLines

FEW_QUOTES = 8
"""With at most one quote in this many lines, the lines with quotes are read apart."""


class Readings(NamedTuple):
    """The outcome of strict reading from the start of each line, for all lines of the block.

    `stray_at` is the first misplaced quote (NEVER if there is none). `closes_on` is the line whose
    end outside quotes ends the reading, -1 if the reading fails; `unclosed` ones may yet close.
    `suspects` are the lines whose record may not end with the line. `rivals` are the lines that
    begin a record of the right width within the limits, or (`undecided`) may do so once more bytes
    are known; lines that are no record are added to them.
    """

    fields: Places
    stray_at: Places
    closes_on: Places
    suspects: Places
    unclosed: Flags
    rivals: Places
    undecided: Flags


def read_plain(text: Bytes, lines: PhysicalLines, dialect: Dialect) -> Readings:
    """Read a block without quotes, where every record is one line."""
    delimiters = Tally(pack(text == ord(dialect.delimiter)))
    fields = delimiters.before(lines.stop) - delimiters.before(lines.start) + 1
    none, nothing = np.empty(0, np.int64), np.empty(0, np.bool_)
    never = np.broadcast_to(np.int64(NEVER), len(fields))
    return Readings(fields, never, none, none, nothing, none, nothing)


def read_quoted(
    text: Bytes, lines: PhysicalLines, width: int, dialect: Dialect, *, final: bool, endless: bool
) -> Readings:
    start, stop, complete, size = lines.start, lines.stop, lines.complete, lines.size
    fields, stray_at, ends_at, crossing, closing, closes = _followed(text, lines, dialect)

    # A quote may close far beyond the limits: its record is still one, if too large a one.
    sound, ended = stray_at == NEVER, ends_at != NEVER
    reach = np.minimum(ends_at, size) - start
    closes_on = np.arange(len(start))
    closes_on[crossing] = closes
    closes_on[~(sound & ended & (reach <= dialect.look_ahead_bytes))] = -1
    # Of all lines that end in the block, only the last odd one can still be open at its end.
    sound[closing[-1:]] &= not endless
    unclosed = sound & ~ended & (reach <= dialect.look_ahead_bytes) & (not final)

    # Only a record within the limits justifies reading again where it begins.
    fits: Flags = sound & (reach <= dialect.max_record_bytes)
    for at in np.flatnonzero(fits & (reach > dialect.max_field_bytes)).tolist():
        record = text[start[at] : start[at] + reach[at]]
        fits[at] = not has_large_field(record, dialect, quoted_only=True)
    undecided = fits & ~ended & (not final)
    rivals = np.flatnonzero((fits & ended & (fields == width) & (stop > start)) | undecided)
    suspects = crossing[: np.searchsorted(crossing, complete)]
    return Readings(fields, stray_at, closes_on, suspects, unclosed, rivals, undecided)


class _Followed(NamedTuple):
    """Lines read up to where their quotes close.

    `ends_at` is where the reading of a line ends, NEVER if nothing closes it. The `crossing` lines
    leave a quote open, which `closes` on a line, or -1; `closing` are all lines that may close one.
    """

    fields: Places
    stray_at: Places
    ends_at: Places
    crossing: Places
    closing: Places
    closes: Places


def _followed(text: Bytes, lines: PhysicalLines, dialect: Dialect) -> _Followed:
    few = np.count_nonzero(text == ord(dialect.quote)) * FEW_QUOTES <= len(lines.start)
    return (_followed_apart if few else _followed_all)(text, lines, dialect)


def _followed_apart(text: Bytes, lines: PhysicalLines, dialect: Dialect) -> _Followed:
    """Read the lines with quotes as if there were no others, then put the results in place."""
    quotes = np.flatnonzero(text == ord(dialect.quote))
    row = np.unique(np.searchsorted(lines.start, quotes, "right") - 1)
    begin, beyond = lines.start[row], lines.after[row]
    pairs = zip(begin.tolist(), beyond.tolist(), strict=True)
    near = np.frombuffer(b"".join([text.data[a:b] for a, b in pairs]), np.uint8)
    moved = begin - (np.cumsum(beyond - begin) - (beyond - begin))
    complete = int(np.searchsorted(row, lines.complete))
    some = PhysicalLines(
        begin - moved, lines.stop[row] - moved, beyond - moved, complete, len(near)
    )
    found = _followed_all(near, some, dialect)

    def put_back(places: Places) -> Places:
        holder = np.searchsorted(some.start, places, "right") - 1
        return np.where(places == NEVER, NEVER, places + moved[holder])

    fields, stray_at = read_plain(text, lines, dialect).fields, np.full(len(lines.start), NEVER)
    ends_at = lines.stop.copy()
    ends_at[lines.complete :] = NEVER
    fields[row], stray_at[row] = found.fields, put_back(found.stray_at)
    ends_at[row] = put_back(found.ends_at)
    closes = np.append(row, -1)[found.closes]
    return _Followed(fields, stray_at, ends_at, row[found.crossing], row[found.closing], closes)


def _followed_all(text: Bytes, lines: PhysicalLines, dialect: Dialect) -> _Followed:
    start, stop, after, complete, size = lines
    masks = _masks(text, lines, dialect)
    outer, inner = Tally(masks.delimiter & ~masks.inside), Tally(masks.delimiter & masks.inside)
    fields = outer.before(stop) - outer.before(start) + 1

    stray_at = np.full(len(start), NEVER)
    places = set_positions(masks.misplaced)
    holder = np.searchsorted(start, places, "right") - 1
    stray_at[holder[::-1]] = places[::-1]  # Written last, the first quote of a line stays.

    # A line with an odd number of quotes is read on, inside and outside exchanged, up to the next
    # such line. The last line is open as long as its terminator is unknown.
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
    return _Followed(fields, stray_at, ends_at, crossing, closing, closes)


class _Masks(NamedTuple):
    """One bit per byte of the block; `odd` is one flag per line.

    `inside` follows from the quotes since the start of the line. `misplaced` are the misplaced
    quotes in that reading, `misplaced_within` those in a reading that began its line inside quotes.
    """

    delimiter: Words
    inside: Words
    misplaced: Words
    misplaced_within: Words
    odd: Flags


def _masks(text: Bytes, lines: PhysicalLines, dialect: Dialect) -> _Masks:
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
    # Before an opening quote, and after a closing one, comes a delimiter, line end or quote.
    border = quote | delimiter | pack(text == LINE_FEED) | pack(text == CARRIAGE_RETURN)
    set_bit(border, len(text))
    follows, precedes = border << ONE, border >> ONE
    follows[1:] |= border[:-1] >> TOP
    precedes[:-1] |= border[1:] << TOP
    set_bit(follows, 0)
    if dialect.blanks:
        opens, closes = _beside_blanks(text, dialect)
        follows |= pack(opens)
        precedes |= pack(closes)
    unopened, unclosed = quote & ~follows, quote & ~precedes
    misplaced = (inside & unopened) | (~inside & unclosed)
    misplaced_within = (~inside & unopened) | (inside & unclosed)
    return _Masks(delimiter, inside, misplaced, misplaced_within, odd)


def _beside_blanks(text: Bytes, dialect: Dialect) -> tuple[Flags, Flags]:
    """Which quotes have only blanks before them, or after them, up to a field's border."""
    filled = np.ones(len(text), np.bool_)
    for sign in dialect.blanks:
        filled &= text != sign
    quotes = np.flatnonzero(text == ord(dialect.quote))
    # The ends of the text are borders, just as those of lines.
    places = np.concatenate([[-1], np.flatnonzero(filled), [len(text)]])
    ends = (ord(dialect.delimiter), LINE_FEED, CARRIAGE_RETURN)
    border = np.ones(len(places), np.bool_)
    border[1:-1] = np.isin(text[places[1:-1]], ends)
    at = np.searchsorted(places, quotes)
    opens, closes = np.zeros(len(text), np.bool_), np.zeros(len(text), np.bool_)
    opens[quotes[border[at - 1]]] = True
    closes[quotes[border[at + 1]]] = True
    return opens, closes


def has_large_field(record: Bytes, dialect: Dialect, *, quoted_only: bool) -> bool:
    quote = record == ord(dialect.quote)
    inside = np.bitwise_xor.accumulate(quote.view(np.uint8)).view(np.bool_)
    delimiters = np.flatnonzero((record == ord(dialect.delimiter)) & ~inside)
    start = np.insert(delimiters + 1, 0, 0)
    large = np.append(delimiters, len(record)) - start > dialect.max_field_bytes
    if not quoted_only:
        return bool(large.any())
    filled = np.append(np.flatnonzero(~np.isin(record, [*dialect.blanks])), len(record) - 1)
    return bool(quote[filled[np.searchsorted(filled, start[large])]].any())
