"""Full-width signs, as East Asian texts have them, and the usual ones that mean the same."""

import polars as pl

_WIDE = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)} | {
    "\N{IDEOGRAPHIC SPACE}": " "
}
"""Digits, letters and the signs around them, each with its usual form."""
_TABLE = str.maketrans(_WIDE)


def usual_width(texts: pl.Expr) -> pl.Expr:
    """Texts whose full-width signs are the usual ones."""
    return texts.str.replace_many(_WIDE)


def of_usual_width(text: str) -> str:
    """The same of one text."""
    return text.translate(_TABLE)
