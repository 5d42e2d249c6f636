"""Parquet as a side of a comparison: one file, or all files of a folder as one table."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

from connectors.compare.sides import UNREADABLE, Side, first_line, unreadable
from connectors.errors import SidesRefused
from connectors.files.disk.listed import raise_error
from connectors.files.disk.system_errors import cure
from connectors.files.incoming.columnar import is_named, parquet_columns, parquet_rows
from schemas.cells.readings import column
from schemas.frame_types import Dtype

PARQUET = (".parquet", ".pq")


def parquet_side(path: Path) -> Side:
    """A Parquet file, or a folder of them."""
    files = files_in(path) if path.is_dir() else (path,)
    for file in files:
        if not is_named(file):
            raise SidesRefused(f"{file}: its name is no text in UTF-8. Rename it.")
    try:
        schema = _one_schema(path, files)
        rows = _counted(files).collect().item()
    except UNREADABLE as error:
        broken = unreadable(files, str(path), lambda file: _counted([file]))
        raise SidesRefused(f"{broken}: cannot be read as Parquet: {first_line(error)}") from error
    columns = {name: column(name, dtype) for name, dtype in schema.items()}
    return Side(str(path), "Parquet", files, columns, rows)


def _counted(files: Iterable[Path]) -> pl.LazyFrame:
    return parquet_rows(files).select(pl.len())


def files_in(folder: Path) -> tuple[Path, ...]:
    """The Parquet files of a folder; raises SidesRefused if none or partitioned."""
    found = tuple(sorted(_walked(folder)))
    if not found:
        raise SidesRefused(f"{folder}: no Parquet file is in this folder.")
    for file in found:
        partitions = [name for name in file.relative_to(folder).parent.parts if "=" in name]
        if partitions:
            raise SidesRefused(
                f"{folder}: the folder {partitions[0]!r} in it says a value of the column "
                f"{partitions[0].partition('=')[0]!r}, which no comparison reads from there. Write "
                "the column into the files, or compare the folders of each value with each other."
            )
    return found


def _walked(folder: Path) -> Iterator[Path]:
    """The Parquet files below a folder, links followed; nothing is silently left out.

    Raises SidesRefused if a folder or file cannot be read, or a folder is there twice.
    """
    seen: dict[tuple[int, int], Path] = {}
    try:
        for path, folders, names in os.walk(folder, onerror=raise_error, followlinks=True):
            folders.sort()
            place = Path(path)
            status = place.stat()
            other = seen.setdefault((status.st_dev, status.st_ino), place)
            if other != place:
                raise SidesRefused(
                    f"{folder}: {place} and {other} are the same folder, so that its rows would be "
                    "there twice. Remove the link, or compare the one folder."
                )
            for file in map(place.joinpath, sorted(names)):
                wanted = file.suffix.lower() in PARQUET
                if not stat.S_ISREG(file.stat().st_mode) and wanted:
                    raise SidesRefused(f"{file} is no regular file. Write what it gives into one.")
                if wanted:
                    yield file
    except OSError as error:
        raise SidesRefused(
            f"{error.filename}: cannot be read: {error.strerror}. {cure(error)}, or move it out of "
            "what is compared, then compare again."
        ) from error


def _one_schema(path: Path, files: tuple[Path, ...]) -> Mapping[str, Dtype]:
    """The columns of the first file, which all others must share; raises SidesRefused."""
    first = parquet_columns(files[0])
    for file in files[1:]:
        other = parquet_columns(file)
        if other == first:
            continue
        named = sorted(name for name in {*first, *other} if first.get(name) != other.get(name))
        difference = "the order of its columns"
        if named:
            types = [one.get(named[0], "missing") for one in (first, other)]
            difference = (
                f"the column {named[0]!r}, {types[1]} there and {types[0]} in {files[0].name}"
            )
        raise SidesRefused(
            f"{path}: {file.relative_to(path)} differs in {difference}. Files of one folder are "
            "one table: write them with the same columns and types, or compare them one by one."
        )
    return first
