"""Rows that share a key, found without a database: for deliveries that are only examined.

Of each row it keeps its key and a hash of its content, a few dozen bytes; the text of the rows that
conflict is read again from the extract. A batch that is imported has its repeats found by
PostgreSQL, which keeps nothing in our memory.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from flows.steps.validate.field_errors import settled_errors
from schemas.derived.sql_names import key_columns
from schemas.field import Kind, Table
from schemas.kinds import stored_columns
from schemas.reasons import NOT_SHOWN
from schemas.tables import INSERT_BATCH_DATA

PLACE = {"extract_id": pl.Int32, "record_number": pl.Int64}


@dataclass(slots=True)
class Repeats:
    """Clean rows of a delivery as far as their keys and contents tell them apart."""

    last_wins: bool
    rows: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: defaultdict(list))

    def add(self, table: Table, clean: pl.DataFrame) -> None:
        """Take in staged rows without an error."""
        if table is INSERT_BATCH_DATA or self.last_wins:
            return
        self.rows[table.name].append(
            clean.select(
                pl.col("extract_id").cast(pl.Int32),
                "record_number",
                pl.struct(key_columns(table)).hash(1).alias("key"),
                pl.struct(key_columns(table)).hash(2).alias("key_too"),
                pl.struct(_content(table)).hash().alias("content"),
            )
        )

    def conflicts(self, refused: Sequence[int]) -> pl.DataFrame:
        """The places of all rows whose key another row of the delivery has with other content.

        They have to be settled by whoever delivered them. Rows of files `refused` do not count.
        """
        # One hash of 64 bits may be shared by two keys of a large delivery; both hardly.
        keys = ["key", "key_too"]
        found = [pl.DataFrame(schema=PLACE)]
        for frames in self.rows.values():
            taken = pl.concat(frames).filter(~pl.col("extract_id").is_in(list(refused)))
            several = (
                taken.lazy()
                .group_by(keys)
                .agg(pl.col("content").n_unique().alias("contents"))
                .filter(pl.col("contents") > 1)
                .collect()
            )
            if several.height:
                rows = taken.join(several, on=keys, how="semi")
                found.append(rows.select("extract_id", "record_number"))
        return pl.concat(found)


def conflict_errors(table: Table, rows: pl.DataFrame) -> pl.Series:
    """ErrorData of conflicting staged rows, as the import tells it."""
    if table.unquotable:
        value = pl.Series([NOT_SHOWN]).new_from_index(0, rows.height)
    else:
        parts = (_as_text(rows[part]).alias(str(n)) for n, part in enumerate(table.identity))
        value = pl.select(pl.concat_str(list(parts), separator=", ")).to_series()
    return settled_errors("ConflictingKey", table.identity[0], value, rows["first_line"])


def _as_text(values: pl.Series) -> pl.Series:
    """Values as Python writes them; nothing for none."""
    if values.dtype.is_integer() or values.dtype == pl.String:
        return values.cast(pl.String).fill_null("")
    each = ["" if value is None else str(value) for value in values]
    return pl.Series(each, dtype=pl.String)


def _content(table: Table) -> list[pl.Expr]:
    # 12.5 and 12.50 are one content: a double is compared by its value, which is exact.
    doubles = {of.name for of in table.delivered if of.kind is Kind.DOUBLE}
    return [
        pl.col(name).cast(pl.Float64) if name in doubles else pl.col(name)
        for name in stored_columns(table)
    ]
