"""Plain CSV: what a reader that knows a delimiter and a quote alone reads as the feed means it.

Asked of all records that a dialect can write, of one text, and of the records of a block. Such a
reader knows neither delimiters of several signs, nor escapes, nor blanks beside a quote.
"""

import re

import numpy as np

from connectors.files.bitmask import Flags
from connectors.files.dialect import Dialect
from connectors.files.records import Records
from connectors.files.shadow import DELIMITER


def is_csv(dialect: Dialect) -> bool:
    """Whether every record of a dialect is plain."""
    return len(dialect.delimiter) == 1 and not dialect.escape and not dialect.blanks


def is_plain_text(text: str, dialect: Dialect) -> bool:
    """Whether one record is plain."""
    if len(dialect.delimiter) > 1 or (dialect.escape and "\\" in text):
        return False
    quote = re.escape(dialect.quote.decode())
    return not (dialect.blanks and re.search(rf"[ \t]{quote}|{quote}[ \t]", text))


def beside_csv(block: bytes, records: Records, dialect: Dialect) -> Flags:
    """Which of the records of a block may not be plain."""
    found = np.zeros(len(records.start), np.bool_)
    if is_csv(dialect):
        return found
    if len(dialect.delimiter) > 1:
        found[:] = bool(dialect.escape or dialect.blanks) or DELIMITER in block
        return found
    text = np.frombuffer(block, np.uint8, records.consumed)
    places = np.flatnonzero(text == ord(dialect.escape or b"\0"))
    if dialect.blanks:
        blank = np.isin(text, [*dialect.blanks])
        quote = text == ord(dialect.quote)
        beside = quote[1:] & blank[:-1], quote[:-1] & blank[1:]
        places = np.concatenate([places, *map(np.flatnonzero, beside)])
    if len(places):
        holder = np.searchsorted(records.start, places, "right") - 1
        found[holder[holder >= 0]] = True
    return found
