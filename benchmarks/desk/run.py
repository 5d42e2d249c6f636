"""Measure the pages of the desk over a run with many records and many breaks.

    python benchmarks/desk/run.py --records 1000000 --breaks 100000

The records are imported and reconciled (`made.py`, minutes). `recon desk` is a process of its own,
and each page is asked for over its socket by somebody who is logged in. Cold is the first request
after the desk was started for it; the others are warm. CPU is that of the desk alone.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT))

from made import PERSON, make_place  # noqa: E402

from connectors.postgres.runs.breaks import Decision  # noqa: E402
from flows.stages.reconcile.breaks import Chosen, decide_breaks, list_breaks  # noqa: E402
from flows.stages.workspace import Workspace  # noqa: E402
from schemas.life import Choice  # noqa: E402
from tests.accounts.people import PASSWORD, logged_in  # noqa: E402
from tests.desk.browser import Browser  # noqa: E402

PAGES = {
    "Home": "/",
    "Run": "/runs/{run}",
    "Breaks, open": "/runs/{run}/breaks?state=open",
    "Breaks, last page, oldest first": "/runs/{run}/breaks?state=open&sort=age&page=99999",
    "Breaks, with a text": "/runs/{run}/breaks?text=999",
    "Breaks, of one figure": "/runs/{run}/breaks?state=open&currency=1&basis=difference",
    "Break": "/runs/{run}/breaks/{break}",
    "Decide, 20 selected": "/runs/{run}/decide?{selected}",
    "Decide, all that match": "/runs/{run}/decide?all=1&state=open",
    "Sign": "/runs/{run}/sign",
    "Batches": "/batches",
    "Batch": "/batches/{batch}",
    "Rejects": "/batches/{batch}/rejects",
    "Trail": "/trail",
    "People": "/people",
}
AFTER = ("Home", "Run", "Breaks, open", "Decide, all that match", "Sign")
"""Pages that are made of breaks, and asked for first after somebody decided about some."""
WAIT = 15
"""Seconds after which what is read ahead should be there."""


@dataclass(frozen=True, slots=True)
class Served:
    """A desk in a process of its own, and somebody who is logged in."""

    process: psutil.Process
    client: httpx.Client

    def get(self, address: str) -> tuple[float, float, int]:
        """Milliseconds of one request, of CPU in the desk likewise, and bytes."""
        before, wall = sum(self.process.cpu_times()[:2]), time.perf_counter()
        answer = self.client.get(address)
        wall = time.perf_counter() - wall
        answer.raise_for_status()
        cpu = sum(self.process.cpu_times()[:2]) - before
        return wall * 1000, cpu * 1000, len(answer.content)

    def peak(self) -> int:
        """MiB it had at the most."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(one.split()[1]) for one in lines if one.startswith("VmHWM")) // 1024


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    home = asked.cache.resolve() / f"desk-{asked.records}-{asked.breaks}"
    home.mkdir(parents=True, exist_ok=True)
    place = make_place(home, asked.records, asked.breaks)
    run, breaks = list_breaks(place, None, Chosen())
    with place.database.connect() as connection:
        (batch,) = connection.execute("SELECT min(id) FROM batch").fetchone() or (1,)
    ids = breaks["id"].to_list()
    words = {
        "run": run.id,
        "batch": batch,
        "break": ids[0],
        "selected": "&".join(f"break={one}" for one in ids[:20]),
    }
    pages = {name: path.format(**words) for name, path in PAGES.items() if name in asked.only}
    codes = ", ".join(
        f"{code} {count:,}" for code, count in breaks["code"].value_counts().iter_rows()
    )
    found, warmed, peak = _measured(place, home, pages, run.id, asked.rounds)
    print(
        "Milliseconds from the request to the whole page. Cold: the first request after the desk "
        "was started for it. After a decision: the first one after breaks were decided about. "
        "Median and p95: later ones. CPU is the desk's alone, without the database.\n"
    )
    print(_table(found))
    print(
        f"\n{asked.records:,} records, {breaks.height:,} breaks, {asked.rounds} warm rounds; "
        f"{codes}; the desk had {peak} MiB "
        f"at the most; Home {WAIT} s after the start {warmed:.0f} ms; "
        f"load {os.getloadavg()[0]:.1f}."
    )
    return 0


def _measured(
    place: Workspace, home: Path, pages: dict[str, str], run: int, rounds: int
) -> tuple[list[dict[str, Any]], float, int]:
    cold: dict[str, float] = {}
    for name, address in pages.items():
        with _served(home) as desk:
            cold[name], _, _ = desk.get(address)
    found = []
    as_person = logged_in(place, PERSON)
    with _served(home) as desk:
        time.sleep(WAIT)
        warmed, _, _ = desk.get("/")
        for name, address in pages.items():
            desk.get(address)
            answers = [desk.get(address) for _ in range(rounds)]
            walls = sorted(wall for wall, *_ in answers)
            after = []
            for round_ in range(3 if name in AFTER else 0):
                assign = Decision(Choice.ASSIGN, "measured", owner=f"{name} {round_}")
                decide_breaks(as_person, run, Chosen(code="AMOUNT", currency=4), assign)
                after.append(desk.get(address)[0])
            found.append(
                {
                    "page": name,
                    "cold": cold[name],
                    "after a decision": median(after) if after else "",
                    "median": median(walls),
                    "p95": walls[min(len(walls) - 1, int(len(walls) * 0.95))],
                    "CPU": sum(cpu for _, cpu, _ in answers) / len(answers),
                    "KB": answers[0][2] / 1000,
                }
            )
        return found, warmed, desk.peak()


@contextmanager
def _served(home: Path) -> Iterator[Served]:
    environment = os.environ | {"RECON_HOME": str(home), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "flows", "desk", "--port", "0"],
        env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("The desk is at ").split(". ")[0].strip()
        browser = Browser(url)
        there = {"next": "/people"}  # A page that is made of no breaks.
        page = browser.open("/login", **there)
        page.send("/login", name=PERSON.name, password=PASSWORD, **there)
        assert page.status == 200, page.text
        browser.client.timeout = httpx.Timeout(300)
        yield Served(psutil.Process(process.pid), browser.client)
        browser.client.close()
    finally:
        process.terminate()
        process.wait(30)


def _table(found: Sequence[dict[str, Any]]) -> str:
    names = [*found[0]]
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for one in found:
        cells = [f"{of:,.0f}" if isinstance(of, float) else str(of) for of in one.values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--breaks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=[*PAGES], default=[*PAGES])
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path.home() / ".cache" / "recon-benchmarks",
        help="the place that is made; removing it is safe",
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
