"""A header that is not the first record: where it is, or why it was not read as a header."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from connectors.errors import ExtractRefused
from connectors.files.layout.carried_columns import record_columns
from connectors.files.layout.first_record import cells, heads
from connectors.files.layout.header_names import HeaderNames
from connectors.files.layout.unpivot import unpivot_of
from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_keys import FOUND
from connectors.files.text.content import Content, refused
from connectors.files.text.dialect import Dialect
from connectors.printable import shown
from connectors.settings import Limits
from schemas.counting import quantity
from schemas.field import Table

LINES_LOOKED_AT = 100
"""How many lines to search for a header below a first record that is none."""
PRIVATE = re.compile(
    r"@|://|sig|token|key|secret|passw|pwd|credential|auth|login|jwt|sas", re.IGNORECASE
)
"""Marks of texts that are not quoted from a line with unknown columns."""
LOOKED_FOR = ("missing_header", "missing_column", "malformed_header", "empty_file")
"""Codes of refusals that another line may explain."""


@dataclass(frozen=True, slots=True)
class HeaderSearch:
    """Where to look for the header of a file, and as which record."""

    content: Content
    dialects: Sequence[Dialect]
    table: Table | None
    """The record kind it has to be of; None for any."""
    profile: Profile
    limits: Limits

    def line(self) -> int:
        """Number of the line on which the header is looked for.

        If no line is one, it is the line with most known names, provided that line 1 has none.
        """
        if self.profile.header_line != FOUND:
            return int(self.profile.header_line)
        lines, known = self._lines(), {1: 0}
        for number, _ in self._but_comments(lines):
            for dialect in self.dialects:
                names = self._names(number, lines, dialect)
                if names.whole(self.table):
                    return number
                known[number] = max(known.get(number, 0), names.own().known())
        nearest = max(known, key=lambda number: known[number])
        return nearest if known[nearest] > 1 and not known[1] else 1

    def check_elsewhere(self, refusal: ExtractRefused) -> None:
        """Raise `commented_header` or `text_before_header` if one of them explains a refusal."""
        none_there = refusal.code in ("missing_header", "empty_file")
        if none_there or self.profile.header_line == FOUND:
            self._check_commented()
        if refusal.code != "empty_file":
            self._check_text_before(refusal)
        if self.profile.header_line == FOUND:
            self._check_further_down(refusal)

    def _check_further_down(self, refusal: ExtractRefused) -> None:
        """Raise `missing_header` if no line looked at resembles one and the text goes on."""
        head, final = next(heads(self.content, self.limits))
        lines = head.splitlines(keepends=True)
        looked_at = lines[:LINES_LOOKED_AT]
        goes_on = len(lines) > len(looked_at) or not final
        if refusal.line != 1 or not goes_on or self._known(lines):
            return
        of = f" of {self.table.name}" if self.table else ""
        found = (
            f"Nor is any of the first {quantity(len(looked_at), 'line')} a header{of}, and further "
            "down none is looked for: if it is there, say header_line as a number."
        )
        raise refused("missing_header", self.content.name, line=1, found=found) from refusal

    def _known(self, lines: list[bytes]) -> bool:
        """Whether a line looked at has at least two known names."""
        return any(
            self._names(number, lines, dialect).own().known() > 1
            for number, _ in self._but_comments(lines)
            for dialect in self.dialects
        )

    def _check_commented(self) -> None:
        """Raise `commented_header` if a header begins as a comment, with or before its name."""
        name, lines = self.content.name, self._lines()
        for number, line in self._numbered(lines):
            for sign in filter(line.startswith, self.profile.comment):
                at, size = number - 1, len(sign.encode(self.content.encoding))
                without = [*lines[:at], lines[at][size:], *lines[number:]]
                for dialect, text in product(self.dialects, (lines, without)):
                    if self._names(number, text, dialect).whole(self.table):
                        raise refused("commented_header", name, line=number, comment=repr(sign))

    def _check_text_before(self, refusal: ExtractRefused) -> None:
        """Raise `text_before_header` if the first record is no header but a line below is."""
        lines = self._lines()
        numbered = self._but_comments(lines, (refusal.line or 1) - 1)
        first: list[HeaderNames] = []
        for number, _ in numbered:
            for dialect in self.dialects:
                names = self._names(number, lines, dialect)
                if number == numbered[0][0]:
                    first.append(names)
                    if 2 * names.known() >= len(names.names):
                        return
                elif found := names.whole(self.table):
                    text = numbered[0][1].strip()
                    # With as many cells as the header, it may be a record that holds a secret.
                    alike = any(len(one.names) == len(names.names) for one in first)
                    quotable = not (found.unquotable or alike or PRIVATE.search(text))
                    reads = f"It reads {shown(text, 60)!r}." if quotable else ""
                    raise refused(
                        "text_before_header",
                        self.content.name,
                        line=refusal.line,
                        found=reads,
                        header=number,
                        of=found.name,
                    ) from refusal

    def _lines(self) -> list[bytes]:
        """The lines of the beginning, with their ends."""
        head, _ = next(heads(self.content, self.limits))
        return head.splitlines(keepends=True)

    def _numbered(self, lines: Sequence[bytes], above: int = 0) -> list[tuple[int, str]]:
        """The lines to look at below the first `above` ones, as text with their numbers."""
        some = lines[above : above + LINES_LOOKED_AT]
        texts = (line.decode(self.content.encoding, "replace").rstrip("\r\n") for line in some)
        return [*enumerate(texts, above + 1)]

    def _but_comments(self, lines: Sequence[bytes], above: int = 0) -> list[tuple[int, str]]:
        comment = self.profile.comment
        return [one for one in self._numbered(lines, above) if not one[1].startswith(comment)]

    def _names(self, number: int, lines: list[bytes], dialect: Dialect) -> HeaderNames:
        """The names of a possible header that begins on the line of this number."""
        names = cells(lines, number - 1, dialect)
        names = record_columns(names, unpivot_of(names, self.profile), self.profile)
        return HeaderNames(self.content.name, number, names, self.profile)
