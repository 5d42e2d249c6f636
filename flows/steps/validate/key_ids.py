"""Numbers made from keys, for records that their sender identifies by several values, not a number.

A number is the first 63 bits of a hash of the values as read, not as written: a file that writes
its days in another form gives the same numbers. In a feed of a million records the chance that two
have the same number is one in eighteen million; the check of a batch finds and rejects them
(`connectors.postgres.batches.batch_keys.mark_collisions`).
"""

import hashlib
import json

import polars as pl

from schemas.cells.reading import UNFIT, Moment, Number, Unread, read
from schemas.field import Field, Table
from schemas.made_keys import MadeKey

BITS = 63


def key_ids(table: Table, key: MadeKey, plain: pl.DataFrame) -> pl.Series:
    """The number of each record as a text, from the plain columns that the key names.

    Null if one of them is null or cannot be read.
    """
    columns = [_as_json(plain[name], table.by_name[name]) for name in key.names]
    each = pl.select(pl.format(f"[{', '.join(['{}'] * len(columns))}]", *columns)).to_series()
    before, behind = key.around
    numbers = [text and _number(f"{before}{text}{behind}") for text in each]
    return pl.Series(numbers, dtype=pl.String)


def _as_json(texts: pl.Series, of: Field) -> pl.Series:
    """The values of these texts as JSON; null if a text has none."""
    delivered = texts.drop_nulls().unique()
    values = (_value(of, text) for text in delivered)
    written = [None if value is None else json.dumps(value) for value in values]
    return texts.replace_strict(delivered, pl.Series(written, dtype=pl.String), default=None)


def _value(of: Field, text: str) -> str | None:
    if UNFIT in text:
        return None
    match read(of, text, _never):
        case Unread():
            return None
        case Moment(wall=wall, offset=offset) as moment:
            return (wall if offset is None else moment.instant).isoformat()
        case Number(exact=exact):
            return str(exact.normalize()) if exact else "0"
        case value:
            return str(value)


def _never(of: Field, text: str) -> Unread:
    raise AssertionError(f"{of.name} holds nothing nested: {text!r}")


def _number(key: str) -> str:
    digest = hashlib.sha256(key.encode()).digest()
    return str(int.from_bytes(digest[:8]) >> (64 - BITS))
