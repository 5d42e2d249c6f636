"""The first table of the page: ours beside its peers, out of what scripts leave as JSON."""

import json
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HEAD = """\
In short, medians of this run; figures of one line compare. Ours and peers do not do the
same: the parts below say in what they differ.

| | ours | peers |
|---|---|---|
"""


class Line(NamedTuple):
    """One thing that ours and others do."""

    what: str
    """Can name the `rows` of the results."""
    results: str
    """Name of their file, as a pattern."""
    figure: Callable[[Mapping[str, Any]], float]
    """Of a run of a case."""
    form: str
    """How a figure is written."""
    cases: dict[str, str]
    """Name -> case, ours first."""


def _reported(run: Mapping[str, Any]) -> float:
    """Wall, with the recount and the report of whoever makes them."""
    return float(run["wall"] + run.get("parts", {}).get("finish", {"wall": 0})["wall"])


IMPORT = ("import-*.json", itemgetter("wall"), "{:.2f} s")
PUSH = ("push.json", itemgetter("rate"), "{:,.0f}/s")
COMPARE = ("reconcile-*.json", itemgetter("wall"), "{:.2f} s")
LINES = (
    Line("{rows:,} payments from a file into PostgreSQL", *IMPORT,
         {"ours": "ours_clean", "psql upsert": "copy_upsert", "dlt": "dlt_adbc"}),
    Line("the same to the end: ours recounts all rows and writes a report",
         "import-*.json", _reported, "{:.2f} s",
         {"ours": "ours_clean", "psql upsert": "copy_upsert", "dlt": "dlt_adbc"}),
    Line("the same rows once more", *IMPORT,
         {"ours": "ours_unchanged", "psql upsert": "copy_upsert_again"}),
    Line("reading that file, without a database", *IMPORT,
         {"ours": "read_ours", "polars": "read_polars"}),
    Line("PUTs over 32 connections", *PUSH,
         {"ours": "ours-32", "aiohttp": "aiohttp-32", "httpx": "httpx-32", "wrk": "wrk-32"}),
    Line("PUTs over 128 connections to a service that takes 20 ms", *PUSH,
         {"ours": "ours-128-20ms", "aiohttp": "aiohttp-128-20ms", "httpx": "httpx-128-20ms",
          "wrk": "wrk-128-20ms"}),
    Line("two Parquet files of {rows:,} payments compared", *COMPARE,
         {"ours": "ours_parquet", "datacompy": "datacompy_parquet"}),
    Line("the same as CSV", *COMPARE,
         {"ours": "ours_csv", "datacompy": "datacompy_csv"}),
    Line("the same as tables of one database", *COMPARE,
         {"ours": "ours_one_database", "reladiff": "reladiff_one_database"}),
    Line("the same as tables of two databases", *COMPARE,
         {"ours": "ours_two_databases", "reladiff": "reladiff_two_databases"}),
)  # fmt: skip


def summary(out: Path, since: float) -> str:
    """The table, of results that were written to `out` since then; empty where there are none."""
    rows = "".join(_rows(out, since))
    return f"{HEAD}{rows}" if rows else ""


def _rows(out: Path, since: float) -> Iterator[str]:
    for line in LINES:
        results = [path for path in out.glob(line.results) if path.stat().st_mtime >= since]
        if not results:
            continue
        written: dict[str, Any] = json.loads(results[0].read_text(encoding="utf-8"))
        figures = {
            name: line.form.format(median(map(line.figure, written["runs"][case])))
            for name, case in line.cases.items()
            if written["runs"].get(case)
        }
        ours = figures.pop("ours", "-")
        peers = ", ".join(f"{name} {figure}" for name, figure in figures.items())
        yield f"| {line.what.format(**written)} | {ours} | {peers} |\n"
