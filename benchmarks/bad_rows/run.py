"""Measure what bad rows cost: `recon check`, `recon check --json` and `recon import`.

    python benchmarks/bad_rows/run.py --rows 300000               # half an hour
    python benchmarks/bad_rows/run.py --rows 1000000 --only "nine reasons" --percents 100

Every way in which a row can be bad is a delivery of its own, with each share of bad rows. A command
is a process, and an import has a database and a home of its own.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT), str(ROOT / "benchmarks" / "import" / "cases")]

from clock import peak_mib, server_seconds  # noqa: E402
from deliveries import BY_NAME, WAYS, Way, write_delivery  # noqa: E402

from benchmarks.rounds import middle  # noqa: E402
from connectors.postgres.server.embedded import embedded_url  # noqa: E402

LOOK_SECONDS = 0.01
COMMANDS = {"check": ("check",), "json": ("check", "--json"), "import": ("import",)}
Figure = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--percents", type=int, nargs="+", default=[0, 1, 10, 100])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=BY_NAME, default=list(BY_NAME))
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/recon-benchmarks"))
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    asked = parser.parse_args(arguments)
    bench = Bench(asked.cache.expanduser().resolve() / "bad_rows")
    # The first commands compile the loops, and do not count.
    for command in asked.commands:
        bench.run(command, WAYS[0], 100_000, 1)
    figures: list[Figure] = []
    sound = {}
    for percent in asked.percents:
        for name in asked.only:
            way = BY_NAME[name]
            for command in asked.commands:
                # Good rows are the same in every way, but for what the commands are asked for.
                of = (command, way.options, way.profile)
                if percent == 0 and of in sound:
                    figure = sound[of] | {"way": name}
                else:
                    runs = [
                        bench.run(command, way, asked.rows, percent) for _ in range(asked.rounds)
                    ]
                    figure = middle(runs, _cpu)
                    print(json.dumps(figure), file=sys.stderr, flush=True)
                if percent == 0:
                    sound[of] = figure
                figures.append(figure)
    table = "\n".join(written(figures, asked.percents))
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / f"bad-rows-{asked.rows}.json").write_text(json.dumps(figures, indent=1))
    (asked.out / f"bad-rows-{asked.rows}.md").write_text(table + "\n")
    print(table)
    return 0


class Bench:
    """A folder with the server, and what one run after the other writes."""

    def __init__(self, cache: Path) -> None:
        self.server, self.work = cache / "server", cache / "work"
        self.compiled = cache / "compiled"
        self.maintenance = embedded_url(self.server, "postgres")
        self.postmaster = int((self.server / "postmaster.pid").read_text().split()[0])

    def run(self, command: str, way: Way, rows: int, percent: int) -> Figure:
        """What one command costs on one delivery."""
        shutil.rmtree(self.work, ignore_errors=True)
        paths = write_delivery(self.work / "delivery", way, rows, percent)
        options = list(way.options)
        if way.profile:
            (self.work / "profile.toml").write_text(way.profile)
            options += ["--profile", str(self.work / "profile.toml")]
        with psycopg.connect(self.maintenance, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS bad_rows WITH (FORCE)")
            connection.execute("CREATE DATABASE bad_rows")
        settings = {
            "RECON_HOME": str(self.work / "home"),
            "RECON_DATABASE_URL": self.maintenance.replace("/postgres?", "/bad_rows?"),
            "NUMBA_CACHE_DIR": str(self.compiled),
            "PYTHONPATH": str(ROOT),
        }
        if command == "import":
            self._call(["status"], settings)  # Makes the tables.
            with psycopg.connect(self.maintenance, autocommit=True) as connection:
                connection.execute("CHECKPOINT")
        cost = self._call([*COMMANDS[command], *paths, *options], settings)
        of = {"way": way.name, "percent": percent, "rows": rows, "command": command}
        return of | cost

    def _call(self, arguments: Sequence[str], settings: dict[str, str]) -> Figure:
        before, begin, peak = server_seconds(self.postmaster), time.perf_counter(), 0.0
        with (self.work / "out.txt").open("wb") as output, (self.work / "err.txt").open("wb") as no:
            process = subprocess.Popen(
                [sys.executable, "-m", "flows", *arguments],
                stdout=output,
                stderr=no,
                env=os.environ | settings,
            )
            while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
                peak = max(peak, peak_mib(process.pid))
                time.sleep(LOOK_SECONDS)
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        if process.returncode not in (0, 1):
            raise SystemExit(f"{arguments}: {(self.work / 'err.txt').read_text()[-3000:]}")
        return {
            "wall": round(time.perf_counter() - begin, 2),
            "client": round(ended[2].ru_utime + ended[2].ru_stime, 2),
            "server": round(server_seconds(self.postmaster) - before, 2),
            "peak": round(peak),
            "exit": process.returncode,
        }


def _cpu(figure: Figure) -> float:
    return float(figure["client"] + figure["server"])


def written(figures: Sequence[Figure], percents: Sequence[int]) -> Iterator[str]:
    """The tables of all cases: CPU seconds, client and server together, and peak memory."""
    yield "CPU seconds of client and server together, median (least - most), and the most memory,"
    yield "by the share of bad rows."
    yield "`times clean` is the CPU of each further share over that of the first."
    yield ""
    for command in dict.fromkeys(one["command"] for one in figures):
        shares = " | ".join(f"{percent} %" for percent in percents)
        yield f"| `{command}` | {shares} | times clean |"
        yield "|---|" + "---|" * (len(percents) + 1)
        for way in dict.fromkeys(one["way"] for one in figures):
            of = {
                one["percent"]: one
                for one in figures
                if (one["way"], one["command"]) == (way, command)
            }
            cells = [
                f"{_cpu(of[percent]):.1f} s ({of[percent]['least']:.1f} - "
                f"{of[percent]['most']:.1f}), {of[percent]['peak']} MiB"
                for percent in percents
            ]
            spent = [_cpu(of[percent]) for percent in percents]
            times = ", ".join(f"{one / spent[0]:.2f}" for one in spent[1:])
            yield f"| {way} | {' | '.join(cells)} | {times} |"
        yield ""


if __name__ == "__main__":
    sys.exit(main())
