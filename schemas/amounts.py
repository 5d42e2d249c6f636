"""Amounts as frames of reconciliation hold them: exact decimals, and texts of what fits none."""

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
