"""Parquet and Arrow files by their very names.

polars takes `*`, `?` and `[` in a path for a pattern, which other files fit or none, and `~` at its
beginning for a home folder. Every such file that is read by a path is read from here.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from schemas.frame_types import Dtype


def is_named(path: Path) -> bool:
    """Whether polars can be told a path: it takes texts only."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def parquet_rows(files: Iterable[Path]) -> pl.LazyFrame:
    """The rows of Parquet files, one file after the other."""
    return pl.scan_parquet([file.absolute() for file in files], glob=False)


def parquet_columns(file: Path) -> Mapping[str, Dtype]:
    """The columns of a Parquet file, as its end says them."""
    return parquet_rows([file]).collect_schema()


def arrow_rows(files: Iterable[Path]) -> pl.LazyFrame:
    """The rows of Arrow files, one file after the other."""
    return pl.scan_ipc([file.absolute() for file in files], glob=False)
