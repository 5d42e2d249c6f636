"""Doubles as .NET writes them, in the invariant culture."""

import math
import re

_READABLE = re.compile(
    r"[ \t]*[+-]?(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?[ \t]*", re.ASCII
)
_NAMED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
FIXED_DIGITS = 15
"""Numbers with more digits than this before the point are written with an exponent."""


def double_text(value: float, *, shortest: bool) -> str:
    """15 digits as on .NET Framework, or the shortest text that reads back as on .NET Core."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0" if shortest and math.copysign(1, value) < 0 else "0"
    if not shortest:
        return f"{value:.15g}".replace("e", "E")
    text = repr(value)
    if "e" in text:
        return text.replace("e", "E")
    whole = text.removesuffix(".0")
    if abs(value) < 10**FIXED_DIGITS:
        return whole
    # Python still writes 16 digits where .NET already uses an exponent.
    digits = whole.lstrip("-").replace(".", "")
    exponent = len(whole.lstrip("-").partition(".")[0]) - 1
    fraction = digits[1:].rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}{'.' if fraction else ''}{fraction}E+{exponent:02}"


def read_double(text: str, *, overflows: bool) -> float | None:
    """A double, group commas allowed; None if the text is none.

    A number too large is infinite on .NET Core (`overflows`) and unreadable on .NET Framework.
    """
    named = _NAMED.get(text)
    if named is not None:
        return named
    if _READABLE.fullmatch(text) is None:
        return None
    value = float(text.replace(",", ""))
    return None if math.isinf(value) and not overflows else value
