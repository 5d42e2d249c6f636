"""CSV as a side of a comparison: records are found strictly, and every cell keeps its text.

An integer column of a block is kept as numbers if each number reads back to exactly its text: the
content is the same, but smaller and quicker.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from connectors.compare.csv_blocks import read_blocks
from connectors.compare.sides import Side, SideLines, no_room, spill
from connectors.compare.unreadable import put_aside
from connectors.errors import DeliveryError, ExtractRefused, SidesRefused
from connectors.files.chunks.chunk import Chunk
from connectors.files.disk.atomic import private_folder
from connectors.files.incoming.source_text import unpacked_text
from connectors.files.incoming.unpack import PACKED
from connectors.files.layout.first_record import DELIMITERS, HEAD_BYTES, heads, without_end
from connectors.files.layout.header import Header
from connectors.files.layout.rows_file import RowsFile
from connectors.files.text.content import Content, foreign_format, open_content, refused
from connectors.files.text.dialect import dialect_within
from connectors.settings import Limits
from schemas.cells.readings import Column, Reading
from schemas.counting import quantity
from schemas.field import Table

_ANY = Table("any", "Any columns", ())


@dataclass(frozen=True, slots=True)
class CsvSource:
    """A CSV file whose header has been read."""

    path: Path
    content: Content
    header: Header
    scratch: Path
    block_bytes: int

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def columns(self) -> Mapping[str, Column]:
        return {name: Column(name, pl.String(), Reading.CELL) for name in self.header.names}

    def side(self, names: Sequence[str]) -> Side:
        """Write these columns into `scratch`; raises SidesRefused.

        A record with another number of fields, or with bytes that are no text, is reported as
        broken; other records are not affected.
        """
        with _refusals(self.path):
            return _spilled(self, names)


def csv_source(path: Path, scratch: Path, delimiter: str | None, limits: Limits) -> CsvSource:
    """A CSV file, unpacked into `scratch`; raises SidesRefused unless it has a readable header.

    Files beyond `limits` are refused as in an import.
    """
    private_folder(scratch)
    if delimiter is not None and (
        len(delimiter) != 1 or delimiter in '"\r\n\0' or ord(delimiter) > 127
    ):
        raise SidesRefused(f"The delimiter {delimiter!r} is not one ASCII sign, such as ; or |.")
    with _refusals(path):
        content = open_content(_plain(path, scratch, limits), name=path.name)
        header = _header(content, delimiter, limits)
        return CsvSource(path, content, header, scratch, limits.block_bytes)


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except (ExtractRefused, DeliveryError) as error:
        raise SidesRefused(str(error)) from error
    except OSError as error:
        if no_room(error):
            raise  # The folder written to is full; the file is not to blame.
        raise SidesRefused(f"{path}: cannot be read: {error}") from error


def _spilled(source: CsvSource, names: Sequence[str]) -> Side:
    header, scratch = source.header, source.scratch
    stored = {name: str(number) for number, name in enumerate(header.names)}
    asked = [stored[name] for name in names]
    broken: list[Path] = []
    files: list[Path] = []
    lines = SideLines()
    kinds: dict[str, set[pl.DataType]] = {}
    filled: set[str] = set()
    rows = count = 0
    for cells, line, chunk in read_blocks(source.content, header, source.block_bytes):
        if chunk and (faults := chunk.faults):
            count += len(faults)
            broken.append(put_aside(chunk, faults, scratch, len(broken)))
        lines.add(rows, line, _line_numbers(chunk, scratch, len(files)) if chunk else None)
        for name, one in zip(header.names, cells, strict=True):
            kinds.setdefault(name, set()).add(one.dtype)
            filled |= {name} if one.null_count() < one.len() else set()
        files.append(spill(cells.select(asked), scratch, len(files)))
        rows += cells.height
    if not files:
        files.append(spill(pl.DataFrame(schema=dict.fromkeys(asked, pl.String())), scratch, 0))
    return Side(
        source.name,
        "CSV",
        tuple(files),
        {
            name: Column(name, _kept(kinds[name] if name in filled else set()), Reading.CELL)
            for name in header.names
        },
        rows,
        lines=lines,
        broken=tuple(broken),
        broken_count=count,
        mixed=frozenset(name for name, some in kinds.items() if len(some) > 1),
        stored=stored,
    )


def _kept(kinds: set[pl.DataType]) -> pl.DataType:
    """The type that cells of these types are read as; columns with only empty cells are texts."""
    return pl.Int64() if kinds == {pl.Int64()} else pl.String()


def _line_numbers(chunk: Chunk, scratch: Path, number: int) -> Path | None:
    """A file with the first line of every sound record; None if every record is one line."""
    if not chunk.faults and chunk.height == chunk.records.lines:
        return None
    is_sound = chunk.records.is_sound
    first = pl.Series("line", chunk.records.first_line[is_sound], dtype=pl.Int64)
    return spill(first.to_frame(), private_folder(scratch / "lines"), number)


def _plain(path: Path, scratch: Path, limits: Limits) -> Path:
    """The file itself or its decompressed content, within the limits of an import."""
    if path.suffix.lower() not in PACKED:
        if path.stat().st_size > limits.file_bytes:
            detail = f"more than {quantity(limits.file_bytes, 'byte')} (RECON_LIMIT_FILE_BYTES)"
            raise refused("too_large", path.name, detail=detail)
        return path
    plain = scratch / "plain.csv"
    with plain.open("wb") as file:
        for block in unpacked_text(path, limits):
            file.write(block)
    return plain


def _header(content: Content, delimiter: str | None, limits: Limits) -> Header:
    with content.path.open("rb") as file:
        foreign = foreign_format(file.read(HEAD_BYTES))
    if foreign:
        raise SidesRefused(f"{content.name}: this is {foreign}, not CSV.")
    if content.transcoded:
        raise SidesRefused(f"{content.name}: UTF-16 is not read here; convert it to UTF-8.")
    readings = _readings(content, (delimiter,) if delimiter else DELIMITERS, limits)
    read = max(readings, key=lambda one: len(one.names))
    if len(read.names) > limits.columns:
        detail = f"{quantity(len(read.names), 'column')}; RECON_LIMIT_COLUMNS is {limits.columns}"
        raise refused("too_large", content.name, line=read.line, detail=detail)
    _check_names(content.name, read.names)
    dialect = dialect_within(limits, delimiter=read.sign, quote='"', encoding=content.encoding)
    return Header(
        table=_ANY,
        fields=(None,) * len(read.names),
        names=tuple(read.names),
        dialect=dialect,
        body_start=content.text_start + read.length,
        body_line=read.end_line,
        rows_file=RowsFile(dialect),
    )


def _readings(content: Content, signs: Sequence[str], limits: Limits) -> list["_Read"]:
    """The header as read with each possible delimiter, at least one; raises if there is none."""
    for head, final in heads(content, limits):
        # The last line may be incomplete.
        text = head if final else head[: head.rfind(b"\n") + 1]
        tried = [_first_record(text, sign, content.encoding) for sign in signs]
        # If one delimiter fails on a quote, a bare quote in a name means a wrong delimiter.
        failed = None in tried
        read = [one for one in tried if one and not (failed and one.bare_quote)]
        if read:
            return read
        if final:
            raise SidesRefused(f"{content.name}: there is no header, or its quotes are not closed.")
    raise without_end(content, limits, 1)


class _Read(NamedTuple):
    """A header as read with one delimiter."""

    names: list[str]
    sign: str
    length: int
    """Bytes of the header and everything above it."""
    line: int
    """Line on which the header begins."""
    end_line: int
    """Line after the header."""
    bare_quote: bool
    """Whether a name has a quote that is not doubled within quotes."""


def _first_record(text: bytes, sign: str, encoding: str) -> _Read | None:
    lines = io.BytesIO(text).readlines()
    blank = next((n for n, line in enumerate(lines) if line.strip()), None)
    if blank is None:
        return None
    try:
        reader = csv.reader(
            (line.decode(encoding) for line in lines[blank:]), delimiter=sign, strict=True
        )
        names = next(reader)
    except (csv.Error, UnicodeDecodeError):
        return None
    taken = blank + reader.line_num
    written = b"".join(lines[blank:taken]).decode(encoding)
    bare = any('"' in one and '"{}"'.format(one.replace('"', '""')) not in written for one in names)
    stripped = [name.strip() for name in names]
    return _Read(stripped, sign, sum(map(len, lines[:taken])), blank + 1, taken + 1, bare)


def _check_names(file: str, names: list[str]) -> None:
    if not all(names):
        raise SidesRefused(f"{file}: column {names.index('') + 1} has no name.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SidesRefused(f"{file}: the column {twice[0]!r} is there more than once.")
