"""Amounts as frames of reconciliation hold them: exact decimals, and texts of what fits none."""

import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact

EXACT = Context(prec=400_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])
"""Wide enough for any sum of what PostgreSQL holds as a number; a digit lost would raise."""

KEYS = "keys"
"""What a hash total is of, where it stands among amount fields."""

BEYOND = "_beyond"
"""Suffix: the text of an amount that no exact column holds; null beside all others.

Frames of reconciliation only, and only where there is such an amount.
"""

UNREADABLE = "_unreadable"
"""Suffix: what stands in place of an amount that cannot be read; null beside all others.

Frames of reconciliation only, and only where there is such an amount.
"""

MOST_CHARACTERS = 60
"""A longer number is told by a power of ten, to the last digit: 1e308."""


def spelled(number: Decimal) -> str:
    """The one text of a number: equal numbers are equal texts."""
    if not number.is_finite():
        return str(number)
    sign, digits, exponent = EXACT.normalize(number).as_tuple()
    assert isinstance(exponent, int), "finite"
    plain = format(EXACT.normalize(number), "f")
    if len(plain) <= MOST_CHARACTERS:
        return plain
    return f"{'-' * sign}{''.join(map(str, digits))}e{exponent}"


def addends(number: Decimal) -> list[Decimal]:
    """A number too long to be read, as the parts between its long rows of zeros; else itself."""
    size = format(EXACT.normalize(number.copy_abs()), "f")
    if len(size) <= MOST_CHARACTERS:
        return [number]
    whole, _, decimals = size.partition(".")
    return [
        Decimal(part[0]).scaleb(len(whole) - part.end(), EXACT).copy_sign(number)
        for part in re.finditer(r"[1-9](?:(?!0{20})[0-9])*", whole + decimals)
    ]


def in_text(amount: Decimal) -> str:
    """Money within a sentence, exact: two decimals or more, a long one as 1e308 + 10.50."""
    terms = []
    for one in addends(amount.copy_abs()):
        text = spelled(one)
        whole, _, decimals = text.partition(".")
        terms.append(text if "e" in text else f"{whole}.{decimals.ljust(2, '0')}")
    sign = "-" if amount < 0 else ""
    return sign + f" {sign or '+'} ".join(terms)


MICRO_DIGITS = 6
"""Digits behind the point of an amount that is held as a whole number of millionths."""

MOST_SCALE = 38
"""Digits behind the point that such an amount is written with at most; those beyond are zeros, as
databases write amounts of a fixed scale."""

_WHOLE_DIGITS = 9
BEYOND_MILLIONTHS = 10 ** (_WHOLE_DIGITS + MICRO_DIGITS)
"""The least number of millionths that is too large for such an amount."""

_ZEROS = MOST_SCALE - MICRO_DIGITS
MILLIONTHS = rf"^-?[0-9]{{1,{_WHOLE_DIGITS}}}(\.[0-9]{{1,{MICRO_DIGITS}}}0{{0,{_ZEROS}}})?$"
"""Texts of such amounts; of at most 15 digits that say something, so they survive a double."""
