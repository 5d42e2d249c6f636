"""Parquet and Arrow files read by their exact names.

polars takes `*`, `?` and `[` in a path for a pattern and a leading `~` for a home folder, so the
path may match other files or none. Every such file read by a path is read from here.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from schemas.frame_types import Dtype


def is_named(path: Path) -> bool:
    """Whether a path can be passed to polars, which takes text only."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def parquet_rows(files: Iterable[Path]) -> pl.LazyFrame:
    """The rows of Parquet files, one file after the other."""
    return pl.scan_parquet([file.absolute() for file in files], glob=False)


def parquet_columns(file: Path) -> Mapping[str, Dtype]:
    """The columns of a Parquet file, from its metadata."""
    return parquet_rows([file]).collect_schema()


def arrow_rows(files: Iterable[Path]) -> pl.LazyFrame:
    """The rows of Arrow files, one file after the other."""
    return pl.scan_ipc([file.absolute() for file in files], glob=False)
