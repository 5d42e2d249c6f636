"""How time and memory grow with the rows of a delivery, command by command.

    python benchmarks/growth/run.py --rows 1000 10000 100000 1000000

For each size, and for each share of bad rows (`--bad`, of very large files the first one alone),
the commands are run one after the other on a new database, each in a process of its own, as a user
runs them: what it costs to start is in the figures. Each has to end with the exit code that such a
delivery gives.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks" / part) for part in ("import", "reconcile")]
sys.path.insert(0, str(ROOT))

from cases.clock import busy_seconds, peak_mib, server_seconds  # noqa: E402
from extracts import make_payments, make_rates  # noqa: E402
from measure import Server  # noqa: E402
from sides import make_sides  # noqa: E402

from benchmarks.growth.pictures import picture  # noqa: E402
from benchmarks.rounds import middle  # noqa: E402
from benchmarks.watching import watched  # noqa: E402

SIZES = (1_000, 10_000, 100_000, 1_000_000)
CACHE = Path.home() / ".cache" / "recon-benchmarks"
Figures = dict[str, Any]


class Step(NamedTuple):
    """A command that is measured."""

    name: str
    arguments: tuple[str, ...]
    codes: tuple[int, ...] = (0, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; 1 when a command ended as it should not."""
    asked = _parser().parse_args(arguments)
    cache = asked.cache.resolve()
    server = Server.start(cache)
    os.environ["NUMBA_CACHE_DIR"] = str(cache / "compiled")
    figures: list[Figures] = []
    _compile(server, cache)
    for rows in asked.rows:
        shares = asked.bad if rows <= asked.bad_up_to else asked.bad[:1]
        rounds = asked.rounds if rows <= asked.bad_up_to else 1
        for number, share in enumerate(shares):
            of_step: dict[str, list[Figures]] = {}
            for _ in range(rounds):
                for one in _measured(server, cache, rows, share, with_sides=number == 0):
                    of_step.setdefault(one["step"], []).append(one)
            figures += [middle(runs, itemgetter("cpu")) for runs in of_step.values()]
    asked.out.mkdir(parents=True, exist_ok=True)
    page = _page(figures)
    print(page)
    (asked.out / "growth.md").write_text(page, encoding="utf-8")
    (asked.out / "growth.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for name, unit in (("cpu", "CPU seconds"), ("peak_mib", "MiB at the most")):
        drawn = picture(figures, name, unit)
        (asked.out / f"growth-{name}.svg").write_text(drawn, encoding="utf-8")
    return 1 if any(one["failed"] for one in figures) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--bad", type=float, nargs="+", default=(0.0,), help="shares of bad rows")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--bad-up-to",
        type=int,
        default=1_000_000,
        help="rows; of more the first share alone, and once",
    )
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    return parser


def _compile(server: Server, cache: Path) -> None:
    """Make the compiled loops; `benchmarks/import/compiled.py` shows what that costs a new home."""
    for _ in _measured(server, cache, 10_000, 0, with_sides=False):
        pass


def _measured(
    server: Server, cache: Path, rows: int, share: float, *, with_sides: bool
) -> Iterator[Figures]:
    """All commands on deliveries of one size; those on two `sides` know no share of bad rows."""
    payments = make_payments(cache / "extracts", rows, share)
    rates = make_rates(cache / "extracts")
    make_sides(cache / "sides", rows)
    home = Path(tempfile.mkdtemp(prefix="growth-", dir=cache))
    sides = [str(cache / "sides" / f"{side}-{rows}") for side in ("left", "right")]
    compare = ("compare", "--key", "Id,TenantsId", "--out", str(home / "differences"))
    steps = [
        Step("check", ("check", str(payments))),
        Step("import", ("import", str(payments))),
        Step("rejects", ("rejects", "2", "--out", str(home / "rejects"))),
        Step("reconcile", ("reconcile",)),
        Step("undo", ("undo", "2", "--reason", "measured")),
    ]
    if with_sides:
        steps += [
            Step(f"compare {form}", (*compare, *(f"{side}.{form.lower()}" for side in sides)), (1,))
            for form in ("CSV", "Parquet")
        ]
    try:
        with server.database("growth") as url:
            environment = os.environ | {"RECON_HOME": str(home), "RECON_DATABASE_URL": url}
            before = _run(Step("import", ("import", str(rates))), environment, server)
            if before["failed"]:
                raise SystemExit(f"The rates could not be imported:\n{before['failed']}")
            for step in steps:
                server.settle()
                figure = {"rows": rows, "bad": share, **_run(step, environment, server)}
                print(json.dumps(figure), file=sys.stderr, flush=True)
                yield figure
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(step: Step, environment: dict[str, str], server: Server) -> Figures:
    busy, spent, begin = busy_seconds(), server_seconds(server.postmaster), time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows", *step.arguments],
            stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=ROOT,
        )  # fmt: skip
        usage, peak = watched(process, peak_mib)
        wall = time.perf_counter() - begin
        output.seek(0)
        printed = output.read()
    client = usage.ru_utime + usage.ru_stime
    of_server = server_seconds(server.postmaster) - spent
    others = max(0.0, busy_seconds() - busy - client - of_server)
    return {
        "step": step.name, "wall": round(wall, 2), "client": round(client, 2),
        "server": round(of_server, 2), "cpu": round(client + of_server, 2),
        "peak_mib": round(peak), "others": round(others, 1),
        "failed": "" if process.returncode in step.codes else printed[-2000:] or "failed",
    }  # fmt: skip


def _page(figures: list[Figures]) -> str:
    heads = ("command", "rows", "bad", "wall s", "client CPU s", "server CPU s",
             "both, least - most", "peak MiB", "others' CPU s", "CPU / CPU of a tenth")  # fmt: skip
    lines = [
        "The run of median CPU of all rounds, with the largest peak of all. "
        "The last column is the CPU of a delivery over that of one with a tenth of its rows: "
        "10 is growth in step with the rows, less is better.",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    steps = list(dict.fromkeys(one["step"] for one in figures))
    for one in sorted(figures, key=lambda one: (steps.index(one["step"]), one["bad"], one["rows"])):
        same = [o for o in figures if (o["step"], o["bad"]) == (one["step"], one["bad"])]
        before = next((o for o in same if o["rows"] * 10 == one["rows"]), None)
        growth = f"{one['cpu'] / before['cpu']:.1f}" if before and before["cpu"] else ""
        cells = (one["step"], f"{one['rows']:,}", f"{one['bad']:.0%}",
                 *("FAILED" if one["failed"] else f"{one[name]:.2f}" for name in ("wall",)),
                 f"{one['client']:.2f}", f"{one['server']:.2f}",
                 f"{one['least']:.2f} - {one['most']:.2f}", f"{one['peak_mib']}",
                 f"{one['others']:.1f}", growth)  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
