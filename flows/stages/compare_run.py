"""A whole comparison: what the sides are, what is asked, and where the results go."""

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path
from typing import NamedTuple

from connectors.compare.csv_side import csv_side
from connectors.compare.differences import Differences
from connectors.compare.sides import PARQUET, Side, no_room, parquet_side
from connectors.compare.table_pair import TablePair, table_pair
from connectors.compare.table_side import table_side
from connectors.errors import SidesRefused
from connectors.files.atomic import private_folder, write_file
from connectors.files.scratch import scratch_folder
from connectors.files.system_errors import cure
from connectors.settings import Limits, read_settings
from flows.report.comparison import as_json, render_html
from flows.stages.compare import Question, compare_sides, compared_columns
from flows.steps.match.cells import Leeway, texts
from flows.steps.match.statuses import Comparison

SHOWN = 10
MOST_PARTITIONS = 1 << 10
_TABLE = re.compile(r"postgres(?:ql)?://")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MOST = 10**20
"""What no tolerance reaches: differences are compared with 20 digits before the point."""
_LEEWAY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([%smhd]?)")


def run_comparison(
    left: str,
    right: str,
    *,
    key: str,
    tolerances: Sequence[str] = (),
    ignore: Sequence[str] = (),
    delimiter: str | None = None,
    folder: Path | None = None,
    limits: Limits | None = None,
    partitions: int | None = None,
) -> Comparison:
    """Compare two sides and write the results; raises SidesRefused for what cannot be compared.

    `limits` hold for CSV, as in an import; default: those of this process. `partitions`: how many
    the sides are compared in; None: as many as the limits ask for.
    """
    limits = limits or read_settings().limits
    question = asked(key, tolerances, ignore)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise SidesRefused(f"{folder} is not a folder. Name one for --out.")
    with _scratch(folder) as scratch:
        with ThreadPoolExecutor(2) as threads:
            files = tuple(threads.map(_hashed, (left, right)))
        pair = _sides((left, right), question, scratch, delimiter, limits)
        parts = None
        if folder is not None:
            parts = scratch / "differences"
            private_folder(parts)
        found = Differences(pair.left, pair.right, question.key, parts, SHOWN, texts)
        comparison = compare_sides(
            pair.left,
            pair.right,
            question,
            found,
            count=partitions or _partitions(pair, question, limits),
            scratch=scratch / "partitions",
            equal=pair.equal,
            method=pair.method,
        )
        comparison = _of_files(comparison, *files)
        if folder is not None:
            found.write(folder)
            summary = json.dumps(as_json(comparison), ensure_ascii=False, indent=2) + "\n"
            write_file(folder / "summary.json", summary.encode())
            write_file(folder / "report.html", render_html(comparison).encode())
    return comparison


class _File(NamedTuple):
    """A file that is compared, and its hash before it was."""

    path: Path
    sha256: str
    stood: tuple[int, ...]


def _hashed(address: str) -> _File | None:
    """What an address names, where that is one file."""
    path = Path(address)
    if _TABLE.match(address) or not path.is_file():
        return None
    try:
        stood = _stands(path)
        with path.open("rb") as file:
            return _File(path, hashlib.file_digest(file, "sha256").hexdigest(), stood)
    except OSError as error:
        raise SidesRefused(f"{path}: cannot be read: {error}") from error


def _stands(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _of_files(comparison: Comparison, *files: _File | None) -> Comparison:
    """With the hashes of the files; raises SidesRefused where one was written to meanwhile."""
    for file in files:
        if file and (not file.path.is_file() or _stands(file.path) != file.stood):
            raise SidesRefused(f"{file.path} changed while it was compared. Compare it again.")
    left, right = (
        replace(side, sha256=file.sha256 if file else "")
        for side, file in zip((comparison.left, comparison.right), files, strict=True)
    )
    return replace(comparison, left=left, right=right)


def _partitions(pair: TablePair, question: Question, limits: Limits) -> int:
    names = [*question.key, *compared_columns(pair.left, pair.right, question)]
    size = pair.left.size(names) + pair.right.size(names)
    return max(1, min(MOST_PARTITIONS, -(-size // limits.compare_bytes)))


@contextmanager
def _scratch(folder: Path | None) -> Iterator[Path]:
    """A folder for what does not fit memory; beside the results, where there is room for them."""
    try:
        with scratch_folder(folder) as scratch:
            yield scratch
    except OSError as error:
        where = folder or tempfile.gettempdir()
        full = no_room(error)
        why = "No space is left" if full else error.strerror or str(error)
        todo = "Free space" if full else cure(error)
        raise SidesRefused(f"{where}: {why}. {todo} or name another folder with --out.") from error


def _sides(
    addresses: tuple[str, str],
    question: Question,
    scratch: Path,
    delimiter: str | None,
    limits: Limits,
) -> TablePair:
    if all(_TABLE.match(address) for address in addresses):
        return table_pair(addresses, question.key, question.ignore, scratch)
    # Taking CSV apart keeps one core busy; there are two sides.
    with ThreadPoolExecutor(2) as threads:
        opening = [
            threads.submit(open_side, address, scratch / name, delimiter, question.key, limits)
            for address, name in zip(addresses, ("left", "right"), strict=True)
        ]
        left, right = (side.result() for side in opening)
    return TablePair(left, right, 0, "")


def asked(key: str, tolerances: Sequence[str], ignore: Sequence[str]) -> Question:
    """The question in the words of the command line."""
    names = tuple(dict.fromkeys(name.strip() for name in key.split(",") if name.strip()))
    if not names:
        raise SidesRefused("--key names no column. Name what tells rows apart: --key Id,TenantsId.")
    told: dict[str, str] = {}
    for name, text in map(_split, tolerances):
        if told.setdefault(name, text) != text:
            raise SidesRefused(
                f"--tolerance {name}={told[name]} and {name}={text} contradict each other. Give "
                "one of them."
            )
    if both := [name for name in names if name in ignore]:
        raise SidesRefused(
            f"--ignore {both[0]}: it is a part of the key, which tells rows apart. Leave it out of "
            "one of the two."
        )
    leeways = {name: leeway(name, text) for name, text in told.items()}
    return Question(names, tuple(ignore), leeways, told)


def leeway(column: str, text: str) -> Leeway:
    """A tolerance as written: 0.01, 0.1% or 2s."""
    match = _LEEWAY.fullmatch(text)
    if match is None:
        raise SidesRefused(
            f"--tolerance {column}={text} is no tolerance. Write a number (0.01), a percentage "
            "(0.1%) or a time (2s, 5m, 1h, 1d); it cannot be negative."
        )
    number, unit = Decimal(match[1]), match[2]
    # Exact, however many digits there are.
    with localcontext(prec=len(text) + 9):
        number *= _SECONDS.get(unit, 1)
        share = number / 100
    if number >= _MOST:
        raise SidesRefused(
            f"--tolerance {column}={text} is too large. Use less than {_MOST} (or seconds)."
        )
    if unit == "%":
        return Leeway(relative=share)
    return Leeway(seconds=number) if unit else Leeway(absolute=number)


def open_side(
    address: str, scratch: Path, delimiter: str | None, key: Sequence[str], limits: Limits
) -> Side:
    """The side an address names."""
    if _TABLE.match(address):
        return table_side(address, scratch, key)
    path = Path(address)
    if not path.exists():
        raise SidesRefused(f"{address} does not exist.")
    if not path.is_dir() and not path.is_file():
        raise SidesRefused(f"{address} is no regular file. Write what it gives into one first.")
    if path.is_dir() or path.suffix.lower() in PARQUET:
        return parquet_side(path)
    return csv_side(path, scratch, delimiter, limits)


def _split(tolerance: str) -> tuple[str, str]:
    column, equals, text = tolerance.rpartition("=")
    if not equals or not column:
        raise SidesRefused(f"--tolerance {tolerance!r} is not COLUMN=VALUE, such as amount=0.01.")
    return column.strip(), text.strip()
