"""Headers of files that begin alike: an equal first line is recognised only once."""

from collections.abc import Hashable

from connectors.files.layout.first_record import HEAD_BYTES, SEPARATOR
from connectors.files.layout.header import Header, read_header
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.text.content import Content
from connectors.settings import Limits
from schemas.field import Table

_OF_TEXT = (
    *("header_line", "header_lines", "first_line", "names", "positions", "footer"),
    *("unpivot_keep", "unpivot_columns", "comment", "skip_lines", "escape", "quote", "blanks"),
    "fill_columns",
)
"""Keys of a profile about where a header is and how its text is read."""


class KnownHeaders:
    """Reads the headers of files by one profile, and remembers them by their first line.

    `taken`: the headers were checked when the files were taken in.
    """

    def __init__(self, profile: Profile, limits: Limits, *, taken: bool = False) -> None:
        self._profile, self._limits, self._taken = profile, limits, taken
        self._found: dict[Hashable, Header] = {}
        self._by_line = len(profile.delimiter or ",") == 1 and all(
            getattr(profile, name) == getattr(DEFAULT, name) for name in _OF_TEXT
        )

    def read(self, content: Content, record: Table | None) -> Header:
        """The header of a content; raises what `read_header` raises."""
        line = self._line(content)
        encodings = content.encoding, content.delivered_encoding, content.mark_bytes
        alike = line, encodings, record and record.name
        found = self._found.get(alike) if line else None
        if found is None:
            found = read_header(content, record, self._profile, self._limits, taken=self._taken)
            if line:
                self._found[alike] = found
        return found

    def _line(self, content: Content) -> bytes | None:
        """The first line, if that is the header and nothing after it matters; else None."""
        if not self._by_line or content.held is None or content.transcoded:
            return None
        line, ended, _ = content.held[content.mark_bytes :].partition(b"\n")
        text = line.removesuffix(b"\r")
        plain = (
            ended
            and text.strip()
            and len(line) < min(HEAD_BYTES, self._limits.record_bytes) - 1
            and b'"' not in text
            and b"\r" not in text
            and not SEPARATOR.fullmatch(text)
        )
        return line + ended if plain else None
