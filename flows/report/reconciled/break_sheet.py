"""Insert the rows of the sheet of breaks into a workbook that was written without them."""

import io
import re
import zipfile

import polars as pl

from flows.report.reconciled.break_rows import LONGEST, letter, rows_xml
from flows.report.reconciled.table import (
    COUNT,
    CURRENCY,
    DATE,
    MONEY,
    NUMBER,
    TENANT,
    TEXT,
    WORD,
    ReportColumn,
)
from flows.report.reconciled.words import currency_label, sources
from flows.report.spelling import shortened_pair
from flows.steps.frames.beyond import beyond_of
from flows.steps.frames.light import as_texts
from flows.steps.reconcile.report import ReconciliationReport
from schemas.amounts import BEYOND
from schemas.counting import agree, quantity

MOST = 100_000
"""Most breaks in the workbook, which says where the rest is."""
SURE = LONGEST // 8
"""Characters of a text that always fit a cell, even if every one of them is spelled out."""
ZIPPED = (1980, 1, 1, 0, 0, 0)
BREAK_COLUMNS: tuple[tuple[str, ReportColumn], ...] = (
    ("id", ReportColumn("Break", WORD, 18)),
    ("group", ReportColumn("Class", WORD, 14)),
    ("code", ReportColumn("Code", WORD, 22)),
    ("severity", ReportColumn("Severity", WORD, 9)),
    ("state", ReportColumn("State", WORD, 11)),
    ("record", ReportColumn("Record", WORD, 18)),
    ("tenant", TENANT),
    ("key", ReportColumn("Key", TEXT, 20)),
    ("field", ReportColumn("Field", WORD, 18)),
    ("side", ReportColumn("Side", WORD, 6)),
    ("expected", ReportColumn("Expected", TEXT, 26)),
    ("found", ReportColumn("Found", TEXT, 26)),
    ("delta", ReportColumn("Delta", MONEY, 16)),
    ("amount", ReportColumn("Amount", MONEY, 18)),
    ("basis", ReportColumn("Amount is", WORD, 11)),
    ("counted", ReportColumn("In totals", MONEY, 18)),
    ("currency", CURRENCY),
    ("file", ReportColumn("File", TEXT, 28)),
    ("line", ReportColumn("Line", NUMBER, 9)),
    ("batch_id", ReportColumn("Batch", NUMBER, 7)),
    ("first_seen", ReportColumn("First seen", DATE, 11)),
    ("age_days", ReportColumn("Days", COUNT, 7)),
    ("age_business_days", ReportColumn("Business days", COUNT, 9)),
    ("cause", ReportColumn("Cause", WORD, 18)),
    ("owner", ReportColumn("Owner", TEXT, 14)),
    ("accepted_by", ReportColumn("Accepted by", TEXT, 16)),
    ("accepted_until", ReportColumn("Until", DATE, 11)),
    ("accepted_reason", ReportColumn("Reason", TEXT, 30)),
    ("action", ReportColumn("Next", WORD, 48)),
    ("note", ReportColumn("Note", TEXT, 48)),
)
"""Attribute of a BreakLine and its column."""


def columns_of(report: ReconciliationReport, frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of the sheet of breaks, with any texts beside amounts."""
    top = as_texts(frame.head(MOST)).rename({"class": "group"})
    labels = {key: currency_label(report, key) for key in top["currency"].unique()}
    sides = {side: sources(side) for side in top["side"].unique()}
    names = [name for name, _ in BREAK_COLUMNS]
    return _with_differing_parts(
        top.select(*names, *(name + BEYOND for name in beyond_of(top, names))).with_columns(
            pl.col("currency").replace(labels), pl.col("side").replace(sides)
        )
    )


def _with_differing_parts(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in which values that differ only far from their beginning start where they differ."""
    expected, found = pl.col("expected"), pl.col("found")
    begin = expected.str.slice(0, SURE) == found.str.slice(0, SURE)
    alike = begin & (expected != found) & (expected.str.len_chars() >= SURE)
    if not rows.select(alike.any()).item():
        return rows
    pairs = zip(rows.select(alike).to_series(), rows["expected"], rows["found"], strict=True)
    cut = [shortened_pair(one, other, SURE) if odd else (one, other) for odd, one, other in pairs]
    names = ("expected", "found")
    return rows.with_columns(pl.DataFrame(cut, dict.fromkeys(names, pl.String), orient="row"))


def with_breaks(book: bytes, name: str, frame: pl.DataFrame, left: int) -> bytes:
    """The book with the rows of its sheet of breaks; all of its parts have the same date.

    `name` is the part of the sheet; `left` is the number of breaks that are not in `frame`.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(content, "w") as new:
        for part in old.infolist():
            info = zipfile.ZipInfo(part.filename, ZIPPED)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            # Set on the entry, as `open` takes no level; the fastest level is small enough here.
            info._compresslevel = 1  # type: ignore[attr-defined]
            with new.open(info, "w", force_zip64=False) as file:
                text = old.read(part)
                if part.filename != name:
                    file.write(text)
                    continue
                before, end, after = text.partition(b"</sheetData>")
                file.write(_measured(before, frame))
                for rows in rows_xml(frame, _styles(before)):
                    file.write(rows)
                if left:
                    file.write(_rest(frame.height + 2, left))
                file.write(end + after)
    return content.getvalue()


def _rest(row: int, left: int) -> bytes:
    are = f"{quantity(left, 'more break')} {agree(left, 'is', 'are')}"
    text = f"{are} in breaks.csv and breaks.parquet."
    return (f'<row r="{row}"><c r="A{row}" t="inlineStr"><is><t>{text}</t></is></c></row>').encode()


def _measured(sheet: bytes, frame: pl.DataFrame) -> bytes:
    reach = f"A1:{letter(len(BREAK_COLUMNS) - 1)}{frame.height + 1}"
    return re.sub(rb'<dimension ref="[^"]*"/>', f'<dimension ref="{reach}"/>'.encode(), sheet)


def _styles(sheet: bytes) -> list[str]:
    """The numbers of the columns' formats, as in the book's own sheet."""
    found: dict[int, str] = {}
    for column in re.findall(rb"<col [^>]*/>", sheet):
        attributes = dict(re.findall(rb'(\w+)="([^"]*)"', column))
        for place in range(int(attributes[b"min"]), int(attributes[b"max"]) + 1):
            found[place] = attributes.get(b"style", b"0").decode()
    return [found.get(place, "0") for place in range(1, len(BREAK_COLUMNS) + 1)]
