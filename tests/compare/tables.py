"""Two sides as files, and what a comparison of them says."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.stages.comparing.compare_run import run_comparison
from flows.steps.match.statuses import Comparison


def csv_file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def parquet_file(path: Path, columns: dict[str, Any], **schema: pl.DataType) -> Path:
    pl.DataFrame(columns, schema_overrides=schema).write_parquet(path)
    return path


def compared(left: Path | str, right: Path | str, key: str = "id", **options: Any) -> Comparison:
    return run_comparison(str(left), str(right), key=key, **options)


def counts(comparison: Comparison) -> dict[str, int]:
    """The statuses that any row has."""
    return {str(status): count for status, count in comparison.statuses.items() if count}


def values(comparison: Comparison) -> list[tuple[object, ...]]:
    """The differing cells as (column, left, right, delta)."""
    lines = [line for line in comparison.shown if line["column"] is not None]
    return [tuple(line[name] for name in ("column", "left", "right", "delta")) for line in lines]


def by_column(comparison: Comparison) -> dict[str, tuple[int, int, int, str | None]]:
    """Of each column the pairs compared, differing, tolerated, and the largest difference."""
    return {
        one.name: (one.compared, one.different, one.tolerated, one.largest)
        for one in comparison.columns
    }


becomes = pytest.mark.skipif(os.geteuid() != 0, reason="takes the right to become another user")


@contextmanager
def another_user() -> Iterator[None]:
    """Rights of nobody in particular, in this process; for tests that are marked `becomes`."""
    os.seteuid(54_321)
    try:
        yield
    finally:
        os.seteuid(0)
