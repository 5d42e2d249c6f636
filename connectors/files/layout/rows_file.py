"""How a file of rows is written that are delivered again: so that the same profile reads it."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from connectors.files.profiles.profile import Profile
from connectors.files.text.content import Content, canonical_encoding
from connectors.files.text.dialect import Dialect


@dataclass(frozen=True, slots=True)
class RowsFile:
    """How rows are written out again, as far as can be in the way that they were delivered."""

    dialect: Dialect
    says_encoding: bool = False
    """Whether it has to say that it is UTF-8, because its profile states another encoding."""
    says_delimiter: bool = False
    """Whether it has to say what its delimiter is, as the delivered file did."""

    @property
    def beginning(self) -> bytes:
        """What stands before its header."""
        mark = codecs.BOM_UTF8 if self.says_encoding else b""
        return mark + (b"sep=" + self.dialect.delimiter + b"\r\n" if self.says_delimiter else b"")


def rows_file_of(
    content: Content, profile: Profile, delivered: Dialect | None, of_profile: Sequence[Dialect]
) -> RowsFile:
    """How rows of this content are written out again.

    `delivered` is None where its signs are no signs of a text: cells of a workbook, or of columns
    with nothing between them. `of_profile` are the dialects that the profile reads a text in.
    """
    encodings = {canonical_encoding(profile.encoding or "utf-8"), content.delivered_encoding}
    dialect = delivered or of_profile[0]
    return RowsFile(
        dialect,
        says_encoding=content.encoding == "utf-8" and encodings != {"utf-8"},
        says_delimiter=dialect.delimiter not in [one.delimiter for one in of_profile],
    )
