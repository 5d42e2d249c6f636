"""Measure the pages of the desk over a run with many breaks.

    python benchmarks/desk/run.py --breaks 100000

A run is written straight into a ledger of its own, with a decision about part of it, and each page
is asked for over the desk's socket. Cold is the first request after the desk was started, and the
first one after a decision; the others are warm.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from statistics import median

import httpx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT))

from connectors.postgres.breaks import Decision  # noqa: E402
from connectors.postgres.database import open_database  # noqa: E402
from connectors.settings import Settings  # noqa: E402
from flows.desk.app import Desk  # noqa: E402
from flows.desk.server import DeskServer  # noqa: E402
from flows.stages.reconcile.breaks import Chosen, decide_breaks  # noqa: E402
from flows.stages.workspace import Workspace  # noqa: E402
from schemas.life import Choice  # noqa: E402
from tests.desk.many import many_breaks  # noqa: E402
from tests.governance.runs import DAY, reconcile  # noqa: E402

PAGES = {
    "home": "/",
    "run": "/runs/{run}",
    "breaks, open": "/runs/{run}/breaks?state=open",
    "breaks, last page": "/runs/{run}/breaks?state=open&sort=age&page=99999",
    "breaks, text": "/runs/{run}/breaks?text=999",
    "breaks, a figure": "/runs/{run}/breaks?state=open&currency=978&basis=difference",
    "breaks, CSV of all": "/runs/{run}/breaks.csv",
}
SCOPE = "everything"


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="recon-desk-") as home:
        settings = Settings(Path(home))
        place = Workspace(settings, open_database(settings))
        run = _prepared(place, asked.breaks)
        found = [*_measured(place, run, asked.rounds)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(_table(found))
    print(
        f"\n{asked.breaks:,} breaks, {asked.rounds} warm rounds; peak {peak} MiB with the making."
    )
    if asked.out:
        asked.out.write_text(json.dumps({"breaks": asked.breaks, "pages": found}, indent=1) + "\n")
    return 0


def _prepared(place: Workspace, rows: int) -> int:
    """The number of a run with breaks, some accepted; there is a small one before it."""
    reconcile(place, many_breaks(100), scope=SCOPE)
    run = reconcile(place, many_breaks(rows), scope=SCOPE, as_of=DAY + timedelta(days=1))
    accept = Decision(Choice.ACCEPT, "bank charges", until=date(2026, 12, 31))
    decide_breaks(place, run.id, Chosen(code="RATE_MISSING"), accept)
    return run.id


def _measured(place: Workspace, run: int, rounds: int) -> Iterator[dict[str, object]]:
    for name, path in PAGES.items():
        address = path.format(run=run)
        # A desk of its own for each page, so that each has a first time.
        with _served(place) as client:
            cold, _, _ = _once(client, address)
            warm = [_once(client, address) for _ in range(rounds)]
            decide_breaks(
                place,
                run,
                Chosen(code="AMOUNT", currency=1),
                Decision(Choice.ASSIGN, "measured", owner=name),
            )
            decided, _, size = _once(client, address)
        walls = sorted(wall for wall, *_ in warm)
        yield {
            "page": name,
            "cold_ms": cold,
            "after_decision_ms": decided,
            "median_ms": median(walls),
            "p95_ms": walls[min(len(walls) - 1, int(len(walls) * 0.95))],
            "cpu_ms": median(cpu for _, cpu, _ in warm),
            "bytes": size,
        }


@contextmanager
def _served(place: Workspace) -> Iterator[httpx.Client]:
    with (
        DeskServer(Desk(place), "127.0.0.1", 0).running() as url,
        httpx.Client(base_url=url, timeout=300) as client,
    ):
        client.get("/static/desk.css")  # The socket is open, and nothing is read.
        yield client


def _once(client: httpx.Client, address: str) -> tuple[float, float, int]:
    """Wall and CPU milliseconds, ours with the client's, and bytes of one request."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = client.get(address)
    answer.raise_for_status()
    return (
        (time.perf_counter() - wall) * 1000,
        (time.process_time() - cpu) * 1000,
        len(answer.content),
    )


def _table(found: Sequence[dict[str, object]]) -> str:
    names = [*found[0]]
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for one in found:
        cells = [f"{of:.0f}" if isinstance(of, float) else str(of) for of in one.values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--breaks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
