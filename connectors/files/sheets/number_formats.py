"""Number formats of workbooks: the kind of number they make, and the currency they show."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from schemas.currency_codes import code_of_sign, is_sign

MOST_SIGNS = 255
"""Longest number format of a spreadsheet."""

_TOKEN = re.compile(
    r"""\[\$(?P<sign>[^\]-]*)(?:-(?P<locale>[^\]]*))?\]
    | "(?P<quoted>[^"]*)" | \\(?P<escaped>.)
    | (?P<other>\[[^\]]*\] | [_*]. | [0-9\#?;@%.,] | (?i:General))
    | (?P<bare>.)""",
    re.VERBOSE | re.DOTALL,
)


_LETTERS = frozenset("dmyhsDMYHS")
"""Letters that stand for a part of a time."""
_HOURS = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)


class CellFormat(NamedTuple):
    is_time: bool = False
    """The number is a day or a time."""
    is_duration: bool = False
    """The hours continue beyond 24."""
    currency: str | None = None
    digits: int = 1
    """Digits of the whole number that are always shown, with leading zeros."""


# Source: ECMA-376, Part 1, 18.8.30; from 27 on they are days and times in East Asian locales.
BUILT_IN = {
    **dict.fromkeys((*range(14, 23), *range(27, 37), 45, 47), CellFormat(is_time=True)),
    **dict.fromkeys((*range(50, 59), *range(71, 82)), CellFormat(is_time=True)),
    46: CellFormat(is_time=True, is_duration=True),
}
"""By number: formats of days and times that a workbook does not spell out."""
PLAIN = CellFormat()


@lru_cache(maxsize=1024)
def cell_format(number_format: str) -> CellFormat:
    """The kind of number a format makes; if it has sections, the first is that of most numbers."""
    currency = currency_of(number_format)
    tokens = [*takewhile(lambda one: one[0] != ";", _TOKEN.finditer(number_format[:MOST_SIGNS]))]
    hours = any(_HOURS.fullmatch(one["other"] or "") for one in tokens)
    letters = any(one["bare"] in _LETTERS for one in tokens)
    whole = takewhile(lambda one: one[0] not in {".", "E", "e", "/"}, tokens)
    digits = sum(one["other"] == "0" for one in whole)
    # Letters of an unquoted code (`0.00 USD`) belong to its currency.
    return CellFormat(hours or (letters and currency is None), hours, currency, digits)


def currency_of(number_format: str) -> str | None:
    """The code of the only currency a format names; None if it names none or several.

    Signs like `$` belong to several currencies unless a locale decides (`[$$-409]`); beside another
    currency's sign they count as a second one.
    """
    if len(number_format) > MOST_SIGNS:
        return None
    found = {*_currencies(number_format)}
    return found.pop() if len(found) == 1 else None


def _currencies(number_format: str) -> Iterator[str | None]:
    """The currencies of a format; None for a sign of unknown currency."""
    text = ""
    for token in _TOKEN.finditer(f"{number_format};"):
        text += token["quoted"] or token["escaped"] or token["bare"] or ""
        if (token["sign"] or "").strip():
            yield code_of_sign(token["sign"], token["locale"] or "")
        if token["sign"] is not None or token["other"]:
            # Only the whole text between two numbers can be a sign: `"TOTAL EUR"` is none.
            code = code_of_sign(text)
            if code or is_sign(text):
                yield code
            text = ""
