"""ErrorData of many rows at once: each reason is written as JSON, column by column.

A reason is the service's own field error: ErrorCode, FieldName, Message, Meta. What stands in it is
the same for all rows but for the delivered text, and the line, which is added last.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.cells.reading import SHOWN_CHARACTERS
from schemas.field import Field, Table
from schemas.reasons import NOT_SHOWN, REASONS

Rows = NDArray[np.intp]
NO_ROWS: Rows = np.empty(0, np.intp)
_ESCAPED = {chr(sign): json.dumps(chr(sign))[1:-1] for sign in (*range(32), ord('"'), ord("\\"))}
_SPECIAL = r'["\\\x00-\x1f]'
_BREAK = "\0"
"""Stands around what differs by row in a message: no wording has one."""


class OfField(NamedTuple):
    """One way in which a field is wrong: the rows, in order, and the reason of each."""

    field: str
    rows: Rows
    texts: pl.Series
    """JSON up to where the line is to stand."""

    def only(self, chosen: NDArray[np.bool_]) -> "OfField":
        """Of some of the rows."""
        return OfField(self.field, self.rows[chosen], self.texts.filter(pl.Series(chosen)))


@dataclass(frozen=True, slots=True)
class FieldErrors:
    """The reasons against the rows of a frame, in the order in which each row has them."""

    found: Sequence[OfField] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(len(one.rows) for one in self.found)

    @property
    def rows(self) -> Rows:
        """The rows that have a reason, in order."""
        each = [one.rows for one in self.found]
        return each[0] if len(each) == 1 else np.unique(np.concatenate([NO_ROWS, *each]))

    def without(self, rows: Rows) -> "FieldErrors":
        """The same but for all reasons of some rows."""
        return FieldErrors([one.only(~np.isin(one.rows, rows)) for one in self.found])

    def among(self, rows: Rows) -> "FieldErrors":
        """Those of some rows, given in order; each is then known by its place among them."""
        chosen = (one.only(np.isin(one.rows, rows)) for one in self.found)
        return FieldErrors([one._replace(rows=np.searchsorted(rows, one.rows)) for one in chosen])

    def told_once(self, keys: Mapping[str, Sequence[str]]) -> "FieldErrors":
        """Without those of a number that is made of fields of which one has a reason of its own."""
        if not keys:
            return self
        left = []
        for one in self.found:
            of = [other.rows for other in self.found if other.field in keys.get(one.field, ())]
            left.append(one.only(~np.isin(one.rows, np.concatenate(of))) if of else one)
        return FieldErrors(left)

    def instead(self, others: Sequence[OfField]) -> "FieldErrors":
        """With these, each in place of what else there is against its field in its rows."""
        kept = []
        for one in self.found:
            of = [other.rows for other in others if other.field == one.field]
            kept.append(one.only(~np.isin(one.rows, np.concatenate(of))) if of else one)
        return FieldErrors([*kept, *others])

    def error_data(self, lines: pl.Series) -> tuple[Rows, pl.Series]:
        """The rows that have a reason, and their ErrorData; `lines`: where all rows begin."""
        rows = self.rows
        if not len(rows):
            return rows, empty_texts(0)
        line = lines.gather(rows).cast(pl.String)
        columns = {
            str(number): one.texts
            if len(one.rows) == len(rows)
            else empty_texts(len(rows)).scatter(np.searchsorted(rows, one.rows), one.texts)
            for number, one in enumerate(self.found)
            if len(one.rows)
        }
        ended = [
            pl.concat_str(pl.col(name), pl.lit(', "line": "'), pl.col("line"), pl.lit('"}}'))
            for name in columns
        ]
        listed = pl.concat_str(ended, separator=", ", ignore_nulls=True)
        frame = pl.DataFrame({**columns, "line": line})
        return rows, frame.select(pl.concat_str(pl.lit("["), listed, pl.lit("]"))).to_series()


def empty_texts(height: int) -> pl.Series:
    """So many texts that are not there."""
    return pl.Series([None], dtype=pl.String).new_from_index(0, height)


def of_field(
    table: Table,
    of: Field,
    code: str,
    rows: Rows,
    texts: pl.Series,
    *,
    kept: pl.Series | None = None,
    detail: pl.Series | None = None,
    limit: str = "",
) -> OfField:
    """One reason against a field in some rows; `texts` were delivered there, null for nothing.

    Of a record kind that has secrets no value is shown: a cell that was lost moves a secret into
    the column of another field.
    """
    shown = _shown(table, texts)
    facts = {"value": shown, "kept": kept if kept is not None else empty_texts(len(rows))}
    if table.unquotable:
        facts["kept"] = pl.Series([NOT_SHOWN]).new_from_index(0, len(rows))
    columns = {name: _escaped(series) for name, series in facts.items()}
    if detail is not None and not table.unquotable:
        columns["detail"] = _escaped(detail)
    frame = pl.DataFrame(columns | {"given": texts.is_not_null()})
    message = list(_message(code, of, limit))
    if "detail" in columns:
        behind = pl.concat_str(pl.lit(" "), pl.col("detail"))
        message.append(pl.when(pl.col("detail").is_null()).then(pl.lit("")).otherwise(behind))
    value = pl.concat_str(pl.lit(', "value": "'), pl.col("value"), pl.lit('"'))
    text = pl.concat_str(
        pl.lit(f'{{"ErrorCode": {_json(code)}, "FieldName": {_json(of.name)}, "Message": "'),
        *message,
        pl.lit(f'", "Meta": {{"stage": "check", "column": {_json(of.name)}'),
        pl.when("given").then(value).otherwise(pl.lit("")),
    )
    return OfField(of.name, rows, frame.select(text).to_series())


def of_record(code: str, rows: Rows) -> OfField:
    """One reason against whole records, whose fields could not be told apart."""
    text = error_text(code, "", REASONS[code].message(), {"stage": "read"})
    return OfField("", rows, pl.Series([text]).new_from_index(0, len(rows)))


def error_text(code: str, name: str, message: str, meta: Mapping[str, str]) -> str:
    """One reason, as JSON up to where the line is to stand."""
    shape = {"ErrorCode": code, "FieldName": name, "Message": message, "Meta": meta}
    return _json(shape).removesuffix("}}")


def _message(code: str, of: Field, limit: str) -> Iterator[pl.Expr]:
    """The wording of a reason, with the columns that differ by row."""
    facts = {name: f"{_BREAK}{name}{_BREAK}" for name in ("value", "kept")}
    told = REASONS[code].message(field=of.name, of=of.of or "", limit=limit, **facts)
    for number, part in enumerate(told.split(_BREAK)):
        yield pl.col(part) if number % 2 else pl.lit(_json(part)[1:-1])


def _shown(table: Table, texts: pl.Series) -> pl.Series:
    if table.unquotable:
        return texts.is_null().replace_strict({True: "", False: NOT_SHOWN}, return_dtype=pl.String)
    cut = texts.str.slice(0, SHOWN_CHARACTERS)
    if (texts.str.len_bytes() > SHOWN_CHARACTERS).any():
        long = texts.str.len_chars() > SHOWN_CHARACTERS
        cut = (cut + "…").zip_with(long, cut)
    return cut.fill_null("")


def _escaped(texts: pl.Series) -> pl.Series:
    """As they stand in a JSON text."""
    if not texts.str.contains(_SPECIAL).any():
        return texts
    return texts.str.replace_many(list(_ESCAPED), list(_ESCAPED.values()))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
