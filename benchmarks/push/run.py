"""Measure our service client beside httpx, aiohttp and wrk against the least of servers.

    python benchmarks/push/run.py --requests 20000

Every case runs in a process of its own against a server of its own, one after the other, and that
`--rounds` times; what is shown is the median.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT), str(ROOT / "benchmarks" / "import" / "cases")]

from comparison import CASES, RATIOS, Case  # noqa: E402
from measure import WRK, CaseFailed, Place, Run, run_case  # noqa: E402

from benchmarks.environments import PEERS, peer_python, versions  # noqa: E402
from connectors.postgres.server.embedded import embedded_url  # noqa: E402

Runs = dict[str, list[Run]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; 1 when a case failed."""
    asked = _parser().parse_args(arguments)
    cases = [case for case in CASES if not asked.only or case.name in asked.only]
    if WRK is None and any(case.client == "wrk" for case in cases):
        print("wrk is not installed (Debian package wrk): its cases are left out", file=sys.stderr)
        cases = [case for case in cases if case.client != "wrk"]
    cache = asked.cache.expanduser().resolve()
    cache.mkdir(parents=True, exist_ok=True)
    needed = {"server", *(case.client for case in cases)} & PEERS.keys()
    peers = {name: peer_python(name, cache) for name in sorted(needed)}
    written = any(case.client == "ours_written_ahead" for case in cases)
    database = embedded_url(cache / "server", "push") if written else None
    place = Place(peers, database, asked.requests, asked.seconds)
    runs: Runs = defaultdict(list)
    failed: set[str] = set()
    for number in range(1, asked.rounds + 1):
        for case in cases:
            if case.name in failed:
                continue
            try:
                runs[case.name].append(run_case(case, place))
            except CaseFailed as failure:
                failed.add(case.name)
                print(f"FAILED {failure}", file=sys.stderr)
                continue
            _tell(number, case, runs[case.name][-1])
    machine = _machine(peers)
    report = markdown(asked.requests, cases, runs, machine)
    print(report)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "push.md").write_text(report, encoding="utf-8")
    results = {"machine": machine, "runs": runs, "ratios": ratios(runs), "failed": sorted(failed)}
    (asked.out / "push.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


def markdown(requests: int, cases: Sequence[Case], runs: Runs, machine: dict[str, str]) -> str:
    """The tables of a report."""
    lines = [f"# {requests:,} PUTs", ""]
    lines += [f"- {name}: {value}" for name, value in machine.items()]
    lines += [
        "",
        "Medians. Latency is what the server waits before it answers. CPU ms/request is that of "
        "the client alone; the server is among the others.",
        "",
        "| client | connections | latency ms | requests/s (least-most) | CPU ms/request "
        "| peak MiB | others' CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        if not runs.get(case.name):
            continue
        rates = [run["rate"] for run in runs[case.name]]
        lines.append(
            f"| {case.client} | {case.connections} | {case.latency * 1000:.0f} "
            f"| {median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f}) "
            f"| {_median(runs[case.name], 'cpu_ms'):.3f} "
            f"| {_median(runs[case.name], 'peak_mib'):.0f} "
            f"| {_median(runs[case.name], 'others'):.1f} |"
        )
    lines += ["", "More than 1: the first of the two sends more requests a second.", ""]
    lines += ["| ratio of rates | times |", "|---|---|"]
    lines += [f"| {name} | {value:.2f} |" for name, value in ratios(runs).items()]
    return "\n".join(lines) + "\n"


def ratios(runs: Runs) -> dict[str, float]:
    """How many times faster than what."""
    return {
        name: _median(runs[one], "rate") / _median(runs[other], "rate")
        for name, one, other in RATIOS
        if runs.get(one) and runs.get(other)
    }


def _median(runs: list[Run], name: str) -> float:
    return median(run[name] for run in runs)


def _tell(number: int, case: Case, run: Run) -> None:
    print(
        f"round {number}  {case.name:30s} {run['rate']:9.0f}/s  {run['cpu_ms']:7.3f} ms CPU  "
        f"{run['peak_mib']:5.0f} MiB  others {run['others']:5.1f}",
        file=sys.stderr,
        flush=True,
    )


def _machine(peers: dict[str, Path]) -> dict[str, str]:
    cpu = next(
        (line.split(":", 1)[1].strip()
         for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")),
        platform.processor(),
    )  # fmt: skip
    machine = {
        "cores": f"{len(os.sched_getaffinity(0))} of {cpu}, one for the server, one for the client",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "python": platform.python_version(),
        "ours": ", ".join(f"{name} {version(name)}" for name in ("httptools", "psycopg")),
    }
    for peer, python in peers.items():
        machine[peer] = ", ".join(f"{name} {number}" for name, number in versions(python).items())
    if WRK is None:
        machine["wrk"] = "not installed, so its cases are left out"
    else:
        banner = subprocess.run([WRK, "-v"], check=False, capture_output=True, text=True).stdout
        machine["wrk"] = banner.split("\n", 1)[0]
    return machine


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="how long wrk runs")
    names = [case.name for case in CASES]
    parser.add_argument("--only", nargs="+", choices=names, metavar="CASE", help=", ".join(names))
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path.home() / ".cache" / "recon-benchmarks",
        help="server and the environments of the peers; removing it is safe",
    )
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
