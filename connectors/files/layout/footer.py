"""The lines after the last record that are no records, and the totals they state."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import takewhile
from typing import NamedTuple

from connectors.files.archived.blocks import blocks
from connectors.files.incoming.manifest import total_of
from connectors.files.incoming.manifest_entries import ALL, ManifestEntry, Sums
from connectors.files.layout.footer_totals import FooterLine, incomplete, totals_of_lines
from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_made import currencies_of
from connectors.files.sheets.workbook_parts import with_remarks
from connectors.files.text.content import Content, refused
from connectors.files.text.dialect import Dialect
from connectors.files.text.linear_patterns import (
    as_series,
    decoded,
    fitting,
    group_names,
    groups_of,
)
from connectors.files.text.shadow import has_open_quote
from connectors.printable import shown
from schemas.field import Table

OWN_FOOTER = "its footer"
FOOTER_BYTES = 1 << 16
"""How far from the end of a file to look for its footer."""


@dataclass(frozen=True, slots=True)
class ExtractFooter:
    """Where the footer of a file begins, and what it states."""

    start: int
    """Position of its first byte, where the records end."""
    rows: int | None
    sums: Mapping[str, Decimal]
    """Sums by field, over all currencies."""
    by_currency: Sums = field(default_factory=dict)
    """Sums by field and currency, for currencies with lines of their own."""


def read_footer(
    content: Content,
    profile: Profile,
    dialect: Dialect,
    body_start: int,
    body_line: int,
    table: Table,
) -> ExtractFooter | None:
    """The footer that every file of the feed has; None if its files have none.

    Each pattern takes one line, or one for each currency if it names a currency; any further line
    that fits is a record and never lost. Raises ExtractRefused `incomplete_file` if a line is
    missing or states no number.
    """
    if not profile.footer:
        return None
    every = [*_from_the_end(content, body_start)]
    comments = _are_comments(content, profile, dialect, every)
    below = (line for line, comment in zip(every, comments, strict=True) if not comment)
    # If a quote is open in a line, it ends a quoted text: the line belongs to a record.
    closed = takewhile(lambda line: not has_open_quote(line.text, dialect), below)
    lines = _at_the_end(content, profile, closed)
    found = _by_pattern(profile, [_decoded(content, line) for line in lines])
    for pattern in profile.footer:
        if not any(one.pattern == pattern for one in found.values()):
            none = f"no line at its end fits the pattern '{shown(pattern)}'"
            above = (line for line in every if lines and line.start < lines[0].start)
            if there := _above_the_end(content, pattern, above):
                places = [
                    _line_number(content, line, body_start, body_line) for line in (there, every[0])
                ]
                none += f"; line {places[0]} does, and text stands behind it up to line {places[1]}"
            if every:
                none += _ends_with([_decoded(content, one) for one in every[:2]], table)
            raise incomplete(content, none)
    start = lines[min(found)].start
    rows, sums, by_currency = totals_of_lines(content, profile, dialect, [*found.values()])
    for name, of in by_currency.items():
        if sums.setdefault(name, total := total_of(of)) != total:
            raise incomplete(
                content,
                f"its footer states a sum of {name} of {sums[name]:f}, and by currency sums that "
                f"come to {total:f}",
            )
    return ExtractFooter(start, rows, sums, by_currency)


def with_footer(entry: ManifestEntry | None, footer: ExtractFooter, name: str) -> ManifestEntry:
    """The statement about a file, combined with its own footer.

    Raises ExtractRefused `incomplete_file` if the two differ.
    """
    by_footer = {
        name: footer.by_currency.get(name, {ALL: total}) for name, total in footer.sums.items()
    }
    if entry is None:
        return ManifestEntry(OWN_FOOTER, footer.rows, sums=by_footer)
    stated = dict(entry.sums or {})
    details = [
        f"sum of {field}: {total:f} by {entry.manifest}, {footer.sums[field]:f} by the footer"
        for field in by_footer
        if field in stated and (total := total_of(stated[field])) != footer.sums[field]
    ]
    for amount in sorted(stated.keys() & by_footer.keys()):
        if ALL in stated[amount]:
            stated[amount] = by_footer[amount]  # The same total, perhaps split by currency.
        elif ALL not in by_footer[amount]:
            details += [
                f"sum of {amount} in currency {currency}: {one:f} by {entry.manifest}, {own:f} by "
                "the footer"
                for currency in sorted({*stated[amount], *by_footer[amount]})
                if (one := stated[amount].get(currency, Decimal(0)))
                != (own := by_footer[amount].get(currency, Decimal(0)))
            ]
    if None not in (entry.rows, footer.rows) and entry.rows != footer.rows:
        details.append(f"rows: {entry.rows} by {entry.manifest}, {footer.rows} by the footer")
    if details:
        raise refused("incomplete_file", name, detail="; ".join(details))
    return replace(
        entry,
        manifest=f"{entry.manifest} and {OWN_FOOTER}",
        rows=footer.rows if entry.rows is None else entry.rows,
        sums={**by_footer, **stated},
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


def _at_the_end(content: Content, profile: Profile, below: Iterable[_Line]) -> list[_Line]:
    """The lines that may be the footer, from the top down; `below` gives the last line first.

    One line for each pattern, but any number for patterns that name a currency.
    """
    several = _by_each_currency(profile)
    left, lines = len(profile.footer) - len(several), list[_Line]()
    for line in below:
        if not fitting(as_series([_decoded(content, line)]), several).any():
            if not left:
                break
            left -= 1
        lines.append(line)
    return lines[::-1]


def _by_each_currency(profile: Profile) -> list[str]:
    """The footer's patterns that fit a line for each currency."""
    of = {*currencies_of(profile.record)}
    return [pattern for pattern in profile.footer if of & {*group_names([pattern])}]


def _are_comments(
    content: Content, profile: Profile, dialect: Dialect, lines: Sequence[_Line]
) -> Iterable[bool]:
    """Which lines are skipped lines and not the footer, whose lines may begin like them.

    A line with an open quote may be the end of a text, so it is not skipped.
    """
    if not dialect.skips:
        return [False] * len(lines)
    whole = [decoded(line.text.rstrip(b"\r\n"), dialect.encoding) for line in lines]
    skipped = fitting(as_series(whole), dialect.skip_lines)
    of_footer = fitting(as_series([_decoded(content, line) for line in lines]), profile.footer)
    return (
        (fits or dialect.begins_comment(line.text))
        and not own
        and not has_open_quote(line.text, dialect)
        for line, fits, own in zip(lines, skipped, of_footer, strict=True)
    )


def _tail(content: Content, body_start: int) -> tuple[int, bytes]:
    """Position and bytes of the end of a file, after its header."""
    at = body_start if content.transcoded else max(body_start, content.size - FOOTER_BYTES)
    text = b""
    for block in blocks(content, at, FOOTER_BYTES):
        text += block
        at, text = at + max(0, len(text) - FOOTER_BYTES), text[-FOOTER_BYTES:]
    return at, text


def _ends_with(lines: Sequence[str], table: Table) -> str:
    """The last lines of a file, given last first; for records with secrets only an unseen one."""
    if not any(sign.isprintable() for sign in lines[0]):
        return f"; its last line is {lines[0]!r}, which skip_lines = [{lines[0]!r}] leaves out"
    if table.unquotable:
        return ""
    quoted = " and ".join(f"'{shown(line, 100)}'" for line in reversed(lines))
    return f"; it ends with {quoted}"


def _above_the_end(content: Content, pattern: str, above: Iterable[_Line]) -> _Line | None:
    """The last line above those at the end that the pattern fits."""
    lines = [*above]
    fits = fitting(as_series([_decoded(content, line) for line in lines]), [pattern])
    return next((line for line, one in zip(lines, fits, strict=True) if one), None)


def _line_number(content: Content, line: _Line, body_start: int, body_line: int) -> int:
    """The number of a line in its file; reads everything before the line."""
    number, at, before = body_line, body_start, b""
    for block in blocks(content, body_start, FOOTER_BYTES):
        text = block[: line.start - at]
        number += text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
        number -= before.endswith(b"\r") and text.startswith(b"\n")
        at, before = at + len(text), text
    return number


def _decoded(content: Content, line: _Line) -> str:
    return line.text.decode(content.encoding, "replace").strip()


def _by_pattern(profile: Profile, lines: Sequence[str]) -> dict[int, FooterLine]:
    """The footer's lines by index, each with its pattern.

    A line that several patterns fit goes to the one that no other line is left for; a line with a
    currency goes to another pattern only if that fits nothing else.
    """
    several = _by_each_currency(profile)
    single = [pattern for pattern in profile.footer if pattern not in several]
    held = {pattern: groups_of(lines, [pattern]) for pattern in profile.footer}
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

    of_currency = {
        place for pattern in several for place, groups in enumerate(held[pattern]) if groups
    }
    for left_out in (of_currency, set[int]()):
        for pattern in single:
            if pattern not in taken.values():
                take(pattern, {*left_out})
    for pattern in several:
        for place, groups in enumerate(held[pattern]):
            if groups is not None:
                taken.setdefault(place, pattern)
    found: dict[int, FooterLine] = {}
    for place in reversed(range(len(lines))):
        if place in taken:
            groups = held[taken[place]][place] or {}
            found[place] = FooterLine(taken[place], with_remarks(groups, lines[place]))
        elif several:
            break  # It is a record, and so is everything above it.
    return dict(sorted(found.items()))
