"""Rows that share a key, found without a database: for deliveries that are only examined.

Of each row it keeps its key and a hash of its content, a few dozen bytes; the text of the rows that
conflict is read again from the extract. A batch that is imported has its repeats found by
PostgreSQL, which keeps nothing in our memory.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from schemas.derived.sql_names import key_columns
from schemas.field import Kind, Table
from schemas.kinds import stored_columns
from schemas.reasons import NOT_SHOWN, REASONS
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA


class Conflict(NamedTuple):
    """A row whose key another row of the delivery has with other content."""

    extract: int
    record_number: int
    record: str


@dataclass(slots=True)
class Repeats:
    """Clean rows of a delivery as far as their keys and contents tell them apart."""

    last_wins: bool
    rows: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: defaultdict(list))

    def add(self, table: Table, staged: pl.DataFrame) -> None:
        """Take in the clean ones of some staged rows."""
        if table is INSERT_BATCH_DATA or self.last_wins:
            return
        self.rows[table.name].append(
            staged.filter(pl.col("error_data").is_null()).select(
                pl.col("extract_id").cast(pl.Int32),
                "record_number",
                pl.struct(key_columns(table)).hash(1).alias("key"),
                pl.struct(key_columns(table)).hash(2).alias("key_too"),
                pl.struct(_content(table)).hash().alias("content"),
            )
        )

    def conflicts(self, refused: Sequence[int]) -> Iterator[Conflict]:
        """Every row that has to be settled by whoever delivered it; not of files `refused`."""
        for name, frames in self.rows.items():
            # One hash of 64 bits may be shared by two keys of a large delivery; both hardly.
            keys = ["key", "key_too"]
            taken = pl.concat(frames).filter(~pl.col("extract_id").is_in(list(refused)))
            several = (
                taken.lazy()
                .group_by(keys)
                .agg(pl.col("content").n_unique().alias("contents"))
                .filter(pl.col("contents") > 1)
                .collect()
            )
            if several.is_empty():
                continue
            rows = taken.join(several, on=keys, how="semi")
            for extract, record_number in rows.select("extract_id", "record_number").iter_rows():
                yield Conflict(extract, record_number, name)


def conflict_error(record: str, row: Mapping[str, object]) -> str:
    """ErrorData of one conflicting staged row, as the import tells it."""
    table = EXTRACTS[record]
    column = table.identity[0]
    value = NOT_SHOWN
    if not table.unquotable:
        value = ", ".join("" if row[part] is None else str(row[part]) for part in table.identity)
    message = REASONS["ConflictingKey"].message(field=column, value=value)
    meta = {"stage": "merge", "column": column, "value": value, "line": str(row["first_line"])}
    shape = {"ErrorCode": "ConflictingKey", "FieldName": column, "Message": message, "Meta": meta}
    return json.dumps([shape], ensure_ascii=False)


def _content(table: Table) -> list[pl.Expr]:
    # 12.5 and 12.50 are one content: a double is compared by its value, which is exact.
    doubles = {of.name for of in table.delivered if of.kind is Kind.DOUBLE}
    return [
        pl.col(name).cast(pl.Float64) if name in doubles else pl.col(name)
        for name in stored_columns(table)
    ]
