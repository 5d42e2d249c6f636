"""The lines behind the last record that are none, and the totals that stand there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice, takewhile
from typing import NamedTuple

import polars as pl

from connectors.errors import ExtractRefused
from connectors.files.blocks import blocks
from connectors.files.content import Content, refused, shown
from connectors.files.dialect import Dialect
from connectors.files.linear_patterns import Groups, as_series, decoded, fitting, groups_of
from connectors.files.manifest import total_of
from connectors.files.manifest_entries import ALL, ManifestEntry
from connectors.files.profile import ROWS, Profile, number_form, written_of
from connectors.files.shadow import shadow
from connectors.files.workbook_parts import with_remarks
from schemas.amounts import EXACT
from schemas.cells.numbers import NumberForm, exact_number

OWN_FOOTER = "its footer"
FOOTER_BYTES = 1 << 16
"""How far from the end of a file its footer is looked for."""


@dataclass(frozen=True, slots=True)
class ExtractFooter:
    """Where the footer of a file begins, and what it states."""

    start: int
    """Position of its first byte: the records end there."""
    rows: int | None
    sums: Mapping[str, Decimal]
    """By field, over all currencies."""


def read_footer(
    content: Content, profile: Profile, dialect: Dialect, body_start: int, body_line: int
) -> ExtractFooter | None:
    """The footer that every file of the feed has; None: its files have none.

    Each of its patterns takes one line: what else looks like one is a record, and never lost.
    Raises ExtractRefused `incomplete_file` where one of its lines is missing, or states no number.
    """
    if not profile.footer:
        return None
    every = [*_from_the_end(content, body_start)]
    comments = _are_comments(content, profile, dialect, every)
    below = (line for line, comment in zip(every, comments, strict=True) if not comment)
    behind = [*islice(below, len(profile.footer))]
    # The last line of a text in quotes has their end: it is of a record, whatever it says.
    lines = [*takewhile(lambda line: not _has_open_quote(line, dialect), behind)][::-1]
    found = _by_pattern(profile.footer, [_decoded(content, line) for line in lines])
    for pattern in profile.footer:
        if pattern not in found:
            none = f"no line at its end fits the pattern {shown(pattern)!r}"
            above = (line for line in every if lines and line.start < lines[0].start)
            if there := _above_the_end(content, pattern, above):
                places = [
                    _line_number(content, line, body_start, body_line) for line in (there, every[0])
                ]
                none += f"; line {places[0]} does, and text stands behind it up to line {places[1]}"
            if every:
                none += _told_signs(_decoded(content, every[0]))
            raise _refused(content, none)
    start, said = lines[0].start, dict[str, str]()
    for groups in found.values():
        for name, text in groups.items():
            if text is not None and said.setdefault(name, text) != text:
                raise _refused(content, _told_twice(name, said[name], text))
    numbers = {name: _number(content, profile, name, text) for name, text in said.items()}
    rows = numbers.pop(ROWS, None)
    return ExtractFooter(start, None if rows is None else int(rows), numbers)


def with_footer(entry: ManifestEntry | None, footer: ExtractFooter, name: str) -> ManifestEntry:
    """What is stated of a file, with what its own footer states.

    Raises ExtractRefused `incomplete_file` where the two differ.
    """
    said = ManifestEntry(
        OWN_FOOTER, footer.rows, sums={f: {ALL: n} for f, n in footer.sums.items()}
    )
    if entry is None:
        return said
    stated = entry.sums or {}
    details = [
        f"sum of {field}: {total:f} by {entry.manifest}, {own[ALL]:f} by the footer"
        for field, own in (said.sums or {}).items()
        if field in stated and (total := total_of(stated[field])) != own[ALL]
    ]
    if None not in (entry.rows, footer.rows) and entry.rows != footer.rows:
        details.append(f"rows: {entry.rows} by {entry.manifest}, {footer.rows} by the footer")
    if details:
        raise refused("incomplete_file", name, detail="; ".join(details))
    return replace(
        entry,
        manifest=f"{entry.manifest} and {OWN_FOOTER}",
        rows=footer.rows if entry.rows is None else entry.rows,
        sums={**(said.sums or {}), **stated},
    )


class _Line(NamedTuple):
    start: int
    """Position of its first byte."""
    text: bytes


def _from_the_end(content: Content, body_start: int) -> Iterator[_Line]:
    """The lines with text, from the last one up."""
    at, text = _tail(content, body_start)
    lines = text.splitlines(keepends=True)
    end = at + len(text)
    for line in reversed(lines if at == body_start else lines[1:]):
        end -= len(line)
        if line.strip():
            yield _Line(end, line)


def _has_open_quote(line: _Line, dialect: Dialect) -> bool:
    return dialect.has_quote and shadow(line.text, dialect).count(dialect.quote) % 2 == 1


def _are_comments(
    content: Content, profile: Profile, dialect: Dialect, lines: Sequence[_Line]
) -> Iterable[bool]:
    """Which lines are neither of a record nor of the footer, whose lines may begin as they do.

    One with a quote that is open may be the end of a text, and is not passed over.
    """
    if not dialect.skips:
        return [False] * len(lines)
    whole = [decoded(line.text.rstrip(b"\r\n"), dialect.encoding) for line in lines]
    skipped = fitting(as_series(whole), dialect.skip_lines)
    of_footer = fitting(as_series([_decoded(content, line) for line in lines]), profile.footer)
    return (
        (fits or dialect.begins_comment(line.text))
        and not own
        and not _has_open_quote(line, dialect)
        for line, fits, own in zip(lines, skipped, of_footer, strict=True)
    )


def _tail(content: Content, body_start: int) -> tuple[int, bytes]:
    """Position and bytes of the end of a file, behind its header."""
    at = body_start if content.transcoded else max(body_start, content.size - FOOTER_BYTES)
    text = b""
    for block in blocks(content, at, FOOTER_BYTES):
        text += block
        at, text = at + max(0, len(text) - FOOTER_BYTES), text[-FOOTER_BYTES:]
    return at, text


def _told_signs(line: str) -> str:
    """What is said of a last line that nobody sees; of another nothing: it may hold a secret."""
    if any(sign.isprintable() for sign in line):
        return ""
    return f"; its last line is {line!r}, which skip_lines = [{line!r}] leaves out"


def _above_the_end(content: Content, pattern: str, above: Iterable[_Line]) -> _Line | None:
    """The last line above those at the end that a pattern fits."""
    lines = [*above]
    fits = fitting(as_series([_decoded(content, line) for line in lines]), [pattern])
    return next((line for line, one in zip(lines, fits, strict=True) if one), None)


def _line_number(content: Content, line: _Line, body_start: int, body_line: int) -> int:
    """The number of a line in its file: all that stands before it is read."""
    number, at, before = body_line, body_start, b""
    for block in blocks(content, body_start, FOOTER_BYTES):
        text = block[: line.start - at]
        number += text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
        number -= before.endswith(b"\r") and text.startswith(b"\n")
        at, before = at + len(text), text
    return number


def _decoded(content: Content, line: _Line) -> str:
    return line.text.decode(content.encoding, "replace").strip()


def _by_pattern(patterns: Sequence[str], lines: Sequence[str]) -> dict[str, Groups]:
    """What a line of its own says for each pattern, as far as there is one.

    A line that several patterns fit is given to the one that no other line is left for.
    """
    held = {pattern: groups_of(lines, [pattern]) for pattern in patterns}
    taken: dict[int, str] = {}

    def take(pattern: str, asked: set[int]) -> bool:
        for place, groups in enumerate(held[pattern]):
            if groups is None or place in asked:
                continue
            asked.add(place)
            if place not in taken or take(taken[place], asked):
                taken[place] = pattern
                return True
        return False

    for pattern in patterns:
        take(pattern, set())
    return {
        pattern: with_remarks(held[pattern][place] or {}, lines[place])
        for place, pattern in sorted(taken.items())
    }


def _number(content: Content, profile: Profile, name: str, text: str) -> Decimal:
    """A number of the footer, written as the feed writes those of the records."""
    written = written_of(profile, None if name == ROWS else name)
    form = number_form(written)
    if name == ROWS:
        form = NumberForm(form.decimal, form.thousands, groups=form.groups)
    plain = text.strip(' "')
    if form != NumberForm():
        plain = pl.select(form.plain(pl.lit(plain))).item()
    number = exact_number(plain.removesuffix("."))
    if number is None or (name == ROWS and (number < 0 or number != number.to_integral_value())):
        what = "no count of rows" if name == ROWS else f"no number: {form.said}"
        raise _refused(
            content, f"its footer states {name} as {shown(text, 100)!r}, which is {what}"
        )
    # As the columns are that the field is the sum of.
    return EXACT.multiply(number, Decimal(written["scale"])) if "scale" in written else number


def _told_twice(name: str, *texts: str) -> str:
    said = f"its footer states {name} twice: {', '.join(map(repr, texts))}"
    if name == ROWS:
        return said
    return (
        f"{said}. A footer has one sum of a field, over all currencies and columns: leave the "
        "group out of the other patterns, and have sums by currency stated in a control manifest"
    )


def _refused(content: Content, detail: str) -> ExtractRefused:
    return refused("incomplete_file", content.name, detail=detail)
