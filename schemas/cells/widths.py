"""Full-width characters, as East Asian texts have them, and their ordinary equivalents."""

import polars as pl

_WIDE = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)} | {
    "\N{IDEOGRAPHIC SPACE}": " "
}
"""Full-width digits, letters and signs, each with its ordinary form."""
_TABLE = str.maketrans(_WIDE)


def usual_width(texts: pl.Expr) -> pl.Expr:
    """Texts with full-width characters replaced by ordinary ones."""
    return texts.str.replace_many(_WIDE)


def of_usual_width(text: str) -> str:
    """The same for one text."""
    return text.translate(_TABLE)
