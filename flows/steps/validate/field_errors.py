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

    code: str
    field: str
    rows: Rows
    facts: pl.DataFrame
    """What differs by row."""
    text: pl.Expr
    """Of these facts: JSON up to where the line is to stand."""

    @property
    def first_value(self) -> str:
        """What ErrorData shows as the value of the first row."""
        if "value" not in self.facts.columns or not self.facts["given"][0]:
            return ""
        return str(json.loads(f'"{self.facts["value"][0]}"'))

    def only(self, chosen: NDArray[np.bool_]) -> "OfField":
        """Of some of the rows."""
        return self._replace(rows=self.rows[chosen], facts=self.facts.filter(pl.Series(chosen)))

    def between(self, first: int, beyond: int) -> "OfField":
        """Of consecutive rows, each known by its place among them from then on."""
        begin, end = np.searchsorted(self.rows, (first, beyond)).tolist()
        facts = self.facts.slice(begin, end - begin)
        return self._replace(rows=self.rows[begin:end] - first, facts=facts)


@dataclass(frozen=True, slots=True)
class FieldErrors:
    """The reasons against the rows of a frame, in the order in which each row has them."""

    found: Sequence[OfField] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(len(one.rows) for one in self.found)

    @property
    def rows(self) -> Rows:
        """The rows that have a reason, in order."""
        each = [one.rows for one in self.found if len(one.rows)]
        if len(each) < 2:
            return each[0] if each else NO_ROWS
        wrong = np.zeros(max(int(rows[-1]) for rows in each) + 1, np.bool_)
        for rows in each:
            wrong[rows] = True
        return np.flatnonzero(wrong)

    def without(self, rows: Rows) -> "FieldErrors":
        """The same but for all reasons of some rows."""
        if not self or not len(rows):
            return self
        return FieldErrors([one.only(~np.isin(one.rows, rows)) for one in self.found])

    def among(self, chosen: NDArray[np.bool_]) -> "FieldErrors":
        """Those of the chosen rows, each of which is known by its place among them."""
        places = np.cumsum(chosen) - 1
        some = (one.only(chosen[one.rows]) for one in self.found)
        return FieldErrors([one._replace(rows=places[one.rows]) for one in some if len(one.rows)])

    def between(self, first: int, beyond: int) -> "FieldErrors":
        """The same of consecutive rows."""
        found = (one.between(first, beyond) for one in self.found)
        return FieldErrors([one for one in found if len(one.rows)])

    def counted(self, numbers: pl.Series, lines: pl.Series) -> list[list[str | int]]:
        """Each reason: code, field, rows, and of the first its record number, line and value.

        `numbers` and `lines` are those of all rows, which have theirs in order.
        """
        return [
            [one.code, one.field, len(one.rows), numbers[first], lines[first], one.first_value]
            for one in self.found
            if len(one.rows)
            for first in (int(one.rows[0]),)
        ]

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
        columns = {}
        for number, one in enumerate(self.found):
            texts = one.facts.select(one.text).to_series()
            if len(texts) < len(rows):
                texts = empty_texts(len(rows)).scatter(np.searchsorted(rows, one.rows), texts)
            columns[str(number)] = texts
        ended = [
            pl.concat_str(pl.col(name), pl.lit(', "line": "'), pl.col("line"), pl.lit('"}}'))
            for name in columns
        ]
        listed = pl.concat_str(ended, separator=", ", ignore_nulls=True)
        frame = pl.DataFrame({**columns, "line": line})
        return rows, frame.select(pl.concat_str(pl.lit("["), listed, pl.lit("]"))).to_series()


NO_ERRORS = FieldErrors()


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
    **facts: str,
) -> OfField:
    """One reason against a field in some rows; `texts` were delivered there, null for nothing.

    `facts` are what its wording needs beside these, the same for all rows.

    Of a record kind that has secrets no value is shown: a cell that was lost moves a secret into
    the column of another field.
    """
    columns = {"value": json_escaped(_shown(table, texts)), "given": texts.is_not_null()}
    if kept is not None:
        hidden = pl.Series([NOT_SHOWN], dtype=pl.String).new_from_index(0, len(rows))
        columns["kept"] = hidden if table.unquotable else kept
    if detail is not None and not table.unquotable:
        columns["detail"] = json_escaped(detail)
    of_rows = pl.DataFrame(columns)
    message = list(_message(code, of, facts))
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
    return OfField(code, of.name, rows, of_rows, text)


def of_record(code: str, rows: Rows, details: Mapping[int, str]) -> OfField:
    """One reason against whole records, whose fields could not be told apart.

    `details`: what is said beside it of some of the rows.
    """
    text = error_text(code, "", REASONS[code].message(), {"stage": "read"})
    texts = pl.repeat(text, len(rows), eager=True)
    some = [(at, details[row]) for at, row in enumerate(rows.tolist()) if row in details]
    if some:
        message = REASONS[code].message()
        told = [error_text(code, "", f"{message} {one}", {"stage": "read"}) for _, one in some]
        texts = texts.scatter([at for at, _ in some], told)
    return OfField(code, "", rows, texts.to_frame("text"), pl.col("text"))


def told_by_row(code: str, name: str, rows: Rows, texts: Sequence[str]) -> OfField:
    """One reason against rows, of each as `error_text` gives it."""
    facts = pl.DataFrame({"text": texts}, {"text": pl.String})
    return OfField(code, name, rows, facts, pl.col("text"))


def error_text(code: str, name: str, message: str, meta: Mapping[str, str]) -> str:
    """One reason, as JSON up to where the line is to stand."""
    shape = {"ErrorCode": code, "FieldName": name, "Message": message, "Meta": meta}
    return _json(shape).removesuffix("}}")


def settled_errors(
    code: str, name: str, values: pl.Series, lines: pl.Series, of: str = ""
) -> pl.Series:
    """ErrorData of rows that are wrong in the delivery as a whole, as the database writes it."""
    frame = pl.DataFrame({"value": json_escaped(values), "line": lines.cast(pl.String)})
    told = REASONS[code].message(field=name, value=_BREAK, of=of)
    before, after = (_json(part)[1:-1] for part in told.split(_BREAK))
    text = pl.concat_str(
        pl.lit(f'[{{"ErrorCode": {_json(code)}, "FieldName": {_json(name)}, "Message": "{before}'),
        "value",
        pl.lit(f'{after}", "Meta": {{"stage": "merge", "column": {_json(name)}, "value": "'),
        "value",
        pl.lit('", "line": "'),
        "line",
        pl.lit('"}}]'),
    )
    return frame.select(text.alias("error_data")).to_series()


def _message(code: str, of: Field, facts: Mapping[str, str]) -> Iterator[pl.Expr]:
    """The wording of a reason, with the columns that differ by row."""
    marks = {name: f"{_BREAK}{name}{_BREAK}" for name in ("value", "kept")}
    told = REASONS[code].message(field=of.name, of=of.of or "", **facts, **marks)
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


def json_escaped(texts: pl.Series) -> pl.Series:
    """Texts as they stand in a JSON text."""
    if not texts.str.contains(_SPECIAL).any():
        return texts
    return texts.str.replace_many(list(_ESCAPED), list(_ESCAPED.values()))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
