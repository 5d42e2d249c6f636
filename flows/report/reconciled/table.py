"""The tables of the report: columns of a kind, and lines of values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

from flows.report.spelling import digits
from schemas.counting import agree, quantity

Cell = str | int | Decimal | date | None


class ColumnKind(StrEnum):
    WORD = "word"
    """Text of our own."""
    TEXT = "text"
    """Delivered text."""
    NUMBER = "number"
    """A number that names something, such as a tenant or a line."""
    COUNT = "count"
    MONEY = "money"
    DATE = "date"


NUMERIC = (ColumnKind.COUNT, ColumnKind.MONEY)
ANNEX = 20_000
"""Most lines of a table in the workbook, other than that of the breaks."""


@dataclass(frozen=True, slots=True)
class ReportColumn:
    name: str
    kind: ColumnKind = ColumnKind.WORD
    width: int = 14
    """Width in characters in a workbook."""
    check: bool = False
    """Whether its figures have to be zero."""


@dataclass(frozen=True, slots=True)
class TableRow:
    cells: tuple[Cell, ...]
    total: bool = False
    bad: bool = False
    """Whether the line keeps the report from reconciling."""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table; values of its first `groups` columns are shown once for all lines with the same."""

    name: str
    title: str
    columns: tuple[ReportColumn, ...]
    rows: Sequence[TableRow]
    groups: int = 0
    none: str = "None."
    """Text in place of a table without lines."""
    against: int = 0
    """Column whose texts are compared with those of the next column; 0 for none."""
    left: int = 0
    """Number of lines that the report does not have."""
    chosen: str = "those with flags, then the largest come first"
    """How the lines of the report were chosen."""

    @property
    def where(self) -> str:
        """Where to find the lines that a page leaves out."""
        if len(self.rows) <= ANNEX:
            return "report.xlsx and totals.json"
        return f"totals.json; the first {digits(ANNEX)} of all are in report.xlsx"

    @property
    def not_listed(self) -> str:
        """The note below a table with lines left out; empty if it has all."""
        if not self.left:
            return ""
        more = f"{quantity(self.left, 'more line')} {agree(self.left, 'is', 'are')} not listed"
        where = "All records are in records.parquet, all breaks in breaks.csv."
        return f"{more}: {self.chosen}. {where}"


WORD, TEXT, NUMBER = ColumnKind.WORD, ColumnKind.TEXT, ColumnKind.NUMBER
COUNT, MONEY, DATE = ColumnKind.COUNT, ColumnKind.MONEY, ColumnKind.DATE

RECORD = ReportColumn("Record", WORD, 26)
TENANT = ReportColumn("Tenant", NUMBER, 10)
CURRENCY = ReportColumn("Currency", WORD, 16)
