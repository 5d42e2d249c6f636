"""Measure one large delivery through the import flow, over Dask workers and without.

    python benchmarks/scale/run.py --rows 5000000 --workers 0 2

0 is the import in the run's own process. The cases run one after the other on one server, each
with a database of its own; what they leave behind has to be the same.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT), str(ROOT / "benchmarks" / "import" / "cases")]

from clock import busy_seconds, server_seconds  # noqa: E402

from connectors.postgres.server.embedded import embedded_url  # noqa: E402
from data_samples.generate import write_payments  # noqa: E402

LOOK_SECONDS = 0.1
SEED = 7
MIB = 1 << 20
CONTENT = {
    "payment": "*",
    "staged_payment": "*",
    "outcome": "*",
    "note": "*",
    "receipt": "batch_id, extract_id, stage, chunk, first_record, last_record, byte_start, "
    "byte_end, last_line, inside, sha256, verdict, counts, totals",
}
"""Tables and columns that have to be the same; when and by whom is not asked."""
STAGES = ("received", "staged", "checked", "merged", "complete")
Case = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; 1 when the cases left different things behind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bad-share", type=float, default=0.01)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/recon-benchmarks"))
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    asked = parser.parse_args(arguments)
    cache = asked.cache.expanduser().resolve()
    folder = cache / "scale" / f"{asked.rows}-{asked.bad_share}"
    if not (folder / "truth.json").is_file():
        write_payments(folder, asked.rows, asked.bad_share, SEED)
    cases = []
    for workers in asked.workers:
        cases.append({"workers": workers, **run_case(cache, folder / "payments.csv", workers)})
        print(json.dumps(cases[-1]), file=sys.stderr, flush=True)
    table = "\n".join(written(cases))
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / f"scale-{asked.rows}.json").write_text(json.dumps(cases, indent=1))
    (asked.out / f"scale-{asked.rows}.md").write_text(table + "\n")
    print(table)
    return int(len({(case["report"], case["database"]) for case in cases}) > 1)


def run_case(cache: Path, path: Path, workers: int) -> Case:
    """One import: what it took, stage by stage, and the hashes of what it left behind."""
    maintenance = embedded_url(cache / "server", "postgres")
    postmaster = int((cache / "server" / "postmaster.pid").read_text().split()[0])
    name, home = f"scale_{workers}", cache / "scale" / f"home-{workers}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
        connection.execute("CHECKPOINT")
    url = maintenance.replace("/postgres?", f"/{name}?")
    try:
        busy, server = busy_seconds(), server_seconds(postmaster)
        ended, use = watched(path, environment(home, url, workers))
        server = server_seconds(postmaster) - server
        others = busy_seconds() - busy - server - sum(use.cpu.values())
        with psycopg.connect(url) as connection:
            stages = seconds_by_stage(connection, ended["begin"])
            content = content_hash(connection)
        return {
            "wall": round(ended["wall"], 1),
            "stages": stages,
            "cpu": {part: round(seconds, 1) for part, seconds in sorted(use.cpu.items())},
            "server": round(server, 1),
            "others": round(others, 1),
            "peak_mib": {part: round(most) for part, most in sorted(use.peak.items())},
            "state": ended["state"],
            "report": report_hash(home / "recon" / "reports"),
            "database": content,
        }
    finally:
        with psycopg.connect(maintenance, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        shutil.rmtree(home, ignore_errors=True)


def environment(home: Path, url: str, workers: int) -> dict[str, str]:
    """What the run is started with: a Prefect of its own that calls nobody, and the cluster."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT_", "RECON_"))
    }
    return kept | {
        "PYTHONPATH": str(ROOT),
        "RECON_HOME": str(home / "recon"),
        "RECON_DATABASE_URL": url,
        **({"RECON_DASK": f"local:{workers}"} if workers else {}),
        "PREFECT_HOME": str(home / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "DO_NOT_TRACK": "1",
    }


class Use:
    """CPU seconds and the highest sum of resident memory, by part of the process tree."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self.peak: dict[str, float] = {}
        self._seen: dict[psutil.Process, tuple[str, float]] = {}

    def look(self, process: psutil.Process) -> None:
        """Take in what the process and its descendants have used up to now."""
        now: dict[str, float] = defaultdict(float)
        for one in (process, *process.children(recursive=True)):
            try:
                with one.oneshot():
                    part = self._seen[one][0] if one in self._seen else _part(one, process)
                    times = one.cpu_times()
                    self._seen[one] = part, times.user + times.system
                    now[part] += one.memory_info().rss / MIB
            except psutil.Error:
                continue  # It ended while we looked.
        for part, most in now.items():
            self.peak[part] = max(self.peak.get(part, 0.0), most)
        self.cpu = defaultdict(float)
        for part, seconds in self._seen.values():
            self.cpu[part] += seconds


def _part(process: psutil.Process, run: psutil.Process) -> str:
    if process == run:
        return "run"
    command = " ".join(process.cmdline())
    return "prefect server" if "uvicorn" in command or "prefect.server" in command else "workers"


def watched(path: Path, variables: dict[str, str]) -> tuple[dict[str, Any], Use]:
    """Run the flow to its end; what it printed, and what its processes used."""
    command = [sys.executable, str(Path(__file__).parent / "cases" / "flow.py"), str(path)]
    use = Use()
    child = subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process = psutil.Process(child.pid)
    while child.poll() is None:
        if process.status() != psutil.STATUS_ZOMBIE:
            use.look(process)
        time.sleep(LOOK_SECONDS)
    output, errors = child.communicate()
    if child.returncode:
        raise SystemExit(f"the run failed with {child.returncode}:\n{errors[-3000:]}")
    return json.loads(output.strip().splitlines()[-1]), use


def seconds_by_stage(connection: psycopg.Connection, begin: float) -> dict[str, float]:
    """Seconds between the states of the batch, as the ledger's trail has them."""
    at = dict(
        connection.execute(
            "SELECT what, extract(epoch FROM min(at))::float FROM recon.event GROUP BY what"
        ).fetchall()
    )
    found, last = {}, begin
    for state in (*STAGES, "complete_with_errors"):
        if (moment := at.get(f"batch {state}")) is not None:
            found[state] = round(moment - last, 1)
            last = moment
    return found


def content_hash(connection: psycopg.Connection) -> str:
    """Of all rows of what an import fills, in whatever order they are stored."""
    parts = [
        connection.execute(
            "SELECT count(*), sum(hashtextextended(ROW(t.*)::text, 0)::numeric) "
            f"FROM (SELECT {columns} FROM recon.{table}) t"
        ).fetchone()
        for table, columns in CONTENT.items()
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def report_hash(folder: Path) -> str:
    """Of the report files; the manifest beside them has the run's id and time."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("report.*")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def written(cases: Sequence[Case]) -> list[str]:
    """The cases as a table."""
    lines = [
        "Seconds by state are those since the state before it. The last two columns are hashes of "
        "what was left behind: the same in each line, or the script fails.",
        "",
        "| Dask workers | wall s | by state reached | run CPU s | workers CPU s | server CPU s "
        "| others' CPU s | peak MiB run, workers | report | database |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        cpu, peak = case["cpu"], case["peak_mib"]
        stages = ", ".join(f"{name} {seconds}" for name, seconds in case["stages"].items())
        cells = [
            case["workers"] or "none",
            case["wall"],
            stages,
            cpu.get("run", 0),
            cpu.get("workers", 0),
            case["server"],
            case["others"],
            f"{peak.get('run', 0)}, {peak.get('workers', 0)}",
            case["report"][:12],
            case["database"][:12],
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
