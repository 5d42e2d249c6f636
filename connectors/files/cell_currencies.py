"""The currencies that cells of a sheet name beside their numbers, gathered while it is read."""

from array import array
from bisect import bisect_left

import polars as pl


class CellCurrencies:
    """Cells that name one, in the order of the sheet, each by where its line begins."""

    def __init__(self) -> None:
        self._bytes, self._columns = array("q"), array("q")
        self._codes: list[str] = []

    def note(self, byte: int, column: int, code: str) -> None:
        """The cell of a column, counted from 0, of the line that begins at this byte names one."""
        self._bytes.append(byte)
        self._columns.append(column)
        self._codes.append(code)

    def take(self, beyond: int) -> pl.DataFrame | None:
        """Those of the lines before a byte, which are given once; None: none of them names one.

        Columns: byte, column, code.
        """
        count = bisect_left(self._bytes, beyond)
        if not count:
            return None
        columns = self._bytes[:count], self._columns[:count], self._codes[:count]
        del self._bytes[:count], self._columns[:count], self._codes[:count]
        return pl.DataFrame(dict(zip(("byte", "column", "code"), columns, strict=True)))
