"""Split a block of CSV bytes into records so that one bad record never costs a good one.

The block is read as bit masks, 64 bytes to a word, and all its lines are classified at once. Every
quote of a legal record toggles inside and outside (a doubled quote toggles twice), so a line ends
inside quotes exactly when the number of quotes since the start of its record is odd. A line with a
misplaced quote is a failed record by itself. Only lines that leave a quote open are suspects and
are walked one by one. Two readings that began on different lines never cross the same line border
while both are legal, so the work is linear in the size of the block, whatever it holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from connectors.files.text.bitmask import Bytes, Flags, Places, pack, toggle
from connectors.files.text.comments import (
    NO_COMMENTS,
    CommentLines,
    may_be_comments,
    without_comments,
)
from connectors.files.text.dialect import Dialect, RecordFault
from connectors.files.text.encodings import no_signs
from connectors.files.text.escapes import stray_escapes
from connectors.files.text.lines import CARRIAGE_RETURN, LINE_FEED, PhysicalLines, physical_lines
from connectors.files.text.readings import Readings, has_large_field, read_plain, read_quoted
from connectors.files.text.shadow import covered, covered_width, loose_end, shadow

NUL = 0
DECODED_AT_ONCE = 512
FEW_RUNS = 1024  # Bytes per run from which joining slices beats masking bytes.


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The settled records of one block, as columns in the order of the file.

    `start` and `end` are byte offsets in the block, line terminator excluded. Lines count from 1.
    `consumed` bytes and `lines` physical lines are settled; `inside` is for the next `split`.
    `waits` says that the record after them still has an open quote at the end of the block.
    """

    start: Places
    end: Places
    first_line: Places
    last_line: Places
    fault: Bytes
    consumed: int
    lines: int
    inside: bool
    waits: bool = False
    comments: CommentLines = NO_COMMENTS
    """The lines that are no records according to the feed."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def is_sound(self) -> Flags:
        """Which of the records have no fault."""
        found: Flags = self.fault == RecordFault.NONE
        return found

    def only(self, chosen: Flags | Places) -> Records:
        """Some of the records; chosen by index, a record may occur several times."""
        return replace(
            self,
            start=self.start[chosen],
            end=self.end[chosen],
            first_line=self.first_line[chosen],
            last_line=self.last_line[chosen],
            fault=self.fault[chosen],
        )

    def followed_by(self, more: Records) -> Records:
        """These records and those of the text after the bytes they consumed."""
        there = self.consumed
        return Records(
            np.concatenate([self.start, more.start + there]),
            np.concatenate([self.end, more.end + there]),
            np.concatenate([self.first_line, more.first_line]),
            np.concatenate([self.last_line, more.last_line]),
            np.concatenate([self.fault, more.fault]),
            there + more.consumed,
            self.lines + more.lines,
            more.inside,
            more.waits,
            self.comments.followed_by(more.comments, there),
        )


def split(
    block: bytes | memoryview,
    width: int,
    dialect: Dialect,
    *,
    line: int,
    final: bool,
    inside: bool = False,
    endless: bool = False,
) -> Records:
    """Settle every record of `block` whose end is certain; `line` is the number of its first line.

    The next block begins after the `consumed` bytes, at `line + lines`, with the same `inside`; the
    records do not depend on where blocks are cut. If `consumed` is 0, call again with a block twice
    as large. A block of more than `look_ahead_bytes` and `max_record_bytes` always settles
    something.

    A record that closes within `look_ahead_bytes` is one record, too large or not: the lines in it
    are its text, whatever they look like. It fails at a stray quote, and if its quotes do not close
    within that reach. It also fails if it closes on a later line, with the wrong width or where no
    field may hold a line break, while a line within it begins a complete record of the right width.
    One that fails by a stray quote on its first line ends with that line, and the next line is read
    anew. Any other failed record extends to the last line before one that begins a complete record
    of the right width within the limits, by at most `max_record_bytes`, and its fault is that of
    the bytes it ended up with. A single line longer than `look_ahead_bytes` is cut into pieces of
    `max_record_bytes`, all of them too large; `inside` says that the block begins within such a
    line. `endless` says that a quote still open at the end of the block is known not to close
    within `look_ahead_bytes`, so nothing waits for it.
    """
    data = block if isinstance(block, bytes) else bytes(block)
    shade, signs = shadow(data, dialect), covered(dialect)
    width = covered_width(width, dialect)
    # The meaning of the last bytes depends on what follows them.
    uncertain = 0 if final else loose_end(shade, dialect)
    text = np.frombuffer(shade, np.uint8)[: len(data) - uncertain]
    lines = physical_lines(text, final=final, returns=b"\r" in data)
    if dialect.has_quote and dialect.quote in data:
        readings = read_quoted(text, lines, width, signs, final=final, endless=endless)
    else:
        readings = read_plain(text, lines, signs)
    oversize = lines.stop - lines.start > dialect.look_ahead_bytes
    oversize[:1] |= inside
    comments = np.zeros(len(oversize), np.bool_)
    if dialect.skips:
        whole = np.frombuffer(data, np.uint8)
        comments = may_be_comments(whole, lines, dialect, oversize)
        readings = without_comments(readings, comments)
    spans = _walk(_verdicts(lines, readings, width, dialect, oversize, final=final), lines.complete)
    records = _assemble(lines, readings, spans, oversize, comments, width=width, line=line)
    records = _cut(records, lines, oversize, dialect.max_record_bytes, line, inside=inside)
    _find_content_faults(data, shade, records, dialect)
    return records


def sound(block: bytes | memoryview, records: Records) -> bytes:
    """The records without a fault, each ended by LF, for any CSV reader.

    If nothing has to be left out or changed, that is the block itself, not a copy.
    """
    data = block if isinstance(block, bytes) else bytes(block)
    keep = records.is_sound
    start, end = records.start[keep], records.end[keep]
    if not len(start):
        return b""
    text = np.frombuffer(data, np.uint8)
    closed = bool(end[-1] < len(data))
    fed = closed and bool((text[end] == LINE_FEED).all())
    run_starts = np.append(True, start[1:] != end[:-1] + 1)
    first, last = start[run_starts], end[np.append(run_starts[1:], True)] + 1
    if fed and len(first) == 1 and last[0] - first[0] == len(data):
        return data
    if len(first) < len(data) // FEW_RUNS:
        view = memoryview(data)
        kept = b"".join([view[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)])
    else:
        edges = np.zeros(len(data) + 2, np.bool_)
        edges[first] = edges[last] = True
        flags = np.unpackbits(toggle(pack(edges)).view(np.uint8), bitorder="little")
        kept = text[flags[: len(data)].view(np.bool_)].tobytes()
    if fed:
        return kept
    copy = bytearray(kept if closed else kept + b"\n")
    np.frombuffer(copy, np.uint8)[np.cumsum(end - start + 1) - 1] = LINE_FEED
    return bytes(copy)


def conserved(block: bytes | memoryview, records: Records, dialect: Dialect | None = None) -> bool:
    """Prove from the bytes that each settled byte is in one record, skipped line or line end.

    `dialect` says which lines are skipped; None if none are.
    """
    text = np.frombuffer(block, np.uint8)
    start, end = records.start, records.end
    if len(records.comments.start):
        start = np.sort(np.concatenate([start, records.comments.start]))
        end = np.sort(np.concatenate([end, records.comments.end]))
    gap_start, gap_end = np.insert(end, 0, 0), np.append(start, records.consumed)
    size = gap_end - gap_start
    if (size < 0).any() or (end <= start).any() or records.consumed > len(text):
        return False
    if not records.comments.within(text, dialect or Dialect()):
        return False
    offset = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    between = text[np.repeat(gap_start, size) + offset]
    return bool(((between == LINE_FEED) | (between == CARRIAGE_RETURN)).all())


class _Verdicts(NamedTuple):
    """For each suspect line, the last line and the fault of a record that begins there.

    `wait` says that more bytes are needed to decide; with fault NONE the width is still unjudged.
    """

    line: Places
    last: Places
    fault: Bytes
    wait: Flags


def _verdicts(
    lines: PhysicalLines,
    readings: Readings,
    width: int,
    dialect: Dialect,
    oversize: Flags,
    *,
    final: bool,
) -> _Verdicts:
    line = readings.suspects[~oversize[readings.suspects]]
    if not len(line):
        return _Verdicts(line, line, np.empty(0, np.uint8), np.empty(0, np.bool_))
    nowhere = len(lines.start) + 1
    rival = np.append(readings.rivals, nowhere)[np.searchsorted(readings.rivals, line, "right")]
    rival_undecided = np.append(readings.undecided, [False, False])[rival]
    closes_on = readings.closes_on[line]
    closed = closes_on >= 0
    doubtful = (readings.fields[line] != width) | (not dialect.line_breaks)
    disputed = closed & doubtful & (rival <= closes_on)
    accepted = closed & ~disputed

    reach = lines.start[line] + dialect.max_record_bytes
    reachable = np.searchsorted(lines.stop[: lines.complete], reach, "right") - 1
    filled = np.flatnonzero(lines.stop > lines.start)
    last = np.maximum(np.minimum(rival - 1, reachable), line)
    last = filled[np.searchsorted(filled, last, "right") - 1]
    unknown = np.where(rival <= reachable, rival_undecided, lines.size <= reach) & (not final)
    end = lines.stop[last]
    fault = np.full(len(line), RecordFault.UNTERMINATED_QUOTE, np.uint8)
    fault[readings.stray_at[line] < end] = RecordFault.STRAY_QUOTE

    last[accepted] = closes_on[accepted]
    fault[accepted] = RecordFault.NONE
    wait = readings.unclosed[line] | (unknown & ~accepted) | (disputed & rival_undecided)
    return _Verdicts(line, last, fault, wait)


class _Spans(NamedTuple):
    """The suspect lines that begin a record, and the first unsettled line."""

    line: Places
    last: Places
    fault: Bytes
    settled: int


def _walk(verdicts: _Verdicts, complete: int) -> _Spans:
    """Take every suspect that is not inside an earlier record, up to the first that has to wait."""
    line, last, fault, wait = verdicts
    if not wait.any() and (last[:-1] < line[1:]).all():
        return _Spans(line, last, fault, complete)
    taken, free, settled = [], 0, complete
    rows = zip(line.tolist(), last.tolist(), wait.tolist(), strict=True)
    for row, (begins, ends, waits) in enumerate(rows):
        if begins < free:
            continue
        if waits:
            settled = begins
            break
        taken.append(row)
        free = ends + 1
    rows_taken = np.array(taken, np.int64)
    return _Spans(line[rows_taken], last[rows_taken], fault[rows_taken], settled)


def _assemble(
    lines: PhysicalLines,
    readings: Readings,
    spans: _Spans,
    oversize: Flags,
    comments: Flags,
    *,
    width: int,
    line: int,
) -> Records:
    settled = spans.settled
    fault = np.zeros(settled, np.uint8)
    fields = readings.fields[:settled]
    fault[fields < width] = RecordFault.TOO_FEW_FIELDS
    fault[fields > width] = RecordFault.TOO_MANY_FIELDS
    fault[readings.stray_at[:settled] < lines.stop[:settled]] = RecordFault.STRAY_QUOTE
    fault[spans.line] = np.where(spans.fault == RecordFault.NONE, fault[spans.line], spans.fault)
    fault[oversize[:settled]] = RecordFault.RECORD_TOO_LARGE
    last = np.arange(settled)
    last[spans.line] = spans.last
    begins = lines.stop[:settled] > lines.start[:settled]
    depth = np.zeros(settled + 1, np.int8)
    depth[spans.line + 1] += 1
    depth[spans.last + 1] -= 1
    begins &= np.cumsum(depth[:settled], dtype=np.int8) == 0
    commented = np.flatnonzero(begins & comments[:settled])
    first = np.flatnonzero(begins & ~comments[:settled])
    last = last[first]
    consumed = int(lines.start[settled]) if settled < len(lines.start) else lines.size
    columns = (lines.start[first], lines.stop[last], first + line, last + line, fault[first])
    waits = settled < lines.complete and bool(readings.unclosed[settled])
    left = CommentLines(lines.start[commented], lines.stop[commented], commented + line)
    return Records(*columns, consumed, settled, inside=False, waits=waits, comments=left)


def _cut(
    records: Records, lines: PhysicalLines, oversize: Flags, limit: int, line: int, *, inside: bool
) -> Records:
    """Cut lines that are too large into pieces, the last line too while its end is unknown."""
    tail = records.lines
    within = tail == lines.complete < len(lines.start) and bool(oversize[tail])
    large = oversize[records.first_line - line]
    if not within and not large.any():
        return replace(records, inside=inside and not records.consumed)
    parts = [
        (first, np.arange(start, end, limit), end)
        for first, start, end in zip(
            records.first_line[large], records.start[large], records.end[large], strict=True
        )
    ]
    consumed = records.consumed
    if within:
        pieces = np.arange(consumed, lines.size - limit, limit)
        consumed += limit * len(pieces)
        parts.append((np.int64(tail + line), pieces, np.int64(consumed)))
    start = np.concatenate([records.start[~large], *(pieces for _, pieces, _ in parts)])
    order = np.argsort(start)
    end = [np.minimum(pieces + limit, stop) for _, pieces, stop in parts]
    number = [np.full(len(pieces), first) for first, pieces, _ in parts]
    fault = np.full(len(start), RecordFault.RECORD_TOO_LARGE, np.uint8)
    fault[: len(large) - large.sum()] = records.fault[~large]
    return replace(
        records,
        start=start[order],
        end=np.concatenate([records.end[~large], *end])[order],
        first_line=np.concatenate([records.first_line[~large], *number])[order],
        last_line=np.concatenate([records.last_line[~large], *number])[order],
        fault=fault[order],
        consumed=consumed,
        inside=within,
    )


def _find_content_faults(data: bytes, shade: bytes, records: Records, dialect: Dialect) -> None:
    """Find the faults within a record's bytes, whatever its structure."""
    start, end, fault = records.start, records.end, records.fault
    text, signs = np.frombuffer(shade, np.uint8), covered(dialect)
    _blame(
        fault, np.flatnonzero(end - start > dialect.max_record_bytes), RecordFault.RECORD_TOO_LARGE
    )
    for at in np.flatnonzero(end - start > dialect.max_field_bytes).tolist():
        if has_large_field(text[start[at] : end[at]], signs, quoted_only=False):
            _blame(fault, np.array([at]), RecordFault.FIELD_TOO_LARGE)
    if dialect.escape and dialect.escape in data:
        settled = data[: records.consumed], shade[: records.consumed]
        stray = stray_escapes(*settled, start, end, dialect)
        _blame(fault, np.flatnonzero(stray), RecordFault.STRAY_ESCAPE)
    if not dialect.has_quote:
        _blame(fault, _holders(data, records, ord(dialect.quote)), RecordFault.STRAY_QUOTE)
    _blame(fault, _holders(data, records, NUL), RecordFault.NUL_CHARACTER)
    if not data.isascii():
        undecodable = _undecodable(data, records, dialect.encoding)
        # A piece of a record that is too large may begin or end within a character.
        whole = fault[undecodable] != RecordFault.RECORD_TOO_LARGE
        _blame(fault, undecodable[whole], RecordFault.ENCODING)


def _blame(fault: Bytes, records: Places, reason: RecordFault) -> None:
    open_to_it = (fault[records] == RecordFault.NONE) | (fault[records] > reason)
    fault[records[open_to_it]] = reason


def _holders(data: bytes, records: Records, sign: int) -> Places:
    """The records that contain this sign; comments belong to no record."""
    if data.find(sign, 0, records.consumed) < 0:
        return np.empty(0, np.int64)
    places = np.flatnonzero(np.frombuffer(data, np.uint8, records.consumed) == sign)
    holder = np.searchsorted(records.start, places, "right") - 1
    return holder[(holder >= 0) & (places < np.append(records.end, 0)[holder])]


def _undecodable(data: bytes, records: Records, encoding: str) -> Places:
    """Find undecodable records by bisection; the order of the result does not matter."""
    none = no_signs(encoding)
    if none is not None and not any(byte in data for byte in none):
        return np.empty(0, np.int64)
    start, end = records.start, records.end
    count, found = len(start), []
    ranges = [(at, min(at + DECODED_AT_ONCE, count)) for at in range(0, count, DECODED_AT_ONCE)]
    while ranges:
        first, beyond = ranges.pop()
        try:
            str(memoryview(data)[start[first] : end[beyond - 1]], encoding)
        except UnicodeDecodeError:
            if beyond - first == 1:
                found.append(first)
            else:
                middle = (first + beyond) // 2
                ranges += [(first, middle), (middle, beyond)]
    return np.array(found, np.int64)
