"""A sign before what a spreadsheet would take for a formula, in CSV that is read again."""

import re
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_INVISIBLE = "\u200b-\u200f\u2060\ufeff"


class Guard:
    """Puts a sign before what a spreadsheet would run in a text of CSV, and removes it again.

    The sign stands at every place where some spreadsheet may begin a cell: at the start, after
    every usual delimiter and line end, and after the quotes there. A text that begins with the sign
    itself gets another one, so that `take` gives back exactly what `put` was given, for records and
    cells.
    """

    def __init__(self, delimiter: str, quote: str) -> None:
        self.sign = "'" if quote != "'" else "`"
        self._delimiter = re.escape(delimiter)
        self._delimiters = re.escape("".join(sorted({*",;\t|", delimiter})))
        self._quotes = re.escape("".join(sorted({'"', quote})))
        self._place = rf"(?:^|[{self._delimiters}]|\r\n|\r|\n)[{self._quotes}]*"

    def put(self, text: str) -> str:
        """The text with the sign before all that would be run, and before the sign itself."""
        return self._risky.sub(rf"\g<0>{self.sign}", text)

    def may_put(self, texts: "pl.Expr") -> "pl.Expr":
        """Which texts signs might change: all that they do change, and some more."""
        blank = rf"[{self._quotes}\s\x00-\x20\x{{200b}}-\x{{200f}}\x{{2060}}\x{{feff}}]*"
        risky = rf"[=+\-@|%\x{{ff1d}}\x{{ff0b}}\x{{ff0d}}\x{{ff20}}\t\r\n{self.sign}]"
        return texts.str.contains(rf"(?:^|[{self._delimiters}\r\n]){blank}{risky}")

    def take(self, text: str) -> str:
        """The text that `put` was given."""
        return self._signed.sub(r"\1", text)

    def take_all(self, cells: "pl.Expr") -> "pl.Expr":
        """The same for a column of cells."""
        return cells.str.replace_all(f"({self._place}){self.sign}", "${1}")

    @cached_property
    def _signed(self) -> re.Pattern[str]:
        return re.compile(f"({self._place}){self.sign}")

    @cached_property
    def _risky(self) -> re.Pattern[str]:
        # A lookahead takes runs whole, as some releases of 3.11 misread a possessive `*+`.
        start, quotes, own = rf"\A|[{self._delimiters}]", self._quotes, self._delimiter
        run = rf"[{quotes}]*(?![{quotes}])"
        end = rf"(?=[{quotes}]*(?:[{self._delimiters}\r\n]|\Z))"
        number = rf"[+-][0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?{end}"
        # Blanks that do not begin another cell; after a line end is a place of its own.
        blank = rf"(?![{own}\r\n])[\s\x00-\x20{_INVISIBLE}{quotes}]"
        formula = rf"(?:{blank})*(?!{blank})(?!{number})[=+\-@|%\uff1d\uff0b\uff0d\uff20]"
        return re.compile(
            rf"(?:{start}){run}(?=(?!{own})[\t\r\n])"
            # A delimiter ends an empty cell, which a sign would turn into a text.
            rf"|(?:{start}|\r\n|\r(?!\n)|\n)(?!{own}){run}(?={re.escape(self.sign)}|{formula})"
        )
