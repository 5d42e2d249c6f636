"""Measure the reconciliation of four records that belong together, and the writing of its report.

    python benchmarks/reconcile/four_records.py --payments 1000000

Every case runs in a process of its own, one after the other, and that `--rounds` times; what is
shown is the median. A case that finds other breaks than were planted gets no figure.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(1, str(ROOT))

import psycopg  # noqa: E402
from four_records_truths import make_truths  # noqa: E402
from psycopg import sql  # noqa: E402

from connectors.memory import give_arrays_back  # noqa: E402
from connectors.postgres.server.embedded import embedded_url  # noqa: E402
from schemas.derived.sql import SCHEMA  # noqa: E402

CLOCK = ROOT / "benchmarks" / "import" / "cases"
CASES = ("judge", "report", "reconcile", "broken")
REPORT_PAYMENTS, REPORT_BREAKS = 100_000, 100_000
DATABASE = "four_records"
Run = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; 1 when a case failed."""
    asked = _parser().parse_args(arguments)
    # What is measured begins with the environment that the command makes for itself.
    give_arrays_back()
    cache = asked.cache.resolve()
    runs: dict[str, list[Run]] = defaultdict(list)
    loads: list[float] = []
    failed = 0
    for _ in range(asked.rounds):
        for case in asked.only:
            loads.append(os.getloadavg()[0])
            try:
                run = _run(case, cache, asked.payments)
            except RuntimeError as error:
                failed += 1
                print(f"FAILED {case}: {error}", file=sys.stderr)
                continue
            runs[case].append(run)
            print(case, run, file=sys.stderr, flush=True)
    print(_markdown(asked.payments, runs, loads))
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--payments", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path.home() / ".cache" / "recon-benchmarks",
        help="truths and server; removing it is safe",
    )
    return parser


def _run(case: str, cache: Path, payments: int) -> Run:
    rows = REPORT_PAYMENTS if case == "report" else payments
    folder = cache / f"four-records-{rows}"
    planted = make_truths(folder, rows)
    with tempfile.TemporaryDirectory(dir=cache) as out:
        if case in ("reconcile", "broken"):
            return _reconciled(cache, folder, planted, Path(out), broken=case == "broken")
        if case == "judge":
            run = _measured("four_records_judge.py", folder)
            _proven(run, planted)
            return run
        return _measured("four_records_report.py", folder, Path(out), REPORT_BREAKS)


def _reconciled(
    cache: Path, folder: Path, planted: dict[str, int], home: Path, *, broken: bool
) -> Run:
    """The whole of `recon reconcile` over a database that was imported into and then changed.

    `broken`: every exchange rate is deleted as well, so that nearly every record has a break.
    """
    server = cache / "server"
    maintenance, url = embedded_url(server), embedded_url(server, DATABASE)
    postmaster = (server / "postmaster.pid").read_text().split()[0]
    try:
        _measured("four_records_load.py", url, home, folder)
        # What names a payment that is not there is refused at the door.
        planted = {code: count for code, count in planted.items() if code != "PLAN_ORPHAN"}
        if broken:
            planted |= _without_rates(url, planted)
            del planted["RATE_NOT_LATEST"]
        run = _measured("four_records_reconcile.py", url, home, postmaster)
        _proven(run, planted)
        return run
    finally:
        with psycopg.connect(maintenance, autocommit=True) as connection:
            name = sql.Identifier(DATABASE)
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        shutil.rmtree(home, ignore_errors=True)


def _without_rates(url: str, planted: dict[str, int]) -> dict[str, int]:
    """Delete the exchange rates of the database; the breaks there are of it."""
    with psycopg.connect(url, autocommit=True) as connection:
        rates = connection.execute(f"DELETE FROM {SCHEMA}.currency_rate").rowcount
        found = connection.execute(f"SELECT count(*) FROM {SCHEMA}.payment").fetchone()
        connection.execute("VACUUM ANALYZE")
    missing = planted["MISSING_IN_TARGET"] + rates
    return {"MISSING_IN_TARGET": missing, "RATE_MISSING": found[0] if found else 0}


def _measured(program: str, *arguments: object) -> Run:
    done = subprocess.run(
        [sys.executable, str(HERE / program), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (HERE, CLOCK, ROOT)))},
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    run: Run = json.loads(done.stdout.strip().splitlines()[-1])
    return run


def _proven(run: Run, planted: dict[str, int]) -> None:
    found = run["facts"]["breaks"]
    if found != dict(sorted(planted.items())):
        raise RuntimeError(f"found {found}, planted {planted}")


def _markdown(payments: int, runs: dict[str, list[Run]], loads: list[float]) -> str:
    lines = [
        f"# {payments:,} payments",
        "",
        f"- polars {version('polars')}, {len(os.sched_getaffinity(0))} cores, "
        f"load {min(loads):.1f} to {max(loads):.1f}",
        "",
        f"Medians. `report` writes {REPORT_BREAKS:,} breaks, whatever the number of payments.",
        "",
        "| case | step | runs | wall s | client CPU s | server CPU s | peak MiB |",
        "|" + "---|" * 7,
    ]
    for case, of_case in runs.items():
        steps = list(of_case[0]["parts"])
        for step in ("all", *steps):
            costs = [run if step == "all" else run["parts"][step] for run in of_case]
            figures = [
                median(cost[name] for cost in costs) for name in ("wall", "client", "server")
            ]
            peak = f"{median(run['peak_mib'] for run in of_case):.0f}" if step == "all" else ""
            cells = " | ".join(f"{figure:.2f}" for figure in figures)
            lines.append(f"| {case} | {step} | {len(of_case)} | {cells} | {peak} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
