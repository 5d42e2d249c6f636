"""Texts that a spreadsheet would take for a formula when it opens a CSV file."""

import polars as pl

_FORMULA = r"^[\s\x00]*[=+\-@|%\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]|^[\t\r\n\x00]"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?$"


def formulas(texts: pl.Expr) -> pl.Expr:
    """Which texts are taken for a formula; a number is none, and neither is null."""
    return (texts.str.contains(_FORMULA) & ~texts.str.contains(_NUMBER)).fill_null(value=False)


def defused(texts: pl.Expr) -> pl.Expr:
    """The texts with a `'` before each that would be taken for a formula."""
    return pl.when(formulas(texts)).then(pl.concat_str(pl.lit("'"), texts)).otherwise(texts)
