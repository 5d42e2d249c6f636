"""The text of one stored extract: its encoding, where it begins, and formats that are no text.

A byte-order mark decides the encoding, then what the feed states, then UTF-8. Encodings that
contain ASCII are read in their own bytes. UTF-16, and encodings in which an ASCII byte may be half
of a character, are read as UTF-8, and positions refer to that UTF-8 text.
"""

import codecs
import io
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from connectors.errors import ExtractRefused
from connectors.files.text.evidence import Evidence, ProvenFile
from connectors.settings import KIB, Limits
from schemas.counting import quantity
from schemas.reasons import REFUSALS

HEAD_BYTES = 4096
MOST_HELD = 64 * KIB
"""Most bytes of a small content held in memory when it is opened; more than a head."""
BLANKS = b"\0 \t\r\n"
"""Blanks and line ends, in ASCII or UTF-16."""
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b"))
"""Control characters that text never has; 0x1a ends a file and 0x1b switches character sets."""

# UTF-32 first: its little-endian mark begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
TRANSCODED = ("utf-16-le", "utf-16-be")
RECODED = (
    *("shift_jis", "cp932", "shift_jis_2004", "shift_jisx0213"),
    *("gbk", "gb18030", "big5", "cp950", "big5hkscs", "cp949", "johab"),
)
"""Encodings whose characters may end with a byte that alone would be ASCII."""

WORKBOOKS = (".xlsx", ".xlsm", ".ods")
ZIP = b"PK\x03\x04"
# Source: the formats' own specifications; text formats are recognised by their first characters.
FORMATS = (
    (ZIP, "a zip archive or an Excel workbook"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"PK\x07\x08", "a zip archive in parts"),
    (b"\x1f\x8b", "gzip inside a compressed file"),
    (b"\x28\xb5\x2f\xfd", "zstd inside a compressed file"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel or Office file"),
    (b"%PDF-", "a PDF"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"RIFF", "a RIFF media file"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"{\\rtf", "an RTF document"),
)
_JSON = re.compile(r'\[\s*([\[{"\]0-9-]|true|false|null|$)|\{\s*(["}]|$)')


COMPUTED, SAVED = "computed", "saved"
"""Which values of a workbook's formulas are read: only up-to-date ones, or all saved ones."""


@dataclass(frozen=True, slots=True)
class Content:
    """One stored extract as text; every position counts the bytes of `blocks`."""

    path: Path
    name: str
    """The extract's name for messages, as the user knows it."""
    encoding: str
    """Encoding of the bytes that `blocks` gives."""
    delivered_encoding: str
    mark_bytes: int
    """Length of the byte-order mark in the file."""
    size: int
    """Size of the file in bytes."""
    workbook: bool = False
    """Whether it is a workbook, one sheet of which is read as CSV."""
    sheet: str | int | None = None
    """Name or number of the sheet; None for the only visible one."""
    formulas: str = COMPUTED
    """Which formula values are read: only `computed` ones, or all `saved` ones."""
    kept: Evidence | None = None
    """What is recorded about it, if it is read from the archive."""
    held: bytes | None = None
    """All of its bytes, proven, if it is small; the file is opened only once."""

    def open(self) -> BinaryIO | ProvenFile:
        """Open the bytes of the file; bytes from the archive are proven before they are given."""
        if self.held is not None:
            return io.BytesIO(self.held)
        return ProvenFile(self.kept) if self.kept else self.path.open("rb", buffering=0)

    @property
    def transcoded(self) -> bool:
        """Whether positions refer to a UTF-8 rendering instead of the file's own bytes."""
        return self.workbook or self.delivered_encoding != self.encoding

    @property
    def text_start(self) -> int:
        """Position of the first byte after the byte-order mark."""
        return 0 if self.transcoded else self.mark_bytes


def open_content(
    path: Path,
    encoding: str | None = None,
    *,
    name: str | None = None,
    sheet: str | int | None = None,
    formulas: str = COMPUTED,
) -> Content:
    """The text of the file at `path`; raises ExtractRefused `bad_encoding`.

    `encoding` is what the feed states (None: UTF-8), overridden by a byte-order mark. `sheet` and
    `formulas` apply to a workbook.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(HEAD_BYTES)
    content = _content(path, encoding, name or path.name, head, size)
    return replace(content, sheet=sheet, formulas=formulas) if content.workbook else content


def open_kept(
    kept: Evidence,
    encoding: str | None,
    *,
    name: str,
    sheet: str | int | None = None,
    formulas: str = COMPUTED,
) -> Content:
    """The text of a content in the archive; raises EvidenceBroken if its bytes have changed."""
    with ProvenFile(kept) as file:
        head = file.read(MOST_HELD)
    content = _content(kept.path, encoding, name, head[:HEAD_BYTES], kept.bytes)
    if content.workbook:
        return replace(content, kept=kept, sheet=sheet, formulas=formulas)
    held = head if len(head) == kept.bytes else None
    return replace(content, kept=kept, held=held)


def _content(
    path: Path, encoding: str | None, display_name: str, head: bytes, size: int
) -> Content:
    if head.startswith(ZIP):
        return Content(path, display_name, "utf-8", "utf-8", 0, size, workbook=True)
    mark, marked = byte_order_mark(head)
    delivered = marked or canonical_encoding(encoding or "utf-8")
    if delivered.startswith("utf-32"):
        raise refused("bad_encoding", display_name, encoding=f"UTF-8 or UTF-16: it is {delivered}")
    if delivered == "utf-16":
        raise refused("bad_encoding", display_name, encoding="utf-16 (no byte-order mark)")
    if delivered in TRANSCODED:
        if (size - len(mark)) % 2:
            raise refused(
                "bad_encoding", display_name, encoding=f"{delivered} (odd number of bytes)"
            )
        return Content(path, display_name, "utf-8", delivered, len(mark), size)
    if not mark and (guess := unmarked_utf16(head)):
        raise refused("bad_encoding", display_name, encoding=f"{delivered}; it looks like {guess}")
    text = delivered if delivered not in RECODED else "utf-8"
    return Content(path, display_name, text, delivered, len(mark), size)


def byte_order_mark(head: bytes) -> tuple[bytes, str | None]:
    """The mark a text begins with, and the encoding it states."""
    return next(((mark, name) for mark, name in MARKS if head.startswith(mark)), (b"", None))


def canonical_encoding(name: str) -> str:
    """One spelling per encoding: `UTF8`, `utf_8` and `utf-8-sig` are `utf-8`; LookupError."""
    canonical = codecs.lookup(name).name
    return "utf-8" if canonical == "utf-8-sig" else canonical


def foreign_format(head: bytes) -> str | None:
    """What the file is, if its first bytes rule out CSV text; None if it may be text."""
    for magic, title in FORMATS:
        # A text may begin with such letters too, for example with ORCHARD BANK.
        if head.startswith(magic) and (_controls(head) or not magic.isalnum()):
            return title
    if head[257:262] == b"ustar":
        return "a tar archive"
    mark, marked = byte_order_mark(head)
    encoding = marked or unmarked_utf16(head)
    if encoding is None or encoding == "utf-8":
        begin = head[len(mark) :].lstrip().decode("latin-1")
    else:
        begin = head[len(mark) :].decode(encoding, "replace").lstrip()
    if _JSON.match(begin):
        return "JSON"
    if begin.startswith("<"):
        return "HTML or XML"
    binary = _controls(head) > max(8, len(head) // 10) and _controls(_first_line(head)) > 0
    return "binary data" if encoding is None and binary else None


def _controls(text: bytes) -> int:
    return len(text) - len(text.translate(None, _CONTROLS))


def _first_line(head: bytes) -> bytes:
    """Everything up to the end of the first line with text; later faults are left to the rows."""
    begin = len(head) - len(head.lstrip(BLANKS))
    end = re.compile(rb"[\r\n]").search(head, begin)
    return head[: end.start()] if end else head


def is_blank(block: bytes) -> bool:
    """Whether a piece of text has only blanks and line ends, in ASCII or UTF-16."""
    return not block.strip(BLANKS)


def refused(
    code: str, name: str, *, line: int | None = None, found: str = "", **facts: object
) -> ExtractRefused:
    """The refusal of one extract in a uniform wording: where, what, and what to do next.

    Lines are counted from 1; `line` is the one on which the refused part begins.
    """
    reason = REFUSALS[code]
    where = name if line is None else f"{name}, line {line}"
    ending = f" {found}" if found else ""
    message = f"{where}: {reason.message(**facts)}.{ending} {reason.remedy}"
    return ExtractRefused(code, message, line=line)


def over_ratio(name: str, limits: Limits) -> ExtractRefused:
    """The refusal of a file that unpacks too far, as a bomb does."""
    times = quantity(limits.compression_ratio, "time")
    detail = f"it unpacks to more than {times} its size (RECON_LIMIT_COMPRESSION_RATIO)"
    return refused("too_large", name, detail=detail)


def unmarked_utf16(head: bytes) -> str | None:
    """The UTF-16 a head without a mark seems to be: every second byte of Latin letters is NUL."""
    head = _first_line(head)
    pairs = len(head) // 2
    if pairs == 0:
        return None
    even, odd = head[0 : 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if odd * 10 > pairs * 7 and even * 10 < pairs:
        return "utf-16-le"
    if even * 10 > pairs * 7 and odd * 10 < pairs:
        return "utf-16-be"
    return None
