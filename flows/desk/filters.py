"""Which breaks of a run are meant: the fields of the filter, in an address and in a form alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlencode

import polars as pl

from connectors.errors import DecisionRefused
from flows.desk.formats import read_number, typed
from flows.stages.reconcile.breaks import in_state
from flows.steps.breaks.frame import BREAK_SCHEMA
from flows.steps.breaks.money import BASIS
from flows.steps.breaks.severity import is_at_least
from flows.steps.frames.beyond import fits
from schemas.breaks import Money, Severity
from schemas.show_as import AS_EVER, Numbers, ShowAs

NONE = "-"
"""In place of a value: breaks that have none."""
TEXTS = ("code", "cause", "record", "owner", "proposed_by")
NUMBERS = ("tenant", "currency")
WORDS = {BASIS: [*Money], "severity": [*Severity]}
SEARCHED = ("id", "key", "field", "expected", "found", "note", "file")
"""Where each word of free text is looked for, in either case of its letters."""
AMOUNTS = ("amount", "delta")
"""Where free text that is a number is looked for, whatever its sign."""
LONGEST_NUMBER = 50
"""Digits, and places of a power of ten, of a number that is looked for."""
FIELDS = (*TEXTS, *NUMBERS, *WORDS, "state", "age", "amount", "text")
"""Names of the fields, as addresses and forms have them.

`age` is the least age in days, `amount` the least amount; a break has to fit all that are given.
"""
TYPED = ("age", "amount")
"""Fields whose number a form has as whoever fills it in is shown numbers."""
LONGEST = 200
"""Characters of a value; the others are not looked at."""


@dataclass(frozen=True, slots=True)
class BreakSearch:
    """What was asked for; a field that was left empty asks for nothing."""

    typed: Mapping[str, str]

    @classmethod
    def read(cls, sent: Mapping[str, object]) -> "BreakSearch":
        """The filter of an address or a form, which may have more fields than these."""
        given = {name: sent.get(name, "") for name in FIELDS}
        texts = {name: one.strip()[:LONGEST] for name, one in given.items() if isinstance(one, str)}
        return cls({name: one for name, one in texts.items() if one})

    def __getitem__(self, name: str) -> str:
        """What was typed in a field; empty where nothing was."""
        return self.typed.get(name, "")

    def query(self, **more: object) -> str:
        """The same filter as an address has it, some fields given anew; empty ones go."""
        fields = {**self.typed, **{name: str(value) for name, value in more.items()}}
        return urlencode({name: value for name, value in fields.items() if value != ""})

    def canonical(self, numbers: Numbers) -> "BreakSearch":
        """The same with the numbers of a form as addresses have them; raises DecisionRefused."""
        show = ShowAs(numbers=numbers)
        read = {name: _number(name, self[name], show) for name in TYPED if self[name]}
        return BreakSearch({**self.typed, **{name: format(one, "f") for name, one in read.items()}})

    def in_form(self, name: str, numbers: Numbers) -> str:
        """A number of an address as a form has it; what is none, and what is as ever, stays."""
        show = ShowAs(numbers=numbers)
        number = None if show == AS_EVER else read_number(AS_EVER, self[name])
        return self[name] if number is None else typed(show, number)

    def fitting(self, breaks: pl.DataFrame) -> pl.DataFrame:
        """The breaks that fit, of a frame as `Kept.breaks` gives it; raises DecisionRefused."""
        wanted = [self._wanted(name, value) for name, value in self.typed.items()]
        return breaks.filter(*wanted) if wanted else breaks

    def _wanted(self, name: str, value: str) -> pl.Expr:
        if value == NONE and name in (*TEXTS, *NUMBERS):
            return has_none(name)
        if name in TEXTS:
            return pl.col(name) == value
        if name in WORDS:
            return pl.col(name) == _one_of(name, value)
        if name == "state":
            return in_state(value)
        if name == "text":
            has_words = pl.all_horizontal(_has_word(word) for word in value.lower().split())
            return pl.any_horizontal(has_words, *map(_is_amount, _numbers(value)))
        number = _number(name, value)
        if name == "amount":
            return is_at_least(number)
        if name == "age":
            return pl.col("age_days") >= int(number)
        return pl.col(name) == pl.lit(int(number)).cast(BREAK_SCHEMA[name])


def has_none(name: str) -> pl.Expr:
    """Which breaks have no value of a field; a file that was refused has an empty record kind."""
    return pl.col(name).cast(pl.String).fill_null("") == ""


def _has_word(word: str) -> pl.Expr:
    return pl.any_horizontal(
        pl.col(one).str.to_lowercase().str.contains(word, literal=True).fill_null(value=False)
        for one in SEARCHED
    )


def _is_amount(size: Decimal) -> pl.Expr:
    return pl.any_horizontal((pl.col(one).abs() == size).fill_null(value=False) for one in AMOUNTS)


def _numbers(text: str) -> set[Decimal]:
    """What a text may be as a number, in any form that pages write numbers in, without its sign."""
    found = set()
    for numbers in Numbers:
        try:
            number = read_number(ShowAs(numbers=numbers), text)
        except DecisionRefused:  # It is two numbers by this form, and each of them by another.
            continue
        if number is not None and abs(number.adjusted()) < LONGEST_NUMBER and fits(number):
            found.add(number.copy_abs())
    return found


def _one_of(name: str, value: str) -> str:
    if value not in WORDS[name]:
        known = ", ".join(WORDS[name])
        raise DecisionRefused(
            "There is no {what} {value!r}. Known: {known}.", what=name, value=value, known=known
        )
    return value


def _number(name: str, value: str, show: ShowAs = AS_EVER) -> Decimal:
    """A number as somebody types it: blanks and apostrophes between its digits are nothing."""
    number, whole = read_number(show, value), name != "amount"
    ours = number is not None and number.copy_abs() < (2**31 if whole else 10**20)
    if number is None or not ours or (whole and number != number.to_integral_value()):
        example = (
            "a whole number, as 30" if whole else f"an amount, as {typed(show, Decimal('1250.00'))}"
        )
        raise DecisionRefused(
            "{value!r} is no {what} to look for: give {example}.",
            value=value, what=name, example=example,
        )  # fmt: skip
    return number
