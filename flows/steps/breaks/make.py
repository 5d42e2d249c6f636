"""Breaks made from frames of records: key, place and money are filled in, the rest is empty."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Generic, TypeVar

import polars as pl

from flows.steps.breaks.frame import BREAK_SCHEMA, no_breaks, numbered
from flows.steps.frames.beyond import as_column, beyond_of, beyond_texts, money_text, unsigned
from flows.steps.frames.parts import Load, columns_of, parts_of
from flows.steps.frames.time_texts import time_text
from flows.steps.totals import plain
from schemas.amounts import BEYOND
from schemas.breaks import BREAKS
from schemas.counting import plural
from schemas.field import Field, Kind, Table
from schemas.frame_types import AMOUNT
from schemas.key_texts import EMPTY, FREE, NOT_NUMBERED, NUMBERED, READ_OTHERWISE
from schemas.kinds import OFFSET
from schemas.tables import EXTRACTS

LINES = 1000
"""Most lines of a list in a report; the number of lines left out is shown beside them."""

Line = TypeVar("Line")
DELIVERED_AT, _WRITER = ("file", "line", "batch_id"), ("extract_id", "row")
ORIGIN = (*DELIVERED_AT, *_WRITER)
"""Columns that say where a row was delivered, or which delivered row wrote it."""
NOWHERE: Mapping[str, pl.DataFrame] = MappingProxyType({})
"""No extract rows: no places are looked up."""
_TOGETHER = [code for code, of in BREAKS.items() if of.together]
_NOTHING = {
    name: pl.lit("" if name == "note" else None, dtype).alias(name)
    for name, dtype in BREAK_SCHEMA.items()
}


def about_one_record() -> pl.Expr:
    """Whether the key of a break is that of one record, not of several that belong together."""
    return ~(pl.col("code").is_in(_TOGETHER) & (pl.col("side").fill_null("") == ""))


@dataclass(frozen=True)
class Annex(Generic[Line]):
    """The result of one set of joins: its breaks, and the lines that a reader sees."""

    breaks: pl.DataFrame = field(default_factory=no_breaks)
    aside: Sequence[Load] = ()
    """Loaders of further breaks that were put aside."""
    lines: tuple[Line, ...] = ()
    """At most `LINES` lines, chosen by flags first."""
    left: int = 0
    """How many more lines there are."""
    rows: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Every line of the annex as a frame."""

    def every_break(self) -> pl.DataFrame:
        return together([self.breaks, *(load() for load in self.aside)])


def left_of(lines: int) -> int:
    """How many of this number of lines a report leaves out."""
    return max(0, lines - LINES)


def listed(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    """The lines of an annex that a report shows, in order.

    If there are more than `LINES`, lines with `flags` are kept first, then the largest by `by`.
    """
    lines = rows.with_row_index("at")
    if lines.height <= LINES:
        return lines
    flagged = pl.col("flags").list.len() > 0
    return lines.sort(flagged, by, "at", descending=[True, True, False]).head(LINES).sort("at")


def make_breaks(
    code: str | pl.Expr,
    record: str,
    rows: pl.DataFrame,
    *,
    key: pl.Expr,
    name: str | pl.Expr = "",
    **facts: pl.Expr,
) -> pl.DataFrame:
    """Make one break per row; `facts` are columns of BREAK_SCHEMA.

    `code` is one code for all or an expression, `name` the field. Place columns of the rows are
    copied, others stay null. Rows that know only the extract row that wrote them keep its number
    beside the break, for `number_duplicates` to look up the place.
    """
    assert isinstance(code, pl.Expr) or code in BREAKS
    if rows.is_empty():
        return no_breaks()
    given = {
        **{place: pl.col(place) for place in DELIVERED_AT if place in rows.columns},
        "code": pl.lit(code) if isinstance(code, str) else code,
        "record": pl.lit(record),
        "key": key,
        "field": pl.lit(name) if isinstance(name, str) else name,
        "side": pl.lit(""),
        **facts,
    }
    names = facts["amount"].meta.root_names() if "amount" in facts else []
    if f"amount{BEYOND}" not in facts and (texts := beyond_of(rows, names)):
        # The amount is a field's own, whose text is beside it if no exact column holds it.
        given[f"amount{BEYOND}"] = unsigned(pl.coalesce(one + BEYOND for one in texts))
    amounts = EXTRACTS[record].amounts if record in EXTRACTS else ()
    own = [one for one in amounts if one in rows.columns]
    if "amounts" not in facts and not {*names}.isdisjoint(own):
        given["amounts"] = amounts_of({one: amount_text(rows, one) for one in own})
    if "note" in given:
        given["note"] = given["note"].fill_null("")
    known = {*rows.columns}
    writer = [] if "file" in known or not known.issuperset(_WRITER) else _WRITER
    # Columns that were shifted and then filtered keep an empty chunk, on which concat_str fails.
    return rows.rechunk().select(
        *(
            given[column].cast(BREAK_SCHEMA[column]).alias(column) if column in given else nothing
            for column, nothing in _NOTHING.items()
        ),
        *writer,
    )


def amounts_of(texts: Mapping[str, pl.Expr]) -> pl.Expr:
    """The signed amounts of records in words: the first, and every other that is not zero.

    `texts` are the texts of the amounts by field. Empty for a record without any of them; null for
    a kind without amounts, as in breaks that an earlier version kept.
    """
    named = [
        pl.when(pl.lit(not place) | (text != "0")).then(pl.format(f"{name} {{}}", text))
        for place, (name, text) in enumerate(texts.items())
    ]
    if not named:
        return pl.lit(None, pl.String)
    return pl.concat_str(named, separator=", ", ignore_nulls=True)


def amount_text(rows: pl.DataFrame, name: str) -> pl.Expr:
    """The text of an amount of these rows, whether or not an exact column holds it."""
    return pl.coalesce(pl.lit(beyond_texts(rows, name)), money_text(name))


def together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    some = [frame for frame in frames if not frame.is_empty()]
    return pl.concat(some, how="diagonal") if some else no_breaks()


def number_duplicates(
    frames: list[pl.DataFrame], places: Mapping[str, pl.DataFrame] = NOWHERE
) -> pl.DataFrame:
    """Combine frames of breaks; breaks with equal identity get a suffix behind their key.

    `places` are extract rows by record kind (`sources.DELIVERED`), to look up the file and line of
    breaks that know only their writer.
    """
    return numbered([_placed(together(frames), places)])


def _placed(breaks: pl.DataFrame, places: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Breaks with file and line of the row that wrote their record.

    Only the few rows with breaks are looked up: all records with their places are a large frame.
    """
    if not set(_WRITER) <= set(breaks.columns):
        return breaks
    place = [pl.col(name).cast(dtype) for name, dtype in _PLACED.items()]
    parts = [pl.DataFrame(schema={"record": pl.String, **_PLACED})]
    for (record,), rows in breaks.select("record", *_WRITER).group_by("record"):
        own = rows["row"].drop_nulls().unique()
        for load in parts_of(places, str(record)) if own.len() else ():
            near = columns_of(load, _PLACED).lazy().filter(pl.col("row").is_in(own.implode()))
            parts.append(near.select(pl.lit(record).alias("record"), *place).collect())
    on = ["record", *_WRITER]
    found = pl.concat(parts).unique(on, keep="first", maintain_order=True)
    found = found.rename({"file": "file_there", "line": "line_there"})
    there = breaks.select(on).join(found, on=on, how="left", maintain_order="left")
    return breaks.with_columns(
        pl.coalesce(name, there[f"{name}_there"]).alias(name) for name in ("file", "line")
    ).select(list(BREAK_SCHEMA))


_PLACED = {"extract_id": pl.Int32, "row": pl.Int64, "file": pl.String, "line": pl.Int64}


def key_text(table: Table) -> pl.Expr:
    r"""The values of a record's identity as text, joined by "/", unique to the record.

    A null is empty and an empty text is `\e`. In every text but the last, `/` and backslash are
    escaped by a backslash; other values contain no `/`, so the last text needs no escapes. A key
    that would read as a place of delivery gets a backslash behind it, and a `#` before a digit gets
    one in between, because the suffix of a key begins like that.
    """
    fields = [table.by_name[name] for name in table.identity]
    texts = [of.name for of in fields if of.kind in FREE]
    key = joined(
        *(_text(of.name, last=of.name == texts[-1]) if of.kind in FREE else _value(of)
          for of in fields)
    )  # fmt: skip
    if not texts:
        return key
    key = not_numbered(key)
    return pl.when(key.str.contains(READ_OTHERWISE)).then(key + "\\").otherwise(key)


def not_numbered(key: pl.Expr) -> pl.Expr:
    """Escape texts so that none contains what reads as the suffix of a key."""
    return key.str.replace_all(NUMBERED, NOT_NUMBERED)


def _text(name: str, *, last: bool) -> pl.Expr:
    """A text of a key, escaped so that empty differs from null and, unless last, its end shows."""
    value = pl.col(name).cast(pl.String)
    if last:
        marked = pl.when(value.str.starts_with("\\")).then("\\" + value).otherwise(value)
    else:
        marked = value.str.replace_all(r"([\\/])", r"\${1}")
    return pl.when(value == "").then(pl.lit(EMPTY)).otherwise(marked)


def _value(of: Field) -> pl.Expr:
    value = pl.col(of.name)
    match of.kind:
        case Kind.DOUBLE:
            # -0 and 0 are the same number.
            return money_text(value) if of.amount else rate_text(value + 0.0)
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            moment = value.dt.to_string("%Y-%m-%dT%H:%M:%S%.6f").str.strip_suffix(".000000")
            moment = moment.str.strip_suffix("T00:00:00")
            instant, offset = of.kind is Kind.DATETIME_OFFSET, pl.col(of.name + OFFSET)
            bare = offset.fill_null(0) == 0 if instant else offset.is_null()
            return pl.when(bare).then(moment).otherwise(time_text(value, offset, instant=instant))
        case _:
            return value


def joined(*parts: str | pl.Expr, by: str = "/") -> pl.Expr:
    """Values of any type, or the columns of these names, joined as one text; a null is empty."""
    return pl.concat_str((as_text(part).fill_null("") for part in parts), separator=by)


def as_text(value: str | pl.Expr) -> pl.Expr:
    return as_column(value).cast(pl.String)


def quantities(number: pl.Expr, noun: str) -> pl.Expr:
    """Numbers and their noun, as `counting.quantity` writes one of them."""
    nouns = pl.when(number == 1).then(pl.lit(noun)).otherwise(pl.lit(plural(noun)))
    return pl.concat_str(number.cast(pl.String), nouns, separator=" ")


def rate_text(value: pl.Expr) -> pl.Expr:
    """A double as its shortest text, without a trailing `.0`."""
    return value.cast(pl.String).str.strip_suffix(".0")


def day_paid() -> pl.Expr:
    """The calendar day of a payment at its own offset."""
    offset = pl.col("PaymentDate" + OFFSET).fill_null(0).cast(pl.Int64)
    moved = pl.col("PaymentDate").to_physical() + offset * 60_000_000
    return moved.floordiv(86_400_000_000).cast(pl.Int32).cast(pl.Date)


def decimal_of(rate: float) -> Decimal:
    """The decimal that a double stands for: the number of its shortest text."""
    return Decimal(repr(rate))


def money(value: Decimal) -> Decimal:
    """The same amount without trailing zeros, as reports hold it."""
    return Decimal(plain(value))


def zero() -> pl.Expr:
    return pl.lit(Decimal(0), AMOUNT)


def as_day(day: date) -> pl.Expr:
    return pl.lit(day, pl.Date)
