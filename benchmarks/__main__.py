"""Measure everything, ours and the peers in one run, and write one page with figures and pictures.

    python -m benchmarks             # some hours, on two cores that have nothing else to do
    python -m benchmarks --trial     # the same on small data: whether all of it runs
    python -m benchmarks --only import growth

The scripts are those of the folders beside this file, one after the other, so that they do not
disturb each other. What each of them prints is a part of `benchmark-results/README.md`.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Script(NamedTuple):
    """A part of the page."""

    name: str
    title: str
    path: str
    whole: str
    """Its arguments."""
    trial: str
    writes: bool = True
    """Whether it takes a folder for its results."""


SCRIPTS = (
    Script("import", "Import beside psql, dlt, DuckDB and polars", "import/run.py",
           "--rows 1000000 --rounds 3", "--rows 20000 --rounds 1"),
    Script("feeds", "Feeds that profiles describe", "feeds/run.py",
           "--rows 300000 --rounds 9", "--rows 10000 --rounds 1", writes=False),
    Script("history", "A bank's history of rates", "feeds/history.py",
           "--days 7000", "--days 100", writes=False),
    Script("references", "References that lead nowhere", "references/run.py",
           "", "--payments 1000 --rates 2000"),
    Script("push", "Push beside httpx, aiohttp and wrk", "push/run.py",
           "--requests 20000 --rounds 3", "--requests 500 --rounds 1 --seconds 1"),
    Script("compare", "Compare beside datacompy and reladiff", "reconcile/run.py",
           "--rows 1000000 --rounds 3", "--rows 10000 --rounds 1"),
    Script("reconcile", "Four records that belong together", "reconcile/four_records.py",
           "--payments 1000000 --rounds 3", "--payments 10000 --rounds 1", writes=False),
    Script("desk", "The pages of the desk", "desk/run.py",
           "", "--records 5000 --breaks 500 --rounds 2", writes=False),
    Script("scale", "One delivery over several workers", "scale/run.py",
           "--rows 1000000 --workers 0 2", "--rows 20000 --workers 0"),
    Script("bad rows", "What bad rows cost", "bad_rows/run.py",
           "--rows 300000 --percents 0 10 100 --commands check import",
           "--rows 1000 --percents 0 100 --commands check"),
    Script("commands", "Commands that read the ledger, and small files", "commands/run.py",
           "--rounds 3", "--rounds 1 --files 20"),
    Script("growth", "How time and memory grow", "growth/run.py",
           "--rows 1000 10000 100000 1000000 10000000 --bad 0 0.1 0.5",
           "--rows 1000 10000 --bad 0 0.1"),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scripts that the command line asks for; 1 when one of them failed."""
    asked = _parser().parse_args(arguments)
    scripts = [one for one in SCRIPTS if not asked.only or one.name in asked.only]
    asked.out.mkdir(parents=True, exist_ok=True)
    parts, failed = [_head(trial=asked.trial)], []
    for script in scripts:
        done, seconds = _run(script, asked)
        if done.returncode:
            failed.append(script.name)
        parts.append(_part(script, done, seconds, asked))
        # What is there stays, whatever becomes of the rest.
        (asked.out / "README.md").write_text("\n".join(parts), encoding="utf-8")
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


def _head(*, trial: bool) -> str:
    load = " ".join(f"{one:.2f}" for one in os.getloadavg())
    small = "\nA trial on small data: the figures mean nothing.\n" if trial else ""
    return (
        "# What was measured\n\nWritten by `python -m benchmarks`; "
        "[benchmarks/README.md](../benchmarks/README.md) says what each case is.\n"
        f"{small}\n{os.cpu_count()} cores, {platform.platform()}, Python "
        f"{platform.python_version()}, load before {load}.\n"
    )


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
    told = [f"# {script.title}", f"`{command}` {ended} {seconds:,.0f} s.", done.stdout.strip()]
    return "\n\n".join([*told, *pictures]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
