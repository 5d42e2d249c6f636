"""A filter for the breaks of a run, whose fields are the same in an address and in a form."""

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
"""Columns in which each word of free text is searched, ignoring case."""
AMOUNTS = ("amount", "delta")
"""Columns in which free text that is a number is searched, ignoring its sign."""
LONGEST_NUMBER = 50
"""The most digits, and the highest power of ten, of a number that is searched."""
FIELDS = (*TEXTS, *NUMBERS, *WORDS, "state", "age", "amount", "text")
"""Names of the fields, in addresses and forms.

`age` is the minimum age in days, `amount` the minimum amount; a break has to match every field.
"""
TYPED = ("age", "amount")
"""Fields whose number a form shows and reads in the visitor's own form of numbers."""
LONGEST = 200
"""The most characters of a value; further ones are ignored."""


@dataclass(frozen=True, slots=True)
class BreakSearch:
    """What was searched for; an empty field has no effect."""

    typed: Mapping[str, str]

    @classmethod
    def read(cls, sent: Mapping[str, object]) -> "BreakSearch":
        """The filter in an address or a form, which may have other fields as well."""
        given = {name: sent.get(name, "") for name in FIELDS}
        texts = {name: one.strip()[:LONGEST] for name, one in given.items() if isinstance(one, str)}
        return cls({name: one for name, one in texts.items() if one})

    def __getitem__(self, name: str) -> str:
        """The text typed in a field; empty if there is none."""
        return self.typed.get(name, "")

    def query(self, **more: object) -> str:
        """The filter as part of an address, with some fields replaced and empty ones left out."""
        fields = {**self.typed, **{name: str(value) for name, value in more.items()}}
        return urlencode({name: value for name, value in fields.items() if value != ""})

    def canonical(self, numbers: Numbers) -> "BreakSearch":
        """The filter with a form's numbers in the form of addresses; raises DecisionRefused."""
        show = ShowAs(numbers=numbers)
        read = {name: _number(name, self[name], show) for name in TYPED if self[name]}
        return BreakSearch({**self.typed, **{name: format(one, "f") for name, one in read.items()}})

    def in_form(self, name: str, numbers: Numbers) -> str:
        """An address's number as a form shows it; a text that is no number stays as it is."""
        show = ShowAs(numbers=numbers)
        number = None if show == AS_EVER else read_number(AS_EVER, self[name])
        return self[name] if number is None else typed(show, number)

    def fitting(self, breaks: pl.DataFrame) -> pl.DataFrame:
        """The matching breaks of a frame from `Kept.breaks`; raises DecisionRefused."""
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
    """Which breaks have no value in a field; a refused file's record kind is empty."""
    return pl.col(name).cast(pl.String).fill_null("") == ""


def _has_word(word: str) -> pl.Expr:
    return pl.any_horizontal(
        pl.col(one).str.to_lowercase().str.contains(word, literal=True).fill_null(value=False)
        for one in SEARCHED
    )


def _is_amount(size: Decimal) -> pl.Expr:
    return pl.any_horizontal((pl.col(one).abs() == size).fill_null(value=False) for one in AMOUNTS)


def _numbers(text: str) -> set[Decimal]:
    """The numbers a text may mean in any form that pages use, without its sign."""
    found = set()
    for numbers in Numbers:
        try:
            number = read_number(ShowAs(numbers=numbers), text)
        except DecisionRefused:  # Ambiguous in this form; each reading appears with another form.
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
    """A number as people type it; blanks and apostrophes between digits are ignored."""
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
