"""Why a line after the header of a file is in no record."""

import re

from connectors.files.archived.blocks import blocks
from connectors.files.layout.header import Header
from connectors.files.text.content import Content
from connectors.files.text.linear_patterns import as_series, decoded, fitting
from connectors.printable import shown

BLOCK_BYTES = 1 << 20
KEPT_BYTES = 1 << 22
"""The rest of a longer line is not looked at."""
_LINE_END = re.compile(rb"\r\n|\r|\n")


def why_no_record(
    content: Content, header: Header, number: int, block_bytes: int = BLOCK_BYTES
) -> str:
    """What a line in no record is, decided as the reader of records does."""
    start, line = _line(content, number, block_bytes)
    text = decoded(line, header.dialect.encoding)
    if header.footer and start >= header.footer.start:
        return "of its footer"
    if not text.strip(" \t"):
        return "blank"
    if header.dialect.begins_comment(line):
        return "a comment"
    for pattern in header.dialect.skip_lines:
        if fitting(as_series([text]), [pattern]).any():
            return f"one that skip_lines of the feed profile says ({shown(pattern, 60)})"
    if header.unpivot:
        return "without a value in any column that makes a record"
    return "without a cell that is read"


def _line(content: Content, number: int, block_bytes: int) -> tuple[int, bytes]:
    """Where the line with a number begins, and its bytes without the line end."""
    line, start, at, text, before = 1, content.text_start, content.text_start, b"", b""
    for block in blocks(content, content.text_start, block_bytes):
        # A CRLF may be cut between two blocks.
        begin = int(before == b"\r" and block.startswith(b"\n"))
        start += begin if at == start else 0
        for end in _LINE_END.finditer(block, begin):
            if line == number:
                return start, text + block[begin : end.start()]
            line, begin, text = line + 1, end.end(), b""
            start = at + begin
        text = (text + block[begin:])[:KEPT_BYTES] if line == number else b""
        at, before = at + len(block), block[-1:]
    return start, text
