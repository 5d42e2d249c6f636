"""How rows are written to a file for redelivery, so that the same profile reads it."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from connectors.files.profiles.profile import Profile
from connectors.files.text.content import Content, canonical_encoding
from connectors.files.text.dialect import Dialect


@dataclass(frozen=True, slots=True)
class RowsFile:
    """How rows are written out again, as close as possible to the way they were delivered."""

    dialect: Dialect
    says_encoding: bool = False
    """Whether the file has to state that it is UTF-8, because its profile states otherwise."""
    says_delimiter: bool = False
    """Whether the file has to state its delimiter, as the delivered file did."""

    @property
    def beginning(self) -> bytes:
        """The bytes before its header."""
        mark = codecs.BOM_UTF8 if self.says_encoding else b""
        return mark + (b"sep=" + self.dialect.delimiter + b"\r\n" if self.says_delimiter else b"")


def rows_file_of(
    content: Content, profile: Profile, delivered: Dialect | None, of_profile: Sequence[Dialect]
) -> RowsFile:
    """How rows of this content are written out again.

    `delivered` is None if the delivered cells have no delimiters of a text: those of a workbook, or
    of fixed-width columns. `of_profile` are the dialects in which the profile reads a text.
    """
    encodings = {canonical_encoding(profile.encoding or "utf-8"), content.delivered_encoding}
    dialect = delivered or of_profile[0]
    return RowsFile(
        dialect,
        says_encoding=content.encoding == "utf-8" and encodings != {"utf-8"},
        says_delimiter=dialect.delimiter not in [one.delimiter for one in of_profile],
    )
