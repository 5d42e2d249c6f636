"""Measure everything, ours and the peers in one run, and write one page with figures and pictures.

    python -m benchmarks             # some hours, on two cores that have nothing else to do
    python -m benchmarks --trial     # the same on small data: whether all of it runs
    python -m benchmarks --only import growth

The scripts are those of the folders beside this file, one after the other, so that they do not
disturb each other. What each of them prints is a part of `benchmark-results/README.md`; progress
goes to standard error. Nothing in that page depends on the folder it is in.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.summary import summary

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = """\
Only figures of one table compare: they were taken in turn, on the same machine.

| column | what it is |
|---|---|
| wall s | seconds from begin to end |
| client CPU s | user and system, of the process that is measured and its children |
| server CPU s | of all processes of the PostgreSQL server |
| peak MiB | the most resident memory of the client's process |
| others' CPU s | of the rest of the machine meanwhile; where it is large, wall says little |
"""


class Script(NamedTuple):
    """A part of the page."""

    name: str
    title: str
    about: str
    """What is measured beside whom, and what is not comparable."""
    path: str
    whole: str
    """Its arguments."""
    trial: str
    writes: bool = True
    """Whether it takes a folder for its results."""


SCRIPTS = (
    Script("import", "Import beside psql, dlt, DuckDB and polars",
           "One file of payments into PostgreSQL. Ours keeps the text of each row, gives it a "
           "verdict and looks up its exchange rate; psql, dlt and polars check nothing, and dlt, "
           "DuckDB and polars read amounts as doubles.",
           "import/run.py", "--rows 1000000 --rounds 3", "--rows 20000 --rounds 1"),
    Script("feeds", "Feeds that profiles describe",
           "Reading files as others write them, beside payments with our own field names. "
           "Ours only.",
           "feeds/run.py", "--rows 300000 --rounds 9", "--rows 10000 --rounds 1", writes=False),
    Script("history", "A bank's history of rates",
           "A zip with a line a day and a column a currency, by `recon import`; the sums are held "
           "against a count by Python's csv module. Ours only.",
           "feeds/history.py", "--days 7000", "--days 100", writes=False),
    Script("references", "References that lead nowhere",
           "Payments of which none, half or all name an exchange rate that does not exist, "
           "against 400,000 rates. Ours only.",
           "references/run.py", "", "--payments 1000 --rates 2000"),
    Script("push", "Push beside httpx, aiohttp and wrk",
           "PUTs to the least of servers. Ours compares every field of an answer with what was "
           "sent, httpx and aiohttp compare its JSON, wrk only counts answers.",
           "push/run.py", "--requests 20000 --rounds 3", "--requests 500 --rounds 1 --seconds 1"),
    Script("compare", "Compare beside datacompy and reladiff",
           "Two sides of payments with known differences; whoever finds others gets no figure. "
           "Ours reads CSV amounts as decimals and writes three files, datacompy reads them as "
           "doubles and writes Parquet, and reladiff writes nothing.",
           "reconcile/run.py", "--rows 1000000 --rounds 3", "--rows 10000 --rounds 1"),
    Script("reconcile", "Four records that belong together",
           "Payments, exchange rates, invoice files and payment plans, as delivered and as the "
           "database has them, with known faults. Ours only.",
           "reconcile/four_records.py", "--payments 1000000 --rounds 3",
           "--payments 10000 --rounds 1", writes=False),
    Script("desk", "The pages of the desk",
           "Pages over a run with very many breaks, asked for by one person. Ours only.",
           "desk/run.py", "", "--records 5000 --breaks 500 --rounds 2", writes=False),
    Script("scale", "One delivery over several workers",
           "The import flow in one process and over Dask workers of the same machine: it shows "
           "that the results are the same and what sharing costs; a gain needs more cores. Ours "
           "only.",
           "scale/run.py", "--rows 1000000 --workers 0 2", "--rows 20000 --workers 0"),
    Script("bad rows", "What bad rows cost",
           "Each way in which a row can be bad, by the share of such rows. Ours only.",
           "bad_rows/run.py",
           "--rows 300000 --rounds 3 --percents 0 10 100 --commands check import",
           "--rows 1000 --percents 0 100 --commands check"),
    Script("commands", "Commands that read the ledger, and small files",
           "Each command as a process of its own, from its start to its end. Ours only.",
           "commands/run.py", "--rounds 3", "--rounds 1 --files 20"),
    Script("growth", "How time and memory grow",
           "Commands as a user runs them, start of the process included, over deliveries of "
           "growing size and shares of bad rows. Ours only.",
           "growth/run.py",
           "--rows 1000 10000 100000 1000000 10000000 --bad 0 0.1 0.5 --rounds 3",
           "--rows 1000 10000 --bad 0 0.1"),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scripts that the command line asks for; 1 when one of them failed."""
    asked = _parser().parse_args(arguments)
    scripts = [one for one in SCRIPTS if not asked.only or one.name in asked.only]
    asked.out.mkdir(parents=True, exist_ok=True)
    begun = time.time()
    head, parts, failed = _head(scripts, trial=asked.trial), [], []
    for script in scripts:
        done, seconds = _run(script, asked)
        if done.returncode:
            failed.append(script.name)
        parts.append(_part(script, done, seconds, asked))
        page = [head, summary(asked.out, begun), COLUMNS, *parts]
        # What is there stays, whatever becomes of the rest.
        (asked.out / "README.md").write_text("\n".join(filter(None, page)), encoding="utf-8")
    print(f"{asked.out / 'README.md'} is written. Failed: {', '.join(failed) or 'none'}.")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__.splitlines()[0])
    names = [one.name for one in SCRIPTS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="PART", help=", ".join(names))
    parser.add_argument("--trial", action="store_true", help="small data: does all of it run?")
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    return parser


def _run(
    script: Script, asked: argparse.Namespace
) -> tuple["subprocess.CompletedProcess[str]", float]:
    arguments = (script.trial if asked.trial else script.whole).split()
    if script.writes:
        arguments += ["--out", str(asked.out.resolve())]
    begun = time.monotonic()
    print(f"{script.name}: {' '.join(arguments)}", file=sys.stderr, flush=True)
    command = [sys.executable, str(ROOT / "benchmarks" / script.path), *arguments]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return done, time.monotonic() - begun


def _head(scripts: Sequence[Script], *, trial: bool) -> str:
    load = " ".join(f"{one:.2f}" for one in os.getloadavg())
    small = "\nA trial on small data: the figures mean nothing.\n" if trial else ""
    parts = "\n".join(f"- [{one.title}](#{_anchor(one.title)})" for one in scripts)
    return f"""# Figures
{small}
Written by `python -m benchmarks` of {_commit()} on {time.strftime("%Y-%m-%d")}: \
{os.cpu_count()} cores of {_processor()}, {platform.platform()}, \
Python {platform.python_version()}, load before {load}. \
`benchmarks/README.md` says what each case is.

{parts}
"""


def _commit() -> str:
    asked = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(asked, check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return done.stdout.strip() or "an unknown commit"


def _anchor(title: str) -> str:
    """Of a heading, as pages of a repository are shown."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _part(
    script: Script,
    done: "subprocess.CompletedProcess[str]",
    seconds: float,
    asked: argparse.Namespace,
) -> str:
    ended = f"ended with code {done.returncode} after" if done.returncode else "took"
    arguments = script.trial if asked.trial else script.whole
    command = f"python benchmarks/{script.path} {arguments}".strip()
    pictures = [
        f"![{path.stem}]({path.name})" for path in sorted(asked.out.glob(f"{script.name}-*.svg"))
    ]
    # What a script prints is a page of its own.
    printed = re.sub(r"^#", "###", done.stdout.strip(), flags=re.MULTILINE)
    head = [f"## {script.title}", script.about, f"`{command}` {ended} {seconds:,.0f} s."]
    return "\n\n".join([*head, *pictures, printed]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
