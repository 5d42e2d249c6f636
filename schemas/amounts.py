"""Amounts: exact decimals, and texts where no decimal fits."""

import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact

EXACT = Context(prec=400_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])
"""Wide enough for any sum of numbers that PostgreSQL holds; raises rather than lose a digit."""

KEYS = "keys"
"""The name of a hash total over keys, where it stands among amount fields."""

BEYOND = "_beyond"
"""Suffix: the text of an amount that no exact column can hold; null for all other amounts.

Frames of reconciliation only, and only where there is such an amount.
"""

UNREADABLE = "_unreadable"
"""Suffix: the text in place of an amount that cannot be read; null for all other amounts.

Frames of reconciliation only, and only where there is such an amount.
"""

MOST_CHARACTERS = 60
"""A longer number is shown with a power of ten and all its digits: 1e308."""


def spelled(number: Decimal) -> str:
    """The canonical text of a number: equal numbers have equal texts."""
    if not number.is_finite():
        return str(number)
    sign, digits, exponent = EXACT.normalize(number).as_tuple()
    assert isinstance(exponent, int), "finite"
    plain = format(EXACT.normalize(number), "f")
    if len(plain) <= MOST_CHARACTERS:
        return plain
    return f"{'-' * sign}{''.join(map(str, digits))}e{exponent}"


def addends(number: Decimal) -> list[Decimal]:
    """Split a number too long to read at its long runs of zeros; any other is its only addend."""
    size = format(EXACT.normalize(number.copy_abs()), "f")
    if len(size) <= MOST_CHARACTERS:
        return [number]
    whole, _, decimals = size.partition(".")
    return [
        Decimal(part[0]).scaleb(len(whole) - part.end(), EXACT).copy_sign(number)
        for part in re.finditer(r"[1-9](?:(?!0{20})[0-9])*", whole + decimals)
    ]


def in_text(amount: Decimal) -> str:
    """Money within a sentence, exact: at least two decimals, and a long number as 1e308 + 10.50."""
    terms = []
    for one in addends(amount.copy_abs()):
        text = spelled(one)
        whole, _, decimals = text.partition(".")
        terms.append(text if "e" in text else f"{whole}.{decimals.ljust(2, '0')}")
    sign = "-" if amount < 0 else ""
    return sign + f" {sign or '+'} ".join(terms)


MICRO_DIGITS = 6
"""Decimal digits of an amount that is held as a whole number of millionths."""

MOST_SCALE = 38
"""The most decimal digits such an amount may be written with; those after the sixth are zeros, as
databases write amounts of a fixed scale."""

_WHOLE_DIGITS = 9
BEYOND_MILLIONTHS = 10 ** (_WHOLE_DIGITS + MICRO_DIGITS)
"""The lowest number of millionths that is too large for such an amount."""

_ZEROS = MOST_SCALE - MICRO_DIGITS
MILLIONTHS = rf"^-?[0-9]{{1,{_WHOLE_DIGITS}}}(\.[0-9]{{1,{MICRO_DIGITS}}}0{{0,{_ZEROS}}})?$"
"""Texts of such amounts; at most 15 significant digits, so they survive a double."""


def is_ceiling(amount: Decimal) -> bool:
    """Whether an acceptance may have it as its ceiling: above zero, and held exactly."""
    exponent = amount.as_tuple().exponent
    return amount.is_finite() and 0 < amount < 10**20 and int(exponent) >= -18
