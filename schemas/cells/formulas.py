"""Texts that a spreadsheet would take for a formula: in a CSV file that it opens, or pasted."""

import re

import polars as pl

# Both readers of regular expressions take the signs themselves, and no one escape for them.
_FORMULA = "^[\\s\\x00]*[=+\\-@|%\uff1d\uff0b\uff0d\uff20]|^[\\t\\r\\n\\x00]"
_NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?"


def formulas(texts: pl.Expr) -> pl.Expr:
    """Which texts are taken for a formula; a number is none, and neither is null."""
    number = texts.str.contains(f"^{_NUMBER}$")
    return (texts.str.contains(_FORMULA) & ~number).fill_null(value=False)


def is_formula(text: str) -> bool:
    """The same of one text."""
    return bool(re.match(_FORMULA, text)) and not re.fullmatch(_NUMBER, text)


def defused(texts: pl.Expr) -> pl.Expr:
    """The texts with a `'` before each that would be taken for a formula."""
    return pl.when(formulas(texts)).then(pl.concat_str(pl.lit("'"), texts)).otherwise(texts)
