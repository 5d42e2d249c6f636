"""Numbers as a feed writes them: in the forms that it states by examples, and in no other.

An example shows how one is written: `-1`, `1-`, `(1)`, `1 DR`. The text around its 1 stands around
every number of that form; a blank in it is one blank of any kind.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from itertools import product

import polars as pl

from schemas.amounts import MOST_SCALE
from schemas.cells.reading import UNFIT
from schemas.counting import quantity

BLANKS = " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}\N{FIGURE SPACE}"
AROUND = " \t"
"""Blanks around a cell that are not part of it."""
BLANK = "blank"
"""As a sign between thousands: a blank of any kind."""
GROUPS, LAST_GROUP = {"thousands": 3, "lakh": 2}, 3
"""The digits of each group of a number, and of its last group in any case."""
NEGATIVE, POSITIVE = ("-1",), ("1", "+1")
BESIDE, OVERPUNCHED = "beside", "overpunched"
"""The place of a number's sign: beside its digits, or in the last of them."""
_ABOVE, _BELOW = "{ABCDEFGHI", "}JKLMNOPQR"
"""The last digit from 0 to 9 of a number above zero, and of one below it."""
_PUNCHED = {sign: str(at) for signs in (_ABOVE, _BELOW) for at, sign in enumerate(signs)}
_STATED = "\ue000"
"""Stands for a currency sign that ends with the decimal sign; no text contains it."""
_ONE = re.compile(r"([^0-9]*)1([^0-9]*)")
_DIGIT = r"\p{Nd}"
_BEHIND = rf"\.[0-9]{{1,{MOST_SCALE}}}"
_PLAIN = rf"[-+]?(?:[0-9]{{1,30}}(?:{_BEHIND})?|{_BEHIND})"
_DIGITS, _EXACT = re.compile(_PLAIN), re.compile(rf"{_PLAIN}(?:[eE][-+]?[0-9]{{1,2}})?")


class NoNumberForm(ValueError):
    """Texts that state no form of numbers, and why."""


@dataclass(frozen=True, slots=True)
class NumberForm:
    """How a feed writes numbers; the default is the service document's form."""

    decimal: str = "."
    thousands: str = ""
    """The sign between groups of digits; `BLANK`: any single blank."""
    negative: tuple[str, ...] = NEGATIVE
    """Examples of minus one; empty if no number is below zero."""
    positive: tuple[str, ...] = POSITIVE
    """Examples of one."""
    currency: tuple[str, ...] = ()
    """Examples of one with a currency sign or code, which numbers may have or not."""
    percent: str | None = None
    """What a percent sign after a number means: as a `share`, 5 % is 0.05; in `points`, it is 5."""
    implied: int = 0
    """How many of the last digits are decimals although no decimal sign is written."""
    groups: str = "thousands"
    """How digits are grouped, a key of `GROUPS`, if a sign stands between groups."""
    decimals: int | None = None
    """The most decimals; 0: no decimal sign either. None: any number of decimals."""
    zero: tuple[str, ...] = ()
    """Texts without a digit that mean zero."""
    sign: str = BESIDE
    """`BESIDE`, as the examples show; `OVERPUNCHED`: the last digit is also the sign."""

    def plain(self, text: pl.Expr) -> pl.Expr:
        """The number in each text, with a decimal point; a text that is not a number is marked.

        A text without a digit stays as it is, because it may be recognised by name, like NaN.
        """
        found = text.map_batches(self._plain, return_dtype=pl.String, is_elementwise=True)
        if not self.zero:
            return found
        cell = text.str.strip_chars(AROUND).str.replace_all(f"[{BLANKS[1:]}]", " ")
        return (
            pl.when(cell.is_in([*map(_plain_blanks, self.zero)])).then(pl.lit("0")).otherwise(found)
        )

    def _plain(self, texts: pl.Series) -> pl.Series:
        """Convert numbers; those with nothing around their digits take a shorter way."""
        text = pl.lit(texts)
        if self.sign == OVERPUNCHED:
            return pl.select(self._overpunched(text)).to_series()
        if self.percent or "1" not in self.positive:
            return pl.select(self._signed(text)).to_series()
        bare = texts.str.contains(f"^{_core(self)}$").fill_null(value=True)
        digits = pl.select(self._digits(text)).to_series()
        if bare.all():
            return digits
        rest = pl.select(self._signed(pl.lit(texts.filter(~bare)))).to_series()
        return digits.scatter((~bare).arg_true(), rest)

    def _signed(self, text: pl.Expr) -> pl.Expr:
        body = text.str.strip_chars(AROUND)
        if not self.is_of_digits:
            body = body.str.replace(rf"^([^{self.decimal}]*[0-9])[{self.decimal}]$", "$1")
        signs = _signs(self)
        if words := "|".join(_ending_with_point(self)):
            body = body.str.replace(rf"(?:{words})([0-9])", f"{_STATED}$1")
            signs = {re.sub(rf"(?:{words})1", f"{_STATED}1", key): signs[key] for key in signs}
        # Whether the point in `Rs.500` ends a word is unknown unless that is stated.
        unknown = body.str.contains(rf"\p{{L}}{re.escape(self.decimal)}[0-9]")
        unknown |= text.str.contains(_STATED)
        around = body.str.replace(_core(self), "1").str.replace_all(f"[{BLANKS[1:]}]", " ")
        sign = around.replace_strict(signs, default=None, return_dtype=pl.String)
        sign = pl.when(~unknown).then(sign)
        number = pl.concat_str(sign, self._digits(body.str.extract(_core(self), 0)))
        return pl.when(sign.is_not_null()).then(number).otherwise(self._marked(text))

    def _overpunched(self, text: pl.Expr) -> pl.Expr:
        body = text.str.strip_chars(AROUND)
        last = body.str.tail(1)
        sign = pl.when(last.is_in([*_BELOW])).then(pl.lit("-")).otherwise(pl.lit(""))
        digits = pl.concat_str(body.str.head(-1), last.replace(_PUNCHED))
        number = pl.concat_str(sign, self._digits(digits))
        known = body.str.contains("^[0-9]*[0-9A-R{}]$")
        return pl.when(known).then(number).otherwise(self._marked(text))

    def _marked(self, text: pl.Expr) -> pl.Expr:
        """The mark on a text that is not a number, unless it has no digit."""
        marked = pl.concat_str(text, pl.lit(f"{UNFIT} ({self.description})"))
        return pl.when(text.str.contains(_DIGIT)).then(marked).otherwise(text)

    @property
    def around(self) -> Mapping[tuple[str, str], str]:
        """What may stand before and after the digits, with one blank for any; and its sign."""
        return {tuple(text.split("1")): sign for text, sign in _signs(self).items()}  # type: ignore[misc]

    @property
    def is_of_digits(self) -> bool:
        """Whether no decimal sign is written."""
        return bool(self.implied) or self.decimals == 0 or self.sign == OVERPUNCHED

    @property
    def whole(self) -> "NumberForm":
        """The same for whole numbers, which have no decimals and are never amounts."""
        return replace(self, implied=0, decimals=None, zero=(), sign=BESIDE)

    @property
    def count(self) -> "NumberForm":
        """The same for numbers that count something, whatever is written around an amount."""
        return NumberForm(self.decimal, self.thousands, groups=self.groups)

    @property
    def description(self) -> str:
        """The form, for the person who corrects a number."""
        parts = [f"decimal sign is {self.decimal!r}"]
        if self.implied:
            parts = [f"digits alone, the last {self.implied} of them decimals"]
        elif self.is_of_digits:
            parts = ["digits alone, no decimals"]
        if self.thousands:
            blank = self.thousands == BLANK
            parts.append(f"thousands sign is {'a blank' if blank else repr(self.thousands)}")
        if self.groups != "thousands":
            parts.append(f"groups are those of {self.groups}")
        if self.negative != NEGATIVE:
            minus = f"minus one is {' or '.join(self.negative)}"
            parts.append(minus if self.negative else "no number is below zero")
        if self.positive != POSITIVE:
            parts.append(f"plus one is {' or '.join(self.positive)}")
        if self.currency:
            parts.append(f"with a currency it is {' or '.join(self.currency)}")
        if self.percent:
            parts.append("with a percent sign")
        if self.decimals and not self.is_of_digits:
            parts.append(f"at most {quantity(self.decimals, 'decimal')}, no power of ten")
        if self.sign == OVERPUNCHED:
            parts.append("the last digit is overpunched with the sign")
        if self.zero:
            parts.append(f"zero is {' or '.join(self.zero)}")
        return "; ".join(parts)

    def _digits(self, core: pl.Expr) -> pl.Expr:
        if self.thousands:
            core = core.str.replace_all(_class(self.thousands), "")
        if self.decimal != ".":
            core = core.str.replace(self.decimal, ".", literal=True)
        if self.implied:
            core = self._with_point(core)
        return pl.concat_str(core, pl.lit("e-2")) if self.percent == "share" else core

    def _with_point(self, digits: pl.Expr) -> pl.Expr:
        """Digits with their implied point, and without leading zeros."""
        padded = digits.str.zfill(self.implied + 1)
        whole = padded.str.head(-self.implied).str.replace("^0+([0-9])", "$1")
        return pl.concat_str(whole, pl.lit("."), padded.str.tail(self.implied))


_NO_CURRENCY = set("+-()%\u2212\u2013")
"""Not allowed in a currency: they would hide a number's sign, or that it is a share."""


def plain_number(text: str) -> Decimal | None:
    """The exact number that a text of plain digits gives; None if it gives none."""
    return Decimal(text) if _DIGITS.fullmatch(text) else None


def exact_number(text: str) -> Decimal | None:
    """The same for a text that may have a power of ten, as a record's amount may."""
    return Decimal(text) if _EXACT.fullmatch(text) else None


def check_forms(form: NumberForm) -> None:
    """Refuse examples that state nothing or have both signs; raises NoNumberForm."""
    of_signs = [_around(one) for one in (*form.negative, *form.positive)]
    for one in form.currency:
        text = "".join(_around(one))
        if not text:
            raise NoNumberForm(f"{one!r} has no sign of a currency. Write '€1' or '1 EUR'")
        if {*text} & _NO_CURRENCY:
            why = "what says the sign of a number is beside it"
            raise NoNumberForm(f"{one!r} is no currency: {why}")
    _check_overpunched(form)
    # No text may be below zero by one example and above it by another.
    sign_of: dict[str, str] = {}
    examples = [(one, "-") for one in form.negative] + [(one, "") for one in form.positive]
    for text, sign in (*((_plain_blanks(one), sign) for one, sign in examples), *_each_sign(form)):
        if sign_of.setdefault(text, sign) != sign:
            raise NoNumberForm(f"{text!r} is below zero and above it")
    signs = {form.decimal, form.thousands} - {"", BLANK, *BLANKS}
    if any(sign in before + behind for sign in signs for before, behind in of_signs):
        raise NoNumberForm("the decimal sign, or that between thousands, stands in an example")
    found = _signs(form)
    for text in found:
        if f"{form.decimal}1" in text and text.replace(f"{form.decimal}1", "1") in found:
            raise NoNumberForm(
                f"the decimal sign before the 1 of {text!r} could be that of a number, because it "
                "may stand without it as well"
            )


def _check_overpunched(form: NumberForm) -> None:
    """Refuse a single letter right beside digits, which may be the last digit with its sign.

    A brace cannot be anything else, so it is always refused.
    """
    signs = form.is_of_digits
    parts = [(one, _around(one)) for one in (*form.negative, *form.positive)]
    parts += [(one, ("", _around(one)[1])) for one in form.currency]
    for one, around in parts:
        if any(text in {*"{}"} or (signs and len(text) == 1 and text.isalpha()) for text in around):
            raise NoNumberForm(
                f"{one!r} may be an overpunched sign, which is a digit too (0001234J is -123.41). "
                'Say sign = "overpunched" instead; a flag of another column is joined by a blank: '
                "'1 D'"
            )


def _around(example: str) -> tuple[str, str]:
    """The texts before and after the one of an example."""
    match = _ONE.fullmatch(example)
    if match is None:
        why, instead = "there is no 1 in it", ""
        if "1" in example:
            why = "it has a second digit"
            instead = "; where a code of digits says the sign, name it in per.map of a sum"
        raise NoNumberForm(
            f"{example!r} does not show how one is written: {why}. Write '1-', '(1)'{instead}"
        )
    if example != example.strip(AROUND):
        raise NoNumberForm(f"{example!r} has blanks around it, which a number never has")
    return match[1], match[2]


@cache
def _core(form: NumberForm) -> str:
    """A pattern for the digits of a number with the signs between them."""
    whole = "[0-9]+"
    if form.thousands:
        size, sign = GROUPS[form.groups], _class(form.thousands)
        first = f"[1-9][0-9]{{0,{size - 1}}}"
        whole = f"(?:{first}(?:{sign}[0-9]{{{size}}})*{sign}[0-9]{{{LAST_GROUP}}}|{whole})"
    if form.is_of_digits:
        return whole
    point, most = re.escape(form.decimal), "" if form.decimals is None else form.decimals
    plain = form.percent == "share" or form.decimals is not None
    exponent = "" if plain else "(?:[eE][+-]?[0-9]+)?"
    # In `500. kr` the point may be the currency's. Without currencies, no digit need follow it.
    least = 1 if form.currency else 0
    return f"(?:{whole}(?:{point}[0-9]{{{least},{most}}})?|{point}[0-9]{{1,{most}}}){exponent}"


@cache
def _signs(form: NumberForm) -> Mapping[str, str]:
    """What may stand around the digits, with 1 for them and one blank for any; and its sign."""
    return dict(_each_sign(form))


def _each_sign(form: NumberForm) -> Iterator[tuple[str, str]]:
    """The same for each of the examples; two of them may give one text."""
    currencies = [("", ""), *map(_around, form.currency)]
    percents = ("%", " %") if form.percent else ("",)
    for one in (*form.negative, *form.positive):
        before, behind = _around(one)
        sign = "-" if one in form.negative else ""
        for (left, right), percent in product(currencies, percents):
            yield _plain_blanks(f"{before}{left}1{percent}{right}{behind}"), sign
            yield _plain_blanks(f"{left}{before}1{percent}{behind}{right}"), sign


def _plain_blanks(text: str) -> str:
    return "".join(" " if sign in BLANKS else sign for sign in text)


@cache
def _ending_with_point(form: NumberForm) -> tuple[str, ...]:
    """Patterns of currency signs before the digits that end with a point.

    The longest comes first, so that none is taken for the end of another.
    """
    words = [before for before, _ in map(_around, form.currency) if before.endswith(form.decimal)]
    return tuple(
        "".join(f"[{BLANKS}]" if sign == " " else re.escape(sign) for sign in word)
        for word in sorted(words, key=len, reverse=True)
    )


def _class(sign: str) -> str:
    return f"[{BLANKS}]" if sign == BLANK else re.escape(sign)
