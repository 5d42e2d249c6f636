"""Finding the records of a block that are not plain CSV."""

import numpy as np

from connectors.files.text.bitmask import Flags
from connectors.files.text.dialect import Dialect
from connectors.files.text.records import Records
from connectors.files.text.shadow import DELIMITER, is_csv


def not_plain_csv(block: bytes, records: Records, dialect: Dialect) -> Flags:
    """Which records of a block may not be plain."""
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
        blanked = quote[1:] & blank[:-1], quote[:-1] & blank[1:]
        places = np.concatenate([places, *map(np.flatnonzero, blanked)])
    if len(places):
        holder = np.searchsorted(records.start, places, "right") - 1
        found[holder[holder >= 0]] = True
    return found
