"""Texts of whole records as shown by commands, never with a password in them."""

import re
from collections.abc import Collection

import polars as pl

from schemas.field import Table
from schemas.tables import DOCUMENTED, SECRETS

HIDDEN = "(not shown: it can hold a secret)"


def pattern_of(documented: Collection[str], own: Collection[str]) -> str:
    """A pattern for lower-case texts that may contain a secret with one of these names.

    Documented names occur in no other word, so they are also searched within words. Own names may
    be short, so they match whole words only, possibly behind an escaped character.
    """
    begin, end = r"(?:^|[^a-z]|\\[bfnrt]|\\u[0-9a-f]{4}|%[0-9a-f]{2})", "(?:[^a-z]|$)"
    within = sorted(map(str.lower, documented))
    return "|".join([*within, *(f"{begin}{name.lower()}{end}" for name in sorted(own))])


_OF_SERVICE = {name for table in DOCUMENTED.values() for name in table.secrets}
_NAMES = pattern_of(_OF_SERVICE, SECRETS - _OF_SERVICE)


def shown_record(table: Table, text: str) -> str:
    """The text of a delivered record, or HIDDEN if it may contain a secret.

    Insert-batch data may hold a record with secrets that could not be read as one.
    """
    hidden = table.unquotable or re.search(_NAMES, text.lower()) is not None
    return HIDDEN if hidden else text


def shown_records(table: Table, texts: pl.Series) -> pl.Series:
    """As `shown_record`, for many records of one kind."""
    hidden = pl.repeat(True, len(texts), eager=True)
    if not table.unquotable:
        hidden = texts.str.to_lowercase().str.contains(_NAMES).fill_null(value=False)
    if not hidden.any():
        return texts
    masked = pl.Series([HIDDEN], dtype=pl.String).new_from_index(0, len(texts))
    return masked.zip_with(hidden, texts).alias(texts.name)
