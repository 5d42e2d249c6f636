"""The rows of the sheet of breaks, written as XML column by column: 100,000 rows per second."""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

import polars as pl

from flows.report.reconciled.checks import DIGITS, survives
from flows.report.spelling import visible
from flows.steps.frames.beyond import beyond_texts
from schemas.amounts import BEYOND
from schemas.counting import quantity

CHUNK = 5_000
EPOCH = date(1899, 12, 30)
"""Day 0 of spreadsheets; before March 1900 they count days differently."""
FIRST_DAY = date(1900, 3, 1)
LONGEST = 32_000
"""Most UTF-16 units of a cell, in which spreadsheets count; they allow only a few more."""

_UNSEEN = r"[[\p{C}\p{Z}]--[ ]]"
"""Characters that break, hide or reorder a line, or that XML cannot hold."""
_NO_CHARACTERS = {0xFFFE: r"\ufffe", 0xFFFF: r"\uffff"}
_SHORT = rf"^-?[0-9.]{{1,{DIGITS}}}$"
"""Texts of numbers that a cell certainly holds."""
_SPECIAL = rf"{_UNSEEN}|[&<>]|_x"
"""Texts that have to be escaped; most columns have none."""


def rows_xml(frame: pl.DataFrame, styles: Sequence[str]) -> Iterator[bytes]:
    """Yield rows as `<row>` elements below the head; `styles` number the columns' formats.

    An amount that no exact column holds (`BEYOND`) is a text in its cell.
    """
    columns = [name for name in frame.columns if not name.endswith(BEYOND)]
    for start in range(0, frame.height, CHUNK):
        part = _escaped(frame.slice(start, CHUNK), columns)
        number = pl.int_range(2 + start, 2 + start + part.height).cast(pl.String)
        cells = [
            _cell(name, part[name], letter(place), style, beyond_texts(part, name))
            for place, (name, style) in enumerate(zip(columns, styles, strict=True))
        ]
        rows = part.with_columns(number.alias("_row")).select(
            pl.concat_str(pl.lit('<row r="'), "_row", pl.lit('">'), *cells, pl.lit("</row>"))
        )
        yield str(rows.to_series().str.join("").item()).encode()


def letter(column: int) -> str:
    """The name of a column: A, B ... Z, AA."""
    name = ""
    while column >= 0:
        name = chr(ord("A") + column % 26) + name
        column = column // 26 - 1
    return name


def cell_text(text: str) -> str:
    """Text that any spreadsheet can hold: odd characters spelled out, cut text with its length."""
    printable = visible(text).translate(_NO_CHARACTERS)
    if is_held(printable):
        return printable
    cut = printable.encode("utf-16-le")[: 2 * LONGEST].decode("utf-16-le", errors="ignore")
    return f"{cut}... ({quantity(len(text), 'character')})"


def is_held(text: str) -> bool:
    """Whether a cell has room for a text; a character may take two UTF-16 units."""
    return 2 * len(text) <= LONGEST or len(text.encode("utf-16-le")) <= 2 * LONGEST


def _cell(name: str, values: pl.Series, column: str, style: str, beyond: pl.Series) -> pl.Expr:
    head = (pl.lit(f'<c r="{column}'), pl.col("_row"), pl.lit(f'" s="{style}"'))
    texts = values.cast(pl.String)
    if isinstance(values.dtype, pl.Decimal):
        texts = beyond.zip_with(beyond.is_not_null(), texts.str.replace(r"\.?0+$", ""))
    text = pl.lit(texts)
    as_text = pl.concat_str(
        *head, pl.lit(' t="inlineStr"><is><t xml:space="preserve">'), text, pl.lit("</t></is></c>")
    )
    if values.dtype == pl.String:
        cell = as_text
    elif values.dtype == pl.Date:
        days = (pl.lit(values) - pl.lit(EPOCH)).dt.total_days().cast(pl.String)
        number = pl.concat_str(*head, pl.lit("><v>"), days, pl.lit("</v></c>"))
        cell = pl.when(pl.lit(values) >= FIRST_DAY).then(number).otherwise(as_text)
    else:
        number = pl.concat_str(*head, pl.lit("><v>"), text, pl.lit("</v></c>"))
        cell = pl.when(_held(texts)).then(number).otherwise(as_text)
    return cell.fill_null("").alias(f"_{name}")


def _held(texts: pl.Series) -> pl.Series:
    """Which numbers a cell holds exactly; only the few long ones are checked one by one."""
    short = texts.str.contains(_SHORT)
    long = texts.filter(~short).unique()
    return short | texts.is_in([text for text in long if survives(Decimal(text))])


def _escaped(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The rows with the named columns of text escaped for XML."""
    texts = [pl.col(name) for name in names if frame.schema[name] == pl.String]
    long, special = (
        frame.select(found).row(0, named=True)
        for found in (
            [(text.str.len_bytes().max() > LONGEST) for text in texts],
            [text.str.contains(_SPECIAL).any() for text in texts],
        )
    )
    odd = [name for name in special if special[name] or long[name]]
    return frame.with_columns(_marked(frame[name]) for name in odd)


def _marked(values: pl.Series) -> pl.Series:
    long = values.filter(values.str.len_bytes() > LONGEST).unique()
    cut = pl.Series([text for text in long if not is_held(text)], dtype=pl.String)
    unfit = values.str.contains(_UNSEEN) | values.is_in(cut.implode())
    if unfit.any():
        texts = values.filter(unfit).unique()
        values = values.replace(texts, pl.Series([cell_text(text) for text in texts]))
    # A spreadsheet would read _x0041_ as one character.
    values = values.str.replace_all(r"_(x[0-9A-Fa-f]{4}_)", "_x005F_${1}")
    return values.str.replace_many(["&", "<", ">"], ["&amp;", "&lt;", "&gt;"])
