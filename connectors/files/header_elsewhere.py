"""A header that is not the first record of a file: where it is, or why it was not read as one."""

import re
from collections.abc import Sequence
from itertools import product

from connectors.errors import ExtractRefused
from connectors.files.carried_columns import record_columns
from connectors.files.content import Content, refused, shown
from connectors.files.dialect import Dialect
from connectors.files.first_record import cells, heads
from connectors.files.header_names import HeaderNames
from connectors.files.profile import Profile
from connectors.files.profile_keys import FOUND
from connectors.files.unpivot import unpivot_of
from connectors.settings import Limits
from schemas.field import Table

LINES_LOOKED_AT = 100
"""How far below a first record that is no header one is looked for."""
PRIVATE = re.compile(
    r"@|://|sig|token|key|secret|passw|pwd|credential|auth|login|jwt|sas", re.IGNORECASE
)
"""What is not quoted of a line that nobody knows the columns of."""
LOOKED_FOR = ("missing_header", "missing_column", "malformed_header", "empty_file")
"""Codes of refusals that another line may explain."""


def line_of_header(
    content: Content,
    dialects: Sequence[Dialect],
    table: Table | None,
    profile: Profile,
    limits: Limits,
) -> int:
    """Number of the line at which the header is looked for."""
    if profile.header_line != FOUND:
        return int(profile.header_line)
    for number, line in _but_comments(_numbered(content, limits), profile):
        for dialect in dialects:
            if _reading(content.name, number, cells(line, dialect), profile).whole(table):
                return number
    return 1


def check_elsewhere(
    content: Content,
    refusal: ExtractRefused,
    dialects: list[Dialect],
    table: Table | None,
    profile: Profile,
    limits: Limits,
) -> None:
    """Raise `commented_header` or `text_before_header` where one of them explains a refusal."""
    none_there = refusal.code in ("missing_header", "empty_file")
    if none_there or profile.header_line == FOUND:
        _check_commented(content, dialects, table, profile, limits)
    if refusal.code != "empty_file":
        _check_text_before(content, refusal, dialects, table, profile, limits)


def _check_commented(
    content: Content,
    dialects: list[Dialect],
    table: Table | None,
    profile: Profile,
    limits: Limits,
) -> None:
    """Raise `commented_header` where a header begins as comments do, with its name or before it."""
    for number, line in _numbered(content, limits):
        for sign in filter(line.startswith, profile.comment):
            for dialect, text in product(dialects, (line, line.removeprefix(sign))):
                if _reading(content.name, number, cells(text, dialect), profile).whole(table):
                    raise refused("commented_header", content.name, line=number, comment=repr(sign))


def _check_text_before(
    content: Content,
    refusal: ExtractRefused,
    dialects: list[Dialect],
    table: Table | None,
    profile: Profile,
    limits: Limits,
) -> None:
    """Raise `text_before_header` where the first record is none, and one below is a header."""
    begins = (refusal.line or 1) - 1
    numbered = _but_comments(_numbered(content, limits, begins), profile)
    first: list[HeaderNames] = []
    for number, line in numbered:
        for dialect in dialects:
            reading = _reading(content.name, number, cells(line, dialect), profile)
            if number == numbered[0][0]:
                first.append(reading)
                if 2 * reading.known() >= len(reading.names):
                    return
            elif found := reading.whole(table):
                text = numbered[0][1].strip()
                # With as many cells as the header it may be a record, and that may hold a secret.
                alike = any(len(one.names) == len(reading.names) for one in first)
                quotable = not (found.unquotable or alike or PRIVATE.search(text))
                reads = f"It reads {shown(text, 60)!r}." if quotable else ""
                raise refused(
                    "text_before_header",
                    content.name,
                    line=refusal.line,
                    found=reads,
                    header=number,
                    of=found.name,
                ) from refusal


def _numbered(content: Content, limits: Limits, above: int = 0) -> list[tuple[int, str]]:
    """The lines that are looked at behind so many others, as text, with their numbers."""
    head, _ = next(heads(content, limits))
    lines = [line.decode(content.encoding, "replace") for line in head.splitlines()]
    return [*enumerate(lines, 1)][above : above + LINES_LOOKED_AT]


def _but_comments(numbered: list[tuple[int, str]], profile: Profile) -> list[tuple[int, str]]:
    return [one for one in numbered if not one[1].startswith(profile.comment)]


def _reading(extract: str, line: int, names: tuple[str, ...], profile: Profile) -> HeaderNames:
    """The names of what may be a header."""
    names = record_columns(names, unpivot_of(names, profile), profile)
    return HeaderNames(extract, line, names, profile)
