"""Texts that a spreadsheet would take for a formula when it opens a CSV file."""

import polars as pl

_FORMULA = r"^[\s\x00]*[=+\-@|%\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]|^[\t\r\n\x00]"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?$"


def formulas(values: pl.Series) -> pl.Series:
    """Which texts are taken for a formula; a number is none, and neither is null."""
    return (values.str.contains(_FORMULA) & ~values.str.contains(_NUMBER)).fill_null(value=False)


def defused(values: pl.Series) -> pl.Series:
    """The texts with a `'` before each that would be taken for a formula."""
    return values.zip_with(~formulas(values), "'" + values)
