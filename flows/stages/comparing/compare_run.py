"""A whole comparison: the sides, the question, and where the results go."""

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from decimal import Decimal, localcontext
from functools import partial
from pathlib import Path

from connectors.compare import unreadable
from connectors.compare.differences import Differences
from connectors.compare.results import REPORT, check_names, place_results
from connectors.compare.sides import no_room
from connectors.compare.table_pair import TablePair, table_pair
from connectors.compare.table_side import TableSource, in_parallel
from connectors.errors import SidesRefused
from connectors.files.disk.atomic import private_folder
from connectors.files.disk.scratch import scratch_folder
from connectors.files.disk.system_errors import cure
from connectors.files.incoming.columnar import is_named
from connectors.settings import Limits, read_settings
from flows.report.comparison import as_json, render_html
from flows.stages.comparing.compare import Question, compare_sides, compared_columns
from flows.stages.comparing.compare_places import (
    hashed,
    of_files,
    open_source,
    refuse_no_place,
    refuse_over,
)
from flows.steps.match.cells import Leeway
from flows.steps.match.statuses import Comparison
from flows.steps.match.value_texts import texts

SHOWN = 10
MOST_PARTITIONS = 1 << 10
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MOST = 10**20
"""Beyond any tolerance: differences are compared with 20 digits before the point."""
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
    """Compare two sides and write the results; raises SidesRefused if that is impossible.

    `limits` apply to CSV, as in an import; None: those of this process. `partitions`: the number of
    partitions; None: as many as the limits require.
    """
    limits = limits or read_settings().limits
    question = asked(key, tolerances, ignore)
    for title, place in (("left", left), ("right", right)):
        refuse_no_place(title, place)
        if folder is not None:
            refuse_over(folder, place)
    with _scratch(folder) as scratch:
        with ThreadPoolExecutor(2) as threads:
            files = tuple(threads.map(hashed, (left, right)))
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
        comparison = of_files(comparison, *files)
        if folder is not None:
            summary = json.dumps(as_json(comparison), ensure_ascii=False, indent=2) + "\n"
            pages = {"summary.json": summary, REPORT: render_html(comparison)}
            for name, text in pages.items():
                # Bytes of a name that is not UTF-8 are shown escaped.
                (scratch / name).write_bytes(text.encode(errors="backslashreplace"))
            written = {name: scratch / name for name in pages}
            written |= unreadable.write({"left": pair.left, "right": pair.right}, scratch)
            place_results(found.write() | written, folder)
    return comparison


def _partitions(pair: TablePair, question: Question, limits: Limits) -> int:
    names = [*question.key, *compared_columns(pair.left, pair.right, question)]
    size = pair.left.size(names) + pair.right.size(names)
    return max(1, min(MOST_PARTITIONS, -(-size // limits.compare_bytes)))


@contextmanager
def _scratch(folder: Path | None) -> Iterator[Path]:
    """A folder for data that does not fit in memory; beside the results, where there is room."""
    try:
        if folder is not None:
            check_names(folder)
        with scratch_folder(folder) as scratch:
            if not is_named(scratch):
                raise SidesRefused(
                    f"{scratch.parent}: a part of its name is no text in UTF-8. Name another "
                    "folder with --out."
                )
            yield scratch
    except OSError as error:
        where = folder or tempfile.gettempdir()
        full = no_room(error)
        why = "No space is left" if full else error.strerror or str(error)
        todo = "Free space" if full else cure(error)
        raise SidesRefused(f"{where}: {why}. {todo} or name another folder with --out.") from error


def _sides(
    places: tuple[str, str],
    question: Question,
    scratch: Path,
    delimiter: str | None,
    limits: Limits,
) -> TablePair:
    # Splitting CSV keeps one core busy, and there are two sides.
    with ExitStack() as open_tables:
        opening = [
            partial(
                open_source, place, scratch / name, delimiter, question.key, limits, open_tables
            )
            for place, name in zip(places, ("left", "right"), strict=True)
        ]
        left, right = in_parallel(opening)
        columns = [*question.key, *compared_columns(left, right, question)]
        if isinstance(left, TableSource) and isinstance(right, TableSource):
            return table_pair(left.table, right.table, question.key, columns, scratch)
        tables = [side.table for side in (left, right) if isinstance(side, TableSource)]
        reading = [partial(side.side, columns) for side in (left, right)]
        of_left, of_right = in_parallel(reading, *tables)
        return TablePair(of_left, of_right, 0, "")


def asked(key: str, tolerances: Sequence[str], ignore: Sequence[str]) -> Question:
    """The question, from the arguments of the command line."""
    names = tuple(dict.fromkeys(name.strip() for name in key.split(",") if name.strip()))
    if not names:
        raise SidesRefused("--key names no column. Name what tells rows apart: --key Id,TenantsId.")
    stated: dict[str, str] = {}
    for name, text in map(_split, tolerances):
        if stated.setdefault(name, text) != text:
            raise SidesRefused(
                f"--tolerance {name}={stated[name]} and {name}={text} contradict each other. Give "
                "one of them."
            )
    if both := [name for name in names if name in ignore]:
        raise SidesRefused(
            f"--ignore {both[0]}: it is a part of the key, which tells rows apart. Leave it out of "
            "one of the two."
        )
    leeways = {name: leeway(name, text) for name, text in stated.items()}
    return Question(names, tuple(ignore), leeways, stated)


def leeway(column: str, text: str) -> Leeway:
    """A tolerance as written: 0.01, 0.1% or 2s."""
    match = _LEEWAY.fullmatch(text)
    if match is None:
        raise SidesRefused(
            f"--tolerance {column}={text} is no tolerance. Write a number (0.01), a percentage "
            "(0.1%) or a time (2s, 5m, 1h, 1d); it cannot be negative."
        )
    number, unit = Decimal(match[1]), match[2]
    # Enough digits for an exact result.
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


def _split(tolerance: str) -> tuple[str, str]:
    column, equals, text = tolerance.rpartition("=")
    if not equals or not column:
        raise SidesRefused(f"--tolerance {tolerance!r} is not COLUMN=VALUE, such as amount=0.01.")
    return column.strip(), text.strip()
