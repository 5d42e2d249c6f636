"""A sheet of a workbook read as CSV; the delivered file stays as it is.

Row N of the sheet is line N unless a cell above it holds a line break; empty rows are lines without
a value.
"""

import zipfile
from collections.abc import Collection, Iterator
from dataclasses import replace

from connectors.files.sheets import open_document, open_xml
from connectors.files.sheets.sheet_rows import SheetFacts, SheetLine, written
from connectors.files.sheets.workbook_parts import MOST_BYTES, broken_refused, opened
from connectors.files.text.content import HEAD_BYTES, SAVED, Content, over_ratio, refused
from connectors.settings import Limits
from schemas.counting import quantity


def check_workbook(content: Content, limits: Limits) -> SheetFacts:
    """Read a sheet once; raises ExtractRefused if it is unreadable or too large."""
    if _check_size(content, limits):
        return open_document.facts_of(content)
    return open_xml.facts_of(content)


def sheet_lines(content: Content) -> Iterator[SheetLine]:
    """The rows of a checked sheet as lines, each as wide as its widest row."""
    # What was taken in is read as it was then, whatever a later version would say about it.
    content = replace(content, formulas=SAVED)
    with opened(content) as file, zipfile.ZipFile(file) as parts:
        is_document = _has_parts(parts.namelist(), open_document.PART)
    book = open_document if is_document else open_xml
    width = book.facts_of(content).width
    with book.reading(content) as reader:
        yield from written(reader.rows(), width)


def _has_parts(names: Collection[str], part: str) -> bool:
    """Whether an archive is a workbook of the format that keeps its content in this part."""
    other = "mimetype" if part == open_document.PART else "[Content_Types].xml"
    return {part, other} <= {*names}


def _check_size(content: Content, limits: Limits) -> bool:
    """Whether it is an OpenDocument; refuses what is no workbook or unpacks to too much.

    A part is never read beyond the size that its archive states.
    """
    with broken_refused(content), opened(content) as file, zipfile.ZipFile(file) as parts:
        members = parts.infolist()
        defines = any(_defines_entities(parts, one) for one in members)
        names = parts.namelist()
        of_document = _has_parts(names, open_document.PART)
        sealed = any(one.flag_bits & 1 for one in members)
        sealed = sealed or (of_document and open_document.is_encrypted(parts))
    packed = max(1, sum(one.compress_size for one in members))
    size = sum(one.file_size for one in members)
    most = min(MOST_BYTES, limits.file_bytes)
    code, detail = "too_large", ""
    if not (of_document or _has_parts(names, open_xml.PART)):
        code, detail = "unsupported_format", "a zip archive and no workbook"
    elif sealed:
        code, detail = "unsupported_format", "an encrypted workbook"
    elif defines:
        code, detail = "unsupported_format", "a workbook with a document type, which none has"
    elif len(members) > limits.archive_members:
        detail = f"a workbook of {quantity(len(members), 'part')} (RECON_LIMIT_ARCHIVE_MEMBERS)"
    elif size > most:
        named = " (RECON_LIMIT_FILE_BYTES)" if most == limits.file_bytes else ""
        detail = (
            f"a workbook that unpacks to {quantity(size, 'byte')}, and not {most} at most{named}"
        )
    elif size > limits.block_bytes and size > limits.compression_ratio * packed:
        raise over_ratio(content.name, limits)
    if detail:
        raise refused(code, content.name, detail=detail)
    return of_document


def _defines_entities(parts: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    if member.flag_bits & 1 or not member.filename.endswith((".xml", ".rels")):
        return False
    with parts.open(member) as part:
        return b"<!DOCTYPE" in part.read(HEAD_BYTES)
