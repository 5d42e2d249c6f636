"""Texts of whole records as commands show them: never with a password in them."""

import polars as pl

from schemas.field import Table
from schemas.tables import SECRETS

HIDDEN = "(not shown: it can hold a secret)"
_NAMES = {name.lower() for name in SECRETS}


def shown_record(table: Table, text: str) -> str:
    """The text of a delivered record, unless the kind of record has secrets.

    Insert-batch data may hold a record of such a kind that could not be read as one.
    """
    hidden = table.unquotable or any(name in text.lower() for name in _NAMES)
    return HIDDEN if hidden else text


def shown_records(table: Table, texts: pl.Series) -> pl.Series:
    """The same of many records of one kind."""
    hidden = pl.repeat(True, len(texts), eager=True)
    if not table.unquotable:
        hidden = texts.str.to_lowercase().str.contains_any(sorted(_NAMES)).fill_null(value=False)
    if not hidden.any():
        return texts
    told = pl.Series([HIDDEN], dtype=pl.String).new_from_index(0, len(texts))
    return told.zip_with(hidden, texts).alias(texts.name)
