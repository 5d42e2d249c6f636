"""Numbers made from keys in typed columns: the same as those of `flows.steps.validate.key_ids`."""

import numpy as np
import polars as pl

from flows.steps.fast.key_texts import MOST_VALUE, ROOM, KeyForm, write_keys
from flows.steps.fast.sha256 import first_bits
from flows.steps.validate import key_ids
from schemas.cells.reading import MINUTE
from schemas.field import Kind, Table
from schemas.kinds import OFFSET
from schemas.made_keys import MadeKey

_FORMS = {
    Kind.INTEGER: KeyForm.INTEGER,
    Kind.INTEGER64: KeyForm.INTEGER,
    Kind.DOUBLE: KeyForm.AMOUNT,
    Kind.DATETIME: KeyForm.WALL,
    Kind.DATETIME_OFFSET: KeyForm.INSTANT,
    Kind.BOOLEAN: KeyForm.BOOLEAN,
}


def key_numbers(table: Table, key: MadeKey, typed: pl.DataFrame) -> pl.Series:
    """The number of each record from the fields of its key; null if any of these is null.

    `typed` has columns as SQL stores them, with doubles in millionths.
    """
    known = typed.select(pl.all_horizontal(pl.col(key.names).is_not_null())).to_series()
    given = typed if known.all() else typed.filter(known)
    fields = [table.by_name[name] for name in key.names]
    values = np.empty((len(fields), given.height), np.int64)
    forms = np.empty(values.shape, np.int8)
    for line, of in enumerate(fields):
        forms[line] = _FORMS[of.kind]
        values[line] = given[of.name].to_physical().to_numpy()
        if of.kind is Kind.DATETIME:
            # A wall clock with an offset counts as its instant.
            offset = given[of.name + OFFSET]
            values[line] -= offset.fill_null(0).to_numpy().astype(np.int64) * MINUTE
            forms[line, offset.is_not_null().to_numpy()] = KeyForm.INSTANT
    before, behind = (np.frombuffer(text.encode(), np.uint8) for text in key.around)
    most = MOST_VALUE * len(fields) + 2 + len(before) + len(behind)
    text = np.empty(most * given.height, np.uint8)
    ends = np.empty(given.height, np.int64)
    last = np.empty(2 * len(fields), np.int64)
    digits = np.empty(ROOM, np.int64)
    size = write_keys(values, forms, before, behind, digits, last, text, ends)
    numbers = pl.Series(first_bits(text[:size], ends, key_ids.BITS))
    if given is typed:
        return numbers
    every = pl.Series([None] * typed.height, dtype=pl.Int64)
    return every.scatter(known.arg_true(), numbers)
