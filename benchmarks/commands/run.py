"""Measure what commands cost that only read the ledger, and what a small file costs.

    python benchmarks/commands/run.py                     # 5 rounds, 5,000 files; about 5 minutes
    python benchmarks/commands/run.py --files 500 --rounds 3 --only check
    python benchmarks/commands/run.py --beside OTHER      # in turn with another checkout

Each run is a process of its own, from its start to its end, with the interpreter of this script.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT)]

from connectors.postgres.server.embedded import embedded_url  # noqa: E402

READING = (
    "--version",
    "status",
    "row 1 payments.csv --line 259",
    "sends 1",
    "jobs",
    "breaks list",
    "report",
    "audit list",
    "user list",
    "whoami",
    "acceptance list",
    "records list",
    "fields payment",
    "status --help",
)
ALONE = ("status",)
"""Commands that are measured without a server that runs, too: they start and stop it."""
PAYMENTS = (
    "Id,TenantsId,ActionsId,DebtsId,PaymentDate,PaidAmount,DiscountAmount,CurrenciesId,"
    "CurrencyRatesId\n"
)
RATES = (
    "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate\n"
    "9,7,1,2,1.5,2026-01-01T00:00:00\n"
)
ROWS = 10
"""Rows of a small file."""


class Run(NamedTuple):
    """What one process took, in seconds; with the server of the database where it starts it."""

    wall: float
    cpu: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for, and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--only", nargs="+", choices=("reading", "check", "import"))
    parser.add_argument("--beside", type=Path, help="Another checkout, measured in turn.")
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/recon-benchmarks"))
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    asked = parser.parse_args(arguments)
    work = asked.cache.expanduser().resolve() / "commands"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    trees = {"this": ROOT} | ({"beside": asked.beside.resolve()} if asked.beside else {})
    parts = asked.only or ("reading", "check", "import")
    found: dict[str, dict[str, list[Run]]] = {}
    if "reading" in parts:
        found |= reading(trees, work, asked.rounds)
    for command in ("check", "import"):
        if command in parts:
            found |= small_files(command, trees, work, asked.files, min(asked.rounds, 3))
    table = "\n".join(written(found, asked.files))
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "commands.json").write_text(json.dumps(found, indent=1))
    (asked.out / "commands.md").write_text(table + "\n")
    print(table)
    return 0


def reading(trees: dict[str, Path], work: Path, rounds: int) -> dict[str, dict[str, list[Run]]]:
    """The commands after an import and a reconciliation of the clean samples."""
    found: dict[str, dict[str, list[Run]]] = {}
    for tree, root in trees.items():
        run(root, work / f"home-{tree}", "import", str(ROOT / "data_samples" / "clean"))
        run(root, work / f"home-{tree}", "reconcile", may=(0, 1))
    for command in ALONE:
        runs = found.setdefault(f"{command} (server started and stopped)", {})
        for tree, root in [*trees.items()] * rounds:
            runs.setdefault(tree, []).append(run(root, work / f"home-{tree}", *command.split()))
    for tree in trees:
        embedded_url(work / f"home-{tree}" / "postgres")  # Runs until this process ends.
    for command in READING:
        runs = found.setdefault(command, {})
        for tree, root in [*trees.items()] * rounds:
            home = work / f"home-{tree}"
            runs.setdefault(tree, []).append(run(root, home, *command.split(), may=(0, 1)))
    return found


def small_files(
    command: str, trees: dict[str, Path], work: Path, files: int, rounds: int
) -> dict[str, dict[str, list[Run]]]:
    """Many files and one file with the same rows, each delivery to a home of its own."""
    deliveries = {"many": work / "many", "one": work / "one"}
    if not deliveries["one"].exists():
        write_deliveries(deliveries, files)
    found: dict[str, dict[str, list[Run]]] = {}
    for _ in range(rounds):
        for name, folder in deliveries.items():
            for tree, root in trees.items():
                home = work / "home"
                if command == "import":
                    run(root, home, "status")  # The server is set up once a home.
                runs = found.setdefault(f"{command}: {name}", {}).setdefault(tree, [])
                runs.append(run(root, home, command, str(folder)))
                shutil.rmtree(home, ignore_errors=True)
    return found


def write_deliveries(deliveries: dict[str, Path], files: int) -> None:
    """The same payments in many files and in one, with the rate they name."""
    for folder in deliveries.values():
        folder.mkdir()
        (folder / "currency_rates.csv").write_text(RATES)
    with (deliveries["one"] / "payments.csv").open("w") as whole:
        whole.write(PAYMENTS)
        for number in range(files):
            lines = "".join(payment_lines(number * ROWS + 1, ROWS))
            whole.write(lines)
            (deliveries["many"] / f"payments_{number:05}.csv").write_text(PAYMENTS + lines)


def payment_lines(first: int, count: int) -> Iterator[str]:
    """Good payments, numbered from `first` on."""
    for n in range(first, first + count):
        yield f"{n},7,1,2,2026-01-{n % 28 + 1:02}T10:00:00+01:00,{n % 1000}.50,0.5,1,9\n"


def run(root: Path, home: Path, *arguments: str, may: Sequence[int] = (0,)) -> Run:
    """One command of a checkout in a process of its own."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "flows", *arguments],
        cwd=root,
        env=os.environ | {"RECON_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in may:
        raise SystemExit(f"{arguments} of {root} ended with {done.returncode}: {done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall, cpu)


def written(found: dict[str, dict[str, list[Run]]], files: int) -> Iterator[str]:
    """The medians of all runs, and what a small file costs above its rows."""
    trees = list(dict.fromkeys(tree for runs in found.values() for tree in runs))
    yield "Medians. CPU is that of the command, and of the server where the command starts it."
    yield f"`many` is {files:,} files of {ROWS} payments, `one` a file with the same rows; their"
    yield "difference, by file, is what a small file costs above its rows."
    yield ""
    yield "| command | " + " | ".join(f"{one}: wall s | CPU s" for one in trees) + " |"
    yield "|---|" + "---|---|" * len(trees)
    for name, runs in found.items():
        cells = [cell for tree in trees for cell in _medians(runs[tree])]
        yield f"| `{name}` | " + " | ".join(f"{one:.2f}" for one in cells) + " |"
    for command in ("check", "import"):
        if f"{command}: many" in found:
            many, one = found[f"{command}: many"], found[f"{command}: one"]
            each = [
                (a - b) / files * 1000
                for tree in trees
                for a, b in zip(_medians(many[tree]), _medians(one[tree]), strict=True)
            ]
            cells = [f"{ms:.2f} ms" for ms in each]
            yield f"| {command}: a file above its rows | " + " | ".join(cells) + " |"


def _medians(runs: list[Run]) -> tuple[float, float]:
    return (
        statistics.median(one.wall for one in runs),
        statistics.median(one.cpu for one in runs),
    )


if __name__ == "__main__":
    sys.exit(main())
