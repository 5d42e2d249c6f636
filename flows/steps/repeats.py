"""Rows that share a key, found without a database: for deliveries that are only examined.

It keeps the rows it is shown; a batch that is imported has its repeats found by PostgreSQL.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from schemas.field import Table
from schemas.kinds import stored_columns
from schemas.reasons import REASONS
from schemas.sql import key_columns
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA


class Conflict(NamedTuple):
    """A row whose key another row of the delivery has with other content."""

    extract: int
    record_number: int
    first_line: int
    last_line: int
    data: str
    error_data: str


@dataclass(slots=True)
class Repeats:
    """Clean rows of a delivery as far as their keys and contents tell them apart."""

    last_wins: bool
    rows: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: defaultdict(list))

    def add(self, table: Table, staged: pl.DataFrame) -> None:
        """Take in the clean ones of some staged rows."""
        if table is INSERT_BATCH_DATA or self.last_wins:
            return
        content = pl.struct(_content(table, staged)).hash().alias("content")
        clean = staged.filter(pl.col("error_data").is_null())
        shown = [pl.col("data"), pl.col("first_line"), pl.col("last_line")]
        key = [pl.col(name) for name in key_columns(table)]
        named = [] if set(table.identity) <= set(key_columns(table)) else list(table.identity)
        self.rows[table.name].append(
            clean.select("extract_id", "record_number", *shown, *key, *named, content)
        )

    def conflicts(self) -> Iterator[Conflict]:
        """Every row that has to be settled by whoever delivered it."""
        for name, frames in self.rows.items():
            table = EXTRACTS[name]
            key = list(key_columns(table))
            several = pl.concat(frames).filter(pl.col("content").n_unique().over(key) > 1)
            for row in several.sort("extract_id", "record_number").iter_rows(named=True):
                value = ", ".join(
                    "" if row[part] is None else str(row[part]) for part in table.identity
                )
                yield Conflict(
                    row["extract_id"],
                    row["record_number"],
                    row["first_line"],
                    row["last_line"],
                    row["data"],
                    _error(table.identity[0], value, row["first_line"]),
                )


def _content(table: Table, staged: pl.DataFrame) -> list[pl.Expr]:
    # 12.5 and 12.50 are one content: a double is compared by its value, which is exact.
    doubles = {of.name for of in table.delivered if of.kind.value == "double"}
    return [
        pl.col(name).cast(pl.Float64) if name in doubles else pl.col(name)
        for name in stored_columns(table)
        if name in staged.columns
    ]


def _error(column: str, value: str, line: int) -> str:
    message = REASONS["ConflictingKey"].message(field=column, value=value)
    meta = {"stage": "merge", "column": column, "value": value, "line": str(line)}
    shape = {"ErrorCode": "ConflictingKey", "FieldName": column, "Message": message, "Meta": meta}
    return json.dumps([shape], ensure_ascii=False)
