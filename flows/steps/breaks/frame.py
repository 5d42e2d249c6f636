"""Breaks as a frame: one line per difference, with a stable id."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from functools import cache

import polars as pl

from flows.steps.frames.light import light
from flows.steps.frames.parts import Load, columns_of, held, own_name
from schemas.frame_types import AMOUNT
from schemas.key_texts import DUPLICATE_SUFFIX

BREAK_SCHEMA: dict[str, pl.DataType] = {
    "code": pl.String(),
    "record": pl.String(),
    "tenant": pl.Int32(),
    "key": pl.String(),
    "field": pl.String(),
    "side": pl.String(),
    "currency": pl.Int32(),
    "expected": pl.String(),
    "found": pl.String(),
    "delta": AMOUNT,
    "delta_beyond": pl.String(),
    "amount": AMOUNT,
    "amount_beyond": pl.String(),
    "amounts": pl.String(),
    "date": pl.Date(),
    "debt": pl.Int64(),
    "file": pl.String(),
    "line": pl.Int64(),
    "batch_id": pl.Int32(),
    "note": pl.String(),
}
"""Columns of a frame of breaks.

`key` is the record's business key as text (`make.key_text`). `field` and `side` are empty if the
whole record is meant; `side` is the first source (E R A D G P) that differs. `delta` is found minus
expected; `amount` is the money the break is about, unsigned, in `currency` (`money.basis` says
what kind of money). The text of either is beside it if it fits no exact column (`beyond`).
`amounts` are the signed amounts of the record, where `amount` is the record's own
(`make.amounts_of`). `date` is the business date the break ages from, `debt` the debt of its
payment.
"""

IDENTITY = ("code", "record", "tenant", "key", "field", "side")
"""Columns that identify a break across runs."""


@cache
def no_breaks() -> pl.DataFrame:
    return pl.DataFrame(schema=BREAK_SCHEMA)


PLACE_OF = "__place"
"""Column of the place where a break's row was delivered, in the input of `numbered`."""


def without_number(key: pl.Expr) -> pl.Expr:
    """Keys without the suffix that `numbered` appends."""
    return key.str.replace(DUPLICATE_SUFFIX, "")


def numbered(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Combine frames of breaks, and append a suffix to the keys of breaks with equal identity.

    The suffix is the place where the row was delivered. Unlike a number it does not depend on which
    of the rows are still there, so decisions stay with the right break. Breaks that are still
    equal, or have no place, get a number.
    """
    breaks = pl.concat([pl.DataFrame(schema=BREAK_SCHEMA), *frames], how="diagonal")
    alike = [pl.col(name).fill_null("") if name != "tenant" else name for name in IDENTITY]
    if not breaks.select(alike).is_duplicated().any():
        return breaks.select(list(BREAK_SCHEMA))
    if PLACE_OF in breaks.columns:
        several = pl.struct(alike).is_duplicated() & pl.col(PLACE_OF).is_not_null()
        placed = pl.format("{}#{}", "key", PLACE_OF)
        breaks = breaks.with_columns(key=pl.when(several).then(placed).otherwise("key"))
    # The order in which rows arrive must not decide which of them is the second.
    order = ["batch_id", "file", "line", "amount", "expected", "found"]
    again = pl.int_range(pl.len(), dtype=pl.Int64).over(alike)
    nth = pl.format("{}#{}", "key", pl.col("__again") + 1)
    return (
        breaks.lazy()
        .with_row_index("__nth")
        .sort(order, nulls_last=True, maintain_order=True)
        .with_columns(__again=again)
        .sort("__nth")
        .with_columns(key=pl.when(pl.col("__again") > 0).then(nth).otherwise("key"))
        .select(list(BREAK_SCHEMA))
        .collect()
    )


def gather(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """All breaks with their ids in the order of reports, each id once."""
    return gather_parts([held(frame) for frame in frames])


def gather_parts(parts: Sequence[Load]) -> pl.DataFrame:
    """As `gather`, for frames that may be put aside; reads a few columns at a time."""
    first = _columns(parts, _ORDER)
    ids = break_ids(first)
    order = first.select(pl.arg_sort_by(*_ORDER, nulls_last=True)).to_series()
    order = order.filter(ids.gather(order).is_first_distinct())
    gathered = [ids.gather(order).to_frame(), first[order]]
    del ids, first
    gathered += (_columns(parts, names)[order] for names in _OTHERS)
    everything = pl.concat(gathered, how="horizontal")
    return everything.select("id", *BREAK_SCHEMA).with_columns(pl.col("amount").abs())


_ORDER = ("code", "record", "tenant", "key", "field", "side", "file", "line")
_OTHERS = (
    ("currency", "expected", "found"),
    ("delta",),
    ("amount",),
    ("amounts",),
    ("date", "debt", "batch_id", "note"),
)
"""Columns that are read together; amounts bring the texts beside them."""
_TOGETHER = 20_000
"""Breaks whose ids are made together: as Python objects they are many times as large."""


def _columns(parts: Sequence[Load], names: Collection[str]) -> pl.DataFrame:
    schema = {name: dtype for name, dtype in BREAK_SCHEMA.items() if own_name(name) in names}
    columns = [pl.col(name).cast(dtype) for name, dtype in schema.items()]
    frames = [columns_of(part, names).lazy().select(columns) for part in parts]
    return light(pl.concat([pl.LazyFrame(schema=schema), *frames]).collect())


def break_ids(breaks: pl.DataFrame) -> pl.Series:
    """16 hex digits for every break, the same in every run."""
    text = pl.concat_str(pl.col(IDENTITY).cast(pl.String).fill_null(""), separator="\x1f")
    slices = breaks.select(IDENTITY).iter_slices(_TOGETHER)
    parts = (_ids(part.select(text).to_series()) for part in slices)
    return pl.concat([_ids(()), *parts], rechunk=True)


def _ids(texts: Iterable[str]) -> pl.Series:
    found = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
    return pl.Series("id", found, dtype=pl.String)
