"""What the readers of workbooks share: how one is opened, and which sheet of it is read."""

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
"""Of a workbook, unpacked: its texts are all in memory while it is read."""
_UNREAD_CELL = re.compile(rf"[^,]*{REMARK}")
_FAULTS = (
    *(LookupError, TypeError, AttributeError, ArithmeticError),
    *(ElementTree.ParseError, NotImplementedError, RuntimeError),
)
"""What the reader of workbooks raises for one that is broken, beside what that of zips does."""


def chosen(content: Content, names: Sequence[str], visible: Sequence[int]) -> int:
    """Which of the sheets is read; raises ExtractRefused where none is, or nobody knows which."""
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
    """What groups of a pattern hold of a line; of what is cut out of a cell that is not read, it.

    So it is no number, as the cell is none.
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
    """The file, as the readers of archives want one."""
    file = content.open()
    return cast("BinaryIO", io.BufferedReader(file)) if isinstance(file, ProvenFile) else file
