"""The breaks as data files and all totals as JSON: the value of the report for machines.

`breaks.parquet` has delivered text verbatim. `breaks.csv` may be opened in a spreadsheet, so a text
that would be taken for a formula has an apostrophe in front. Its last column, `quoted`, names the
columns of the line with an added apostrophe, so that it can be removed again.
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
"""Columns with the texts of amounts that no exact column holds."""
CHUNK = 10_000
GROUP = 100_000
"""Rows of a row group in a Parquet file."""
QUOTED = "quoted"


def breaks_frame(report: ReconciliationReport) -> pl.DataFrame:
    """The breaks with a column per attribute of `BreakLine`, whose `group` is called `class`.

    Money is an exact decimal; if none fits, it is a text in a column of its own (`amount_beyond`).
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
    """The breaks as CSV (RFC 4180): CRLF, texts in quotes, null as nothing at all."""
    content = io.BytesIO()
    write_breaks_csv(frame, content)
    return content.getvalue()


def write_breaks_csv(frame: pl.DataFrame, file: IO[bytes]) -> None:
    """Write the bytes of `breaks_csv`, some thousand lines at a time."""
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
    # Texts are quoted and numbers are not; null is not quoted either, unlike an empty text.
    quoted = [*_texts(frame), QUOTED]
    cells = escaped.select(
        _quoted(name) if name in quoted else pl.col(name).cast(pl.String).fill_null("")
        for name in (*_columns(frame), QUOTED)
    )
    lines = cells.select(pl.concat_str(pl.all(), separator=",") + "\r\n").to_series()
    return str(lines.str.join("").item() or "")


def _columns(frame: pl.DataFrame) -> list[str]:
    """The columns of a text file, in which an amount of any size has one column."""
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
    """Write parts to the same file as if they were one frame; all but the last need GROUP rows."""
    rows = register_io_source(lambda *_: iter(parts), schema=schema)
    with _full_disk_as_os_error():
        rows.sink_parquet(file, compression="zstd", statistics=True, row_group_size=GROUP)


@contextmanager
def _full_disk_as_os_error() -> Iterator[None]:
    try:
        yield
    except pl.exceptions.ComputeError as error:
        # polars reports a full disk only in the text of the error.
        if number := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
        raise


HASH_TOTALS = ("keys", "expected_keys", "found_keys")
"""Attributes of lines that are sums of keys, which may have very many digits."""


def totals_json(report: ReconciliationReport) -> bytes:
    """Everything except the lines of breaks, as canonical JSON: keys sorted, numbers as text."""
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
    """A decimal without trailing zeros but at least two places, or the text beside it if any."""
    text = pl.col(name).cast(pl.String).str.replace(r"(\.\d{2}\d*?)0+$", "$1")
    return pl.coalesce(pl.lit(beyond_texts(frame, name)), text).alias(name)


def _jsonable(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        by_name = {field.name: _jsonable(getattr(value, field.name)) for field in fields(value)}
        # As text, like in receipts: readers that use doubles round numbers above 2^53.
        return by_name | {name: str(by_name[name]) for name in HASH_TOTALS if name in by_name}
    if isinstance(value, Mapping):
        return {str(key): _jsonable(one) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [_jsonable(one) for one in value]
    if isinstance(value, Decimal):
        return plain(value)
    return value.isoformat() if isinstance(value, date) else value
