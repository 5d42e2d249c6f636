"""The breaks as data files, and every total as JSON: the same value, for machines.

`breaks.parquet` holds delivered text verbatim. `breaks.csv` is opened in spreadsheets: text that a
spreadsheet would take for a formula has an apostrophe in front, and the last column, `quoted`,
names the columns of the line in which there is one, so that it can be taken away again.
"""

import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import IO, Any

import polars as pl
from polars.io.plugins import register_io_source

from flows.steps.frames.beyond import beyond_texts
from flows.steps.frames.light import as_texts
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.reported_breaks import MONEY
from flows.steps.totals import plain
from schemas.amounts import BEYOND
from schemas.cells.formula_columns import formulas
from schemas.frame_types import WORD

_BEYOND = tuple(name + BEYOND for name in MONEY)
"""The texts of those that no exact column holds, where there are any."""
CHUNK = 10_000
GROUP = 100_000
"""Rows of a group in a Parquet file."""
QUOTED = "quoted"


def breaks_frame(report: ReconciliationReport) -> pl.DataFrame:
    """The breaks, a column per attribute of `BreakLine`; its `group` is called `class`.

    Money is an exact decimal; what fits none is a text in a column of its own (`amount_beyond`).
    """
    frame = report.breaks.frame
    nulls = frame.select(pl.col(_BEYOND).null_count()).row(0, named=True)
    empty = [name for name, count in nulls.items() if count == frame.height]
    codes = {key: report.currencies.get(key, "") for key in frame["currency"].unique()}
    code = pl.col("currency").cast(pl.String).replace_strict(codes, return_dtype=pl.String)
    return (
        frame.drop(empty)
        .with_columns(code.cast(WORD).alias("currency_code"))
        .rename({"group": "class"})
    )


def breaks_csv(frame: pl.DataFrame) -> bytes:
    """RFC 4180: CRLF, every text in quotes, nothing at all for what there is not."""
    content = io.BytesIO()
    write_breaks_csv(frame, content)
    return content.getvalue()


def write_breaks_csv(frame: pl.DataFrame, file: IO[bytes]) -> None:
    """Write what `breaks_csv` gives, some thousand lines at a time."""
    file.write((",".join([*_columns(frame), QUOTED]) + "\r\n").encode())
    file.writelines(_csv_lines(as_texts(part)).encode() for part in frame.iter_slices(CHUNK))


def _csv_lines(frame: pl.DataFrame) -> str:
    marks = frame.select(formulas(pl.col(name)).name.keep() for name in _texts(frame))
    marked = {mark.name: mark for mark in marks if mark.any()}
    marked_names = pl.concat_str(
        [pl.when(mark).then(pl.lit(name)) for name, mark in marked.items()] or [pl.lit("")],
        separator=" ",
        ignore_nulls=True,
    )
    escaped = frame.with_columns(
        *(
            pl.when(mark).then(pl.concat_str(pl.lit("'"), name)).otherwise(name).alias(name)
            for name, mark in marked.items()
        ),
        *(_plain(frame, name) for name in MONEY),
        marked_names.fill_null("").alias(QUOTED),
    )
    # Texts are quoted, numbers are not, and what is not there is neither: null is no empty text.
    quoted = [*_texts(frame), QUOTED]
    cells = escaped.select(
        _quoted(name) if name in quoted else pl.col(name).cast(pl.String).fill_null("")
        for name in (*_columns(frame), QUOTED)
    )
    lines = cells.select(pl.concat_str(pl.all(), separator=",") + "\r\n").to_series()
    return str(lines.str.join("").item() or "")


def _columns(frame: pl.DataFrame) -> list[str]:
    """In a file of texts an amount has one column, whatever its size."""
    return [name for name in frame.columns if name not in _BEYOND]


def _texts(frame: pl.DataFrame) -> list[str]:
    return [name for name in _columns(frame) if frame.schema[name] == pl.String]


def _quoted(name: str) -> pl.Expr:
    inner = pl.col(name).str.replace_all('"', '""', literal=True)
    return pl.concat_str(pl.lit('"'), inner, pl.lit('"')).fill_null("").alias(name)


def write_parquet(frame: pl.DataFrame, file: IO[bytes]) -> None:
    """Write a frame as one Parquet file, group by group; equal frames give equal bytes."""
    parts = (as_texts(part) for part in frame.iter_slices(GROUP))
    write_parts(as_texts(frame.clear()).schema, parts, file)


def write_parts(
    schema: Mapping[str, pl.DataType], parts: Iterable[pl.DataFrame], file: IO[bytes]
) -> None:
    """Write the same file as of all parts in one frame; each but the last has GROUP rows."""
    rows = register_io_source(lambda *_: iter(parts), schema=schema)
    with _full_disk_as_os_error():
        rows.sink_parquet(file, compression="zstd", statistics=True, row_group_size=GROUP)


@contextmanager
def _full_disk_as_os_error() -> Iterator[None]:
    try:
        yield
    except pl.exceptions.ComputeError as error:
        # A full disk is told in words there.
        if number := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
        raise


HASH_TOTALS = ("keys", "expected_keys", "found_keys")
"""What a line calls its sums of keys, which are as long as the keys are many."""


def totals_json(report: ReconciliationReport) -> bytes:
    """Everything but the lines of breaks, canonical: keys sorted, exact numbers as text."""
    totals: dict[str, Any] = {
        field.name: _jsonable(getattr(report, field.name))
        for field in fields(report)
        if field.name != "breaks"
    }
    totals["breaks"] = {
        "all": len(report.breaks),
        **{
            name: dict(report.breaks.counts(attribute))
            for name, attribute in (
                ("class", "group"),
                ("code", "code"),
                ("severity", "severity"),
                ("state", "state"),
            )
        },
    }
    return (json.dumps(totals, sort_keys=True, ensure_ascii=False, indent=1) + "\n").encode()


def _plain(frame: pl.DataFrame, name: str) -> pl.Expr:
    """A decimal without the zeros at its end, two places at least; one that fits none as it is."""
    text = pl.col(name).cast(pl.String).str.replace(r"(\.\d{2}\d*?)0+$", "$1")
    return pl.coalesce(pl.lit(beyond_texts(frame, name)), text).alias(name)


def _jsonable(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        by_name = {field.name: _jsonable(getattr(value, field.name)) for field in fields(value)}
        # As in receipts: a reader with doubles rounds a number above 2^53.
        return by_name | {name: str(by_name[name]) for name in HASH_TOTALS if name in by_name}
    if isinstance(value, Mapping):
        return {str(key): _jsonable(one) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [_jsonable(one) for one in value]
    if isinstance(value, Decimal):
        return plain(value)
    return value.isoformat() if isinstance(value, date) else value
