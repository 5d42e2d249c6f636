"""ErrorData of many rows at once: each reason is written as JSON when its rows are sent.

A reason has the form of the service's own field errors: ErrorCode, FieldName, Message, Meta. Only
the delivered text and the line differ between the rows of a reason.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.cells.reading import MORE, SHOWN_CHARACTERS, UNFIT
from schemas.field import Field, Table
from schemas.made_keys import MadeKey
from schemas.reasons import NOT_SHOWN, REASONS

Rows = NDArray[np.intp]
NO_ROWS: Rows = np.empty(0, np.intp)
_ESCAPED = {chr(sign): json.dumps(chr(sign))[1:-1] for sign in (*range(32), ord('"'), ord("\\"))}
_SPECIAL = r'["\\\x00-\x1f]'
_BREAK = "\0"
"""Surrounds the parts of a message that differ by row; no wording contains it."""
_VALUE, _KEPT, _DETAIL = "value", "kept", "detail"


class _Wording(NamedTuple):
    """The JSON of a reason around the parts that differ by row, in this order."""

    before: str
    """Followed by the value, if the message quotes it."""
    between: str
    """Followed by the kept part of the value."""
    after: str
    """Followed by a blank and the detail."""
    meta: str
    """Followed by the value, if Meta has it."""
    quotes: bool
    shows: bool


class OfField(NamedTuple):
    """One reason against a field: its rows, in order, and the texts of each."""

    code: str
    field: str
    rows: Rows
    wording: _Wording
    facts: Mapping[str, pl.Series]
    """Texts that differ by row; a fact that is missing here is null for all rows."""

    @property
    def first_value(self) -> str:
        """What ErrorData shows as the value of the first row."""
        return str(_excerpts(self.facts[_VALUE].head(1))[0] or "") if self.wording.shows else ""

    def only(self, chosen: NDArray[np.bool_]) -> "OfField":
        if chosen.all():
            return self
        there = pl.Series(chosen)
        facts = {name: texts.filter(there) for name, texts in self.facts.items()}
        return self._replace(rows=self.rows[chosen], facts=facts)

    def but(self, others: Sequence["OfField"]) -> "OfField":
        """The same reason without rows that any of the others has."""
        if not others:
            return self
        return self.only(~np.isin(self.rows, np.concatenate([one.rows for one in others])))

    def between(self, first: int, beyond: int) -> "OfField":
        """Only the rows from `first` to before `beyond`, renumbered from 0."""
        begin, end = np.searchsorted(self.rows, (first, beyond)).tolist()
        facts = {name: texts.slice(begin, end - begin) for name, texts in self.facts.items()}
        return self._replace(rows=self.rows[begin:end] - first, facts=facts)

    def fact(self, name: str) -> pl.Series:
        """One of the facts, null if the reason does not have it."""
        return self.facts[name] if name in self.facts else empty_texts(len(self.rows))


@dataclass(frozen=True, slots=True)
class FieldErrors:
    """The reasons against the rows of a frame, in the order in which each row lists them."""

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

    def count(self, height: int) -> NDArray[np.intp]:
        """The number of reasons of each of `height` rows."""
        found = np.zeros(height, np.intp)
        for one in self.found:
            found[one.rows] += 1
        return found

    def without(self, rows: Rows) -> "FieldErrors":
        """The same without all reasons of these rows."""
        if not self or not len(rows):
            return self
        return FieldErrors([one.only(~np.isin(one.rows, rows)) for one in self.found])

    def among(self, chosen: NDArray[np.bool_]) -> "FieldErrors":
        """Only the reasons of the chosen rows, which are renumbered."""
        places = np.cumsum(chosen) - 1
        some = (one.only(chosen[one.rows]) for one in self.found)
        return FieldErrors([one._replace(rows=places[one.rows]) for one in some if len(one.rows)])

    def between(self, first: int, beyond: int) -> "FieldErrors":
        """Only the reasons of the rows from `first` to before `beyond`, renumbered from 0."""
        found = (one.between(first, beyond) for one in self.found)
        return FieldErrors([one for one in found if len(one.rows)])

    def counted(self, numbers: pl.Series, lines: pl.Series) -> list[list[str | int]]:
        """Each reason as code, field, number of rows, and record number, line, value of the first.

        `numbers` and `lines` are those of all rows, in the order of the rows.
        """
        return [
            [one.code, one.field, len(one.rows), numbers[first], lines[first], one.first_value]
            for one in self.found
            if len(one.rows)
            for first in (int(one.rows[0]),)
        ]

    def of_keys(
        self, table: Table, keys: Mapping[str, MadeKey], typed: pl.DataFrame
    ) -> "FieldErrors":
        """Move reasons against a made key to the fields it is made from: no file has the key.

        If one of these fields has a reason of its own, that is enough; else the empty ones get one.
        """
        if not keys:
            return self
        found: list[OfField] = []
        for one in self.found:
            key = keys.get(one.field)
            if key is None or not table.by_name.keys() >= {*key.names}:
                found.append(one)
                continue
            left = one.but([other for other in self.found if other.field in key.names])
            parts = []
            for name in key.names:
                empty = left.rows[typed[name][left.rows].is_null().to_numpy()]
                of, texts = table.by_name[name], empty_texts(len(empty))
                parts.append(of_field(table, of, "KeyPart", empty, texts, number=one.field))
            found += (left.but(parts), *parts)
        return FieldErrors(found)

    def instead(self, others: Sequence[OfField]) -> "FieldErrors":
        """Add others, each replacing any other reason against its field in its rows."""
        kept = (
            one.but([other for other in others if other.field == one.field]) for one in self.found
        )
        return FieldErrors([*kept, *others])

    def error_data(self, lines: pl.Series) -> tuple[Rows, pl.Series]:
        """The rows that have a reason, and their ErrorData; `lines` are the first lines of rows."""
        found = [one for one in self.found if len(one.rows)]
        if not found:
            return NO_ROWS, empty_texts(0)
        value, kept, detail = (
            pl.concat([one.fact(name) for one in found]) for name in (_VALUE, _KEPT, _DETAIL)
        )
        rows = np.concatenate([one.rows for one in found])
        wordings = pl.DataFrame([one.wording for one in found], _Wording._fields, orient="row")
        messages = wordings[np.repeat(np.arange(len(found)), [len(one.rows) for one in found])]
        messages = messages.hstack(
            [
                lines[rows].alias("line"),
                json_escaped(_excerpts(value)).alias(_VALUE),
                kept.alias(_KEPT),
                json_escaped(detail).alias(_DETAIL),
            ]
        )
        texts = messages.select(_TEXT).to_series()
        order = np.argsort(rows, kind="stable")
        rows, first, count = np.unique(rows[order], return_index=True, return_counts=True)
        nth = []
        for n in range(count.max()):
            there = np.flatnonzero(count > n)
            column = empty_texts(len(rows)).scatter(there, texts[order[first[there] + n]])
            nth.append(column.alias(str(n)))
        listed = pl.concat_str(pl.all(), separator=", ", ignore_nulls=True)
        return rows, pl.DataFrame(nth).select(pl.format("[{}]", listed)).to_series()


NO_ERRORS = FieldErrors()


def empty_texts(height: int) -> pl.Series:
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
    """One reason against a field in some rows; `texts` are the delivered ones, null for nothing.

    `facts` are further texts for the wording, the same for all rows.

    No value is shown for a record kind with secrets, because a lost cell may move a secret into the
    column of another field.
    """
    differs = {_VALUE: texts}
    if kept is not None:
        differs[_KEPT] = kept
    if table.unquotable:
        differs = {
            name: pl.select(pl.when(found.is_not_null()).then(pl.lit(NOT_SHOWN))).to_series()
            for name, found in differs.items()
        }
    elif detail is not None:
        differs[_DETAIL] = detail
    marks = {name: f"{_BREAK}{name}{_BREAK}" for name in (_VALUE, _KEPT)}
    message = REASONS[code].message(field=of.name, of=of.of or "", **facts, **marks)
    meta = {"stage": "check", "column": of.name}
    return OfField(code, of.name, rows, _wording(code, of.name, message, meta), differs)


def of_record(code: str, rows: Rows, details: pl.Series | None) -> OfField:
    """One reason against whole records, whose fields could not be split.

    `details` are texts beside the reason for each row, or null.
    """
    wording = _wording(code, "", REASONS[code].message(), {"stage": "read"}, shows=False)
    return OfField(code, "", rows, wording, {} if details is None else {_DETAIL: details})


def of_inner_record(name: str, rows: Rows, why: Sequence[str]) -> OfField:
    """The reason against insert-batch rows in which no record can be read."""
    code = "InnerRecord"
    message = REASONS[code].message(value=f"{_BREAK}{_VALUE}{_BREAK}")
    wording = _wording(code, name, message, {"stage": "merge", "column": name}, shows=False)
    return OfField(code, name, rows, wording, {_VALUE: pl.Series(why, dtype=pl.String)})


def _wording(
    code: str, name: str, message: str, meta: Mapping[str, str], *, shows: bool = True
) -> _Wording:
    """The JSON around the parts that differ by row, which `_BREAK`s surround in the message."""
    before, *parts = message.split(_BREAK)
    assert parts[::2] in ([], [_VALUE], [_VALUE, _KEPT]), message
    between, after = [*map(_inside, parts[1::2]), "", ""][:2]
    shape = {"ErrorCode": code, "FieldName": name, "Message": before}
    return _Wording(
        _json(shape).removesuffix('"}'),
        between,
        after,
        f'", "Meta": {_json(meta)}'.removesuffix("}"),
        bool(parts),
        shows,
    )


_TEXT = pl.concat_str(
    "before",
    pl.when("quotes").then(_VALUE),
    "between",
    _KEPT,
    "after",
    pl.lit(" ") + pl.col(_DETAIL),
    "meta",
    pl.when("shows").then(pl.lit(', "value": "') + pl.col(_VALUE) + pl.lit('"')),
    pl.lit(', "line": "'),
    "line",
    pl.lit('"}}'),
    ignore_nulls=True,
)
"""The JSON of one reason, from the columns of its wording and facts."""


def settled_errors(
    code: str, name: str, values: pl.Series, lines: pl.Series, of: str = ""
) -> pl.Series:
    """ErrorData of rows that are wrong in the delivery as a whole, as written by the database."""
    frame = pl.DataFrame({"value": json_escaped(values), "line": lines.cast(pl.String)})
    message = REASONS[code].message(field=name, value=_BREAK, of=of)
    before, after = map(_inside, message.split(_BREAK))
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


def _excerpts(texts: pl.Series) -> pl.Series:
    """The beginning of each delivered text, with its whole remark."""
    if not (texts.str.len_bytes() > SHOWN_CHARACTERS).any():
        return texts.str.replace_all(UNFIT, "", literal=True)
    text, remark = pl.col("field_0"), pl.col("field_1")
    cut = text.str.slice(0, SHOWN_CHARACTERS) + MORE
    excerpt = pl.when(text.str.len_chars() > SHOWN_CHARACTERS).then(cut).otherwise(text)
    parts = texts.str.splitn(UNFIT, 2).struct.unnest()
    return parts.select(excerpt + remark.fill_null("")).to_series()


def json_escaped(texts: pl.Series) -> pl.Series:
    if texts.null_count() == len(texts) or not texts.str.contains(_SPECIAL).any():
        return texts
    return texts.str.replace_many(list(_ESCAPED), list(_ESCAPED.values()))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _inside(text: str) -> str:
    return _json(text)[1:-1]
