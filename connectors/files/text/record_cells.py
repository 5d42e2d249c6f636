"""The cells of one record in any form a feed may state: the slow, obvious reader."""

import re
from functools import cache

from connectors.files.text.dialect import Dialect

NULL = r"\N"
"""A cell without a value, in dialects with escapes."""
KNOWN = r"nrtbfv!-/:-@\[-`{-~ \t"
"""Signs that may follow an escape, as a regex set; within quotes a line break may too."""
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v"}
"""Meanings of escaped letters; any other escaped sign stands for itself."""
_ESCAPED = re.compile(r"\\([\s\S])")


def cells_of(text: str, dialect: Dialect) -> list[str | None]:
    """The cells of a record, None for one without a value; empty if the record is not sound."""
    cell, step = _cell(dialect), len(dialect.delimiter)
    found: list[str | None] = []
    at = 0
    while match := cell.match(text, at):
        found.append(_text(match[1], match[2], dialect))
        at = match.end()
        if at == len(text):
            return found
        at += step
    return []


def _text(quoted: str | None, bare: str | None, dialect: Dialect) -> str | None:
    if quoted is not None:
        quote = dialect.quote.decode()
        text = quoted.replace(quote * 2, quote) if not dialect.escape else quoted
        return _unescaped(text, quote) if dialect.escape else text
    if dialect.escape and bare == NULL:
        return None
    return (_unescaped(bare or "", "") if dialect.escape else bare) or None


def _unescaped(text: str, quote: str) -> str:
    """The text that an escaped one stands for; a doubled `quote` stands for one."""
    if quote and quote * 2 in text:
        pairs = re.compile(rf"\\([\s\S])|({re.escape(quote)}){re.escape(quote)}")
        return pairs.sub(lambda one: one[2] or ESCAPES.get(one[1], one[1]), text)
    return _ESCAPED.sub(lambda one: ESCAPES.get(one[1], one[1]), text)


@cache
def _cell(dialect: Dialect) -> re.Pattern[str]:
    delimiter, quote = re.escape(dialect.delimiter.decode()), re.escape(dialect.quote.decode())
    blanks = f"[{dialect.blanks.decode()}]*+" if dialect.blanks else ""
    own, escaped, on_line, null = "", "", "", ""
    if dialect.escape:
        own, null = r"\\", r"\\N|"
        escaped, on_line = rf"|\\[{KNOWN}\r\n]", rf"|\\[{KNOWN}]"
    quoted = rf"{blanks}{quote}((?:[^{quote}{own}]|{quote}{quote}{escaped})*+){quote}{blanks}"
    bare = rf"({null}(?:(?!{delimiter})[^{quote}{own}\r\n]{on_line})*+)"
    return re.compile(rf"(?:{quoted}|{bare})(?={delimiter}|\Z)")
