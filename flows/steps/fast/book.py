"""Translate the forms that a feed states into instructions for the loops.

Fields that the loops cannot read are left: texts cut by another kind of pattern, words that do not
stand for integers, times without a fixed layout.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from typing import NamedTuple, cast

import numpy as np

from flows.steps.fast.cells import MICRO, read_decimal, read_integer
from flows.steps.fast.forms import SHORT, Book, Form, HowRead, TimePart, Word, lines_of
from flows.steps.validate.normalise import CellForm
from flows.steps.validate.times import TimeForm
from schemas.amounts import MOST_SCALE
from schemas.cells.counted_times import EPOCHS
from schemas.cells.date_forms import DateForms
from schemas.cells.dates import date_parts
from schemas.cells.numbers import BLANK, BLANKS, GROUPS, OVERPUNCHED, NumberForm
from schemas.cells.reading import INTEGER_BITS
from schemas.field import TIMES, Field, Kind

Line = Mapping[str, int]
"""Attributes of a `HowRead`; those not given are 0."""
_HOW, _WORD = lines_of(HowRead), lines_of(Word)

_BEHIND_WORD = re.compile(
    r"([^.^$*+?{}\[\]|()\\]*?)(?:([^.^$*+?{}\[\]|()\\])\*)?\((?:\\d|\[0-9\])\+\)"
)
"""A pattern that finds digits behind a word and any number of repetitions of one character."""
_PARTS = {
    "Y": TimePart.YEAR,
    "y": TimePart.SHORT_YEAR,
    "m": TimePart.MONTH,
    "b": TimePart.MONTH_NAME,
    "d": TimePart.DAY,
    "H": TimePart.HOUR,
    "M": TimePart.MINUTE,
    "S": TimePart.SECOND,
}
_DAYS = [{"d", *month_and_year} for month_and_year in product("mb", "Yy")]
_CLOCK = {"H", "M", "S"}
_ISO = "%Y-%m-%dT%H:%M:%S"
_MOST_AROUND = 64
"""If signs are written in more ways, trying all of them takes longer than the strict path."""
_1970, _BEYOND = date(1970, 1, 1), date(9999, 1, 1)
_DAY = 86_400


class PlainValue(NamedTuple):
    """A value as returned by the loops; the companion of an amount is its number of decimals."""

    value: int
    companion: int


def plain_value(of: Field, text: str) -> PlainValue | None:
    """Read a text in the service document's own form; None if the loops would not read it."""
    written = np.frombuffer(text.encode(), np.uint8)
    if of.kind in INTEGER_BITS:
        end, value, known = read_integer(written, 0, len(written))
        known = known and end == len(written) and value <= _largest(of.kind)
        return PlainValue(int(value), 0) if known else None
    if of.kind is Kind.DOUBLE:
        end, value, scale, known = read_decimal(written, 0, len(written))
        return PlainValue(int(value), int(scale)) if known and end == len(written) else None
    return None


def is_unix(form: TimeForm) -> bool:
    """Whether times of this form are instants, whatever zone is stated."""
    epochs = [EPOCHS[text].epoch for text in form.dates.texts if text in EPOCHS]
    return len(epochs) == len(form.dates.texts) == 1 and epochs[0].tzinfo is not None


class Bookmaker:
    """Collects the instructions for reading fields, one field after the other."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._words: list[tuple[int, int, int]] = []
        self._columns: list[int] = []
        self._layout: list[int] = []
        self._how: list[Line] = []

    def add(self, of: Field, form: CellForm, columns: Sequence[int]) -> range:
        """Add a field made of these columns; return the range of its lines, empty if it is left.

        A sum has a line for each column that it adds up, any other field has one line.
        """
        first, total = len(self._how), form.sum
        default = PlainValue(0, 0) if form.default is None else plain_value(of, form.default)
        how = None if form.is_completed else self._how_read(of, form)
        if how is None or default is None:
            return range(0)
        if total is None:
            self._add_line(of, form, columns, how, default)
        elif of.kind is Kind.DOUBLE and total.scale == 1:
            added = columns if form.units is None else columns[:-1]
            for column in added:  # The default is that of the sum, not of each column.
                self._add_line(of, replace(form, default=None), [column], how, PlainValue(0, 0))
        return range(first, len(self._how))

    def _add_line(
        self, of: Field, form: CellForm, columns: Sequence[int], how: Line, default: PlainValue
    ) -> None:
        nulls = [text for text in form.null if text]
        # Words without digits are neither numbers nor times, so they can be checked after these.
        null_is_unambiguous = len(columns) == 1 and not any(map(str.isdigit, "".join(nulls)))
        self._how.append(
            {
                **how,
                **self._words_of("null", nulls),
                **self._range("column", self._columns, columns),
                "column": columns[0],
                "bare": null_is_unambiguous
                and how["form"] in (Form.INTEGER, Form.DECIMAL, Form.MOMENT),
                "join": self._words_of("join", [form.join])["first_join"],
                "one_number": len(columns) > 1 and form.is_one_number(of),
                "trimmed": form.blanks_dropped,
                "default_given": form.default is not None,
                "default": default.value,
                "default_companion": default.companion,
            }
        )

    def keep(self, column: int, words: Iterable[str], *, left_out: bool) -> None:
        """Leave out rows whose cell in a column is one of these words, or rows with any other."""
        self._how.append(
            {
                **self._words_of("word", words),
                **self._range("column", self._columns, [column]),
                "form": Form.KEPT,
                "trimmed": True,
                "left_out": left_out,
            }
        )

    def finish(self) -> tuple[Sequence[HowRead], Book]:
        lines = [tuple(of.get(name, 0) for name in _HOW.names or ()) for of in self._how]
        how = np.array(lines, _HOW).view(np.recarray)
        words = np.array(self._words, _WORD).view(np.recarray)
        return cast("Sequence[HowRead]", how), Book(
            np.frombuffer(bytes(self._text), np.uint8),
            cast("Sequence[Word]", words),
            np.array(self._columns, np.int64),
            np.array(self._layout, np.int16),
        )

    def _how_read(self, of: Field, form: CellForm) -> Line | None:
        if of.kind in INTEGER_BITS:
            return self._integer(of, form)
        if form.part is not None or form.map is not None:
            return None
        if of.kind is Kind.DOUBLE:
            return self._amount(form.number)
        if of.kind in TIMES:
            return self._time(form.time, instant=of.kind is Kind.DATETIME_OFFSET)
        return None

    def _integer(self, of: Field, form: CellForm) -> Line | None:
        if form.map is not None:
            values = {text: plain_value(of, value) for text, value in form.map.items()}
            known = {text: plain.value for text, plain in values.items() if plain}
            whole = form.part is None and len(known) == len(values)
            return {"form": Form.WORD, **self._words_of("word", known)} if whole else None
        number = form.number.whole
        if number != NumberForm() and (number.percent or number.around.get(("", "")) != ""):
            return None
        how = {"largest": _largest(of.kind)}
        if form.part is None:
            return how | {"form": Form.INTEGER}
        behind = None if form.unread else _BEHIND_WORD.fullmatch(form.part)
        if behind is None or not (behind[2] or "").isascii():
            return None
        between = ord(behind[2]) if behind[2] else -1
        word = self._words_of("word", [behind[1]])
        return how | {"form": Form.BEHIND, **word, "between": between}

    def _amount(self, form: NumberForm) -> Line | None:
        most = {"most_decimals": MOST_SCALE if form.decimals is None else form.decimals}
        if replace(form, decimals=None, zero=()) == NumberForm():
            return {"form": Form.DECIMAL, **most}
        around = {
            one: -1 if sign else 1
            for pair, sign in form.around.items()
            for one in product(*map(_with_blanks, pair))
        }
        if form.percent or form.sign == OVERPUNCHED or len(around) > _MOST_AROUND:
            return None
        if not form.decimal.isascii():
            return None
        groups = BLANKS if form.thousands == BLANK else [one for one in [form.thousands] if one]
        # Shortest first, because most numbers have nothing around them.
        pairs = sorted(around, key=lambda pair: len("".join(pair)))
        return {
            "form": Form.AMOUNT,
            "point": ord(form.decimal),
            **most,
            "implied": form.implied,
            **self._write("around", [(part, around[pair]) for pair in pairs for part in pair]),
            **self._words_of("group", groups),
            "group_digits": GROUPS[form.groups],
        }

    def _time(self, form: TimeForm, *, instant: bool) -> Line | None:
        if form == TimeForm():
            return {"form": Form.MOMENT, "instant": instant}
        if len(form.dates.texts) > 1 or form.dates.year_zero:
            return None
        offset = None if form.zone else form.offset_minutes
        if is_unix(form):
            offset = 0
        elif instant and offset is None and form.zone is None:
            return None
        how = {"instant": instant and offset is not None, "offset": offset or 0}
        if form.dates.counted:
            return _count(form.dates) | how
        layout = None if form.dates.months else _layout(*form.dates.texts)
        if layout is None:
            return None
        part = self._range("part", self._layout, layout)
        return how | {"form": Form.LAID_OUT, "short_year": -TimePart.SHORT_YEAR in layout, **part}

    def _words_of(self, name: str, words: Iterable[str] | Mapping[str, int]) -> Line:
        values = words if isinstance(words, Mapping) else dict.fromkeys(words, 0)
        return self._write(name, sorted(values.items(), key=lambda word: word[0].encode()))

    def _write(self, name: str, words: Iterable[tuple[str, int]]) -> Line:
        written = [(text.encode(), value) for text, value in words]
        first = len(self._words)
        for text, value in written:
            self._words.append((len(self._text), len(self._text) + len(text), value))
            self._text += text
        return {f"first_{name}": first, f"beyond_{name}": len(self._words)}

    def _range(self, name: str, of: list[int], more: Iterable[int]) -> Line:
        first = len(of)
        of.extend(more)
        return {f"first_{name}": first, f"beyond_{name}": len(of)}


def _largest(kind: Kind) -> int:
    return (1 << (INTEGER_BITS[kind] - 1)) - 1


def _with_blanks(text: str) -> Iterator[str]:
    """Yield the text with each blank replaced by every kind of blank."""
    return map("".join, product(*(BLANKS if sign == " " else sign for sign in text)))


def _count(form: DateForms) -> dict[str, int]:
    """How to read a number of steps since an epoch."""
    count = EPOCHS[form.texts[0]]
    first_day = (count.epoch.date() - _1970).days
    days = (_BEYOND - count.epoch.date()).days
    return {
        "form": Form.COUNT,
        "least": count.least,
        "largest": int(days * _DAY / count.seconds) - 1,
        "point": ord(form.decimal),
        "step": int(count.seconds * MICRO),
        "epoch": first_day * _DAY * MICRO,
    }


def _layout(date_format: str | None = None) -> list[int] | None:
    """The parts and bytes of a date format; None if it has other parts or is not of one day."""
    parts = [*date_parts(date_format or _ISO)]
    directives = {part.directive for part in parts if part.directive}
    if directives - _CLOCK not in _DAYS:
        return None
    return [
        sign
        for part in parts
        for sign in (
            [-(_PARTS[part.directive] + SHORT * (part.may_be_short and date_format is not None))]
            if part.directive
            else part.text.encode()
        )
    ]
