"""Columns of texts that a spreadsheet would take for formulas, by the same rule as one text."""

import polars as pl

from schemas.cells.formulas import FORMULA, NUMBER


def formulas(texts: pl.Expr) -> pl.Expr:
    """Which texts are taken for a formula; numbers and nulls are not."""
    number = texts.str.contains(f"^{NUMBER}$")
    return (texts.str.contains(FORMULA) & ~number).fill_null(value=False)


def defused(texts: pl.Expr) -> pl.Expr:
    """The texts with a `'` before each that would be taken for a formula."""
    return pl.when(formulas(texts)).then(pl.concat_str(pl.lit("'"), texts)).otherwise(texts)
