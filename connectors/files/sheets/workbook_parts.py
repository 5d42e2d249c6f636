"""Shared by the readers of workbooks: opening one, and choosing the sheet to read."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, cast
from xml.etree import ElementTree

from connectors.files.incoming.unpack import is_broken_zip
from connectors.files.text.content import Content, refused
from connectors.files.text.evidence import ProvenFile
from connectors.files.text.linear_patterns import Groups
from connectors.printable import shown
from connectors.settings import MIB
from schemas.cells.sheet_cells import REMARK
from schemas.counting import quantity

MOST_BYTES = 256 * MIB
"""Most bytes of an unpacked workbook: all of its texts are in memory while it is read."""
_UNREAD_CELL = re.compile(rf"[^,]*{REMARK}")
_FAULTS = (
    *(LookupError, TypeError, AttributeError, ArithmeticError),
    *(ElementTree.ParseError, NotImplementedError, RuntimeError),
)
"""What workbook readers raise for broken workbooks, besides the errors of the zip reader."""


def chosen(content: Content, names: Sequence[str], visible: Sequence[int]) -> int:
    """Index of the sheet to read; raises ExtractRefused if it is missing or not determined."""
    sheet = content.sheet
    if sheet is None and len(visible) == 1:
        return visible[0]
    if isinstance(sheet, int) and sheet <= len(names):
        return sheet - 1
    for place, name in enumerate(names):
        if isinstance(sheet, str) and name.casefold() == sheet.casefold():
            return place
    if sheet is None:
        several = quantity(len(visible), "visible sheet")
        detail = (
            f"a workbook with {several} ({', '.join(names)}); name one as sheet in the feed "
            "profile, or, to have one drafted, with --sheet"
        )
    else:
        detail = f"a workbook without a sheet {sheet!r} ({', '.join(names)})"
    raise refused("unsupported_format", content.name, detail=detail)


def with_remarks(groups: Groups, line: str) -> Groups:
    """A pattern's groups in a line; text cut out of an unread cell is replaced by the whole cell.

    So it does not pass for a number, just as the cell is none.
    """
    unread, rest = _UNREAD_CELL.findall(line), _UNREAD_CELL.sub("", line)
    return {name: unread[0] if text and text not in rest else text for name, text in groups.items()}


@contextmanager
def broken_refused(content: Content) -> Iterator[None]:
    """Raise ExtractRefused for what the readers of workbooks cannot read."""
    try:
        yield
    except Exception as error:
        if not (isinstance(error, _FAULTS) or is_broken_zip(error)):
            raise
        detail = f"no workbook: {shown(str(error))}"
        raise refused("corrupt_archive", content.name, detail=detail) from error


def opened(content: Content) -> BinaryIO:
    """The file in the form that readers of archives need."""
    file = content.open()
    return cast("BinaryIO", io.BufferedReader(file)) if isinstance(file, ProvenFile) else file
