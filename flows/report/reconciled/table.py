"""What a table of the report is made of: columns of a kind, and lines of values."""

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
    """Our own words."""
    TEXT = "text"
    """Delivered text."""
    NUMBER = "number"
    """A number that names something: a tenant, a line."""
    COUNT = "count"
    MONEY = "money"
    DATE = "date"


NUMERIC = (ColumnKind.COUNT, ColumnKind.MONEY)
ANNEX = 20_000
"""Lines of a table in the workbook, where it is not that of the breaks."""


@dataclass(frozen=True, slots=True)
class ReportColumn:
    name: str
    kind: ColumnKind = ColumnKind.WORD
    width: int = 14
    """Characters a workbook gives it."""
    check: bool = False
    """A figure that has to be zero."""


@dataclass(frozen=True, slots=True)
class TableRow:
    cells: tuple[Cell, ...]
    total: bool = False
    bad: bool = False
    """A line that keeps the report from reconciling."""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One table: its first `groups` columns are told once for all lines they are the same for."""

    name: str
    title: str
    columns: tuple[ReportColumn, ...]
    rows: Sequence[TableRow]
    groups: int = 0
    none: str = "None."
    """What stands in place of a table without lines."""
    against: int = 0
    """The column whose texts are held against those of the next one; 0: there is none."""
    left: int = 0
    """Lines that the report does not have."""
    chosen: str = "those with flags, then the largest come first"
    """How those were chosen that it has."""

    @property
    def where(self) -> str:
        """Where the lines are that a page leaves out."""
        if len(self.rows) <= ANNEX:
            return "report.xlsx and totals.json"
        return f"totals.json; the first {digits(ANNEX)} of all are in report.xlsx"

    @property
    def not_listed(self) -> str:
        """What is said below the lines of a table that would have more; empty: it has all."""
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
