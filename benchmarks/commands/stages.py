"""Measure what each stage of an import costs, of many small files and of one with the same rows.

    python benchmarks/commands/stages.py                      # 5,000 files; some minutes
    python benchmarks/commands/stages.py --files 500 --rounds 3

Each delivery is imported by a process of its own into an embedded server of its own. A first round,
which compiles the loops, is not counted.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT), str(Path(__file__).parent)]

from run import ROWS, write_deliveries  # noqa: E402

from connectors.postgres.batches.lease import hold_batch  # noqa: E402
from connectors.postgres.database import open_database  # noqa: E402
from connectors.settings import KIB, read_settings  # noqa: E402
from flows.stages import sequence  # noqa: E402
from flows.stages.receiving.terms import StatedTerms  # noqa: E402
from flows.stages.workspace import Workspace  # noqa: E402

T = TypeVar("T")
TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """Of one stage, in seconds."""

    wall: float
    client: float
    server: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/recon-benchmarks"))
    parser.add_argument("--import-one", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.import_one:
        print(json.dumps(measured(asked.import_one)))
        return 0
    work = asked.cache.expanduser().resolve() / "stages"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    deliveries = {"many": work / "many", "one": work / "one"}
    write_deliveries(deliveries, asked.files)
    found: dict[str, list[dict[str, list[float]]]] = {name: [] for name in deliveries}
    for number in range(-1, asked.rounds):
        for name, folder in deliveries.items():
            seconds = in_process(folder, work)
            if number >= 0:
                found[name].append(seconds)
    print("\n".join(written(found, asked.files)))
    return 0


def in_process(delivery: Path, work: Path) -> dict[str, list[float]]:
    """What an import takes in a process and on a server of its own, by stage."""
    home = work / "home"
    done = subprocess.run(
        [sys.executable, __file__, "--import-one", str(delivery)],
        env=os.environ | {"RECON_HOME": str(home), "NUMBA_CACHE_DIR": str(work / "compiled")},
        capture_output=True,
        text=True,
        check=True,
    )
    shutil.rmtree(home, ignore_errors=True)
    seconds: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def measured(delivery: Path) -> dict[str, Sequence[float]]:
    """Import a delivery; what each stage takes, and the peak memory in MiB."""
    settings = read_settings()
    place = Workspace(settings, open_database(settings))
    server = int((settings.home / "postgres" / "postmaster.pid").read_text().split()[0])
    found: dict[str, Sequence[float]] = {}

    def cost(stage: str, call: Callable[[], T]) -> T:
        before = time.perf_counter(), client_cpu(), server_cpu(server)
        result = call()
        after = time.perf_counter(), client_cpu(), server_cpu(server)
        found[stage] = Cost(*(b - a for a, b in zip(before, after, strict=True)))
        return result

    archived = cost("archive", lambda: sequence.archived(place, [str(delivery)], StatedTerms()))
    with place.database.connect() as connection:
        received = cost("register", lambda: archived.register(connection))
        with hold_batch(connection, received.batch_id) as lease:
            proven = cost("stage", lambda: sequence.stage(place, lease))
            cost("check", lambda: sequence.check(place, lease))
            cost("apply", lambda: sequence.apply(place, lease, proven=proven))
            report = cost("finish", lambda: sequence.push_and_finish(place, lease))
    assert report.verdict == "complete", report.verdict
    status = Path("/proc/self/status").read_text()
    found["peak"] = [int(status.partition("VmHWM:")[2].split()[0]) / KIB]
    return found


def client_cpu() -> float:
    """Of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def server_cpu(postmaster: int) -> float:
    """Of all sessions of a server so far, those that have ended included."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended meanwhile.
        own, ended = map(int, fields[11:13]), map(int, fields[13:15])
        if int(path.parent.name) == postmaster:
            ticks += sum(own) + sum(ended)
        elif int(fields[1]) == postmaster:
            ticks += sum(own)
    return ticks / TICKS


def written(found: dict[str, list[dict[str, list[float]]]], files: int) -> Iterator[str]:
    """The medians of all rounds, and what a small file costs above its rows."""
    yield f"{files:,} files of {ROWS} rows: wall s / client CPU s / server CPU s"
    yield "| stage | many | one | a file above its rows, ms |"
    yield "|---|---|---|---|"
    stages = [name for name in found["many"][0] if name != "peak"]
    sums = {name: [0.0, 0.0, 0.0] for name in found}
    for stage in (*stages, "all"):
        costs = {
            name: sums[name]
            if stage == "all"
            else [statistics.median(of) for of in zip(*(one[stage] for one in runs), strict=True)]
            for name, runs in found.items()
        }
        if stage != "all":
            for name, of in costs.items():
                sums[name] = [a + b for a, b in zip(sums[name], of, strict=True)]
        each = [(a - b) / files * 1000 for a, b in zip(costs["many"], costs["one"], strict=True)]
        cells = [" / ".join(f"{one:.2f}" for one in of) for of in (*costs.values(), each)]
        yield f"| {stage} | " + " | ".join(cells) + " |"
    peaks = [statistics.median(one["peak"][0] for one in runs) for runs in found.values()]
    yield "| peak MiB | " + " | ".join(f"{one:.0f}" for one in peaks) + " | |"


if __name__ == "__main__":
    sys.exit(main())
