"""Number formats of workbooks: what a number is by them, and what they show beside it."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from schemas.currency_codes import code_of_sign, is_sign

MOST_SIGNS = 255
"""No number format of a spreadsheet is longer."""

_TOKEN = re.compile(
    r"""\[\$(?P<sign>[^\]-]*)(?:-(?P<locale>[^\]]*))?\]
    | "(?P<quoted>[^"]*)" | \\(?P<escaped>.)
    | (?P<other>\[[^\]]*\] | [_*]. | [0-9\#?;@%.,] | (?i:General))
    | (?P<bare>.)""",
    re.VERBOSE | re.DOTALL,
)


_LETTERS = frozenset("dmyhsDMYHS")
"""What stands for a part of a time."""
_HOURS = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)


class CellFormat(NamedTuple):
    is_time: bool = False
    """It is a day or a time."""
    is_duration: bool = False
    """Its hours go on behind 24."""
    currency: str | None = None
    digits: int = 1
    """So many of its whole number are shown, with zeros before it."""


# Source: ECMA-376, Part 1, 18.8.30; those from 27 on are days and times where East Asia counts.
BUILT_IN = {
    **dict.fromkeys((*range(14, 23), *range(27, 37), 45, 47), CellFormat(is_time=True)),
    **dict.fromkeys((*range(50, 59), *range(71, 82)), CellFormat(is_time=True)),
    46: CellFormat(is_time=True, is_duration=True),
}
"""By number: the formats of days and times that a workbook does not write down."""
PLAIN = CellFormat()


@lru_cache(maxsize=1024)
def cell_format(number_format: str) -> CellFormat:
    """What a number is by a format; of several parts of one, the first is that of most numbers."""
    currency = currency_of(number_format)
    tokens = [*takewhile(lambda one: one[0] != ";", _TOKEN.finditer(number_format[:MOST_SIGNS]))]
    hours = any(_HOURS.fullmatch(one["other"] or "") for one in tokens)
    letters = any(one["bare"] in _LETTERS for one in tokens)
    whole = takewhile(lambda one: one[0] not in {".", "E", "e", "/"}, tokens)
    digits = sum(one["other"] == "0" for one in whole)
    # Letters of a code that nobody quoted (`0.00 USD`) are those of its currency.
    return CellFormat(hours or (letters and currency is None), hours, currency, digits)


def currency_of(number_format: str) -> str | None:
    """The code of the one currency that a format names; None: it names none, or several.

    `$` and its like are those of several, unless a locale says which (`[$$-409]`); beside the sign
    of another currency they are a second one.
    """
    if len(number_format) > MOST_SIGNS:
        return None
    found = {*_currencies(number_format)}
    return found.pop() if len(found) == 1 else None


def _currencies(number_format: str) -> Iterator[str | None]:
    """The currencies of a format, None for a sign of which nobody knows whose it is."""
    text = ""
    for token in _TOKEN.finditer(f"{number_format};"):
        text += token["quoted"] or token["escaped"] or token["bare"] or ""
        if (token["sign"] or "").strip():
            yield code_of_sign(token["sign"], token["locale"] or "")
        if token["sign"] is not None or token["other"]:
            # What is written between two numbers is the sign as a whole: `"TOTAL EUR"` is none.
            code = code_of_sign(text)
            if code or is_sign(text):
                yield code
            text = ""
