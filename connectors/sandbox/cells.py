"""CSV as the service splits and writes it: its own rules, not those of any standard."""

import re
from collections.abc import Iterable, Sequence

Cell = str | None
"""None if there is nothing between two commas; two quotes are an empty text."""

_MARKS = re.compile('["\n]')
_OPENING = {"{": "}", "[": "]"}


def read_rows(text: str) -> list[list[Cell]]:
    """Header and data rows; empty lines are skipped."""
    return [read_cells(line) for line in _lines(text)]


def read_cells(line: str) -> list[Cell]:
    """The cells of one line.

    A cell ends at a comma, at a closing brace, or after its closing quote or bracket; then one
    character is skipped, whatever it is. So stray text makes further cells.
    """
    cells: list[Cell] = []
    position = 0
    while position <= len(line):
        end = _cell_end(line, position)
        cells.append(_unquoted(line[position:end]) if end > position else None)
        position = end + 1
    return cells


def write_rows(rows: Iterable[Sequence[str]]) -> str:
    """Lines of cells made by `cell`, each ended by CR LF."""
    return "".join(",".join(row) + "\r\n" for row in rows)


def cell(text: str) -> str:
    """The text as a cell, quoted only where the service quotes."""
    quoted = text[:1] in _OPENING or any(mark in text for mark in '",\r\n')
    return '"' + text.replace('"', '""') + '"' if quoted and text else text


def _lines(text: str) -> list[str]:
    # Most bodies have no quotes, and then a line feed is always the end of a line.
    if '"' not in text:
        lines = text.split("\n")
    else:
        lines, start, quoted = [], 0, False
        for mark in _MARKS.finditer(text):
            if mark[0] == '"':
                quoted = not quoted
            elif not quoted:
                lines.append(text[start : mark.start()])
                start = mark.end()
        lines.append(text[start:])
    ended = [line.removesuffix("\r") for line in lines[:-1]]
    return [line for line in (*ended, lines[-1]) if line]


def _cell_end(line: str, start: int) -> int:
    first = line[start : start + 1]
    if first in ("", ",", "}"):
        return start
    if first == '"':
        return _quoted_end(line, start)
    if first in _OPENING:
        return _balanced_end(line, start, first, _OPENING[first])
    ends = [end for end in (line.find(",", start), line.find("}", start)) if end >= 0]
    return min(ends, default=len(line))


def _quoted_end(line: str, start: int) -> int:
    position = start + 1
    while True:
        position = line.find('"', position)
        if position < 0:
            return len(line)
        if line[position + 1 : position + 2] != '"':
            return position + 1
        position += 2


def _balanced_end(line: str, start: int, opening: str, closing: str) -> int:
    depth, quoted = 0, False
    for position in range(start, len(line)):
        character = line[position]
        if character == '"':
            quoted = not quoted
        elif not quoted and character == opening:
            depth += 1
        elif not quoted and character == closing:
            depth -= 1
            if depth == 0:
                return position + 1
    return len(line)


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text
